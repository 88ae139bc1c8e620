"""What METIS's judge is shown: how often low, moderate and high variances stand together in a context.

    python benchmarks/exemplars.py [--prompts 4000] [--batch 32] [--steps 60] [--seeds 5]

No model: the answers are the true variances p(1-p), a frozen policy makes 8 rollouts of each chosen prompt, and METIS
is the paper's (K = 3, m = 8, no exploration). Low, moderate and high are the thirds of [0, 1/4], after rounding as the
paper prints variances. The first step, whose memory is empty, is left out. `none` is the same with answers that can't
be read, so that chance chooses. Also: the mean over contexts of the greatest less the least variance shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import rollwise as rw
from rollwise.judges import ExemplarChoice

POOLS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.random(n),
    "Beta(0.3, 0.3)": lambda rng, n: rng.beta(0.3, 0.3, n),
    "80 % hopeless": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.random(n)),
}
CHOICES: tuple[ExemplarChoice, ...] = ("newest", "spread")
GROUP = 8


def contexts(pool_name: str, choice: ExemplarChoice, judge: str, seed: int, options: argparse.Namespace) -> np.ndarray:
    """(contexts, 2): whether all three thirds are shown, and the range of the variances shown."""
    rng = np.random.default_rng(seed)
    rates = POOLS[pool_name](rng, options.prompts)
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(options.prompts)])
    metis = rw.METIS(pool, seed=seed, exemplar_choice=choice, rails="off")
    found = []
    for step in range(options.steps):
        questions = metis.consult(options.batch)
        p = rates[pool.slots_of([q.prompt_id for q in questions])]
        said = [f"\\boxed{{{v:.6f}}}" if judge == "true" else "?" for v in p * (1 - p)]
        metis.advise([rw.Answer(q.id, text) for q, text in zip(questions, said, strict=True)])
        tickets = metis.ask(options.batch, n_rollouts=GROUP)
        solved = rng.random((len(tickets), GROUP)) < rates[pool.slots_of([t.prompt_id for t in tickets])][:, None]
        metis.tell([rw.Outcome(t.id, own.astype(float).tolist()) for t, own in zip(tickets, solved, strict=True)])
        if step:
            shown = [[e.variance for e in q.exemplars] for q in questions]
            found += [(len({min(int(v * 12), 2) for v in own}) == 3, max(own) - min(own)) for own in shown]
    return np.array(found, dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("prompts", 4000), ("batch", 32), ("steps", 60), ("seeds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    print("| pool | answers | exemplars | all three together | range shown |\n|---|---|---|--:|--:|")
    for pool_name in POOLS:
        for judge in ("true", "none"):
            for choice in CHOICES:
                runs = [contexts(pool_name, choice, judge, seed, options) for seed in range(options.seeds)]
                together, width = np.concatenate(runs).mean(axis=0)
                print(f"| {pool_name} | {judge} | {choice} | {together:.1%} | {width:.3f} |", flush=True)


if __name__ == "__main__":
    main()
