"""The rewards that a user names: found, checked, summed, and which of them says what is solved."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rollwise.errors import ConfigError, MissingColumnError, MissingExtraError
from rollwise.options import did_you_mean
from rollwise.plugins import Registry, load_object
from rollwise.sampling.config import OwnData
from rollwise.sampling.scorers.builtin import NAMES, built_in
from rollwise.sampling.scorers.calling import checked
from rollwise.sampling.scorers.functions import RewardFunctions
from rollwise.sampling.scorers.pool import RewardPool
from rollwise.tickets.outcome import RewardSpec

REWARDS: Registry[Any] = Registry("reward", "rewards")
"""Rewards that other packages install."""

_GIVEN = {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
"""What TRL gives besides the data's columns."""

HIDDEN = {"prompt", "completion"}
"""Columns that TRL gives to no reward."""

_MAKE_IT = "in a file of yours write f = ... with its arguments, and give file.py:f"
_TELLS_SUCCESS = re.compile(r"accura|correct|solv|exact|math|verif|answer|success|passe?d", re.IGNORECASE)


def reward_functions(config: OwnData) -> RewardFunctions:
    """The rewards of a command.

    Raises:
        ConfigError: a name that stands for nothing, or an option that does not fit.
        MissingExtraError: a reward needs a package that is not installed.
    """
    found = [load_reward(where) for where in config.rewards]
    names = _distinct([name_of(where) for where in config.rewards])
    weights = [1.0] * len(names) if config.reward_weights is None else [float(w) for w in config.reward_weights]
    spec = config.reward_spec()
    declared = (config.reward_low, config.reward_high) != (None, None)
    success, why = choose_success(config.success, names, weights, spec if declared else None)
    return RewardFunctions(
        functions=[
            checked(function, name, pool=_pool(config, where, name))
            for (function, _), where, name in zip(found, config.rewards, names, strict=True)
        ],
        names=names,
        weights=weights,
        success=success,
        why=why,
        spec=spec or RewardSpec(),
        declared=declared,
        digest=_joined([digest for _, digest in found if digest]),
    )


def _pool(config: OwnData, where: str, name: str) -> RewardPool | None:
    if not config.reward_workers:
        return None
    return RewardPool(where, name=name, workers=config.reward_workers, timeout=config.reward_timeout)


def choose_success(
    named: str | None, names: Sequence[str], weights: Sequence[float], declared: RewardSpec | None
) -> tuple[int | None, str]:
    """Which of F reward functions says what is solved, None for their weighted sum, and why.

    The one that is named; of several, else the only one whose name says so (accuracy, correct, ...), else the only one
    of the greatest weight, else the sum. The sum too where the declared range is one that a single reward of at most 1
    can't reach. A single function is taken as it is, not times its weight, unless a range is declared: 0.5 of 1 is
    solved.

    Raises:
        ConfigError: no function has that name.

    >>> choose_success(None, ["accuracy", "brevity"], [1.0, 1.0], None)[0]
    0
    >>> choose_success(None, ["a", "b"], [1.0, 1.0], None)[0] is None
    True
    >>> choose_success(None, ["a", "length"], [1.0, -3.0], None)[0]
    0
    """
    if named is not None:
        if named not in names:
            raise ConfigError(
                f"success must be the name of a reward, got {named!r}{did_you_mean(named, names)}; the rewards are "
                f"{', '.join(names)}"
            )
        return names.index(named), ""
    if len(names) < 2:
        return (0 if declared is None and 0 < weights[0] != 1 else None), ""
    if declared is not None and declared.threshold > 1.0:
        return (
            None,
            f"the sum of all says what is solved, as the range that is given (solved at {declared.threshold:g})",
        )
    telling = [i for i, name in enumerate(names) if _TELLS_SUCCESS.search(name)]
    heaviest = [i for i, weight in enumerate(weights) if weight == max(weights)]
    for chosen, reason in ((telling, "its name says so"), (heaviest, "it has the greatest weight")):
        if len(chosen) == 1:
            return chosen[0], f"{names[chosen[0]]!r} says what is solved, as {reason}"
    return None, "the sum of all says what is solved, as no name or weight singles one out"


