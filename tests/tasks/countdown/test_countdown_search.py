"""The style `search`: the work shown is right, the accepted expression is the answer, and all of it fits."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import ConfigError
from rollwise.models import EmbeddedConfig
from rollwise.tasks import Countdown
from rollwise.tasks.arithmetic import evaluate
from rollwise.tasks.countdown.items import Item
from rollwise.tasks.countdown.search import MAX_TRIED, search_completion, search_demonstration, tokens_of, worked
from rollwise.tasks.tags import extract_answer


@pytest.mark.parametrize(
    ("expression", "steps"),
    [
        ("3*5+7", "3*5=15,15+7=22"),
        ("(7+3)*5", "7+3=10,10*5=50"),
        ("7-(1-3)*5", "1-3=-2,(-2)*5=-10,7-(-10)=17"),
        ("6*(5/3)", "5/3=5/3,6*(5/3)=10"),
        ("(1+2)*(3+4)", "1+2=3,3+4=7,3*7=21"),
        ("7", ""),
    ],
)
def test_work_by_hand(expression: str, steps: str) -> None:
    assert worked(expression) == steps


@pytest.mark.parametrize("text", ["", "3+", "3**2", "3//2", "-3", "1/(2-2)", "f(3)", "3.0+1", "True+1", "3;4"])
def test_refuses_what_it_cant_work_out(text: str) -> None:
    with pytest.raises(ConfigError, match="can't work out"):
        worked(text)


def test_a_completion_by_hand() -> None:
    """The module's example: 10*5 and 21+5 miss 22, 15+7 hits it."""
    text = "7+3=10,10*5=50:22;7*3=21,21+5=26:22;3*5=15,15+7=22:22.<answer>3*5+7</answer>"
    assert search_completion(["(7+3)*5", "7*3+5"], "3*5+7", 22) == text
    # Three tries of 18 characters, their marks included, two tags, five characters of answer, and the end of text.
    assert tokens_of(text) == 3 * 18 + 2 + 5 + 1
    assert Countdown(style="search").reward([""], [text], nums=[[7, 3, 5]], target=[22]) == [1.0]


def _demos(levels: tuple[int, ...], accuracy: float) -> Iterator[tuple[list[int], int, str, str]]:
    task = Countdown(levels=levels, style="search")
    for demo in task.demonstrations(300, seed=0, accuracy=accuracy):
        nums, target = demo["prompt"].rstrip("=").split(":")
        yield [int(n) for n in nums.split(",")], int(target), demo["prompt"], demo["completion"]


@pytest.mark.parametrize("levels", [(1,), (1, 2, 3), (4, 5), (6,)])
@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_demonstrations_verify_and_fit(levels: tuple[int, ...], accuracy: float) -> None:
    task = Countdown(levels=levels, style="search")
    for nums, target, prompt, completion in _demos(levels, accuracy):
        reward = task.reward([prompt], [completion], nums=[nums], target=[target])
        assert reward == [1.0 if accuracy else 0.1]
        assert tokens_of(completion) <= task.max_completion_length
        # The tokenizer puts one token before the prompt.
        assert 1 + len(prompt) + task.max_completion_length <= EmbeddedConfig().max_length


@pytest.mark.parametrize("levels", [(1, 2, 3), (6,)])
def test_the_work_shown_is_right(levels: tuple[int, ...]) -> None:
    """Each equation holds, each try uses each number once, those before the last miss, the last is the answer."""
    for nums, target, _, completion in _demos(levels, 0.5):
        work, verdict, rest = re.split(r"([.?])", completion)
        held = [one.split(":") for one in work.split(";")]
        assert {int(goal) for _, goal in held} == {target}
        tries = [[step.split("=") for step in one.split(",")] for one, _ in held]
        for one in tries:
            assert len(one) == len(nums) - 1
            for expression, result in one:
                assert evaluate(expression).value == evaluate(result).value is not None
            read = [abs(n) for expression, _ in one for n in evaluate(expression).literals]
            made = [int(n) for _, result in one[:-1] for n in re.findall(r"\d+", result)]
            assert sorted(read) == sorted([*nums, *made])
        assert all(evaluate(one[-1][1]).value != target for one in tries[:-1])
        assert len(tries) <= MAX_TRIED + 1
        assert len(set(work.split(";"))) == len(tries)
        assert (verdict == ".") == (evaluate(tries[-1][-1][1]).value == target)
        answer = extract_answer(rest)
        assert answer is not None
        assert evaluate(answer).value == evaluate(tries[-1][-1][1]).value


def test_who_gives_up_gives_up_late() -> None:
    """The less of two draws from 0 to 4 is 1.2 on average, the greater 2.8.

    Least: 0, 1, 2, 3, 4 with 9, 7, 5, 3, 1 in 25: (7 + 10 + 9 + 4)/25 = 30/25. Over 1,500 demonstrations of short
    tries, which all fit, the averages are within five standard errors, 5*1.2/39 = 0.15.
    """
    item = Item((7, 3), 4, "L1", 1.0, "+-*")
    for solved, expected in ((True, 1.2), (False, 2.8)):
        rng = random.Random(0)
        made = [search_demonstration(item, solved, rng) for _ in range(1500)]
        assert sum(text.count(";") for text in made) / len(made) == pytest.approx(expected, abs=0.15)


def test_lengths_differ() -> None:
    lengths = sorted(tokens_of(completion) for _, _, _, completion in _demos((1, 2, 3), 0.6))
    assert lengths[30] * 2 < lengths[270]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 40), st.booleans(), st.integers(0, 99))
def test_any_numbers_have_a_demonstration(nums: list[int], target: int, solved: bool, seed: int) -> None:
    """Also those a file brings: without a solution, or, as 0 and 0 to 0, without anything wrong to say."""
    answer = extract_answer(search_demonstration(Item(tuple(nums), target, "file", 1.0), solved, random.Random(seed)))
    assert answer is not None
    assert sorted(evaluate(answer).literals) == sorted(nums)
