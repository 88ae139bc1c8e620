"""The tables of benchmarks/results/inference.md: what a success head saves, on five fresh policies or samples a task.

    python examples/head_study.py compact reversal search           # some minutes a seed; killed, it goes on
    python examples/head_study.py letters --model path/to/model     # needs: pip install reasoning-gym==0.1.25
    python examples/head_study.py search --method paper             # ZIP-RC-Lite's own head: rows of `search-paper`
    python examples/head_study.py --tables                          # prints them from what is there

A seed is everything anew: the embedded policy's warm start, the prompts, the rollouts, the head. With a model of one's
own the model stays and the rest is new. A row a seed and setting goes to benchmarks/results/inference. The head is
ours, `head fit` with every default, or with `--method paper` that of the paper's Table 7, on the same rollouts.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "inference"
TASKS: dict[str, dict[str, Any]] = {
    "compact": {"data": "countdown", "options": {"style": "compact", "levels": [1, 2, 3]}},
    "reversal": {"data": "reversal", "options": {}},
    "search": {"data": "countdown", "options": {"style": "search", "levels": [1, 2]}},
    "letters": {"data": "letters.jsonl", "options": {}, "prompts": (120, 48), "rollouts": (4, 8), "limit": 48},
}
METHODS: dict[str, tuple[str, ...]] = {
    "ours": (),
    "paper": ("--method", "paper", "--verdict", "false", "--rewards", "[0,1]", "--edges", "paper", "--seed", "42"),
}
"""What `head fit` is given: nothing, so solved to convergence and with a verdict; or all that Table 7 says."""
SEEDS = (11, 12, 13, 14, 15)
LIVE = ("early-stop-finished 0.9", "sequential 0.1", "until 0.7")
SHOTS = (("banana", "a", 3), ("committee", "t", 2), ("rhythm", "e", 0))
BETAS = (0.02, 0.05, 0.1, 0.15, 0.2)
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}  # by degrees of freedom
ROWS = (
    "none", "majority", "adaptive-consistency 0.8", "check", "until 0.7", "until 0.9",
    "sequential 0.05", "sequential 0.1", "sequential 0.2", "early-stop 0.9", "early-stop-finished 0.9",
    "utility 0.05", "utility-one-by-one 0.05", "prune 0.3",
)  # fmt: skip
PAPER_ROWS = (
    "none", "majority", "check", "prune 0.3", "prune 0.4", "prune 0.5", "early-stop 0.7", "early-stop 0.8",
    "utility 0.002", "utility 0.005", "utility 0.01", "blend 6/0.4", "blend 4/0.5", "utility-one-by-one 0.005",
    "until 0.5",
)  # fmt: skip
"""What is shown of the paper's head: its own rules above all."""
SHOWN = {
    "accuracy": "accuracy", "from_none": "from best-of-8 by value", "saved": "row-forwards saved",
    "from_matched": "from best-of-n at equal cost", "steps_saved": "steps of a prompt saved",
    "wall_saved": "wall-clock saved", "cpu_saved": "CPU time saved",
}  # fmt: skip
KNOWN = {
    "pass@1": "pass@1 on the held-out prompts",
    "auc_end": "AUC at the end", "auc_end_within": "the same within prompts",
    "auc_check": "AUC of the check of the text", "auc_prompt": "AUC at the prompt", "brier": "Brier score at the end",
    "brier_constant": "of the best constant", "ceiling_saving": "row-forwards that a perfect judge saves",
}  # fmt: skip
POLICY_COLUMNS = (
    "accuracy", "from_none", "saved", "steps", "steps_saved", "from_matched",
    "wall_s", "wall_saved", "cpu_s", "cpu_saved",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []])
    parser.add_argument("--method", choices=[*METHODS], default="ours", help="which head is fitted")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--work", type=Path, default=Path("head-study"), help="where rollouts and heads go")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    for seed in options.seeds:
        for task in options.tasks:
            study(task, seed, options.model, options.work / task / str(seed), options.method)
    if options.tables:
        tables()


