"""Self-consistency that stops early: draw answers until they agree, then take the majority. Pure functions.

Nothing here needs a head, a model's weights or log-probabilities: only the final answers of samples, so it works over
any endpoint. What is taken from where:

* self-consistency, the majority of K answers: Wang et al. 2022 (arXiv 2203.11171);
* ESC, windows of w samples, stop once all answers of one window are equal: Li et al. 2024 (arXiv 2401.10480);
* adaptive consistency, stop once P(the majority stays the majority) >= 0.95 under a Beta posterior of the two most
  frequent answers: Aggarwal et al. 2023 (arXiv 2305.11860), whose stopping criterion "Beta" this is.

A sample that holds no answer counts as one that was paid for, agrees with nothing, not even with another of its kind,
and has no vote. So it is in adaptive consistency's code for programs that fail; its code for texts, and ESC's scripts,
count "no answer" as an answer like any other.

The answer is the majority of all samples drawn, as in the ESC of a later paper of its group (Wang et al. 2024, arXiv
2408.13457). ESC's own scripts answer what the window that agreed says; the two differ where an answer of earlier
windows outnumbers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.options import Count, CountFromTwo, CountOrZero, Share, check_fields, make_named

Answer = str | None
"""A sample's final answer; None where it has none."""


class StoppingRule:
    """Says when enough answers are drawn; a pure function of them. As it stands here, never before all K."""

    name: str
    """In tables."""

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, k: int, drawn: int) -> int:
        """How many of K samples to draw after `drawn` before the next look; 0 after the last."""
        raise NotImplementedError

    def agreed(self, answers: Sequence[Answer]) -> bool:
        """Whether to stop after these samples, in the order in which they were drawn."""
        return False

    def can_agree(self, known: Mapping[int, Answer], n: int) -> bool:
        """Whether `agreed` can hold for the first n samples, given those in `known` (number -> answer)."""
        return False


@dataclass(frozen=True, kw_only=True)
class Full(StoppingRule):
    """Self-consistency without stopping: all K samples at once, or `window` at a time.

    Args:
        window: Samples at a time; 0 for all K. Some servers refuse large requests.
    """

    name = "full"
    window: CountOrZero = 0

    def draw(self, k: int, drawn: int) -> int:
        return min(self.window or k, k - drawn)


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(StoppingRule):
    """ESC: windows of w samples; stop once all answers of one window are equal (Li et al. 2024).

    Args:
        window: w; 5 in the authors' scripts, which sweep 2 to 10 on StrategyQA. The chance that a window agrees on a
            wrong answer of probability q is q^w.
    """

    name = "esc"
    window: CountFromTwo = 5

    def draw(self, k: int, drawn: int) -> int:
        """To the end of the window: windows don't overlap."""
        return min(self.window - drawn % self.window, k - drawn)

    def agreed(self, answers: Sequence[Answer]) -> bool:
        """Only a whole window counts.

        >>> rule = EarlyStopping(window=2)
        >>> rule.agreed(["4", "5"]), rule.agreed(["4", "5", "5"]), rule.agreed(["4", "5", "5", "5"])
        (False, False, True)
        """
        if not answers or len(answers) % self.window:
            return False
        last = answers[-self.window :]
        return last[0] is not None and all(answer == last[0] for answer in last)

    def can_agree(self, known: Mapping[int, Answer], n: int) -> bool:
        """If a whole window ends here, and what is there of it agrees."""
        if n % self.window:
            return False
        seen = {known[at] for at in range(n - self.window, n) if at in known}
        return len(seen) <= 1 and None not in seen


@dataclass(frozen=True, kw_only=True)
class AdaptiveConsistency(StoppingRule):
    """Stop once the most frequent answer stays so with probability >= `threshold` (Aggarwal et al. 2023).

    Args:
        threshold: C_thresh; 0.95 in the paper.
        window: Samples between two looks; the paper's 1. More means at most window - 1 samples more.
    """

    name = "adaptive"
    threshold: Share = 0.95
    window: Count = 1

    def draw(self, k: int, drawn: int) -> int:
        return min(self.window, k - drawn)

    def agreed(self, answers: Sequence[Answer]) -> bool:
        """With the threshold of the paper four equal answers are enough.

        >>> rule = AdaptiveConsistency()
        >>> rule.agreed(["4"] * 3), rule.agreed(["4"] * 4)
        (False, True)
        """
        return self._safe(*top_counts(answers))

    def can_agree(self, known: Mapping[int, Answer], n: int) -> bool:
        """If it would be safe were all the missing ones for the answer that leads."""
        first, second = top_counts([known[at] for at in range(n) if at in known])
        return self._safe(first + sum(at not in known for at in range(n)), second)

    def _safe(self, first: int, second: int) -> bool:
        return first > 0 and majority_stays(first, second) >= self.threshold


