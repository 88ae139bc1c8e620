"""The files of examples/launch, with data that are there."""

from pathlib import Path

from rollwise.launching.command import Extra
from rollwise.training.config import TrainConfig
from rollwise.yaml_file import read_yaml

RECIPES = sorted((Path(__file__).parents[2] / "examples/launch").glob("*.yaml"))


def recipe(path: Path, data: Path) -> tuple[TrainConfig, Extra]:
    """A recipe's options, and the engine's own.

    Args:
        path: of the recipe.
        data: a file with `problem`, `answer` and `level`, in place of the recipe's.
    """
    values = {**read_yaml(path), "eval_prompts": 8}
    if "data" in values:
        values |= {"data": str(data), "reward": "exact"}
    elif values["task"] == "countdown":
        values["task_options"] = {"style": "tinyzero-chat", "levels": [6]}
    extra = Extra(values.pop("engine_options", {}))
    return TrainConfig.from_dict(values), extra
