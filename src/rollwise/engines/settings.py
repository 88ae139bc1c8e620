"""A service made from the few settings that an engine's configuration can hold."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from rollwise.curricula import Curriculum, make_curriculum
from rollwise.engines.service import CurriculumService
from rollwise.engines.serving.calls import Told
from rollwise.errors import ConfigError, ShortError, SilentNoOpError
from rollwise.options import check_mapping, check_options, check_text, is_number
from rollwise.pool import PromptPool, usable_columns, warn_left_out
from rollwise.prompt_ids import assign_ids, content_id
from rollwise.tickets.outcome import Outcome, RewardSpec
from rollwise.tickets.ticket import Ticket

logger = logging.getLogger(__name__)

SERVICE = ("max_open", "max_open_per_worker", "expire_seconds", "silent_after")
SETTINGS = ("curriculum", "curriculum_options", "reward_spec", *SERVICE)
"""Settings of every engine, named as verl's `data.rollwise`; those of `SERVICE` are options of `CurriculumService`."""


POOL = ("id", "prompt", "columns")
"""Settings of `pool_of`."""

NEEDS = {
    "wants_probes": "measures prompts before it chooses",
    "wants_answers": "asks the policy before it chooses",
    "wants_feedback": "learns from what each optimiser step gained",
    "follows_score": "follows the score of evaluations",
    "counts_tokens": "has a schedule by tokens",
}
"""What a method may want besides outcomes, by the property that says so."""

LOADER = "loader"
"""The worker that asks for an engine which loses what is in flight at a save: after a load its tickets are given up."""