def study(task: str, seed: int, model: str, folder: Path, method: str = "ours") -> None:
    """One seed of one task: sample, fit, evaluate, and add its rows."""
    label = labelled(task, method)
    if any(row["task"] == label and row["seed"] == str(seed) for row in read("heads.csv")):
        return
    spec = TASKS[task]
    folder.mkdir(parents=True, exist_ok=True)
    data = spec["data"]
    if data.endswith(".jsonl"):
        data = str(folder / data)
        write_letters(Path(data), sum(spec["prompts"]) * 2, seed)
    source = model if model != "embedded" else start(spec, seed)
    given = [data, "--model", source, "--seed", str(seed)]
    given += [f"--task_options={json.dumps(spec['options'])}"]
    if data.endswith(".jsonl"):
        given += ["--reward", f"{__file__}:boxed", "--stop", '["}"]']
        given += ["--max_completion_length", str(spec["limit"])]
    prompts, rollouts = spec.get("prompts", (512, 138)), spec.get("rollouts", (4, 16))
    for split, n, g in zip(("train", "eval"), prompts, rollouts, strict=True):
        size = ["--num_prompts", str(n), "--num_generations", str(g)]
        run("rollouts", *given, "--split", split, *size, "--out", folder / split)
    own = labelled("", method)
    head, evaluation = folder / f"head{own}.safetensors", folder / "eval" / f"evaluation{own}"
    run("head", "fit", folder / "train", "--out", head, *METHODS[method])
    run("head", "evaluate", folder / "eval", "--head", head, "--out", evaluation, "--live", ", ".join(LIVE))
    found = json.loads((evaluation / "evaluation.json").read_text())
    add("policies.csv", [policy_row(label, seed, one) for one in found["policies"]])
    add("heads.csv", [head_row(label, seed, folder, found)])


def labelled(name: str, method: str) -> str:
    """A task's name in the tables: that of the paper's head has a name of its own."""
    return name if method == "ours" else f"{name}-{method}"


def start(spec: dict[str, Any], seed: int) -> str:
    """The embedded policy, warm-started with this seed."""
    from rollwise.models import task_for
    from rollwise.models.embedded import embedded_policy

    return str(embedded_policy(task_for("embedded", spec["data"], spec["options"]), seed=seed))


def run(*words: Any) -> None:
    subprocess.run([sys.executable, "-m", "rollwise", *map(str, words)], check=True)


def policy_row(task: str, seed: int, one: dict[str, Any]) -> dict[str, Any]:
    live = one.get("live") or {}
    values = (
        one["accuracy"]["mean"], one["accuracy_difference"]["value"], one["saving"]["value"], one["steps"]["mean"],
        one["steps_saving"]["value"], one["matched"]["difference"]["value"],
        *(live.get(name, {}).get("mean") for name in ("wall_s", "wall_s_saving", "cpu_s", "cpu_s_saving")),
    )  # fmt: skip
    shown = (None if value is None else f"{value:.4f}" for value in values)
    return {"task": task, "seed": seed, "setting": one["name"], **dict(zip(POLICY_COLUMNS, shown, strict=True))}


def head_row(task: str, seed: int, folder: Path, found: dict[str, Any]) -> dict[str, Any]:
    """What the head knows, and its operating point: chosen on one half of the prompts and scored on the other."""
    known = found["calibration"]
    row: dict[str, Any] = {
        "task": task,
        "seed": seed,
        "prompts": found["prompts"],
        "pass@1": known["base_rate"],
        "pass@1_train": json.loads((folder / "train" / "summary.json").read_text())["pass_at"]["1"],
        "auc_end": known["auc_end"]["pooled"],
        "auc_end_within": known["auc_end"]["within"],
        "auc_check": (known["check"] or {}).get("pooled") if isinstance(known["check"], dict) else None,
        "auc_prompt": known["auc_prompt"],
        "brier": known["end"]["brier"],
        "brier_constant": known["end"]["brier_baseline"],
        "ceiling_saving": found["ceiling"]["saving"],
    }
    for one in found["held_out"]:
        if one["objective"] == "row_forwards" and one["family"] in ("any", "sequential", "until"):
            name = one["family"]
            row |= {
                f"{name}_chosen": " / ".join(fold["setting"] for fold in one["folds"]),
                f"{name}_saved": one["saving"]["value"],
                f"{name}_from_none": one["accuracy_difference"]["value"],
                f"{name}_from_matched": one["matched"]["difference"]["value"],
            }
    return {name: f"{value:.4f}" if isinstance(value, float) else value for name, value in row.items()}


def write_letters(path: Path, n: int, seed: int) -> None:
    """`n` questions of reasoning-gym's letter counting, each after three worked examples."""
    if path.exists():
        return
    import reasoning_gym

    shown = "\n\n".join(
        f'Q: How many times does the letter "{letter}" appear in the text: "{word}"?\nA: \\boxed{{{count}}}'
        for word, letter, count in SHOTS
    )
    lines: dict[str, str] = {}
    for entry in reasoning_gym.create_dataset("letter_counting", size=20 * n, seed=seed * 1_000_000):
        if len(lines) < n:  # some repeat
            prompt = f"{shown}\n\nQ: {entry['question']}\nA:"
            lines[prompt] = json.dumps({"prompt": prompt, "answer": entry["answer"]})
    path.write_text("\n".join(lines.values()) + "\n", encoding="utf-8")


