"""A judge whose predictions are written by the policy itself, from a few recent prompts and their variances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.judges.base import MAX_VARIANCE, Judge, Predicts, Prompts, told_values
from rollwise.judges.formats import FORMATS, Exemplar, JudgmentFormat, make_format
from rollwise.judges.questions import Answer, Question
from rollwise.options import CountOrZero
from rollwise.pool import PromptPool

ExemplarChoice = Literal["newest", "spread"]

_RECENT = 256
"""Pairs that "spread" chooses among: as many as the paper's batch has prompts."""


class InContextJudge(Judge):
    """Asks a model, which sees recent prompts with the variance that their rollouts had (METIS, section 4.1).

    It generates nothing: the code that runs the model answers its questions (`Curriculum.consult`).

    The memory holds pairs of everything that was rolled out, judged or not: line 7 of Algorithm 1 refreshes it with
    (x, v(x)) of the whole batch S_t, whatever was predicted. So rails' prompts, and those of a mixture's other lanes,
    are in it. Where the paper is silent: a new pair of a prompt replaces its old one, of an earlier policy; and
    a candidate is never shown its own pair, but the next most recent pair of another prompt. So the memory keeps one
    pair more than K; with "spread", the 256 most recent ones.

    Args:
        exemplars: K, how many prompt-variance pairs a question shows. Of pairs equally recent, told in one step, chance
            decides, which the paper leaves open: it takes the 3 most recent of 64 or more that one step brings.
        exemplar_choice: "newest", the K most recent pairs, the oldest first, as section 4.1 says. "spread", of rising
            variance as in the paper's examples (appendix B.3): of K equal parts of [0, 1/4] the most recent pair in
            each; the most recent of the others take the place of parts without any.
        format: "words", the paper's template; "listing", the same as appendix B.3 prints it; "boxed" and "digit", the
            same with the answer begun; "compact", for a small policy; or a format of your own.
        expected: predict by the probabilities of the format's `choices` instead of by an answer drawn from them.

    Raises:
        ConfigError: an option out of range, or a format without `choices` where they are needed.
    """

    predicts: Predicts = "variance"

    def __init__(
        self,
        *,
        exemplars: CountOrZero = 3,
        exemplar_choice: ExemplarChoice = "newest",
        format: str | JudgmentFormat = "words",
        expected: bool = False,
    ) -> None:
        self.exemplars, self.format, self.expected = exemplars, make_format(format), expected
        self.spread = exemplar_choice == "spread"
        self.kept = 0 if not exemplars else _RECENT if self.spread else exemplars + 1
        if expected and not self.format.choices:
            named = sorted(name for name, kind in FORMATS.items() if kind.choices)
            raise ConfigError(
                f"answers 'expected' needs a format whose answers are one of a few tokens; {self.format.name!r} has "
                f"no such `choices`; take format {' or '.join(map(repr, named))}, or answers 'sampled'"
            )
        self.pairs: dict[str, Exemplar] = {}  # by prompt id, the oldest first

    @property
    def memory(self) -> list[Exemplar]:
        """The K pairs that a prompt without one of its own is shown."""
        return list(self.shown_to(None))

    def shown_to(self, prompt_id: str | None) -> tuple[Exemplar, ...]:
        """K pairs of prompts other than `prompt_id`: the oldest first, or by rising variance."""
        others = [pair for id_, pair in self.pairs.items() if id_ != prompt_id]
        if self.spread:
            return spread_out(others, self.exemplars)
        return tuple(others[max(0, len(others) - self.exemplars) :])

    def offered(self, prompt_id: str) -> int:
        """How many pairs a prompt is shown."""
        return min(self.exemplars, len(self.pairs) - (prompt_id in self.pairs))

    @property
    def options(self) -> Mapping[str, Any]:
        own = {**super().options, "format": self.format.name}
        if not self.spread:  # so that states of before are those of "newest"
            del own["exemplar_choice"]
        return own

    def bind(self, pool: PromptPool, seed: int) -> None:
        self.pairs = {}

    def questions(self, first: int, candidates: Prompts) -> list[Question]:
        """One for each of K candidates, numbered from `first` on."""
        memory = self.shown_to(None)
        shown = {id_: self.shown_to(id_) for id_ in candidates.ids if id_ in self.pairs}
        rows = enumerate(zip(candidates.ids, candidates.texts, strict=True), start=first)
        return [
            Question(f"q{number}", id_, text, shown.get(id_, memory), self.format, self.expected, self.spread)
            for number, (id_, text) in rows
        ]

    def read(self, answer: Answer) -> float:
        """The prediction in an answer; NaN if there is none."""
        value = answer.prediction
        if value is None and answer.text is not None:
            value = self.format.read(answer.text)
        return np.nan if value is None else value

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        """Add the newest pairs to the memory (Algorithm 1, line 7). A group of one has no variance."""
        rows, values = told_values(self.predicts, mean, variance, count)
        if not self.exemplars:
            return
        ids, texts = told.ids, told.texts
        for row in rows[-self.kept :]:
            self.pairs.pop(ids[row], None)
            self.pairs[ids[row]] = Exemplar(texts[row], float(values[row]))
        for id_ in list(self.pairs)[: -self.kept]:
            del self.pairs[id_]

    def metrics(self) -> dict[str, float]:
        return {"memory": float(len(self.memory))}

    def state_dict(self) -> dict[str, Any]:
        return {"memory": [[id_, pair.text, pair.variance] for id_, pair in self.pairs.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            self.pairs = {str(id_): Exemplar(str(text), float(variance)) for id_, text, variance in state["memory"]}
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the judge's memory is damaged: {error!r}") from error


def spread_out(pairs: Sequence[Exemplar], k: int) -> tuple[Exemplar, ...]:
    """`k` of the pairs, by rising variance: the newest in each of `k` equal parts of [0, 1/4], and else the newest.

    Args:
        pairs: the oldest first.
        k: how many; all, where there are no more.

    >>> pairs = [Exemplar(name, v) for name, v in [("a", 0.02), ("b", 0.11), ("c", 0.2), ("d", 0.25), ("e", 0.23)]]
    >>> [pair.text for pair in spread_out(pairs, 3)], [pair.text for pair in spread_out(pairs[2:], 2)]
    (['a', 'b', 'e'], ['e', 'd'])
    """
    newest = pairs[::-1]
    parts = [min(int(pair.variance / MAX_VARIANCE * k), k - 1) for pair in newest]
    first = [parts.index(part) for part in range(k) if part in parts]
    others = [row for row in range(len(newest)) if row not in first]
    chosen = sorted(first + others[: k - len(first)], reverse=True)  # of equal variances the oldest is first
    return tuple(sorted((newest[row] for row in chosen), key=lambda pair: pair.variance))
