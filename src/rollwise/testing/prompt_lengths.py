"""A stand-in for the judge that reads prompts with a policy."""

from __future__ import annotations

import numpy as np

from rollwise.judges import Judge, Measure, Prompts
from rollwise.options import Positive


class PromptLengths(Judge):
    """Says of each prompt its length, as if that were what is measured of it; so `HIVE` and `PREPO` need no policy.

    Args:
        predicts: "entropy" or "perplexity".
        characters: how many count one.

    >>> from rollwise import HIVE, PromptPool
    >>> pool = PromptPool(ids=["a", "b"], prompts=["1", "22"])
    >>> HIVE(pool, judge="rollwise.testing.prompt_lengths:PromptLengths").ask(1)[0].prompt_id
    'b'
    """

    predicts: Measure

    def __init__(self, *, predicts: Measure = "entropy", characters: Positive = 1.0) -> None:
        self.predicts, self.characters = predicts, characters

    def predict(self, candidates: Prompts) -> np.ndarray:
        return np.array([len(text) / self.characters for text in candidates.texts])