def boxed(prompts: list[Any], completions: list[Any], answer: list[str], **columns: Any) -> list[float]:
    """1 where the number in the first box is the answer."""
    texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
    said = [text.partition("\\boxed{")[2].partition("}")[0].strip() for text in texts]
    return [float(one == str(right)) for one, right in zip(said, answer, strict=True)]


def read(name: str) -> list[dict[str, str]]:
    path = RESULTS / name
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add(name: str, rows: list[dict[str, Any]]) -> None:
    """Adds rows to a table, in place of those of the same task and seed."""
    key = rows[0]["task"], str(rows[0]["seed"])
    every = [row for row in read(name) if (row["task"], row["seed"]) != key] + rows
    columns = list(dict.fromkeys(column for row in every for column in row))
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)


def tables() -> None:
    """Prints the tables of benchmarks/results/inference.md; tests/test_claims.py holds the page to them."""
    for task in (labelled(task, method) for task in TASKS for method in METHODS):
        if any(row["task"] == task for row in read("heads.csv")):
            print(f"\n### {task}\n\n{known_table(task)}\n\n{policy_table(task)}")


def known_table(task: str) -> str:
    """What the head knows: a row for each measure, mean ± standard deviation over seeds."""
    own = [row for row in read("heads.csv") if row["task"] == task]
    rows = [f"| {title} | {spread([row.get(column) for row in own])} |" for column, title in KNOWN.items()]
    return "\n".join(
        [f"| {len(own)} seed{'s' if len(own) > 1 else ''} | |", "|---|--:|", *(row for row in rows if "- |" not in row)]
    )


def policy_table(task: str) -> str:
    """Settings against best-of-8 by value, and what was chosen on one half of the prompts and scored on the other."""
    heads = [row for row in read("heads.csv") if row["task"] == task]
    every = [row for row in read("policies.csv") if row["task"] == task]
    names = {row["setting"] for row in every}
    lines = ["| " + " | ".join(("policy", *SHOWN.values())) + " |", "|---|" + "--:|" * len(SHOWN)]
    for setting in (name for name in (PAPER_ROWS if task.endswith("-paper") else ROWS) if name in names):
        mine = [row for row in every if row["setting"] == setting]
        lines.append(line_of(setting, [[row[column] for row in mine] for column in SHOWN]))
    fifth = [row for head in heads for row in every if row["seed"] == head["seed"] and row["setting"] == fifth_of(head)]
    lines.append(line_of("sequential, beta a fifth of pass@1", [[row[column] for row in fifth] for column in SHOWN]))
    held = [[head.get(f"any_{column}") for head in heads] for column in SHOWN]
    return "\n".join([*lines, line_of("chosen on the other half", held)])


def line_of(name: str, columns: list[list[Any]]) -> str:
    cells = [
        (signed if column.startswith("from") else share if "saved" in column else spread)(values)
        for column, values in zip(SHOWN, columns, strict=True)
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def fifth_of(head: dict[str, str]) -> str:
    """The setting of `sequential` whose beta is nearest to a fifth of pass@1 on the prompts that were fitted on."""
    return f"sequential {min(BETAS, key=lambda beta: abs(beta - 0.2 * float(head['pass@1_train']))):g}"


def numbers_of(values: list[Any]) -> np.ndarray:
    return np.array([float(value) for value in values if value])


def spread(values: list[Any]) -> str:
    numbers = numbers_of(values)
    return "-" if not len(numbers) else f"{numbers.mean():.3f}" + ("" if len(numbers) < 2 else f" ± {sd(numbers):.3f}")


def share(values: list[Any]) -> str:
    numbers = numbers_of(values)
    return "-" if not len(numbers) else f"{numbers.mean():.0%}" + ("" if len(numbers) < 2 else f" ± {sd(numbers):.0%}")


def signed(values: list[Any]) -> str:
    """Mean, and its 95 % t interval over seeds."""
    numbers = numbers_of(values)
    if len(numbers) < 2:
        return "-" if not len(numbers) else f"{numbers.mean():+.3f}"
    if not numbers.any():
        return "0"
    half = T95[len(numbers) - 1] * sd(numbers) / len(numbers) ** 0.5
    return f"{numbers.mean():+.3f} [{numbers.mean() - half:+.3f}, {numbers.mean() + half:+.3f}]"


def sd(numbers: np.ndarray) -> float:
    return float(numbers.std(ddof=1))


if __name__ == "__main__":
    main()
