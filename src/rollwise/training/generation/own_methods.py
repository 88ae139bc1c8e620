"""Methods of a trainer's own class, or of TRL's experimental ones, that would be passed over: refused by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from rollwise.errors import ConfigError


def check_own_methods(trainer: Any) -> None:
    """Refuse a loss of its own that rollouts are to be left out of, and changes of advantages that would be lost.

    Raises:
        ConfigError: the class does not say how its loss is normalized; or advantages are computed anew after it may
            have changed them.
    """
    kinds = type(trainer).__mro__
    if trainer.skip_zero_advantage:
        trainer._normalization()
        own = _own(kinds, "_compute_loss") or _own(kinds, "compute_loss")
        if own and trainer.loss_normalization is None:
            raise ConfigError(
                "skip_zero_advantage leaves rollouts out of the loss, but rollwise does not know how "
                f"{own} is normalized: say it in the class as loss_normalization, or train on all rollouts"
            )
    if trainer.posterior or trainer.curriculum.allocator or trainer.curriculum.probe_purpose == "screen":
        below = itertools.dropwhile(lambda kind: not kind.__module__.startswith("rollwise."), kinds)
        if own := _own(below, "_generate_and_score_completions"):
            raise ConfigError(
                "an allocator, a method that screens, and posterior advantages compute advantages anew, but "
                f"{own} may have changed them: change the rewards or the loss instead"
            )


def _own(kinds: Iterable[type], name: str) -> str | None:
    """The first of these classes' methods of that name, if that is neither rollwise's nor of TRL's stable trainers."""
    first = next(kind for kind in kinds if name in vars(kind) and not kind.__module__.startswith("rollwise."))
    known = first.__module__.startswith(("trl.trainer.", "transformers."))
    return None if known else f"{first.__name__}.{name}"
