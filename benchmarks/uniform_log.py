"""Writes the log of a SIMULATED uniform run as a run's folder, with references, embeddings and categories.

    python benchmarks/uniform_log.py runs/simulated-uniform
    rollwise simulate --replay runs/simulated-uniform --shadow

What estimators would predict of it is in benchmarks/results/simulation.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rollwise.curricula import Uniform
from rollwise.runs.names import METRICS_FILE, PROMPTS_FILE, ROLLOUTS_FILE
from rollwise.simulation import make_world
from rollwise.tickets.outcome import Outcome

BATCH, GROUP = 32, 16


def write_log(folder: Path, *, num_prompts: int, steps: int, seed: int) -> None:
    """Train a simulated learner on uniform batches, and write what was rolled out."""
    world, pool = make_world(num_prompts, seed=seed)
    curriculum = Uniform(pool, seed=seed)
    lines: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        tickets = curriculum.ask(BATCH)
        slots = pool.slots_of([ticket.prompt_id for ticket in tickets])
        rewards = world.rollout(slots, GROUP)
        curriculum.tell([Outcome(t.id, group) for t, group in zip(tickets, rewards, strict=True)])
        world.train(slots, rewards)
        for ticket, slot, group in zip(tickets, slots, rewards, strict=True):
            known = {"category": pool.columns["category"][slot], "rewards": group.tolist(), "lane": ticket.lane}
            lines.append({"step": step, "ticket": ticket.id, "prompt_id": ticket.prompt_id, **known})
    names = ("reference_pass_rates", "embedding", "difficulty")
    prompts = [
        {"step": 1, "prompt_id": id_, "columns": {name: pool.columns[name][slot].tolist() for name in names}}
        for slot, id_ in enumerate(pool.ids)
    ]
    folder.mkdir(parents=True)
    files = {ROLLOUTS_FILE: lines, PROMPTS_FILE: prompts, METRICS_FILE: [{"step": s} for s in range(1, steps + 1)]}
    for name, rows in files.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sizes = {"steps": steps, "prompts_per_step": BATCH, "num_generations": GROUP, "seed": seed}
    config = {"kind": "simulated", "curriculum": "uniform", **sizes}
    (folder / "config.yaml").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")  # JSON is YAML


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--num_prompts", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write_log(given.folder, num_prompts=given.num_prompts, steps=given.steps, seed=given.seed)
