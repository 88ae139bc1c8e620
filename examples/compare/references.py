"""Makes the reference pass rates that BOTS needs in the plans of this folder: two models' profiles of every run's pool.

    python examples/compare/references.py                                            # all plans, all seeds
    python examples/compare/references.py reversal-hopeless --seeds 0 1 2            # a part of it
    python examples/compare/references.py my/plan.yaml                               # into my/references

The weak model is the policy that the run of the seed starts from. The strong one is the same policy after 150 steps of
GRPO with 64 prompts a step, on the task without its unsolvable prompts. Both are rolled out 8 times on every prompt of
a run's pool, which `rollwise profile` joins into `references/PLAN/seedS`. What is there already is kept, so the command
can be given again. It prints what the references cost, which no run is charged for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rollwise.comparing import read_plan

HERE = Path(__file__).parent
PLANS = [f"{task}-{regime}" for task in ("reversal", "countdown") for regime in ("hopeless", "one-pass", "revisit")]
UNSOLVABLE = ("broken", "foreign")  # the tasks' options that make prompts unsolvable
STEPS = 150
SEED = 1000  # of the strong model's training: no run of a plan has it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="*", default=PLANS, help="plans here, or files; by default those of all tables")
    parser.add_argument("--seeds", nargs="+", type=int, help="by default the plan's")
    parser.add_argument("--out", type=Path, help="by default `references` beside the plan")
    options = parser.parse_args()
    for name in options.plans:
        path = Path(name) if name.endswith(".yaml") else HERE / f"{name}.yaml"
        plan, out = read_plan(path), options.out or path.parent / "references"
        for seed in options.seeds or plan.every_seed:
            weak = Path(plan.config(plan.baseline, seed, Path()).model)
            strong = trained(plan.base, weak, out)
            made = references(plan.base, seed, weak, strong, out / plan.name)
            print(f"{made}: {spent(made) + spent(weak_folder(made)):,.0f} tokens", flush=True)


def trained(base: dict[str, Any], start: Path, out: Path) -> Path:
    """The strong model's folder."""
    run = out / f"strong-{start.name}"
    final = run / "checkpoints" / f"checkpoint-{STEPS}"
    if not final.exists():
        task = {key: value for key, value in base["task_options"].items() if key not in UNSOLVABLE}
        given = ["--resume", run] if (run / "config.yaml").exists() else ["--out", run, *task_of(base, task)]
        new = [*("--model", start, "--curriculum", "uniform", "--steps", STEPS, "--prompts_per_step", 64)]
        new += ["--learning_rate", base["learning_rate"], "--save_every", 50, "--eval_every", 50, "--seed", SEED]
        rollwise("train", *given, *(new if "--out" in given else []))
    print(f"{final}: {last_line(run / 'metrics.jsonl')['tokens']:,.0f} tokens", flush=True)
    return final


def references(base: dict[str, Any], seed: int, weak: Path, strong: Path, out: Path) -> Path:
    """The joined profile's folder, of the pool of one seed."""
    joined = out / f"seed{seed}"
    options = ["--task_options", json.dumps(base["task_options"]), "--seed", seed]
    options += ["--pool_prompts", base["num_prompts"], "--num_prompts", "all"]
    options += ["--num_generations", 8, "--batch_size", 1024]
    for model, folder, join in ((weak, weak_folder(joined), []), (strong, joined, ["--join", weak_folder(joined)])):
        if not (folder / "profile.json").exists():
            rollwise("profile", base["task"], "--model", model, *options, *join, "--out", folder)
    return joined


def weak_folder(joined: Path) -> Path:
    return joined.with_name(f"{joined.name}-weak")


def task_of(base: dict[str, Any], options: dict[str, Any]) -> list[Any]:
    return ["--task", base["task"], "--task_options", json.dumps(options)]


def spent(profile: Path) -> float:
    """Tokens that a profile generated."""
    with open(profile / "pass_rates.jsonl", encoding="utf-8") as lines:
        return sum(row["mean_tokens"] * row["rollouts"] for row in map(json.loads, lines))


def last_line(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8").splitlines()[-1]))


def rollwise(*arguments: object) -> None:
    command = [sys.executable, "-m", "rollwise", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
