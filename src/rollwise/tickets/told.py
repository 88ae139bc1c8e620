"""Outcomes checked against their tickets, before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rollwise.errors import RewardError
from rollwise.options.checks import MOST, is_number, shown
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import LARGEST_ADVANTAGE, LearnsFrom, Outcome, RewardSpec, flat_numbers, read_numbers
from rollwise.tickets.ticket import Entry, Ticket, TicketStatus

_WHOLE = 1e-6
"""How far the solved rollouts that a mean stands for may be from a whole number, a rollout; for means in float32."""
_LARGEST_GROUP = 2**20
"""The most rewards that a mean can be of."""


@dataclass(frozen=True, slots=True)
class Learner:
    """What a curriculum takes: for checks, and for their errors."""

    name: str
    spec: RewardSpec
    learns_from: LearnsFrom


class Told(NamedTuple):
    """A checked outcome.

    Attributes:
        rewards: (k,) clipped to the range; where they are not known, the mean k times.
        known: whether each rollout's reward is known.
        advantages: (k,), None without.
        labels: k texts, None without.
    """

    rewards: np.ndarray
    known: bool
    advantages: np.ndarray | None
    labels: tuple[str, ...] | None


class Checked(NamedTuple):
    """M valid outcomes of different tickets, in the order in which these were issued: their tickets, what they say."""

    entries: Sequence[Entry]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Refused:
    """An outcome that `tell_each` left out.

    Attributes:
        outcome: as it was given.
        status: that of its ticket, see `Curriculum.ticket_status`; "invalid" where the outcome itself is wrong.
        reason: why, in one line.
    """

    outcome: Any
    status: TicketStatus | Literal["invalid"]
    reason: str


@dataclass(frozen=True, slots=True)
class TellReport:
    """What `tell_each` did.

    Attributes:
        evidence: what was learnt, group by group in the order the tickets were issued.
        refused: the outcomes that were left out, in the order given.
    """

    evidence: Evidence
    refused: list[Refused]


class Flat(NamedTuple):
    """What M checked outcomes say: the numbers of all groups one after another, as `Evidence.from_flat` takes them.

    Attributes:
        sizes: M numbers of rewards.
        rewards: (sum of `sizes`,) clipped to the range; where they are not known, the mean as many times.
        advantages: (sum of `sizes`,) NaN for a group without; None where there are none.
        known: M times whether each rollout's reward is known; None: all are.
        labels: M times the texts of a group, or None; None where there are none.
    """

    sizes: list[int]
    rewards: np.ndarray
    advantages: np.ndarray | None
    known: list[bool] | None = None
    labels: list[tuple[str, ...] | None] | None = None


def read_plain(entries: Sequence[Entry], outcomes: Sequence[Outcome], spec: RewardSpec) -> Flat | None:
    """What M outcomes of the usual form say: lists or arrays of rewards, with neither means nor labels.

    None where one is of another form, or wrong: then `read_outcome` says of each if it is right.
    """
    if any(o.mean is not None or o.count is not None or o.labels is not None for o in outcomes):
        return None
    failed = [o.failed for o in outcomes]
    rewards = flat_numbers([o.rewards for o in outcomes])
    if rewards is None or not _whole(failed) or not _whole([o.step for o in outcomes if o.step is not None]):
        return None
    flat, count = rewards
    if flat.size and not spec.fits(flat.min(), flat.max()):  # or NaN
        return None
    asked = [entry.ticket.n_rollouts for entry in entries]
    if any(n is not None and k + lost > n for n, k, lost in zip(asked, count, failed, strict=True)):
        return None
    advantages = None
    if any(o.advantages is not None for o in outcomes):
        told = flat_numbers([o.advantages for o in outcomes])
        if told is None or told[1] != count or not (np.abs(told[0]) <= LARGEST_ADVANTAGE).all():
            return None
        advantages = told[0]
    return Flat(count, np.minimum(np.maximum(flat, spec.low), spec.high), advantages)


def one_after_another(told: Sequence[Told]) -> Flat:
    """What M outcomes say that `read_outcome` has read."""
    rewards = [one.rewards for one in told]
    advantages = [np.full(len(one.rewards), np.nan) if one.advantages is None else one.advantages for one in told]
    return Flat(
        sizes=list(map(len, rewards)),
        rewards=np.concatenate([np.empty(0), *rewards]),
        advantages=np.concatenate(advantages) if any(one.advantages is not None for one in told) else None,
        known=[one.known for one in told],
        labels=[one.labels for one in told],
    )


def _whole(values: list[Any]) -> bool:
    return not values or (set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MOST)


def read_outcome(outcome: Outcome, ticket: Ticket, learner: Learner) -> Told:
    """Check an outcome of `ticket`.

    Raises:
        RewardError: rewards, mean, advantages, labels or counts are wrong, or the learner needs each rollout's reward.
    """
    if outcome.mean is None and outcome.count is None:
        rewards, known = learner.spec.check(outcome.rewards, ticket.id), True
    else:
        rewards, known = _rewards_of_mean(outcome, ticket, learner.spec)
    _check_whole("failed", outcome.failed, ticket)
    if outcome.step is not None:
        _check_whole("step", outcome.step, ticket)
    _check_most(len(rewards), outcome.failed, ticket)
    advantages = _read_advantages(outcome, ticket, len(rewards))
    labels = _read_labels(outcome, len(rewards))
    enough = learner.learns_from == "means" or (learner.learns_from == "advantages" and advantages is not None)
    if not known and not enough:
        raise RewardError(
            f"ticket {ticket.id!r} was told by its mean {outcome.mean!r} alone, which leaves its {len(rewards)} "
            f"rewards unknown, but {learner.name} learns from each rollout's reward: tell Outcome(id, rewards=[...])"
            + (", or its advantages" if learner.learns_from == "advantages" else "")
        )
    return Told(rewards, known, advantages, labels)


def _rewards_of_mean(outcome: Outcome, ticket: Ticket, spec: RewardSpec) -> tuple[np.ndarray, bool]:
    """Rewards (count,) of this mean, and whether they are the true ones in some order."""
    name = repr(ticket.id)
    if outcome.rewards is not None or outcome.mean is None:
        raise RewardError(f"the outcome of ticket {name} must have rewards, or a mean and perhaps a count, not both")
    if outcome.labels is not None:
        raise RewardError(f"labels of ticket {name} need rewards, one a label: a mean does not say which is which")
    mean = spec.check([outcome.mean], ticket.id)[0]
    count = outcome.count
    if count is None:
        if ticket.n_rollouts is None:
            raise RewardError(f"ticket {name} has no n_rollouts, so its mean needs a count: Outcome(id, mean=, count=)")
        _check_whole("failed", outcome.failed, ticket)
        count = ticket.n_rollouts - outcome.failed
    _check_whole("count", count, ticket)
    if not 1 <= count <= _LARGEST_GROUP:
        raise RewardError(
            f"count of ticket {name} must be in [1, {_LARGEST_GROUP}], got {count}; where no rollout has a reward, "
            "tell rewards=[] and failed"
        )
    _check_most(count, outcome.failed, ticket)
    solved = float(spec.scores(mean)) * count
    binary = spec.solved_at in (None, spec.high) and abs(solved - round(solved)) <= _WHOLE * min(count, 1000)
    if not binary and count > 1:
        return np.full(count, mean), mean in (spec.low, spec.high)
    if count == 1:
        return np.array([mean]), True
    rewards = np.full(count, float(spec.low))
    rewards[: round(solved)] = spec.high
    return rewards, True


def _check_whole(name: str, value: Any, ticket: Ticket) -> None:
    if not is_number(value, whole=True) or not 0 <= value <= MOST:
        raise RewardError(f"{name} of ticket {ticket.id!r} must be a whole number in [0, 2^53], got {shown(value)}")


def _check_most(k: int, failed: int, ticket: Ticket) -> None:
    if ticket.n_rollouts is not None and k + failed > ticket.n_rollouts:
        raise RewardError(
            f"ticket {ticket.id!r} asked for {ticket.n_rollouts} rollouts but was told {k} rewards and "
            f"{failed} failures"
        )


def _read_advantages(outcome: Outcome, ticket: Ticket, k: int) -> np.ndarray | None:
    if outcome.advantages is None:
        return None
    advantages = _mean_sizes(outcome.advantages, ticket.id)
    if advantages.shape != (k,) or not (np.abs(advantages) <= LARGEST_ADVANTAGE).all():
        raise RewardError(
            f"advantages of ticket {ticket.id!r} must be {k} finite numbers of size at most {LARGEST_ADVANTAGE:g}, one "
            f"a reward, got {shown(advantages.tolist())}; without any, they are taken from the rewards"
        )
    return advantages


def _mean_sizes(given: Any, ticket_id: str) -> np.ndarray:
    """Numbers (k,), one a rollout; of lists of numbers, one a token, the mean |A| of each rollout."""
    if not isinstance(given, list | tuple | np.ndarray) or not any(_is_list(own) for own in given):
        return read_numbers("advantages", given, ticket_id)
    parts = [read_numbers("advantages", own, ticket_id) for own in given]
    if not all(part.ndim == 1 and part.size for part in parts):
        raise RewardError(
            f"advantages of ticket {ticket_id!r} must have a number for each token of each rollout, at least one, got "
            f"{shown(given)}"
        )
    sizes = [np.abs(part) for part in parts]
    return np.array([size.mean() if (size <= LARGEST_ADVANTAGE).all() else size.max() for size in sizes])


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1


def _read_labels(outcome: Outcome, k: int) -> tuple[str, ...] | None:
    if outcome.labels is None:
        return None
    flat = isinstance(outcome.labels, Iterable) and not isinstance(outcome.labels, str)
    listed = tuple(outcome.labels) if flat else ()
    if not flat or len(listed) != k or not all(label is None or isinstance(label, str) for label in listed):
        raise RewardError(
            f"labels of ticket {outcome.ticket_id!r} must be {k} texts (or None), one a reward, got "
            f"{shown(outcome.labels)}"
        )
    return tuple(str(label or "") for label in listed)
