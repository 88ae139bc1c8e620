"""What came of a ticket's rollouts, and the range in which its rewards lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError, RewardError, TicketError
from rollwise.options.checks import Range, is_number, shown

LARGEST_ADVANTAGE = 1e12
"""The largest size of an advantage that is taken.

Far above those of any trainer: scaled ones stay below the square root of the group size, others below the range of the
rewards. The squares of 2^53 of them have a finite sum (1e40), so no mean or variance that a curriculum makes overflows.
"""

_NUMBERS = frozenset({bool, int, float, np.bool_, np.float32, np.float64, np.int32, np.int64})

LearnsFrom = Literal["means", "advantages", "rewards"]
"""What a method needs of a group: the mean reward, the mean |advantage|, or each rollout's reward."""


@dataclass(slots=True)  # not frozen: a frozen one takes three times as long to make
class Outcome:
    """The rewards of one ticket's rollouts, or their mean.

    Attributes:
        ticket_id: the ticket's id.
        rewards: (k,) raw rewards, 0 <= k <= the ticket's `n_rollouts`. Fewer is fine: a group may be partial. Leave it
            out where only `mean` is known.
        advantages: (k,) the advantages that the trainer used, where it tells them; of at most `LARGEST_ADVANTAGE`. If
            they differ by token, k lists of one for each token: a rollout's is then the mean of their sizes.
        failed: how many rollouts gave no reward at all (crashed, unscorable). They are no evidence of difficulty.
        step: the step of the policy that generated them, where it is not the ticket's.
        labels: (k,) what kind of rollout each was, such as the category of its failure (a task's `failure` names it);
            None or "" for a solved one. Only with `rewards`.
        mean: the mean raw reward, from engines that do not give each rollout's reward.
        count: k, how many rewards `mean` is of; by default the ticket's `n_rollouts` less `failed`.

    A mean stands for its rewards where they are binary: solving takes the greatest reward (`RewardSpec.solved_at` is
    `high`), and `mean` is that of a whole number of rewards `high` among `count`, the others `low`. A mean of exactly
    `low` or `high`, or of one rollout, is known as well. For any other mean it is unknown whether the group has
    contrast, and methods that learn from each rollout's reward refuse it with `RewardError`.

    Rewards and advantages are real numbers: ints, floats, bools, fractions, decimals, or arrays of them. Texts, bytes,
    complex numbers, times, and arrays with masked entries are refused.
    """

    ticket_id: str
    rewards: Sequence[float] | np.ndarray | None = None
    advantages: Sequence[float] | Sequence[Sequence[float] | np.ndarray] | np.ndarray | None = None
    failed: int = 0
    step: int | None = None
    labels: Sequence[str | None] | None = None
    mean: float | None = None
    count: int | None = None


def outcomes_of(told: Any) -> list[Any]:
    """What a `tell` was given, as a list: an outcome, or several.

    Raises:
        TicketError: it is neither.
    """
    if isinstance(told, Outcome):
        return [told]
    try:
        several = iter(told)
    except TypeError:
        raise TicketError(f"tell takes an Outcome or a list of them, got {shown(told)}") from None
    return list(several)


