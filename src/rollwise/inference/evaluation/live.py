"""What an evaluation calls: a live decoder over its prompts, and rewards for candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rollwise.inference.evaluation.bench import Bench
from rollwise.inference.policies import AnswerKey, Policy, Result, answer_key

if TYPE_CHECKING:
    from rollwise.inference.decoding.decoder import AdaptiveDecoder

Judge = Callable[[Sequence[Result]], Sequence[Sequence[float]]]
"""Rewards of each prompt's candidates; those of candidates that are not complete are not looked at."""

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it is done, and how much there is."""


Decode = Callable[..., tuple[list[Result], float, float]]
"""Called with a policy and a seed, decodes all prompts live: the same seed gives the same samples, whatever the policy.

`ks`, given for adaptive K only, is (N,) candidates for each prompt; otherwise each gets K. `watch`, given for full runs
only, is a second signal whose reads are kept in `Candidate.watched`. `answer`, given for a check only, answers a text.
Returns a result for each prompt, always in the same order, and the seconds of wall-clock and of processor that it took.
"""


def decode_on(decoder: AdaptiveDecoder, bench: Bench, k: int) -> Decode:
    """What an `Evaluation` calls: all prompts, K candidates each or as many as it says, and the seconds it took."""
    prompts = [row["prompt"] for row in bench.rows]

    def decode(
        policy: Policy, seed: int, *, ks: Sequence[int] = (), answer: AnswerKey = answer_key, watch: Any = None
    ) -> tuple[list[Result], float, float]:
        before = decoder.stats.wall_s, decoder.stats.cpu_s
        results = decoder.decode(bench.ids, prompts, policy, k=ks or k, seed=seed, answer=answer, watch=watch)
        by_id = {result.id: result for result in results}
        wall_s, cpu_s = decoder.stats.wall_s - before[0], decoder.stats.cpu_s - before[1]
        return [by_id[id_] for id_ in bench.ids], wall_s, cpu_s

    return decode


def judge_on(bench: Bench) -> Judge:
    """Rewards of the prompts' candidates; NaN for one that can't be scored, or that was not carried to its end."""
    row_of = dict(zip(bench.ids, bench.rows, strict=True))

    def judge(results: Sequence[Result]) -> list[list[float]]:
        rewards = []
        for result in results:
            whole = result.complete
            earned, _ = bench.scorer(row_of[result.id], [c.text for c in whole], [c.token_ids for c in whole])
            by_index = {c.index: r for c, r in zip(whole, earned, strict=True) if r is not None}
            rewards.append([by_index.get(c.index, math.nan) for c in result.candidates])
        return rewards

    return judge
