"""The prompts that an evaluation decodes, read from a folder of held-out rollouts, and the reward."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.evaluation.text_check import TextCheck, check_of
from rollwise.inference.files import read_some, rollouts_folder
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import load_data, sampling_order
from rollwise.sampling.scoring import Scorer
from rollwise.sampling.setting import make_scorer, make_task_of


@dataclass(frozen=True)
class Bench:
    """N prompts on which candidates are decoded, and their reward.

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
        check: Of a text; None if none is given and the task has none.
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


def bench_of(folder: str | Path, prompts: int | None = None, *, check: str | None = None) -> Bench:
    """The scored prompts of a folder of `rollwise rollouts`, or the first few of its sample, with options and reward.

    Args:
        folder: Of `rollwise rollouts`.
        prompts: Take this many of the first ones only, in the order of the sample.
        check: `file.py:function`, a check of a text; by default the task's own.

    Raises:
        ConfigError: the folder has no rollouts, or the data or the reward function's file are not what they were.
    """
    kept = rollouts_folder(folder)
    given = kept.read_config()
    config = _config_of(given)
    task = make_task_of(config)
    data = load_data(config, task, split=config.split)
    place = {id_: i for i, id_ in enumerate(data.ids)}
    # Where no rollout could be scored, as without a recorded answer, no candidate could be right.
    ids = [group["id"] for group in read_some(kept) if any(reward is not None for reward in group["rewards"])]
    for id_ in ids:
        if id_ not in place:
            raise ConfigError(f"the data of {str(folder)!r} no longer hold its prompt {id_!r}; roll out anew")
    if prompts is not None:  # lines stand in the order in which prompts ended: the first are those of short rollouts
        there, order = set(ids), sampling_order(data.ids, data.categories, config.seed)
        ids = [data.ids[row] for row in order if data.ids[row] in there][:prompts]
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
        stop=tuple(config.stop or ()),
        digests=digests | {"ids_hash": hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]},
        source=source_of(config),
        check=check_of(check, task),
    )


def _config_of(given: Mapping[str, Any]) -> RolloutsConfig:
    """The options of the rollouts, from what their folder states."""
    known = {one.name for one in fields(RolloutsConfig) if one.init}
    # A folder states a range in any case: without a reward the task's own, and 0 and 1 also where they were not given.
    stated = {"reward_low": 0.0, "reward_high": 1.0}
    known -= {name for name, value in stated.items() if not given.get("reward") or given.get(name) == value}
    # It states no workers, and only they have a time limit.
    workers = {"reward_workers": 1} if "reward_timeout" in given else {}
    return RolloutsConfig(**{name: value for name, value in given.items() if name in known} | workers)


def source_of(config: DataConfig) -> dict[str, Any]:
    """Which data a command works on, JSON-safe."""
    return {name: getattr(config, name) for name in ("data", "task", "task_options")}