@dataclass(frozen=True, slots=True)
class RewardSpec:
    """The range of raw rewards, and the least reward with which a rollout is solved.

    Attributes:
        low: the least reward.
        high: the greatest; a score is `(reward - low) / (high - low)`, in [0, 1].
        solved_at: a rollout whose raw reward is at least this is solved. Defaults to `high`.

    >>> RewardSpec(low=-1, high=1).scores(np.array([-1.0, 0.0, 1.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    low: float = 0.0
    high: float = 1.0
    solved_at: float | None = None

    def __post_init__(self) -> None:
        given = (self.low, self.high) if self.solved_at is None else (self.low, self.high, self.solved_at)
        if not all(map(is_number, given)):
            raise ConfigError(f"RewardSpec takes numbers, got {shown(given)}")
        try:
            width = float(self.high) - float(self.low)
        except OverflowError:
            width = math.inf
        if not 0 < width < math.inf:
            raise ConfigError(f"RewardSpec needs low < high with a finite difference, got {shown(given)}")
        if self.solved_at is not None and not self.low < self.solved_at <= self.high:
            raise ConfigError(
                f"solved_at must be in (low, high] = ({self.low}, {self.high}], got {shown(self.solved_at)}"
            )

    @property
    def threshold(self) -> float:
        """The raw reward from which on a rollout counts as solved, less a little for rounding in float32.

        Always above `low`: of a range of a million with `solved_at` 1, a rollout of reward 0 is not solved.
        """
        at = self.high if self.solved_at is None else self.solved_at
        return at - min(self.slack, (at - self.low) / 2.0)

    @property
    def slack(self) -> float:
        """By how much a reward may leave the range, for rounding in float32."""
        return 1e-6 * (self.high - self.low)

    def fits(self, least: float, greatest: float) -> bool:
        """Whether rewards from `least` to `greatest` are in the range, but for rounding; NaN is not.

        >>> RewardSpec(low=-1, high=1).fits(-1.0, 1.0000001), RewardSpec().fits(-1.0, 1.0)
        (True, False)
        """
        return bool(least >= self.low - self.slack and greatest <= self.high + self.slack)

    def widened(self, low: float, high: float) -> RewardSpec:
        """The same with rewards from `low` to `high` too; what counts as solved stays as it is.

        >>> RewardSpec().widened(-0.5, 0.5)
        RewardSpec(low=-0.5, high=1.0, solved_at=1.0)
        """
        low, high = (Range().check(name, value) for name, value in (("low", low), ("high", high)))
        low, high = float(min(self.low, low)), float(max(self.high, high))
        return RewardSpec(low, high, self.high if self.solved_at is None else self.solved_at)

    def check(self, rewards: Any, ticket_id: str) -> np.ndarray:
        """`rewards` as a fresh float64 array (k,).

        Raises:
            RewardError: not a flat list of real numbers, masked, NaN, infinite, or outside [low, high].
        """
        rewards_K = read_numbers("rewards", rewards, ticket_id)
        if rewards_K.ndim != 1:
            raise RewardError(f"rewards of ticket {ticket_id!r} must be flat, got shape {rewards_K.shape}")
        if not np.isfinite(rewards_K).all():
            raise RewardError(
                f"rewards of ticket {ticket_id!r} hold NaN or infinity: {rewards_K.tolist()}; report a rollout that "
                "can't be scored in Outcome.failed instead"
            )
        if rewards_K.size and not self.fits(rewards_K.min(), rewards_K.max()):
            raise RewardError(
                f"rewards of ticket {ticket_id!r} lie outside [{self.low:g}, {self.high:g}]: {rewards_K.tolist()}; "
                "declare their range where the curriculum is made, for example "
                "rw.Recommended(reward_spec=rw.RewardSpec(low=-1, high=1)), or by --reward_low and --reward_high"
            )
        return np.asarray(np.clip(rewards_K, self.low, self.high))

    def scores(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards mapped to [0, 1], same shape."""
        return (rewards - self.low) / (self.high - self.low)


def read_numbers(name: str, values: Any, ticket_id: str) -> np.ndarray:
    """`values` as a fresh float64 array of any shape; numpy alone would also take texts, times and masked entries.

    Raises:
        RewardError: an entry is no real number, or is masked, or is too large for float64.
    """
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise RewardError(
            f"{name} of ticket {ticket_id!r} hold masked entries: {shown(values)}; leave those rollouts out, and count "
            "them in Outcome.failed"
        )
    reason = ""
    try:
        array = np.asarray(values)
        kind = "bytes" if isinstance(values, bytearray) else array.dtype.kind
        if kind in ("b", "i", "u") or (kind == "f" and array.itemsize <= 8):
            return array.astype(np.float64)
        if kind == "f" or (kind == "O" and all(map(_is_real, array.flat))):
            with np.errstate(over="ignore"):  # what becomes infinite is refused as such
                return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason = f" ({shown(str(error))})"
    if any(getattr(part, "requires_grad", False) for part in parts):
        reason = "; detach the tensor first: `.detach()`"
    elif "BFloat16" in reason:
        reason = "; numpy has no bfloat16, so convert the tensor first: `.float()`"
    raise RewardError(f"{name} of ticket {ticket_id!r} must be a list of real numbers, got {shown(values)}{reason}")


def flat_numbers(rows: list[Any]) -> tuple[np.ndarray, list[int]] | None:
    """The numbers of M rows one after another, float64, and the size of each row; None if they are of another form."""
    kinds = set(map(type, rows))
    if kinds <= {list}:
        if not _NUMBERS.issuperset(map(type, chain.from_iterable(rows))):
            return None
        try:
            return np.array(list(chain.from_iterable(rows)), dtype=np.float64), list(map(len, rows))
        except OverflowError:  # an int of hundreds of digits
            return None
    if kinds != {np.ndarray}:
        return None
    try:
        flat = np.concatenate(rows)
    except (TypeError, ValueError):  # of types or dimensions that don't go together
        return None
    if flat.ndim != 1 or flat.dtype.kind not in "biuf" or flat.itemsize > 8:
        return None
    return flat.astype(np.float64), list(map(len, rows))


def _is_real(value: Any) -> bool:
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)
