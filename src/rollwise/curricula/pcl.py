"""PCL: a predictor of its own, learned beside the policy, chooses the prompts of middling difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from rollwise.curricula.families.judged import Judged
from rollwise.curricula.seam.base import CoreOptions
from rollwise.errors import ConfigError, MissingExtraError
from rollwise.judges import Judge, Predicts, make_judge
from rollwise.options import Count, Share
from rollwise.pool import PromptPool

_PREDICTS: dict[str, Predicts] = {"binary": "pass-rate", "continuous": "variance"}


class PCL(
    Judged,
    name="pcl",
    paper="*Prompt Curriculum Learning*, Gao et al., arXiv 2510.01135, as METIS's appendix A.5 and table 5 give it",
    needs='torch: a value model beside the policy; or ours, `judge="text"`, `judge="success-head"`',
):
    """Scores m B candidates with a learned value model, trains on the B nearest to the target, and learns from them.

    Prompt Curriculum Learning (Gao et al. 2025, arXiv 2510.01135), as METIS's appendix A.5 describes it and its Table 5
    sets it. The judges, and what both papers leave open, are in docs/decisions.md.

    Args:
        pool: what the judge needs.
        judge: "value-model" (the paper's), "success-head", "text", "frozen" (all ours), or a `Judge` of your own.
        judge_options: options of a judge that is given by name.
        reward: "binary" predicts pass rates (mean scores), "continuous" variances. By default what the judge predicts.
        candidate_multiplier: m, candidates for each prompt of the batch (8).
        target: the best pass rate (0.5).
        explore: share of the batch drawn from the candidates whatever was predicted (0).
        default: what an absent prediction counts as; see `Judged`.
        judge_column: column of texts that the judge reads in place of the prompts; see `Judged`.
        **core: see `CoreOptions`.

    Raises:
        ConfigError: an option out of range; when it is bound, a value model without a model to begin with.
        MissingExtraError: the judge needs something that is not installed. `EmbeddingJudged` needs numpy alone.

    >>> from rollwise.judges import Judge
    >>> class Lengths(Judge):
    ...     def predict(self, candidates):
    ...         return [1 / len(text) for text in candidates.texts]
    >>> pool = PromptPool(ids=["a", "b", "c"], prompts=["1", "22", "4444"])
    >>> [ticket.prompt_id for ticket in PCL(pool, judge=Lengths()).ask(2)]      # 1/2 and 1/4; 1 is furthest from 1/2
    ['b', 'c']
    """

    unsaved = Judged.unsaved | {"reward"}  # the judge's

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        judge: str | Judge = "value-model",
        judge_options: Mapping[str, Any] | None = None,
        reward: Literal["binary", "continuous"] | None = None,
        candidate_multiplier: Count = 8,
        target: Share = 0.5,
        explore: Share = 0.0,
        default: float | None = None,
        judge_column: str | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(
            pool,
            judge=_judge(judge, judge_options, reward),
            candidate_multiplier=candidate_multiplier,
            target=target,
            explore=explore,
            default=default,
            judge_column=judge_column,
            **core,
        )


def _judge(judge: str | Judge, options: Mapping[str, Any] | None, reward: str | None) -> Judge:
    if reward is not None and reward not in _PREDICTS:
        raise ConfigError(f"reward must be one of {sorted(_PREDICTS)}, got {reward!r}")
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"judge_options must map names to values, got {options!r}")
    if isinstance(judge, str):
        given = dict(options or {})
        if reward is not None and given.setdefault("predicts", _PREDICTS[reward]) != _PREDICTS[reward]:
            raise ConfigError(f"reward {reward!r} wants a judge of {_PREDICTS[reward]}, not {given['predicts']!r}")
        try:
            return make_judge(judge, **given)
        except MissingExtraError as error:
            raise MissingExtraError(
                f"{error}. Or use rollwise.EmbeddingJudged ('embedding-judge'), which chooses as PCL does by a head on "
                "a column `embedding`, and needs numpy alone"
            ) from error
    if options:
        raise ConfigError("judge_options are of a judge given by name; give yours its options when you make it")
    if reward is not None and isinstance(judge, Judge) and judge.predicts != _PREDICTS[reward]:
        raise ConfigError(
            f"reward {reward!r} wants a judge of {_PREDICTS[reward]}, but {type(judge).__name__} predicts a "
            f"{judge.predicts}"
        )
    return judge