def name_of(where: str) -> str:
    """A reward's name in logs and for `success`.

    >>> name_of("rewards.py:accuracy"), name_of("math"), name_of("regex:<answer>"), name_of("code:all")
    ('accuracy', 'math', 'regex', 'code')
    """
    kind = where.partition(":")[0]
    return kind if kind in ("regex", "code") else where.rpartition(":")[2]


def _distinct(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return out


def load_reward(where: str, *, what: str = "reward") -> tuple[Callable[..., Any], str]:
    """The function that a name stands for, and a hash of its file; "" where it has none.

    Args:
        where: A built-in one, one that a package installs, `file.py:name`, `package.module:name`, or one of TRL's.
        what: What the function is, for messages.

    Raises:
        ConfigError: it stands for nothing that can be called, or can't be imported.
    """
    if what == "reward" and (own := built_in(where)) is not None:
        return own, ""
    if ":" not in where and (of_trl := _of_trl(where)) is not None:
        return _no_maker(of_trl, f"{what} {where!r}"), ""
    if what == "reward" and ":" not in where and where not in REWARDS:
        names = [*(one.name for one in REWARDS.installed()), *NAMES, "regex"]
        raise ConfigError(
            f"unknown reward {where!r}{did_you_mean(where, names)}; give {', '.join(names)}:PATTERN, "
            "file.py:function, package.module:function, or the name of one of trl.rewards"
        )
    found, digest = REWARDS.load(where) if what == "reward" else load_object(where, what=what)
    if inspect.isclass(found):
        found = _instance(found, f"{what} {where!r}")
    if not callable(found):
        raise ConfigError(f"{what} {where!r} can't be called, it is {found!r:.80}; name a function")
    return _no_maker(found, f"{what} {where!r}"), digest


def _instance(kind: type, about: str) -> Any:
    try:
        return kind()
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{about} is a class, and {kind.__name__}() raised {error!r:.200}; {_MAKE_IT}") from error


def _no_maker(found: Callable[..., Any], about: str) -> Callable[..., Any]:
    """`found`, unless it is one of TRL's functions that make a reward, such as `get_soft_overlong_punishment`."""
    module, name = getattr(found, "__module__", ""), getattr(found, "__name__", "")
    if str(module).startswith("trl.rewards") and name.startswith("get_"):
        raise ConfigError(f"{about} is no reward, but makes one; {_MAKE_IT}")
    return found


def _of_trl(name: str) -> Callable[..., Any] | None:
    if not name.endswith("_reward") and not name.startswith("get_"):
        return None
    try:
        return getattr(importlib.import_module("trl.rewards"), name, None)
    except ImportError as error:
        raise MissingExtraError(f'reward {name!r} may be one of TRL\'s; pip install "rollwise[train]"') from error


def check_columns(functions: Sequence[Callable[..., Any]], name: str, row: Mapping[str, Any]) -> None:
    """Whether the functions can be called with what they are given: the rollouts, and every column by its name.

    Raises:
        MissingColumnError: a function has a parameter without a default that is no column of `row`.
        ConfigError: a function does not take one of them.
    """
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        about = name if len(functions) == 1 else f"reward {getattr(function, '__name__', '')!r}"
        required = [
            p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        given = _GIVEN | row.keys() - HIDDEN
        missing = next((column for column in required if column not in given), None)
        if missing is None:
            _check_takes_all(about, parameters, row)
            continue
        if missing in HIDDEN:
            raise ConfigError(f"{about} has a parameter {missing!r}, and is given lists; call it {missing}s")
        likely = [other for other in ("solution", "ground_truth", "target", "gold") if other in row]
        remedy = f"--answer_column {likely[0]} names it" if missing == "answer" and likely else "add or rename one"
        raise MissingColumnError(f"{about} needs the column {missing!r}, but the data has {', '.join(row)}; {remedy}")


def _check_takes_all(about: str, parameters: Collection[inspect.Parameter], row: Mapping[str, Any]) -> None:
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    taken = {*HIDDEN, *(p.name for p in parameters)}
    unknown = [column for column in ("prompts", "completions", "completion_ids", *row) if column not in taken]
    if unknown:
        raise ConfigError(
            f"{about} has no parameter for {unknown[0]!r}, but is given the rollouts and every column by name; end its "
            "parameters with **columns, which takes the rest"
        )


def _joined(digests: Sequence[str]) -> str:
    if len(digests) < 2:
        return "".join(digests)
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]
