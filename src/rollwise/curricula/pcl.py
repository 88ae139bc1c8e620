"""PCL: a predictor of its own, learned beside the policy, chooses the prompts of middling difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from rollwise.curricula.base import CoreOptions
from rollwise.curricula.judged import Judged
from rollwise.errors import ConfigError
from rollwise.judges import Judge, Predicts, make_judge
from rollwise.pool import PromptPool

_PREDICTS: dict[str, Predicts] = {"binary": "pass-rate", "continuous": "variance"}


class PCL(Judged):
    """Scores m B candidates with a learned value model, trains on the B nearest to the target, and learns from them.

    Prompt Curriculum Learning (Gao et al. 2025, arXiv 2510.01135), known here at second hand: as METIS's appendix A.5
    describes it and its Table 5 sets it. There the value model is a copy of the policy with a scalar head on the
    prompt's last hidden state, trained by squared error to the pass rates, one update a step: the judge "value-model".
    For continuous rewards it is trained to the variance, and the greatest are taken (appendix A.5).

    Judges by name:

    - "frozen" (the default) keeps that model's backbone frozen: the pool's column `embedding` is its output, made
      once, and only a head is learned, by numpy alone. See `EmbeddingJudge`.
    - "text" sees letters only, by scikit-learn: what the others must beat. See `TextJudge`.
    - "value-model" is the paper's, by torch, and known once `rollwise.models` is imported. See `ValueModelJudge`.

    "frozen" is the default because it is PCL with no more than the core needs. "text" would need no column, but another
    library, and who asks for PCL should not get its lower bound unawares: a pool without vectors is refused, with what
    to do about it.

    The candidates are drawn uniformly. A prompt that was never told about is judged like any other; before the first
    outcomes there is no prediction, and the batch is uniform.

    Args:
        pool: whatever the judge needs.
        judge: a name above, or a `Judge` of your own.
        judge_options: of a judge by name.
        reward: "binary" predicts pass rates (mean scores), "continuous" variances. By default what the judge predicts,
            which for a name is pass rates.
        candidate_multiplier: m (8).
        target: the best pass rate (0.5).
        explore: share of the batch drawn from the candidates whatever was predicted (0).
        default: what an absent prediction counts as; see `Judged`.
        **core: see `CoreOptions`. `rails="off"` is the paper's algorithm.

    >>> pool = PromptPool(ids=["easy", "middling", "hard"], columns={"embedding": [[0.0], [1.0], [2.0]]})
    >>> pcl = PCL(pool, candidate_multiplier=3, rails="off")
    >>> from rollwise.outcome import Outcome
    >>> rewards = {"easy": [1, 1, 1, 1], "middling": [1, 0, 1, 0], "hard": [0, 0, 0, 0]}
    >>> _ = pcl.tell([Outcome(t.id, rewards[t.prompt_id]) for t in pcl.ask(3)])
    >>> pcl.ask(1)[0].prompt_id
    'middling'
    """

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        judge: str | Judge = "frozen",
        judge_options: Mapping[str, Any] | None = None,
        reward: Literal["binary", "continuous"] | None = None,
        candidate_multiplier: int = 8,
        target: float = 0.5,
        explore: float = 0.0,
        default: float | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(
            pool,
            judge=_judge(judge, judge_options, reward),
            candidate_multiplier=candidate_multiplier,
            target=target,
            explore=explore,
            default=default,
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
        return make_judge(judge, **given)
    if options:
        raise ConfigError("judge_options are of a judge given by name; give yours its options when you make it")
    if reward is not None and isinstance(judge, Judge) and judge.predicts != _PREDICTS[reward]:
        raise ConfigError(
            f"reward {reward!r} wants a judge of {_PREDICTS[reward]}, but {type(judge).__name__} predicts a "
            f"{judge.predicts}"
        )
    return judge