RULES: dict[str, type[Any]] = {rule.name: rule for rule in (EarlyStopping, AdaptiveConsistency, Full)}


def make_rule(name: str, **options: Any) -> StoppingRule:
    """A rule by its name in `RULES`; options that are None keep their default.

    Raises:
        ConfigError: an unknown name, an option that the rule lacks, or a value out of range.

    >>> make_rule("esc", window=4)
    EarlyStopping(window=4)
    """
    given = {option: value for option, value in options.items() if value is not None}
    rule: StoppingRule = make_named("rule", RULES, name, given)
    return rule


@dataclass(frozen=True)
class Agreement:
    """What came of drawing by a rule.

    Attributes:
        samples: How many were drawn.
        answer: The majority's; None if no sample holds an answer.
        why: `agreed`, or `budget` where all K were drawn.
    """

    samples: int
    answer: Answer
    why: str


def replay(rule: StoppingRule, answers: Sequence[Answer]) -> Agreement:
    """What the rule would have drawn of K answers that are there: a rule's cost and choice, from one full sample.

    >>> replay(EarlyStopping(window=2), ["4", "4", "5", "5", "5"])
    Agreement(samples=2, answer='4', why='agreed')
    """
    drawn = 0
    while step := rule.draw(len(answers), drawn):
        drawn += step
        if rule.agreed(answers[:drawn]):
            return Agreement(drawn, majority(answers[:drawn]), "agreed")
    return Agreement(drawn, majority(answers), "budget")


def least_stop(rule: StoppingRule, k: int, known: Mapping[int, Answer], start: int = 0) -> int:
    """The least number of samples after which the rule can stop, whatever the missing ones will be; at most k.

    All of these are drawn in any case, so they may be requested at once.

    Args:
        rule: The rule.
        k: Most samples.
        known: The samples that are there: number -> answer.
        start: What it was before the last ones came; it never falls.

    >>> rule = AdaptiveConsistency()
    >>> least_stop(rule, 40, {}), least_stop(rule, 40, {0: "4", 1: "5"}), least_stop(rule, 40, {2: "4", 1: "5"})
    (4, 7, 7)
    """
    n = start or rule.draw(k, 0)
    while n < k and not rule.can_agree(known, n):
        n += rule.draw(k, n)
    return n


# ---- equations ----


def majority(answers: Sequence[Answer]) -> Answer:
    """The most frequent answer; of several, the one that came up first. None if there is none.

    >>> majority(["5", None, "4", "4", "5"]), majority([None])
    ('5', None)
    """
    counts = Counter(answer for answer in answers if answer is not None)
    return max(counts, key=counts.__getitem__, default=None)


def top_counts(answers: Sequence[Answer]) -> tuple[int, int]:
    """(v1, v2): how often the two most frequent answers were given.

    >>> top_counts(["a", "b", "a", None])
    (2, 1)
    """
    counts = Counter(answer for answer in answers if answer is not None)
    first, second = [*(count for _, count in counts.most_common(2)), 0, 0][:2]
    return first, second


def majority_stays(first: int, second: int) -> float:
    """P(p > 1/2), p ~ Beta(first + 1, second + 1): that the leading of two answers is truly the more frequent one.

    Aggarwal et al. 2023, the "Beta" criterion: given v1 and v2 of two answers under a uniform prior. The regularised
    incomplete beta function of whole numbers is a binomial tail, at 1/2 a sum of binomial coefficients: with
    n = v1 + v2 + 1 fair coins, P(p > 1/2) = P(at most v1 heads). Exact in whole numbers.

    >>> majority_stays(4, 0), majority_stays(2, 1), majority_stays(3, 3)
    (0.96875, 0.6875, 0.5)
    """
    n = first + second + 1
    ways = total = 1  # ways of exactly this many heads; of at most this many
    for heads in range(first):
        ways = ways * (n - heads) // (heads + 1)
        total += ways
    return float(total / 2**n)
