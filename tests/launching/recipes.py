"""The files of examples/launch, with data that are there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollwise.launching.command import Extra
from rollwise.training.config import TrainConfig
from rollwise.yaml_file import read_yaml

RECIPES = sorted((Path(__file__).parents[2] / "examples/launch").glob("*.yaml"))
_CASES = [{"input": "1", "output": "2"}]
ROWS: dict[str, Callable[[int], dict[str, Any]]] = {
    "aime24": lambda i: {"ID": str(i), "Problem": f"{i}+{i}", "Solution": "", "Answer": 2 * i},
    "aime25": lambda i: {"id": str(i), "problem": f"{i}+{i}", "answer": str(2 * i)},
    "amc": lambda i: {"id": i, "problem": f"{i}+{i}", "answer": 2.0 * i, "url": ""},
    "math500": lambda i: {"unique_id": str(i), "problem": f"{i}+{i}", "answer": str(2 * i), "level": i % 5},
    "minerva": lambda i: {"problem": f"{i}+{i}", "solution": f"\\boxed{{{2 * i}}}"},
    "math-train": lambda i: {"problem": f"{i}+{i}", "solution": f"\\boxed{{{2 * i}}}", "level": f"Level {i % 5}"},
    "dapo": lambda i: {"prompt": f"{i}+{i}", "solution": str(2 * i)},
    "guru-math": lambda i: {
        "prompt": [{"role": "user", "content": f"{i}+{i}"}],
        "reward_model": {"ground_truth": str(2 * i), "style": "rule"},
        "qwen2.5_7b_pass_rate": i % 65 / 64,
        "qwen3_30b_pass_rate": (i + 40) % 65 / 64,
    },
    "codecontests-plus": lambda i: {
        "id": str(i),
        "description": f"Add {i}.",
        "test_cases": _CASES,
        "correct_submissions": [{"language": "py3", "code": ""}],
    },
    "livecodebench": lambda i: {
        "question_id": str(i),
        "question_content": f"Add {i}.",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{**_CASES[0], "testtype": "stdin"}]),
        "private_test_cases": "[]",
    },
    "humaneval": lambda i: {"task_id": str(i), "prompt": f"def f{i}(x):", "test": "", "entry_point": f"f{i}"},
    "mbpp": lambda i: {"task_id": i, "text": f"Add {i}.", "test_list": ["assert f(1) == 2"]},
    "bigcodebench": lambda i: {"task_id": str(i), "complete_prompt": f"def f{i}(x):", "test": "", "entry_point": "f"},
}
"""Row number -> a row in the form of the hub, of each preset in a recipe."""
REWARD = """
def share_of_tests(completions, answer, **columns):
    return [0.5 for _ in completions]
"""


def recipe(path: Path, folder: Path, rows: int = 900) -> tuple[TrainConfig, Extra]:
    """A recipe's options, and the engine's own; with copies of its presets, which are written into the folder."""
    values = {**read_yaml(path), "eval_prompts": 8}
    if "num_prompts" in values:
        values["num_prompts"] = min(values["num_prompts"], 900)
    for name in ("data", "eval_data"):
        if name in values:
            values[name] = _copies(values[name], folder, rows)
    if values.get("reward", "").endswith(":share_of_tests"):
        (folder / "code_rewards.py").write_text(REWARD)
        values["reward"] = f"{folder}/{values['reward']}"
    if values.get("task") == "countdown" and "data_file" in values["task_options"]:
        values["task_options"] = {"style": "tinyzero-chat", "levels": [6]}
    extra = Extra(values.pop("engine_options", {}))
    return TrainConfig.from_dict(values), extra


def _copies(source: Any, folder: Path, rows: int) -> Any:
    if isinstance(source, dict):
        return {name: _copies(one, folder, rows) for name, one in source.items()}
    if isinstance(source, list):
        return [_copies(one, folder, rows) for one in source]
    name = source.removeprefix("preset:")
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(ROWS[name](i)) + "\n" for i in range(rows)))
    return f"preset:{name}={path}"
