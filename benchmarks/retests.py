"""Retests of prioritized replay in the batch and beside it, on a frozen policy: `python benchmarks/retests.py`.

The paper's set-up (section 5): 1,000 prompts, 62 % of them hopeless, 4 a step, 8 rollouts each, 250 steps; 3 seeds.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

import rollwise as rw

PROMPTS, HOPELESS, BATCH, GROUP, STEPS, SEEDS = 1000, 0.62, 4, 8, 250, 3


def run(retests: Literal["batch", "extra"] | None, seed: int) -> list[float]:
    """Steps of retests alone, share of retested groups that are mixed, trained groups that are mixed, rollouts, A^2.

    `retests` None is uniform sampling.
    """
    rng = np.random.default_rng(seed)
    rates = np.where(rng.random(PROMPTS) < HOPELESS, 0.0, rng.random(PROMPTS))
    pool = rw.PromptPool(ids=[str(i) for i in range(PROMPTS)])
    curriculum = (
        rw.Uniform(pool, seed=seed) if retests is None else rw.PrioritizedReplay(pool, seed=seed, retests=retests)
    )
    alone, retested, trained, squares, rollouts = 0, [], [], [], 0
    for step in range(1, STEPS + 1):
        probes = curriculum.probe(BATCH, step=step, n_rollouts=GROUP)
        tickets = curriculum.ask(BATCH, step=step)
        alone += all(ticket.lane.startswith("retest") for ticket in tickets)
        for ticket in [*probes, *tickets]:
            rewards = (rng.random(GROUP) < rates[int(ticket.prompt_id)]).astype(float)
            curriculum.tell([rw.Outcome(ticket.id, rewards)])
            mixed = 0 < rewards.mean() < 1
            rollouts += GROUP
            if ticket.lane.startswith("retest"):
                retested.append(mixed)
            if ticket.purpose == "train":
                trained.append(mixed)
                squares.append(rewards.var())
    return [alone, np.mean(retested) if retested else np.nan, np.mean(trained), rollouts, np.mean(squares)]


def main() -> None:
    """Print the table."""
    for retests in (None, "batch", "extra"):
        alone, retested, trained, rollouts, square = np.mean([run(retests, seed) for seed in range(SEEDS)], axis=0)
        print(
            f"{retests or 'uniform':8} steps of retests alone {alone:5.1f}   retested groups mixed {retested:5.1%}   "
            f"trained groups mixed {trained:5.1%}   rollouts {rollouts:,.0f}   mean A^2 {square:.3f}"
        )


if __name__ == "__main__":
    main()
