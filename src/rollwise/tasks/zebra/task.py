"""Zebra puzzles: find who lives in which house from clues. SEC, section 3.1."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

from rollwise.tasks.gym.items import Items
from rollwise.tasks.levels import LevelTask, Puzzle
from rollwise.tasks.zebra.puzzles import Size, assignments, make, written

SIZES = {1: Size(3, 1), 2: Size(4, 1), 3: Size(3, 2), 4: Size(4, 2)}
SEC_SIZES = {1: 3, 2: 4, 3: 5, 4: 6}

_ENDING = "Provide only the name of the person as your final answer."
_SEC_ENDING = (
    "Provide only the name of the person as your final answer and put in in \\boxed{}, for example: \\boxed{Alice}."
)


class Zebra(LevelTask, name="zebra"):
    """Zebra puzzles; levels 1 to 4 have 3 x 1, 4 x 1, 3 x 2 and 4 x 2 houses and characteristics.

    A compact prompt is `3x2:Ab,a<B,c3=`: three houses, capitals and small letters; `A` and `b` live in one house, `a`
    is directly left of `B`, `c` lives in house 3. `A~b` says that two are neighbours. The answer has each value with
    its house, here `<answer>A1B3C2a2b1c3</answer>`. Every clue is needed, and one answer fits.

    In the style `boxed` the levels have 3 x 3 to 6 x 6, and the question is who lives in the first house.

    >>> task = Zebra()
    >>> record = task.train_records(1, seed=0)[0]
    >>> task.reward([record["prompt"]], [f"<answer>{record['answer']}</answer>"], answer=[record["answer"]])
    [1.0]
    """

    clean_first: ClassVar[float] = 1 / 3
    answer_lengths: ClassVar[Mapping[int, int]] = {level: 2 * len(size.values) for level, size in SIZES.items()}

    def compact(self, level: int, rng: random.Random) -> Puzzle:
        size = SIZES[level]
        clues, answer = make(size, rng)
        question = f"{size.houses}x{size.characteristics}:{','.join(sorted(clues))}="
        return Puzzle(question, answer, question)

    def boxed(self, level: int, seed: int) -> Puzzle:
        size = SEC_SIZES[level]
        item = Items.of("zebra_puzzles", {"num_people": size, "num_characteristics": size})[seed]
        question = item.question.replace(_ENDING, _SEC_ENDING)
        return Puzzle(question, item.answer, question)

    def wrong(self, puzzle: Puzzle, rng: random.Random) -> str:
        size = Size(int(puzzle.question[0]), int(puzzle.question[2]))
        while True:
            answer = written(size, assignments(size)[rng.randrange(len(assignments(size)))])
            if answer != puzzle.answer:
                return answer
