"""The solver against the verifier and against brute force that shares no code with it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.errors import ConfigError
from rollwise.tasks.arithmetic import evaluate
from rollwise.tasks.countdown.solver import solve


@cache
def _brute_force(nums: tuple[Fraction, ...]) -> set[Fraction]:
    """Every value reachable by replacing two numbers by one until one is left."""
    if len(nums) == 1:
        return {nums[0]}
    values = set()
    for i, j in itertools.permutations(range(len(nums)), 2):
        rest = tuple(n for k, n in enumerate(nums) if k not in (i, j))
        a, b = nums[i], nums[j]
        for made in [a + b, a - b, a * b] + ([a / b] if b else []):
            values |= _brute_force(tuple(sorted((*rest, made))))
    return values


def _right(text: str, nums: list[int], target: int) -> bool:
    result = evaluate(text)
    return result.value == target and sorted(result.literals) == sorted(nums)


small = st.lists(st.integers(0, 12), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(small, st.integers(-30, 150))
def test_solves_exactly_what_brute_force_reaches(nums: list[int], target: int) -> None:
    reachable = target in _brute_force(tuple(map(Fraction, nums)))
    answer = solve(nums, target)
    assert (answer is not None) == reachable
    if answer is not None:
        assert _right(answer, nums, target)


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=4, max_size=4))
def test_reaches_every_whole_number_that_four_numbers_can(nums: list[int]) -> None:
    reachable = {int(v) for v in _brute_force(tuple(map(Fraction, nums))) if v.denominator == 1}
    for target in range(-5, 60):
        answer = solve(nums, target)
        assert (answer is not None) == (target in reachable), (nums, target)
        assert answer is None or _right(answer, nums, target)


def test_a_fraction_on_the_way() -> None:
    assert solve([1, 3, 4, 6], 24) == "6/(1-3/4)"


@pytest.mark.parametrize("nums", [[0, 5], [0, 0], [0, 0, 0], [0, 3, 7]])
def test_zero_target(nums: list[int]) -> None:
    answer = solve(nums, 0)
    assert answer is not None
    assert _right(answer, nums, 0)


def test_the_order_of_the_numbers_does_not_matter() -> None:
    assert {solve(list(p), 36) for p in itertools.permutations([2, 7, 11, 4])} == {solve([2, 7, 11, 4], 36)}


@pytest.mark.parametrize("nums", [[], [1] * 7, [1, -2], [1, 2.0], [True, 2], ["1", 2]])
def test_refuses_other_numbers(nums: list[int]) -> None:
    with pytest.raises(ConfigError, match="nums must"):
        solve(nums, 3)
