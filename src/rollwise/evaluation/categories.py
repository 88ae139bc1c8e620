"""A run's scores by evaluation set and category of the prompts; METIS, Table 3, and SEC's levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from rollwise.evaluation.curves import FloatArray
from rollwise.evaluation.run_measures import Measure
from rollwise.runs.evaluations import Evaluation, scores_by_category


@dataclass(frozen=True)
class Category:
    """The prompts of one category of an evaluation set.

    Attributes:
        set: The set's name; "" for one without.
        category: The category.
        prompts: How many prompts it has; of several runs their mean, rounded.
    """

    set: str
    category: str
    prompts: int

    def key(self, which: str) -> str:
        """The measure's name of the "best" or the "final" score, as `final[ood/hard]`."""
        return f"{which}[{self.set}/{self.category}]" if self.set else f"{which}[{self.category}]"


@dataclass(frozen=True)
class CategoryScores:
    """A run's pass@1 on a category: its evaluations' steps (E,), increasing, and the score at each (E,)."""

    of: Category
    steps: FloatArray
    scores: FloatArray

    @property
    def final(self) -> float:
        """The last score."""
        return float(self.scores[-1])

    @property
    def best(self) -> float:
        """The greatest score: too high by chance, the more so the fewer the prompts and the more the evaluations."""
        return float(self.scores.max())


def category_scores(evaluations: Iterable[Evaluation]) -> list[CategoryScores]:
    """The scores by category, set by set, by the categories' names; none where the prompts have no categories.

    A set whose prompts all have one category is left out: its score is the set's.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    prompts: dict[tuple[str, str], int] = {}
    for evaluation in sorted(evaluations, key=lambda one: one.step):
        scores, sizes = scores_by_category(evaluation), Counter(evaluation.categories or ())
        for category, score in scores.items() if len(scores) > 1 else ():
            key = evaluation.set or "", category
            found.setdefault(key, []).append((float(evaluation.step), score))
            prompts[key] = sizes[category]
    return [
        CategoryScores(Category(*key, prompts[key]), *np.array(rows, dtype=np.float64).T) for key, rows in found.items()
    ]


def categories_of(scores: Iterable[CategoryScores]) -> tuple[Category, ...]:
    """The categories of several runs, each once: how many prompts of it are held out may depend on the seed."""
    found: dict[str, list[Category]] = {}
    for one in scores:
        found.setdefault(one.of.key(""), []).append(one.of)
    return tuple(replace(own[0], prompts=round(sum(c.prompts for c in own) / len(own))) for own in found.values())


def category_measures(categories: Iterable[Category]) -> dict[str, Measure]:
    """The measures of the categories: the best and the final score of each."""
    return {
        one.key(which): Measure(f"{which} pass@1, {one.key('')[1:-1]}", 1, "category")
        for one in categories
        for which in ("best", "final")
    }


def measure_categories(scores: Iterable[CategoryScores]) -> dict[str, float]:
    """A run's scores by the names of `category_measures`."""
    return {one.of.key(which): getattr(one, which) for one in scores for which in ("best", "final")}
