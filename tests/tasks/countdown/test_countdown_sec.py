"""Countdown as SEC has it: three to six numbers, answers in a box, rewards of 1, 0.1 and 0."""

import pytest

from rollwise.tasks import Countdown
from rollwise.tasks.countdown.solver import solve

RECORD = {"nums": [5, 17, 91], "target": 113}


@pytest.mark.parametrize("level", [7, 8, 9, 10])
def test_levels_of_three_to_six_numbers(level: int) -> None:
    task = Countdown(levels=(level,), style="boxed")
    records = [*task.train_records(20, seed=0), *task.eval_records(5, seed=0)]
    assert {len(record["nums"]) for record in records} == {level - 4}
    assert all(100 <= record["target"] <= 999 and max(record["nums"]) <= 100 for record in records)
    assert {record["category"] for record in records} == {f"L{level}"}
    assert all(solve(record["nums"], record["target"]) for record in records[: 3 if level == 10 else 10])


def test_training_on_three_levels_and_the_fourth_out_of_distribution() -> None:
    task = Countdown(levels=(7, 8, 9), eval_levels=(10,), style="boxed")
    assert {len(record["nums"]) for record in task.train_records(9, seed=0)} == {3, 4, 5}
    assert {len(record["nums"]) for record in task.eval_records(9, seed=0)} == {6}


def test_the_prompt_is_that_of_appendix_c() -> None:
    prompt = Countdown(levels=(7,), style="boxed").train_records(1, seed=0)[0]["prompt"]
    assert prompt.startswith("A conversation between User and Assistant.")
    assert "each number should be used exactly once. Return the final answer in \\boxed{}, for example" in prompt
    assert prompt.endswith("\\boxed{(1 + 2) / 3}. Assistant: Let me solve this step by step.")


@pytest.mark.parametrize(
    ("completion", "reward", "failure"),
    [
        ("So \\boxed{5 + 17 + 91}.", 1.0, None),
        ("So $\\boxed{\\left(5 + 17\\right) + 91}$", 1.0, None),
        ("\\boxed{5 \\times 17}, no, \\boxed{91 + 17 + 5}", 1.0, None),
        ("So \\boxed{5 \\times 17 + 91}.", 0.1, "wrong-target"),
        ("So \\boxed{113}.", 0.1, "invalid-number-use"),
        ("So \\boxed{\\text{5 + 17}\\ +\\,91}.", 1.0, None),
        ("So \\boxed{\\frac{91}{5} \N{MULTIPLICATION SIGN} 17}.", 0.1, "wrong-target"),
        ("So \\boxed{x}.", 0.1, "format"),
        ("So <answer>5+17+91</answer>", 0.0, "format"),
        ("So 5+17+91", 0.0, "format"),
        ("So \\boxed{5+17+91", 0.0, "format"),
    ],
)
def test_rewards_by_hand(completion: str, reward: float, failure: str | None) -> None:
    task = Countdown(style="boxed")
    assert task.reward(["?"], [completion], nums=[RECORD["nums"]], target=[113]) == [reward]
    assert task.failure(completion, RECORD) == failure


def test_fractions_of_latex_and_signs_of_unicode_in_a_box() -> None:
    task = Countdown(style="boxed")
    said = [
        "\\boxed{\\frac{91 - 5}{43}}",
        "\\boxed{2\\dfrac{43}{43}}",
        "\\boxed{(9 \N{MINUS SIGN} 7) \N{DIVISION SIGN} 1}",
    ]
    nums = [[91, 5, 43], [2, 43, 43], [9, 7, 1]]
    assert task.reward(["?"] * 3, said, nums=nums, target=[2, 3, 2]) == [1.0, 0.1, 1.0]


def test_demonstrations_are_answers() -> None:
    task = Countdown(levels=(7,), style="boxed", demo_accuracy=1.0)
    one = task.demonstrations(1, seed=0)[0]
    assert "\\boxed{" in one["completion"]


def test_answers_are_given_room() -> None:
    assert Countdown(levels=(1, 6)).max_completion_length == 18
    assert Countdown(levels=(10,)).max_completion_length == 34  # six numbers of three digits
