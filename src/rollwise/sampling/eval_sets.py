"""Evaluation sets as options name them: one without a name, or several by name, and what the score is of several."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rollwise.errors import ConfigError
from rollwise.options import did_you_mean

EvalData = list[str] | str | dict[str, list[str] | str]
MEAN, PROMPTS = "mean", "prompts"
_NAME = re.compile(r"[\w.-]+", re.ASCII)


def eval_sources(eval_data: Any) -> dict[str, Any]:
    """Set name -> file or list of files, "" for the only one, without a name; empty for None.

    >>> eval_sources("a.jsonl"), eval_sources({"id": "a.jsonl", "ood": ["b.jsonl", "c.jsonl"]})
    ({'': 'a.jsonl'}, {'id': 'a.jsonl', 'ood': ['b.jsonl', 'c.jsonl']})

    Raises:
        ConfigError: a name that can't be a set's, or sources that are not text.
    """
    if eval_data is None:
        return {}
    if not isinstance(eval_data, Mapping):
        return {"": _checked(eval_data, "eval_data")}
    if not eval_data:
        raise ConfigError("eval_data names no set; give {NAME: FILE, ...}, or leave it out")
    for name in eval_data:
        _check_name(name)
    return {name: _checked(source, f"eval_data.{name}") for name, source in eval_data.items()}


def check_aggregate(how: str, names: Iterable[str]) -> None:
    """`ConfigError` unless `how` is "mean", "prompts" or one of the sets' names.

    >>> check_aggregate("ood", ["id", "ood"])
    """
    known = [MEAN, PROMPTS, *(name for name in names if name)]
    if how not in known:
        raise ConfigError(f"eval_aggregate must be one of {', '.join(known)}, got {how!r}{did_you_mean(how, known)}")


def check_set(name: str, sets: Iterable[str]) -> None:
    """`ConfigError` unless `name` is that of one of the sets.

    >>> check_set("ood", ["id", "ood"])
    """
    names = list(sets)
    if name not in names:
        had = f"it has {', '.join(names)}" if names else "give it a mapping of names to sets"
        raise ConfigError(f"eval_dataset has no set {name!r}{did_you_mean(name, names)}; {had}")


def aggregate(scores: Mapping[str, Mapping[str, float]], sizes: Mapping[str, int], how: str) -> dict[str, float]:
    """The scores of several sets as one: for each score that all of them have.

    Args:
        scores: set name -> score name -> value.
        sizes: set name -> number of prompts.
        how: "mean" of the sets; "prompts": each prompt weighs the same; or the name of the set that counts.

    >>> scores = {"id": {"pass@1": 0.4}, "ood": {"pass@1": 0.1}}
    >>> [round(aggregate(scores, {"id": 500, "ood": 30}, how)["pass@1"], 3) for how in ("mean", "prompts", "ood")]
    [0.25, 0.383, 0.1]
    """
    if how in scores:
        return dict(scores[how])
    weights = {name: float(sizes[name]) if how == PROMPTS else 1.0 for name in scores}
    total = sum(weights.values())
    first, *others = scores.values()
    common = [score for score in first if all(score in other for other in others)]
    return {score: sum(weights[name] * own[score] for name, own in scores.items()) / total for score in common}


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (MEAN, PROMPTS, "reward"):
        raise ConfigError(
            f"eval_data has a set called {name!r}; a name is made of letters, digits, '.', '-' and '_', and is none of "
            f"{MEAN!r}, {PROMPTS!r}, 'reward'"
        )


def _checked(source: Any, name: str) -> Any:
    texts = source if isinstance(source, list) else [source]
    if not texts or not all(isinstance(one, str) and one for one in texts):
        raise ConfigError(f"{name} must be a file, or a list of files, got {source!r}")
    return source