def split(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of the settings that are for `pool_of`, and the others; `ConfigError` if they are no mapping."""
    check_mapping("rollwise's settings", settings)
    rows = {name: settings[name] for name in POOL if name in settings}
    return rows, {name: value for name, value in settings.items() if name not in rows}


def make_service(settings: Mapping[str, Any], pool: PromptPool) -> CurriculumService:
    """A service of the curriculum that `settings` name, bound to `pool`.

    Args:
        settings: of `SETTINGS`. `curriculum` is a name, `file.py:Name` or `package.module:Name`, by default
            "recommended"; `curriculum_options` its options, such as `seed`; `reward_spec` the `low`, `high` and
            `solved_at` of the raw rewards; without `low` and `high` `tell_all` widens the range from 0 to 1 as rewards
            are seen.
        pool: the engine's prompts.

    Raises:
        ConfigError: an unknown setting, or one out of range.

    >>> pool = PromptPool(ids=["a", "b"])
    >>> len(make_service({"curriculum": "uniform", "curriculum_options": {"seed": 3}}, pool).ask(2))
    2
    """
    check_options("rollwise's settings", settings, SETTINGS)
    options = dict(check_mapping("curriculum_options", settings.get("curriculum_options") or {}))
    spec = settings.get("reward_spec")
    if spec is not None:
        check_mapping("reward_spec", spec, RewardSpec)
    curriculum = curriculum_of(settings.get("curriculum", "recommended"), options, spec)
    if curriculum.allocator is not None:
        raise ConfigError(
            f"curriculum_options.allocator={type(curriculum.allocator).__name__} gives each prompt its own number of "
            "rollouts, and this engine makes as many of each; leave the allocator out, or train with TRL or verl"
        )
    warn_of_needs(curriculum, "this engine")
    curriculum.bind(pool)
    return CurriculumService(curriculum, **{name: settings[name] for name in SERVICE if name in settings})


def curriculum_of(name: str, options: Mapping[str, Any], spec: Mapping[str, Any] | None) -> Curriculum:
    """A method by its name and options, unbound, with rewards as `spec` has them: `low`, `high` and `solved_at`.

    As in `rollwise train`, the range may widen unless `low` or `high` is given, and then takes in `solved_at`.

    >>> made = curriculum_of("uniform", {}, {"solved_at": 0.5})
    >>> made.reward_spec.solved_at, made.widen_rewards(0.0, 3.0), made.reward_spec.high
    (0.5, True, 3.0)
    """
    if spec is None:
        return make_curriculum(name, **options)
    given, declared = dict(spec), bool({"low", "high"} & spec.keys())
    if not declared and is_number(given.get("solved_at")):
        given["high"] = max(1.0, given["solved_at"])
    curriculum = make_curriculum(name, **{**options, "reward_spec": RewardSpec(**given)})
    curriculum.range_declared = declared
    return curriculum


def warn_of_needs(curriculum: Curriculum, engine: str, *, met: Collection[str] = ()) -> None:
    """Say what the method wants and the engine never gives it: all of `NEEDS` but those that are `met`."""
    for need, what in NEEDS.items():
        if need not in met and getattr(curriculum, need):
            logger.warning(
                "%s %s, which %s has no place for; it uses its documented fallback",
                *(type(curriculum).__name__, what, engine),
            )


def pool_of(
    rows: Iterable[Mapping[str, Any]],
    *,
    id: str = "id",
    prompt: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> PromptPool:
    """A pool with one prompt for each of an engine's rows, in their order.

    Args:
        rows: mappings, such as those of a `datasets.Dataset`.
        id: where a row's id is; without one, the row's content is hashed.
        prompt: where the prompt is, for methods that read it; by default tickets have the id in its place.
        columns: the pool's columns and where they are in a row, as in `{"difficulty": "extra_info.level"}`. By default
            `category` and `difficulty`, where the rows have them.

    Raises:
        ConfigError: `columns` is no mapping.
        PoolError: no rows, or ids that repeat.

    >>> rows = [{"q": "1+1", "info": {"level": 2}}, {"q": "2+2", "info": {"level": 3}}]
    >>> pool_of(rows, prompt="q", columns={"difficulty": "info.level"}).columns["difficulty"].tolist()
    [2.0, 3.0]
    """
    given = {"category": "category", "difficulty": "difficulty"} if columns is None else columns
    paths = {name: check_text(f"columns.{name}", path) for name, path in check_mapping("columns", given).items()}
    check_text("id", id)
    if prompt is not None:
        check_text("prompt", prompt)
    found: dict[str, list[Any]] = {name: [] for name in paths}
    own, prompts, contents = [], [], []
    for row in rows:
        own.append(at_path(row, id))
        contents.append(None if own[-1] is not None else content_id(row))
        prompts.append(None if prompt is None else at_path(row, prompt))
        for name, path in paths.items():
            found[name].append(at_path(row, path))
    ids, _ = assign_ids(own, contents, on_duplicate="number")
    usable, left_out = usable_columns(found)
    if columns is not None:
        warn_left_out(left_out)
    return PromptPool(ids=ids, prompts=None if prompt is None else prompts, columns=usable, left_out=left_out)


def at_path(row: Any, path: str) -> Any:
    """What is at a dotted path in nested mappings; None where there is nothing.

    >>> at_path({"extra_info": {"level": 3}}, "extra_info.level")
    3
    """
    for part in path.split("."):
        row = row.get(part) if isinstance(row, Mapping) else None
    return row


def widen(curriculum: Curriculum, outcomes: Iterable[Outcome], key: str = "reward_spec") -> None:
    """Where no `reward_spec` was given, take rewards beyond the range so far from now on, and say so.

    Args:
        curriculum: is not used by others meanwhile.
        outcomes: about to be told.
        key: the setting that gives the range, for the warning.
    """
    told = [reward for one in outcomes for reward in ((one.mean,) if one.rewards is None else one.rewards)]
    finite = [float(reward) for reward in told if reward is not None and math.isfinite(reward)]
    if finite and curriculum.widen_rewards(min(finite), max(finite)):
        spec = curriculum.reward_spec
        logger.warning(
            "rewards lie outside the range so far; it is [%g, %g] now: give %s.low, .high", spec.low, spec.high, key
        )


def tell_all(service: CurriculumService, outcomes: Iterable[Outcome]) -> Told:
    """Tell the outcomes of an engine that does not say in which range its rewards lie; see `widen`.

    A reward that is NaN is that of a rollout which could not be scored.
    """
    listed = list(map(_scored, outcomes))
    service.run(lambda: widen(service.desk.curriculum, listed))
    return service.tell(listed)


def _scored(outcome: Outcome) -> Outcome:
    rewards = [] if outcome.rewards is None else list(outcome.rewards)
    kept = [reward for reward in rewards if not math.isnan(reward)]
    failed = outcome.failed + len(rewards) - len(kept)
    return outcome if len(kept) == len(rewards) else replace(outcome, rewards=kept, failed=failed)


def advance_one(service: CurriculumService) -> None:
    """The learner has made a step, where the engine does not say which."""
    service.advance(service.status()["step"] + 1)


def advance_to(service: CurriculumService, step: int) -> None:
    """The learner is at `step`; nothing where an ask for a later one has moved the clock already."""
    service.advance(max(step, service.status()["step"]))


def ask_all(
    service: CurriculumService,
    n: int,
    *,
    n_rollouts: int | None = None,
    worker: str | None = None,
    timeout: float = 0.0,
    hint: str = "",
) -> list[Ticket]:
    """Exactly `n` tickets, for engines whose batches can't be shorter.

    Args:
        service: what is asked.
        n: how many prompts.
        n_rollouts: how many rollouts make a group.
        worker: who asks, as for `CurriculumService.ask`.
        timeout: how many seconds to wait for prompts that are in flight.
        hint: what to look at if no outcome was ever told.

    Raises:
        SilentNoOpError: fewer prompts are free, and no outcome was ever told.
        ShortError: fewer prompts are free. None of them is held then.
    """
    tickets = service.ask(n, worker=worker, n_rollouts=n_rollouts, timeout=timeout)
    if len(tickets) == n:
        return tickets
    service.run(lambda: service.desk.expire([ticket.id for ticket in tickets]))
    counts = service.metrics()
    if not counts["told"]:
        raise SilentNoOpError(
            f"{counts['asked']:.0f} prompts were asked, none of {n} more is free, and no outcome was told"
            + (f"; {hint}" if hint else "")
        )
    raise ShortError(
        f"a batch needs {n} prompts, {len(tickets)} are free and {counts['open']:.0f} are in flight; "
        "use more prompts, smaller batches, a lower expire_after, or a larger max_open"
    )
