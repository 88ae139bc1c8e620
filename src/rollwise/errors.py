"""Every error that rollwise raises on purpose.

All of them descend from `RollwiseError`, so one `except` catches them, and each is also the built-in error that fits it
(`ValueError` for bad input, `RuntimeError` for a bad moment), so code that knows nothing of rollwise catches it too.
A message names the offending value, the reason, and what to do.
"""

from __future__ import annotations

import importlib.util


class RollwiseError(Exception):
    """The parent of every error that rollwise raises on purpose."""


class ConfigError(RollwiseError, ValueError):
    """An option is unknown, of the wrong type or outside its range."""


class PoolError(RollwiseError, ValueError):
    """The prompts or their columns can't form a pool: empty, duplicate ids, ragged or non-finite columns."""


class MissingColumnError(PoolError):
    """A method needs a column that the pool lacks."""


class UnboundError(RollwiseError, RuntimeError):
    """A curriculum was used before it was given a pool."""


class TicketError(RollwiseError, ValueError):
    """A ticket is unknown to this curriculum, belongs to another incarnation of it, or has been told already."""


class ConcurrentUseError(RollwiseError, RuntimeError):
    """A curriculum was called while another call on it was running; nothing has changed. See `Synchronized`."""


class ShortError(RollwiseError, RuntimeError):
    """`ask(n, short="raise")` found fewer than n eligible prompts; nothing has changed."""


class RewardError(RollwiseError, ValueError):
    """Rewards that are NaN, infinite, outside the declared range, or of the wrong number."""


class StateError(RollwiseError, ValueError):
    """A saved state does not fit: another method, other options, no prompt in common, malformed contents."""


class StateFileError(StateError, RuntimeError):
    """A state file is missing, torn, altered, or not written by rollwise."""


class SilentNoOpError(RollwiseError, RuntimeError):
    """A curriculum is attached but does not take effect; raised so that nobody trains for days without it."""


class TaskError(RollwiseError, ValueError):
    """A task's data file or options can't be used."""


class MissingExtraError(RollwiseError, ImportError):
    """An optional dependency is absent; the message names the extra that installs it."""


def check_installed(module: str, purpose: str, extra: str) -> None:
    """`MissingExtraError` unless `module`, which the extra `extra` installs, is there; it is not imported."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtraError(f'{purpose} needs {module}, which is not installed: pip install "rollwise[{extra}]"')
