"""Makes starting policies for plans: warm starts that differ in the seed alone, each in a folder of its own.

    python examples/compare/make_starts.py reversal --seeds 1 2                          # starts/reversal-1, -2
    python examples/compare/make_starts.py countdown --seeds 0 1 2 --hidden_size 160 --num_layers 4 --name countdown-1m

A plan then varies the start with the run's seed: `starts: [starts/reversal, starts/reversal-1, starts/reversal-2]`.
Embedded policies, as `rollwise train --model embedded` makes them; a minute of two cores each at the default size.
What is there already is kept, and a warm start that was interrupted goes on, so the command can be given again.
`rollwise profile TASK --model FOLDER` shows what a start solves; its README.md has more.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import fields
from pathlib import Path

from rich.progress import Progress

from rollwise.models import EMBEDDED, EmbeddedConfig, embedded_policy, task_for

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="as for `rollwise train`")
    parser.add_argument("--options", type=json.loads, default={}, help="the task's options, as JSON")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="a policy each; the shipped ones have 0")
    parser.add_argument("--name", help="folders are called NAME-SEED; by default the task's name")
    parser.add_argument("--out", type=Path, default=HERE / "starts", help="the folder that they are put in")
    parser.add_argument("--device", default="cpu", help='where the warm starts run, such as "cuda"')
    for field in fields(EmbeddedConfig):
        kind = float if field.name == "learning_rate" else int
        parser.add_argument(f"--{field.name}", type=kind, default=field.default, help=f"default {field.default}")
    options = parser.parse_args()
    config = EmbeddedConfig(**{field.name: getattr(options, field.name) for field in fields(EmbeddedConfig)})
    task = task_for(EMBEDDED, options.task, options.options)
    with Progress() as bar:
        for seed in options.seeds:
            place = options.out / f"{options.name or options.task}-{seed}"
            row = bar.add_task(place.name, total=config.sft_steps)
            if place.exists():
                bar.console.print(f"{place} is there already")
                continue
            made = embedded_policy(
                task,
                seed=seed,
                config=config,
                progress=lambda done, total, row=row: bar.update(row, completed=done),
                device=options.device,
            )
            shutil.copytree(made, place)
            bar.console.print(place)


if __name__ == "__main__":
    main()
