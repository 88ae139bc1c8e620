"""From a folder of held-out rollouts and a head to what an evaluation needs: prompts, a decoder, rewards, scores."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.evaluation.calibration import Scored
from rollwise.inference.evaluation.study import Decode, Judge
from rollwise.inference.evaluation.text_check import TextCheck, task_check
from rollwise.inference.files.rollout_folder import rollouts_folder
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.policies.candidate_group import Result
from rollwise.inference.policies.candidates import Policy
from rollwise.inference.policies.selection import AnswerKey, answer_key
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import load_data
from rollwise.sampling.scoring import Scorer
from rollwise.sampling.setting import make_scorer, make_task_of

if TYPE_CHECKING:
    from rollwise.inference.decoding.decoder import AdaptiveDecoder
    from rollwise.inference.head.head import SuccessHead
    from rollwise.inference.head.scoring import Score


@dataclass(frozen=True)
class Bench:
    """N prompts on which candidates are decoded, and who rewards them.

    Attributes:
        ids: (N,).
        rows: (N,) the prompts' rows: `prompt`, and the columns that the reward needs.
        scorer: Rewards a prompt's completions.
        limit: Most tokens of a candidate, as in the rollouts.
        temperature: As in the rollouts.
        top_p: As in the rollouts.
        stop: As in the rollouts.
        digests: Hashes of the data, the reward function's file and the ids: an evaluation goes on with the same only.
        source: Which data they are: `data`, `task` and `task_options`.
        check: The task's own check of a text, if it has one.
    """

    ids: list[str]
    rows: list[Mapping[str, Any]] = field(repr=False)
    scorer: Scorer = field(repr=False)
    limit: int
    temperature: float
    top_p: float
    stop: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    check: TextCheck | None = None

    @property
    def solved_at(self) -> float:
        """The reward from which on a candidate counts as a success."""
        return float(self.scorer.spec.threshold)


def bench_of(folder: str | Path, prompts: int | None = None) -> Bench:
    """The prompts of a folder of `rollwise rollouts`, or the first few of them, with their own options and reward.

    Raises:
        ConfigError: the folder has no rollouts, or the data or the reward function's file are not what they were.
    """
    kept = rollouts_folder(folder)
    given = kept.read_config()
    known = {one.name for one in fields(RolloutsConfig) if one.init}
    config = RolloutsConfig(**{name: value for name, value in given.items() if name in known})
    task = make_task_of(config)
    data = load_data(config, task, split=config.split)
    place = {id_: i for i, id_ in enumerate(data.ids)}
    ids = list(kept.read_groups(mend=False))[:prompts]
    if not ids:
        raise ConfigError(f"{str(folder)!r} holds no rollouts yet; run its `rollwise rollouts` again")
    for id_ in ids:
        if id_ not in place:
            raise ConfigError(f"the data of {str(folder)!r} no longer hold its prompt {id_!r}; roll out anew")
    scorer, reward_hash = make_scorer(config, task)
    digests = {"data_hash": data.fingerprint(), "reward_hash": reward_hash}
    for name, what in (("data_hash", f"the data {config.source!r}"), ("reward_hash", f"the file of {scorer.name}")):
        if name in given and given[name] != digests[name]:
            raise ConfigError(
                f"{what} changed since {str(folder)!r} was rolled out: its {name} was {given[name]!r} and is now "
                f"{digests[name]!r}; change it back, or roll out anew"
            )
    return Bench(
        ids=ids,
        rows=[data.rows[place[id_]] for id_ in ids],
        scorer=scorer,
        limit=int(given["max_completion_length"]),
        temperature=config.temperature,
        top_p=config.top_p,
        stop=tuple(config.stop),
        digests=digests | {"ids_hash": hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]},
        source=source_of(config),
        check=task_check(task),
    )


def source_of(config: DataConfig) -> dict[str, Any]:
    """Which data a command works on, JSON-safe."""
    return {name: getattr(config, name) for name in ("data", "task", "task_options")}


def decode_on(decoder: AdaptiveDecoder, bench: Bench, k: int) -> Decode:
    """What an `Evaluation` calls: all prompts, K candidates each or as many as it says, and the seconds it took."""
    prompts = [row["prompt"] for row in bench.rows]

    def decode(policy: Policy, seed: int, **options: Any) -> tuple[list[Result], float, float]:
        before = decoder.stats.wall_s, decoder.stats.cpu_s
        results = decoder.decode(
            bench.ids,
            prompts,
            policy,
            k=options.get("ks", k),
            seed=seed,
            answer=options.get("answer", answer_key),
            watch=options.get("watch"),
        )
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


def scored_of(
    model: Any,
    tokenizer: Any,
    head: SuccessHead,
    rollouts: RolloutSet,
    *,
    key: AnswerKey = answer_key,
    check: TextCheck | None = None,
    progress: Callable[[int, int], None] | None = None,
    kept: str | Path | None = None,
) -> Scored:
    """What the head says along all rollouts of the set, teacher-forced, and its joint at each prompt.

    `kept` is a folder in which a killed pass goes on.
    """
    from rollwise.inference.head.scoring import score_rollouts

    spec = head.spec
    joints = np.full((len(rollouts.ids), spec.num_rewards, spec.num_lengths), np.nan)
    scores: dict[int, Score] = {}
    for score in score_rollouts(model, head, rollouts, progress=progress, kept=kept):
        scores[score.index] = score
        joints[rollouts.prompt[score.index]] = score.at_prompt
    ordered = [scores[i] for i in range(len(rollouts))]
    texts = tokenizer.batch_decode(rollouts.token_ids, skip_special_tokens=True)
    return Scored(
        spec,
        rollouts.prompt,
        rollouts.rewards,
        [score.values for score in ordered],
        [score.remaining for score in ordered],
        joints,
        [key(text) for text in texts],
        [score.verdict for score in ordered if score.verdict is not None],
        [score.belief for score in ordered] if spec.num_rewards > 2 else [],
        [] if check is None else [check(text) for text in texts],
    )


def auc_steps(warmup: int, longest: int) -> list[int]:
    """Tokens after which AUC is taken: the prompt, and multiples of half the warmup, up to the longest rollout.

    >>> auc_steps(8, 40)
    [0, 4, 8, 16, 24, 32]
    """
    steps = {0, max(1, warmup // 2), *(n * warmup for n in (1, 2, 3, 4, 6))}
    return sorted(step for step in steps if step < longest)
