"""A user's data and rewards in the form of a task, so that whatever trains on tasks trains on them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollwise.errors import ConfigError, PoolError
from rollwise.models import is_embedded, task_for
from rollwise.prompt_ids import content_id
from rollwise.sampling.config import DataConfig, OwnData
from rollwise.sampling.data import PromptData, load_data, sampling_order, split_of
from rollwise.sampling.eval_sets import EvalData, eval_sources
from rollwise.sampling.rewards import check_columns, reward_functions
from rollwise.sampling.scorers.functions import RewardFunctions
from rollwise.sampling.scoring import task_scorer
from rollwise.sampling.setting import FILE_COMPLETION_LENGTH
from rollwise.tasks.base import Task, TaskRewards, Text

logger = logging.getLogger(__name__)


class OwnTask(Task):
    """The prompts of `--data`, scored by `--reward` or by a task's verifier.

    Held out are the prompts of `eval_data`, in one set or several by name, else a fifth of the data by a hash of each
    prompt; nothing if `evaluated` is false.

    Args:
        config: where the data are, and the rewards.
        verifier: the task that scores them, in place of rewards.
        eval_data: further data of the same form, all of it held out; or set name -> such data.
        evaluated: whether anything is to be held out.

    Raises:
        ConfigError: nobody scores the prompts, or an option does not fit.
        PoolError: data that can't be used.
        MissingColumnError: a column that is named, or that a reward needs, is not there.
    """

    def __init__(self, config: OwnData, *, verifier: Task | None, eval_data: EvalData | None, evaluated: bool) -> None:
        self.name = config.stem  # type: ignore[misc]
        self.verifier = verifier
        if verifier is None and not config.rewards:
            raise ConfigError(
                f"who scores the prompts of {config.source!r}? give --reward math, exact, regex:PATTERN or "
                "file.py:function, or the --task whose verifier does"
            )
        self.data = _read(config)
        self.held_out: dict[str, PromptData] = {}
        if evaluated and eval_data:
            sources = eval_sources(eval_data)
            self.held_out = {name: _read(config.held_out(data)) for name, data in sources.items()}
            self._warn_of_shared()
        elif evaluated:
            self.held_out = {"": split_of(self.data, "eval", repr(config.source))}
            self.data = split_of(self.data, "train", repr(config.source))
        self.reward_hash = ""
        self._own_rewards = self._rewards(config)
        for row in (self.data.rows[0], *(one.rows[0] for one in self.held_out.values())):
            self._check(row)

    def _rewards(self, config: OwnData) -> TaskRewards:
        if self.verifier is not None:
            return self.verifier.rewards
        found = reward_functions(config)
        if found.why:
            logger.warning("%s; name another with --success", found.why)
        self.reward_hash = found.digest
        return task_rewards(config, found)

    def _warn_of_shared(self) -> None:
        trained = set(map(content_id, self.data.prompts))
        for name, held in self.held_out.items():
            if shared := sum(content_id(prompt) in trained for prompt in held.prompts):
                logger.warning(
                    "%d of the %d prompts of eval_data%s are trained on as well, so its scores are not those of new "
                    "prompts; take them out of one of the two",
                    *(shared, len(held), f".{name}" if name else ""),
                )

    @property
    def rewards(self) -> TaskRewards:
        return self._own_rewards

    def _check(self, row: Mapping[str, Any]) -> None:
        if self.verifier is None:
            check_columns(self.rewards.functions, "the reward", row)
        else:
            task_scorer(self.verifier).check(row)

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """`n` rows at the most, every category in proportion, in an order that `seed` decides."""
        return _records(self.data, n, seed)

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """The same of what is held out, of each set."""
        return [row for records in self.eval_sets(n, seed).values() for row in records]

    def eval_sets(self, n: int, seed: int) -> dict[str, list[dict[str, Any]]]:
        """The same by set."""
        return {name: _records(data, n, seed) for name, data in self.held_out.items()}

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """The verifier's reward, or that of the first reward function."""
        given: list[float] = self.rewards.functions[0](prompts=prompts, completions=completions, **columns)
        return given

    @property
    def max_completion_length(self) -> int:
        return FILE_COMPLETION_LENGTH if self.verifier is None else self.verifier.max_completion_length

    @property
    def stop_texts(self) -> tuple[str, ...]:
        return () if self.verifier is None else self.verifier.stop_texts

    @property
    def failure_of(self) -> Callable[[Text, Mapping[str, Any]], str | None] | None:
        return None if self.verifier is None else self.verifier.failure_of

    @property
    def warm_start(self) -> Task:
        if self.verifier is None:
            raise ConfigError(
                "the embedded policy is a task's own: with --data and --reward, name a model with --model"
            )
        return self.verifier

    def fingerprint(self) -> dict[str, Any]:
        """Hashes of the data that are trained on, of those held out, and of the reward functions' files."""
        held_out = {name: data.fingerprint() for name, data in self.held_out.items()}
        own = held_out.get("", "") if set(held_out) <= {""} else json.dumps(held_out, sort_keys=True)
        return {"data": self.data.fingerprint(), "eval_data": own, "reward": self.reward_hash}


def task_rewards(config: OwnData, found: RewardFunctions) -> TaskRewards:
    """The rewards that `config` names, as a trainer needs them."""
    weights = None if config.reward_weights is None else found.weights
    success = None if found.success is None else found.names[found.success]
    return TaskRewards(found.functions, weights, success, found.spec, found.declared)


def task_of(config: Any) -> Task:
    """The task of a run, with its options; in words where the model is a pretrained one. With `data`, these as a task.

    Raises:
        ConfigError: data or rewards that can't be used, or the embedded policy without a task to warm it up on.
        PoolError: data that can't be used.
        MissingColumnError: a column that is not there.
    """
    if not config.data:
        return task_for(config.model, str(config.task), config.task_options)
    verifier = None
    if config.task is not None:
        verifier = task_for(config.model, config.task, config.task_options, own_prompts=False)
    task = OwnTask(config, verifier=verifier, eval_data=config.eval_data, evaluated=config.eval_prompts > 0)
    if is_embedded(config.model):
        task.warm_start  # noqa: B018  # refuses a policy that nothing warms up
    return task


def _read(config: OwnData) -> PromptData:
    own = {name: getattr(config, name) for name in OwnData.__dataclass_fields__}
    return load_data(DataConfig(**own), None)


def _records(data: PromptData, n: int, seed: int) -> list[dict[str, Any]]:
    order = sampling_order(data.ids, data.categories, seed)[:n]
    as_text = {"id", *([] if data.categories is None else ["category"])}
    kinds = {name: _kind_of(data, name) for name in data.rows[0] if name not in as_text}
    mixed = [name for name, kind in kinds.items() if len(kind) > 1]
    if mixed:
        raise PoolError(
            f"column {mixed[0]!r} holds values of several kinds ({', '.join(sorted(kinds[mixed[0]]))}); use one kind, "
            "for example text, or take the column out (a reward is given every column)"
        )
    records = []
    for row in order:
        category = {} if data.categories is None else {"category": data.categories[row]}
        records.append({**data.rows[row], "id": data.ids[row], **category})
    return records


def _kind_of(data: PromptData, name: str) -> set[str]:
    """The kinds of a column's values, numbers counted as one kind."""
    kinds = {type(row[name]).__name__ for row in data.rows if row[name] is not None}
    return {"number" if kind in ("int", "float") else kind for kind in kinds}
