"""Reversal: its records, its verifier, and what a method can know of prompts that can't be solved."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.tasks import Reversal, make_task
from rollwise.tasks.reversal import reversal_embedding


def test_a_record_reads_as_it_should() -> None:
    record = Reversal(longest=6).train_records(1, seed=0)[0]
    digits = record["prompt"].removesuffix("=")
    assert record["answer"] == digits[::-1]
    assert record["difficulty"] == len(digits)
    assert record["id"] == record["prompt"]


def test_the_reward_is_one_for_the_exact_answer_alone() -> None:
    """`321`, spaces around it, a digit too many, another order, nothing: 1, 1, 0, 0, 0."""
    said = ["321", " 321\n", "3210", "312", ""]
    assert Reversal().reward(["123="] * 5, said, answer=["321"] * 5) == [1.0, 1.0, 0.0, 0.0, 0.0]
    with pytest.raises(TaskError, match="needs the column 'answer'"):
        Reversal().reward(["123="], ["321"])
    with pytest.raises(TaskError, match="needs text in the column 'answer', got 321; put it in quotes"):
        Reversal().reward(["123="], ["321"], answer=[321])


def test_a_partial_reward_is_the_share_of_digits_that_stand_right() -> None:
    """Of `321`: 3 of 3, 2 of 3, 3 of 4 (one too many), 1 of 3 (the rest missing), none; 0 for a broken one."""
    said = ["321", "421", " 3210", "3", "", "?321"]
    answers = ["321"] * 5 + ["?321"]
    assert Reversal(partial=True).reward(["123="] * 6, said, answer=answers) == [1.0, 2 / 3, 0.75, 1 / 3, 0.0, 0.0]
    assert Reversal(partial=True).fingerprint() == Reversal().fingerprint()  # the same policy serves both


def test_training_and_held_out_strings_never_meet() -> None:
    task = Reversal(longest=4)
    train = {r["prompt"] for seed in range(3) for r in task.train_records(600, seed)}
    held_out = {r["prompt"] for seed in range(3) for r in task.eval_records(200, seed)}
    assert not train & held_out
    demos = {d["prompt"] for d in task.demonstrations(2000, seed=0)}
    assert not demos & held_out


def test_the_same_seed_gives_the_same_records() -> None:
    task = Reversal(broken=0.5)
    assert task.train_records(50, seed=3) == task.train_records(50, seed=3) != task.train_records(50, seed=4)


def test_broken_prompts_look_like_all_others_and_have_an_answer_that_nobody_gives() -> None:
    records = Reversal(broken=0.75).train_records(400, seed=0)
    broken = [r for r in records if r["answer"] != r["prompt"][-2::-1]]
    assert len(broken) == 300
    assert {r["prompt"][-1] for r in records} == {"="}
    assert {r["category"].split()[0] for r in records} == {"reverse"}
    assert all(not r["answer"].isdigit() for r in broken)
    whole = Counter(r["category"] for r in records)
    assert set(whole) == set(Counter(r["category"] for r in broken))


def test_foreign_prompts_say_so_in_prompt_category_and_embedding() -> None:
    records = Reversal(foreign=0.5).train_records(200, seed=0)
    foreign = [r for r in records if r["prompt"].endswith(":")]
    assert len(foreign) == 100
    assert all(r["category"].startswith("foreign") and r["embedding"][-1] > 0.7 for r in foreign)
    a, b = foreign[0]["embedding"], next(r for r in records if r["prompt"].endswith("="))["embedding"]
    assert np.dot(a, b) <= 0.5 + 1e-9


def test_held_out_prompts_are_clean_and_of_all_lengths_alike() -> None:
    records = Reversal(broken=0.7, foreign=0.3, skew=5.0, longest=8).eval_records(400, seed=0)
    assert all(r["answer"] == r["prompt"][-2::-1] for r in records)
    lengths = Counter(int(r["difficulty"]) for r in records)
    assert min(lengths[n] for n in range(3, 9)) > 40  # 400 over 8 lengths, of which the shortest have few strings


def test_skew_makes_long_strings_frequent() -> None:
    """Weights 1, 4, 9, 16 for lengths 1 to 4: 16/30 = 0.53 have the greatest length, before short ones run out."""
    lengths = [r["difficulty"] for r in Reversal(longest=4, skew=2.0).train_records(300, seed=0)]
    assert 0.45 < np.mean(np.equal(lengths, 4.0)) < 0.7
    assert Reversal(longest=2).train_records(500, seed=0)  # there are 110 strings, so fewer come


def test_fewer_come_only_where_all_strings_are_used_up() -> None:
    records = Reversal(longest=2).train_records(500, seed=0)
    strings = [str(n) for n in range(10)] + [f"{n:02d}" for n in range(100)]
    assert sorted(r["prompt"][:-1] for r in records) == sorted(s for s in strings if not Reversal().held_out(s))


def test_demonstrations_have_the_share_of_random_digits() -> None:
    """A random digit is right by luck once in ten: 0.42 * 0.9 = 0.378 of all digits are wrong."""
    demos = Reversal().demonstrations(4000, seed=0)
    wrong = [a != b for d in demos for a, b in zip(d["completion"], d["prompt"][-2::-1], strict=True)]
    assert np.mean(wrong) == pytest.approx(0.378, abs=0.01)
    exact = Reversal().demonstrations(100, seed=0, accuracy=1.0)
    assert all(d["completion"] == d["prompt"][-2::-1] for d in exact)


def test_failures_have_names() -> None:
    task = Reversal()
    assert task.failure("321", {"answer": "321"}) is None
    assert task.failure("123", {"answer": "321"}) == "wrong-digits"
    assert task.failure("321", {"answer": "?321"}) == "wrong-digits"
    with pytest.raises(TaskError, match="answer"):
        task.failure("1", {})


def test_one_policy_serves_every_mix() -> None:
    assert Reversal(broken=0.7, skew=2.0).fingerprint() == Reversal(foreign=0.5).fingerprint()
    assert Reversal(longest=5).fingerprint() != Reversal().fingerprint()


def test_the_embedding_by_hand() -> None:
    """Longest 2, length 1: bumps 1 and exp(-(1/1.5)^2 / 2) = 0.8007; over sqrt(2 (1 + 0.6412)) = 1.8118; the kind
    takes sqrt(1/2)."""
    assert reversal_embedding(1, 2, foreign=False) == pytest.approx([0.5519, 0.4420, 0.7071, 0.0], abs=1e-4)
    assert reversal_embedding(1, 2, foreign=True)[2:] == pytest.approx([0.0, 0.7071], abs=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"longest": 0}, "longest must be"),
        ({"broken": 1.5}, "broken must be"),
        ({"broken": 0.6, "foreign": 0.6}, "broken \\+ foreign"),
        ({"skew": -1}, "skew must be"),
        ({"digit_errors": "a"}, "digit_errors must be"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_task("reversal", **options)
