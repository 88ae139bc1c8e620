"""Judges by name, for commands and configuration files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollwise.errors import ConfigError
from rollwise.judges.base import Judge, Predicts
from rollwise.judges.embedding import EmbeddingJudge
from rollwise.judges.text import TextJudge

JUDGES: dict[str, Callable[..., Judge]] = {"frozen": EmbeddingJudge, "text": TextJudge}
"""Name -> maker, which takes `predicts` and its own options. Put yours in; `rollwise.models` adds "value-model",
`rollwise.inference` adds "success-head"."""


def make_judge(name: str, *, predicts: Predicts = "pass-rate", **options: Any) -> Judge:
    """A judge by its name in `JUDGES`.

    Raises:
        ConfigError: an unknown name, an option that the judge does not have, or one out of range.

    >>> make_judge("frozen", predicts="variance", hidden=0).options["hidden"]
    0
    """
    if name not in JUDGES:
        raise ConfigError(
            f"unknown judge {name!r}; known are {sorted(JUDGES)}. Import rollwise.models for 'value-model' or "
            "rollwise.inference for 'success-head' (they need the extra 'train'), put a maker of your own into "
            "rollwise.judges.JUDGES, or give a Judge instead of a name"
        )
    try:
        return JUDGES[name](predicts=predicts, **options)
    except TypeError as error:
        raise ConfigError(f"judge {name!r}: {error}") from error
