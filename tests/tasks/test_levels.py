"""Zebra puzzles and ARC-1D: the verifiers, the levels, the split, and puzzles with one answer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.tasks import make_task, task_options
from rollwise.tasks.arc.rules import RULES, fallen, filled, hollow, mirrored, moved
from rollwise.tasks.arc.task import answers_to
from rollwise.tasks.tags import extract_answer
from rollwise.tasks.zebra.puzzles import Size, assignments, make, needed, satisfies, written

NAMES = ("zebra", "arc-1d")
ZEBRA, ARC = "A2B3C1a2b1c3", "0070"


@pytest.mark.parametrize(("name", "answer", "other"), [("zebra", ZEBRA, ZEBRA[::-1]), ("arc-1d", ARC, "0700")])
def test_rewards_of_right_wrong_and_malformed_answers(name: str, answer: str, other: str) -> None:
    said = {
        f"<answer>{answer}</answer>": 1.0,
        f"<answer>{other}</answer> no: <answer> {answer} </answer>": 1.0,
        f"<answer>{answer}</answer> no: <answer>{other}</answer>": 0.1,
        f"<answer>{answer}{answer}</answer>": 0.1,
        f"<answer>{answer}": 0.0,
        answer: 0.0,
        "<answer> </answer>": 0.0,
        "": 0.0,
    }
    task = make_task(name)
    assert dict(zip(said, task.reward([""] * len(said), list(said), answer=[answer] * len(said)), strict=True)) == said
    assert [task.failure(text, {"answer": answer}) for text in list(said)[:5:2]] == [None, "wrong-answer", "format"]
    with pytest.raises(TaskError, match=f"the reward of '{name}' needs the column 'answer'"):
        task.reward([""], [""])
    for wrong in (70, None):  # as a number no completion was it, and in a box both ended in a traceback
        with pytest.raises(TaskError, match=f"needs text in the column 'answer', got {wrong}; put it in quotes"):
            task.reward([""], ["<answer>70</answer>"], answer=[wrong])


def test_rewards_in_a_box() -> None:
    task = make_task("zebra", style="boxed")
    right = [r"It is \boxed{ Alice }.", r"\boxed{bob}, no: \boxed{alice}", r"\boxed{\text{Alice}}"]
    said = [*right, r"\boxed{bob}", r"\boxed{\text{Bob}}", r"\boxed{", "alice"]
    assert task.reward([""] * 7, said, answer=["alice"] * 7) == [1.0, 1.0, 1.0, 0.1, 0.1, 0.0, 0.0]
    with pytest.raises(TaskError, match="no demonstrations"):
        task.demonstrations(1, 0)


@pytest.mark.parametrize("name", NAMES)
def test_three_levels_to_train_on_and_a_fourth_held_out(name: str) -> None:
    task = make_task(name)
    train, sets = task.train_records(6, seed=0), task.eval_sets(9, seed=0)
    assert [record["category"] for record in train[:6]] == ["L1", "L2", "L3"] * 2
    assert {key: {record["category"] for record in records} for key, records in sets.items()} == {
        "id": {"L1", "L2", "L3"},
        "ood": {"L4"},
    }
    assert list(make_task(name, eval_levels=(1, 2, 3)).eval_sets(3, 0)) == [""]
    longest = max(len(record["answer"]) for record in sets["ood"])
    assert task.max_completion_length == longest + 3 <= 40
    assert [record["difficulty"] for record in make_task(name, levels=(2, 2, 1)).train_records(6, 0)].count(2.0) == 4
    with pytest.raises(ConfigError, match=r"levels must be one or more whole numbers in \[1, 4\], got \(5,\)"):
        make_task(name, levels=(5,))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_puzzles_and_none_is_held_out(name: str) -> None:
    task = make_task(name, eval_levels=(1, 2, 3))
    train = task.train_records(150, seed=0)
    assert task.train_records(30, seed=0) == train[:30]
    assert task.train_records(30, seed=1) != train[:30]
    held_out = {record["id"] for seed in (0, 1) for record in task.eval_records(60, seed)}
    shown = {record["id"] for seed in (0, 1) for record in task.train_records(150, seed)}
    assert not held_out & shown
    assert len({record["id"] for record in train}) == 150
    demos = task.demonstrations(60, seed=0)
    assert demos == task.demonstrations(60, seed=0)
    assert not {demo["prompt"] for demo in demos} & {r["prompt"] for r in task.eval_records(60, 0)}


@pytest.mark.parametrize("name", NAMES)
def test_demonstrations_are_right_as_often_as_asked(name: str) -> None:
    task = make_task(name, levels=(1,), eval_levels=(1,))
    for accuracy in (1.0, 0.0):
        for demo in task.demonstrations(40, seed=1, accuracy=accuracy):
            said = extract_answer(demo["completion"])
            assert said is not None
            assert (said in right_answers(name, demo["prompt"][:-1])) is bool(accuracy)


def solutions(size: Size, clues: list[str]) -> list[str]:
    """Every assignment that the clues leave."""
    fits = np.ones(len(assignments(size)), dtype=bool)
    for clue in clues:
        fits &= satisfies(size, clue)
    return [written(size, houses) for houses in assignments(size)[fits]]


def right_answers(name: str, question: str) -> list[str]:
    """By a reader of prompts of its own."""
    if name == "zebra":
        head, _, clues = question.partition(":")
        return solutions(Size(int(head[0]), int(head[2])), clues.split(","))
    *shown, asked = question.split(";")
    pairs = [tuple(tuple(map(int, row)) for row in one.split(">")) for one in shown]
    return ["".join(map(str, row)) for row in answers_to(tuple(map(int, asked)), pairs)]  # type: ignore[arg-type]


def test_every_clue_is_needed_and_one_answer_is_left() -> None:
    rng = random.Random(0)
    for size in (Size(2, 2), Size(3, 3), Size(4, 2)):
        for _ in range(5):
            clues, answer = make(size, rng)
            assert solutions(size, clues) == [answer]
            for clue in clues:
                assert len(solutions(size, [other for other in clues if other != clue])) > 1


def test_clues_worked_out_by_hand() -> None:
    """A and b share a house, a is left of B, so B is not first: A1 B3 or A1 B2, and so on; c in 3 leaves one."""
    assert solutions(Size(3, 2), ["Ab", "a<B", "c3"]) == ["A1B3C2a2b1c3"]
    assert solutions(Size(3, 1), ["A~B", "C3"]) == ["A1B2C3", "A2B1C3"]
    assert needed(Size(2, 1), ["A1", "B2"]) == ["B2"]


def test_rules_by_hand() -> None:
    assert moved((0, 3, 3, 0, 0), 2) == (0, 0, 0, 3, 3)
    assert moved((0, 3, 3, 0, 0), -1) == (3, 3, 0, 0, 0)
    assert moved((0, 3, 3), 1) is None
    assert mirrored((1, 1, 0)) == (0, 1, 1)
    assert mirrored((1, 0, 1)) is None
    assert hollow((5, 5, 5, 5)) == (5, 0, 0, 5)
    assert hollow((5, 5, 0, 0)) is None
    assert filled((5, 0, 0, 5)) == (5, 5, 5, 5)
    assert filled((5, 0, 6, 0)) is None
    assert fallen((0, 1, 0, 2)) == (1, 2, 0, 0)
    assert fallen((1, 2, 0, 0)) is None


def test_the_examples_leave_one_answer() -> None:
    """Moved by one and mirrored are alike on the first row alone."""
    assert answers_to((3, 0, 0, 0), [((0, 2, 0, 0), (0, 0, 2, 0))]) == {(0, 3, 0, 0), (0, 0, 0, 3)}
    assert answers_to((3, 0, 0, 0), [((0, 2, 0, 0), (0, 0, 2, 0)), ((1, 0, 0, 0), (0, 1, 0, 0))]) == {(0, 3, 0, 0)}
    assert len(RULES) == 7
    assert task_options("arc-1d")["levels"] == (1, 2, 3)
