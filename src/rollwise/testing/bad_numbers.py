"""The contract of `tell` on what is no number, as tests: it is refused with an error of ours, and nothing changes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rollwise.errors import RewardError, TicketError
from rollwise.testing.play import Contract, check_refused, make_pool, play, snapshot
from rollwise.tickets.outcome import LARGEST_ADVANTAGE, Outcome


class _NeedsGrad:
    """Stands for a torch tensor that requires a gradient."""

    requires_grad = True

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


BAD_NUMBERS: dict[str, Any] = {
    "masked": np.ma.array([1.0, 0.0, 1.0], mask=[False, True, False]),
    "masked elements": list(np.ma.array([1.0, 0.0, 1.0], mask=[False, True, False])),
    "all masked": np.ma.array([1.0, 0.0], mask=True),
    "complex": np.array([1 + 5j, 0j]),
    "complex without imaginary part": [1 + 0j, 0j],
    "texts": ["1", "0"],
    "a text among numbers": [1, "0"],
    "array of texts": np.array(["1", "0"]),
    "objects that are texts": np.array(["1", "0"], dtype=object),
    "bytes": [b"1"],
    "a bytearray": bytearray(b"\1\0"),
    "timedelta64": np.array([1, 0], dtype="timedelta64[s]"),
    "timedelta64 among numbers": [np.timedelta64(1, "s"), 0.5],
    "datetime64": np.array(["1970-01-01"], dtype="datetime64[s]"),
    "timedelta": [datetime.timedelta(seconds=1)],
    "datetime": [datetime.datetime(2020, 1, 1)],
    "10**400": [10**400],
    "an int without a text": [10**5000],
    "a fraction too large": [Fraction(10**400)],
    "a decimal too large": [Decimal("1e999")],
    "a signalling decimal": [Decimal("sNaN")],
    "a long double too large": np.array([np.finfo(np.longdouble).max]),
    "None": [1.0, None],
    "NaN": [float("nan"), 0.0],
    "ragged": [[1.0], [1.0, 0.0]],
    "a text among lists": [[1.0], ["0"]],
    "an empty list among lists": [[1.0], []],
    "a set": {1.0, 0.0},
    "requires grad": _NeedsGrad(),
    "elements require grad": [_NeedsGrad(), _NeedsGrad()],
}
"""What neither rewards nor advantages may be, but for those that are advantages by token."""

BY_TOKEN = ("ragged",)


class BadNumbersConformance(Contract):
    """A part of `CurriculumConformance`."""

    def test_what_is_no_number_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(12), seed=0)
        play(curriculum, [("ask", 4), ("tell", 4)])
        good, other = curriculum.ask(2)
        wrong: list[tuple[str, Outcome]] = []
        for kind, values in BAD_NUMBERS.items():
            k = len(values) if hasattr(values, "__len__") else 2
            outcomes = (Outcome(other.id, values), Outcome(other.id, [1.0] * k, advantages=values))
            wrong += [(kind, outcome) for outcome in (outcomes[:1] if kind in BY_TOKEN else outcomes)]
        check_refused(curriculum, RewardError, lambda one: curriculum.tell([Outcome(good.id, [1, 0]), one[1]]), wrong)

    def test_masked_and_attached_numbers_are_refused_with_their_remedy(self) -> None:
        curriculum = self.make(make_pool(4), seed=0)
        (ticket,) = curriculum.ask(1)
        with pytest.raises(RewardError, match=r"Outcome\.failed"):
            curriculum.tell([Outcome(ticket.id, BAD_NUMBERS["masked"])])
        with pytest.raises(RewardError, match=r"\.detach\(\)"):
            curriculum.tell([Outcome(ticket.id, BAD_NUMBERS["requires grad"])])

    def test_advantages_beyond_the_bound_change_nothing(self) -> None:
        curriculum = self.make(make_pool(12), seed=0)
        good, other = curriculum.ask(2)
        before = snapshot(curriculum)
        for size in (1e308, 1e155, 2 * LARGEST_ADVANTAGE):
            with pytest.raises(RewardError, match="advantages"):
                curriculum.tell([Outcome(good.id, [1, 0]), Outcome(other.id, [1, 0], advantages=[size, -size])])
            assert snapshot(curriculum) == before

    def test_advantages_at_the_bound_leave_all_numbers_finite(self) -> None:
        curriculum = self.make(make_pool(12), seed=0)
        for _ in range(25):
            tickets = curriculum.ask(6, n_rollouts=2)
            assert len(tickets) == 6
            told = [LARGEST_ADVANTAGE, -LARGEST_ADVANTAGE]
            curriculum.tell([Outcome(t.id, [1, 0], advantages=told) for t in tickets])
            assert all(np.isfinite(value) for value in curriculum.metrics().values())
            snapshot(curriculum)  # of finite numbers alone

    def test_ids_that_are_no_tickets_change_nothing(self) -> None:
        curriculum = self.make(make_pool(4), seed=0)
        (ticket,) = curriculum.ask(1)
        before = snapshot(curriculum)
        for bad in ("t" + "9" * 5000, "t²", 10**5000, None):
            with pytest.raises(TicketError, match="unknown ticket"):
                curriculum.tell([Outcome(ticket.id, [1, 0]), Outcome(bad, [1])])  # type: ignore[arg-type]
            assert snapshot(curriculum) == before

    def test_telling_what_is_no_list_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(4), seed=0)
        (ticket,) = curriculum.ask(1)
        before = snapshot(curriculum)
        for bad in (None, 5, "t0", [None], [10**5000]):
            with pytest.raises(TicketError, match="tell takes"):
                curriculum.tell(bad)  # type: ignore[arg-type]
        counts: list[Any] = [10**5000, np.timedelta64(1, "s")]
        for count in counts:
            for outcome in (Outcome(ticket.id, [1, 0], failed=count), Outcome(ticket.id, [1, 0], step=count)):
                with pytest.raises(RewardError, match="whole number"):
                    curriculum.tell([outcome])
        with pytest.raises(RewardError, match="labels"):
            curriculum.tell([Outcome(ticket.id, [1], labels=[10**5000])])  # type: ignore[list-item]
        assert snapshot(curriculum) == before

    def test_every_kind_of_real_number_is_taken(self) -> None:
        curriculum = self.make(make_pool(8), seed=0)
        kinds: list[Any] = [
            *([True, False], np.array([True, False]), [Fraction(1, 1), Decimal("0.0")], np.array([1, 0], dtype=object)),
            *(
                (1, 0),
                np.array([1.0, 0.0], dtype=np.float32),
                [np.float16(1.0), np.bool_(False)],
                np.ma.array([1.0, 0.0]),
            ),
        ]
        for ticket, rewards in zip(curriculum.ask(8), kinds, strict=True):
            assert curriculum.tell([Outcome(ticket.id, rewards, advantages=rewards)]).mean.tolist() == [0.5]
