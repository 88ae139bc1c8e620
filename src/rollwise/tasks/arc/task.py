"""ARC-1D: find the rule that turns one row of cells into another from examples, and apply it. SEC, section 3.1."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

from rollwise.tasks.arc.rules import RULES, Row, Rule
from rollwise.tasks.gym.items import Items
from rollwise.tasks.levels import LevelTask, Puzzle

_EXAMPLES = 2
LENGTHS = {1: 4, 2: 5, 3: 6, 4: 7}
SEC_LENGTHS = {1: 10, 2: 20, 3: 30, 4: 40}

_ENDING = "Your final answer should be just the test output grid itself."
_SEC_ENDING = "Your final answer must be placed in \\boxed{} and should be just the test output grid itself."


class Arc1D(LevelTask, name="arc-1d"):
    """Rows of cells; level 1 to 4 has rows of 4, 5, 6 and 7 cells, or of 10, 20, 30 and 40 in the style `boxed`.

    A compact prompt shows the rule on two rows and asks for a third: `0330>0033;5000>0500;0700>`, answer
    `<answer>0070</answer>`. The examples leave one answer: no rule that fits them has another.

    >>> task = Arc1D()
    >>> task.reward(["0330>0033;5000>0500;0700>"] * 3, ["<answer>0070</answer>", "<answer>7</answer>", ""],
    ...             answer=["0070"] * 3)
    [1.0, 0.1, 0.0]
    """

    answer_lengths: ClassVar[Mapping[int, int]] = LENGTHS

    def compact(self, level: int, rng: random.Random) -> Puzzle:
        while True:
            rule = rng.choice(list(RULES.values()))
            rows = [_shown(rule, LENGTHS[level], rng) for _ in range(_EXAMPLES + 1)]
            *examples, (asked, answer) = rows
            if len(set(rows)) == len(rows) and answers_to(asked, examples) == {answer}:
                shown = "".join(f"{_text(row)}>{_text(made)};" for row, made in examples)
                question = f"{shown}{_text(asked)}>"
                return Puzzle(question, _text(answer), question)

    def boxed(self, level: int, seed: int) -> Puzzle:
        length = SEC_LENGTHS[level]
        item = Items.of("arc_1d", {"min_size": length, "max_size": length})[seed]
        question = item.question.replace(_ENDING, _SEC_ENDING)
        return Puzzle(question, item.answer, question)

    def wrong(self, puzzle: Puzzle, rng: random.Random) -> str:
        cells = list(puzzle.answer)
        colours = sorted({"0", *puzzle.question.rpartition(";")[2][:-1]})
        while "".join(cells) == puzzle.answer:
            cells[rng.randrange(len(cells))] = rng.choice(colours)
        return "".join(cells)


def answers_to(asked: Row, examples: list[tuple[Row, Row]]) -> set[Row]:
    """The outputs for the row `asked` of all rules that fit the examples."""
    fitting = [rule for rule in RULES.values() if all(rule.apply(row) == made for row, made in examples)]
    return {made for rule in fitting if (made := rule.apply(asked)) is not None}


def _shown(rule: Rule, length: int, rng: random.Random) -> tuple[Row, Row]:
    """A random row that the rule can be shown on, and its output."""
    while True:
        row = rule.draw(length, rng)
        made = rule.apply(row)
        if made is not None:
            return row, made


def _text(row: Row) -> str:
    return "".join(map(str, row))
