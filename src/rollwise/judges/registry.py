"""Judges by name, for commands and configuration files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollwise.errors import ConfigError
from rollwise.judges.base import Judge, Measure, Predicts
from rollwise.judges.embedding import EmbeddingJudge
from rollwise.judges.text import TextJudge
from rollwise.options import make
from rollwise.plugins import Registry, load_object

JUDGES: Registry[Callable[..., Judge] | str] = Registry(
    "judge",
    "judges",
    {
        "frozen": EmbeddingJudge,
        "prompt": "rollwise.models.reading.prompt_judge:PromptJudge",
        "success-head": "rollwise.inference.judge:SuccessHeadJudge",
        "text": TextJudge,
        "value-model": "rollwise.models.value_model:ValueModelJudge",
    },
)
"""Name -> maker, which takes `predicts` and its own options; or "module:maker", imported when it is first used.

Those that need an extra are given by module, so that `import rollwise` needs numpy alone and every name works after
it. Put makers of your own in, as either.
"""


def make_judge(name: str, *, predicts: Predicts | Measure = "pass-rate", **options: Any) -> Judge:
    """A judge by its name: built in, installed, or `file.py:Name` or `package.module:Name`.

    Raises:
        ConfigError: an unknown name, an option that the judge does not have, or one out of range.
        MissingExtraError: what the judge needs is not installed.

    >>> make_judge("frozen", predicts="variance", hidden=0).options["hidden"]
    0
    """
    return make(f"judge {name!r}", _maker(name), {"predicts": predicts, **options})


def _maker(name: str) -> Callable[..., Judge]:
    maker = JUDGES.find(name)
    if not isinstance(maker, str):
        return maker
    try:
        found: Callable[..., Judge] = load_object(maker, what="judge")[0]
    except ConfigError as error:
        raise ConfigError(f"judge {name!r}: JUDGES has {maker!r}, which can't be loaded: {error}") from error
    return found
