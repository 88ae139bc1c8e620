"""What all tasks share: their split by hash, their generators, and how many records may be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from rollwise.errors import ConfigError
from rollwise.tasks.base import Task
from rollwise.tasks.countdown.task import Countdown
from rollwise.tasks.reversal import Reversal
from rollwise.tasks.seeding import distinct, in_share, rng_for


def test_the_split_is_by_the_first_eight_bytes_of_sha256() -> None:
    """SHA-256 of nothing begins e3b0c442: 0xe3b0c442 / 2^32 = 3820012610 / 4294967296 = .88942 of the range."""
    assert not in_share("", 0.8894)
    assert in_share("", 0.8895)


def test_a_generator_for_each_seed_and_name() -> None:
    first = rng_for(0, "a").random()
    assert rng_for(0, "a").random() == first
    assert first not in (rng_for(1, "a").random(), rng_for(0, "b").random())


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3", None])
@pytest.mark.parametrize("asked", ["train_records", "eval_records", "demonstrations"])
@pytest.mark.parametrize("task", [Countdown(levels=(2,)), Reversal(longest=4)], ids=["countdown", "reversal"])
def test_a_number_of_records_that_can_not_be(task: Task, asked: str, n: Any) -> None:
    with pytest.raises(ConfigError, match="n must be a whole number >= 1, got "):
        getattr(task, asked)(n, seed=0)
    assert len(getattr(task, asked)(3, seed=0)) == 3


def test_distinct_takes_no_draw_more_than_it_must_and_gives_up_after_a_row_of_misses() -> None:
    """Of 0 1 2 0 5 7 1 9 4, the even ones: 0 and 2 are new; 0, 5, 7 is a row of three misses, and 1 is not drawn."""
    draws = iter([0, 1, 2, 0, 5, 7, 1, 9, 4])
    seen = {"6"}
    found = distinct(draws, key=str, wanted=lambda number: number % 2 == 0, seen=seen, give_up=3)
    assert next(found) == 0
    assert next(draws) == 1  # not taken yet
    assert list(found) == [2]
    assert seen == {"0", "2", "6"}
    assert list(draws) == [1, 9, 4]
