"""Answers that look right and earned nothing."""

import pytest

from rollwise.profiling.answers import (
    final_answer,
    find_suspect,
    normalised,
    recorded_answer,
    same_answer,
    stands_within,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"thus \boxed{\frac{1}{2}} and \boxed{4}.", "4"),
        ("<answer> 3*5 </answer> or 12", "3*5"),
        ("12 eggs\n#### 1,400", "1,400"),
        ("The answer is **Paris**.", "Paris"),
        ("first 3, then -4.5", "-4.5"),
        ("It cost $1,005 in all", "1005"),
        ("hm\nParis", "Paris"),
        ("a long closing line without any figure in it at all, which is no answer", None),
        ("", None),
        (r"cut off \boxed{1", "1"),
    ],
)
def test_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


def test_same_answer() -> None:
    assert same_answer("1,005", "1005.0")
    assert same_answer("New York.", "newyork")
    assert same_answer("1/2", "0.5")
    assert not same_answer("4", "14")
    assert not same_answer("a", "b")
    assert normalised("$ 1, 005.") == "1005"


def test_a_number_stands_in_a_text_as_a_number() -> None:
    assert stands_within("1400", "that is 1,400 grams")
    assert not stands_within("140", "that is 1,400 grams")
    assert stands_within("New York", "i think new york, yes")
    assert not stands_within("1/0", "1/0 is no number")


def test_recorded_answers() -> None:
    assert recorded_answer({"answer": "so 3+4 = 7\n#### 7"}) == "7"
    assert recorded_answer({"solution": r"we get \boxed{x^2}", "prompt": "?"}) == "x^2"
    assert recorded_answer({"reward_model": {"style": "rule", "ground_truth": "12"}}) == "12"
    assert recorded_answer({"answer": ["12"]}) == "12"
    assert recorded_answer({"answer": ["12", "13"]}) is None
    assert recorded_answer({"target": 5}) is None
    assert recorded_answer({"target": 5}, "target") == "5"


def test_suspects() -> None:
    def found(recorded: str | None, *texts: str) -> tuple[str, int] | None:
        suspect = find_suspect("p", recorded, texts, [0.0] * len(texts))
        return None if suspect is None else (suspect.kind, suspect.rollouts)

    assert found("7", "so 7", "so 8", "it is 7.0") == ("answer-given", 2)
    assert found("700", "700 or 8", "9") == ("answer-within", 1)
    assert found("7", "7 or 8", "9") is None  # one digit may stand anywhere by chance
    assert found("7", "so 8", "8", r"\boxed{8}") == ("all-agree", 3)
    assert found("7", "so 8", "9") is None
    assert found("7", "so 8") is None  # one rollout agrees with itself
    assert found(None, "8", "8") is None
