"""The default for who has no reason to choose otherwise."""

from __future__ import annotations

from rollwise.curricula.empirical_bayes import EmpiricalBayes


class Recommended(EmpiricalBayes):
    """What we would choose: at present `EmpiricalBayes`, with its options and their defaults.

    See there for what they mean (`rollwise curricula empirical-bayes`). It needs nothing, and uses `category` and
    `reference_pass_rates`, else `difficulty`, else `embedding`. Why it, in the measurements of docs/results.md and
    docs/measurements.md: what ranks single prompts knows nothing of those it has not seen, and a bandit over categories
    can't tell a category's hopeless prompts from its good ones.

    >>> from rollwise.pool import PromptPool
    >>> recommended = Recommended(PromptPool(ids=[f"p{i}" for i in range(8)]), seed=0)
    >>> sorted({t.lane for t in recommended.ask(8)})
    ['untried']
    """
