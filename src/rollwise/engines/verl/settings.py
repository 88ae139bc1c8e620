"""The keys of verl's configuration that the adapter reads, and those it refuses."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.engines.settings import at_path, curriculum_of
from rollwise.errors import ConfigError
from rollwise.options import check_mapping, check_options, check_whole
from rollwise.tickets.outcome import RewardSpec

logger = logging.getLogger(__name__)

PATH = "pkg://rollwise.engines.verl"
TOLD = "rollwise_told"
"""What a reward function names in its dictionary if the curriculum is to be told another number than `score`."""
_MANAGER = "actor_rollout_ref.rollout.agent.agent_loop_manager_class"
_SAMPLER = "trainer.v1.sampler.custom_sampler"


@dataclass(frozen=True)
class Settings:
    """`data.rollwise` in verl's configuration.

    Attributes:
        curriculum: name, `file.py:Name` or `package.module:Name`.
        curriculum_options: its options, such as `seed`.
        reward_spec: `low`, `high`, `solved_at` of the raw rewards; without `low` and `high` the range widens as rewards
            are seen.
        columns: a pool's column -> where it is in a row, such as `difficulty: extra_info.level`.
        id: where a row's own id is; by default the column `id`, else the prompt's content is hashed.
        n_rollouts: rollouts of each prompt; by default `actor_rollout_ref.rollout.n`.
        run: the run's folder; by default `rollwise` in `trainer.default_local_dir`; "none": no folder.
        texts: whether `rollouts.jsonl` has the completions' texts.
        silent_after: how many prompts may be asked with nothing told; by default four batches and the warm-up.
    """

    curriculum: str = "recommended"
    curriculum_options: dict[str, Any] = field(default_factory=dict)
    reward_spec: dict[str, float] | None = None
    columns: dict[str, str] = field(default_factory=dict)
    id: str | None = None
    n_rollouts: int | None = None
    run: str | None = None
    texts: bool = True
    silent_after: int | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """The settings in verl's whole configuration, with defaults from its other keys.

        Raises:
            ConfigError: an unknown key, or a value out of range.
        """
        own = check_mapping("data.rollwise", at_path(config, "data.rollwise") or {})
        given = {name: value for name, value in own.items() if value is not None}
        check_options("data.rollwise", given, [one.name for one in fields(cls)])
        for name, kind in (("curriculum_options", None), ("reward_spec", RewardSpec), ("columns", None)):
            check_mapping(f"data.rollwise.{name}", given.get(name, {}), kind)
        mode = at_path(config, "trainer.v1.trainer_mode") or "sync"
        batch = int(at_path(config, "data.train_batch_size"))
        warm_up = float(at_path(config, f"trainer.v1.{mode}.num_warmup_batches") or 0)
        given.setdefault("n_rollouts", at_path(config, "actor_rollout_ref.rollout.n"))
        given.setdefault("silent_after", int((4 + warm_up) * batch))
        if (folder := at_path(config, "trainer.default_local_dir")) is not None:
            given.setdefault("run", f"{folder}/rollwise")
        found = cls(**given)
        check_whole("data.rollwise.n_rollouts", found.n_rollouts, least=1)
        check_whole("data.rollwise.silent_after", found.silent_after, least=1)
        return found

    def make(self) -> Curriculum:
        """The curriculum, without prompts.

        Raises:
            ConfigError: an unknown name or option.
        """
        return curriculum_of(self.curriculum, self.curriculum_options, self.reward_spec)


def check_allocator(config: Mapping[str, Any], curriculum: Curriculum) -> None:
    """Refuse an allocator whose groups verl can't make, or would not train on as it asks.

    verl takes a number of rollouts from each row, divides advantages by their uid, and pads a batch that is no multiple
    of its mini-batch. So a whole batch must be asked for at once, and trained on whole.

    Raises:
        ConfigError: names the key and the value to give it.
    """
    if (allocator := curriculum.allocator) is None:
        return
    kind = f"data.rollwise.curriculum_options.allocator={type(allocator).__name__}"
    if allocator.in_rounds:
        raise ConfigError(
            f"{kind} makes the rollouts of a step in rounds, and verl makes them at once; use one that divides them at "
            "once, such as knapsack"
        )
    if allocator.weight == "prompt":
        raise ConfigError(
            f"{kind} weighs each prompt the same, and verl weighs rollouts; give it the option weight=rollout, or use "
            "knapsack"
        )
    if (mode := at_path(config, "trainer.v1.trainer_mode") or "sync") != "sync":
        raise ConfigError(
            f"{kind} divides the rollouts of a batch, and trainer.v1.trainer_mode={mode} asks for one prompt at a "
            "time; set trainer.v1.trainer_mode=sync, or leave the allocator out"
        )
    if at_path(config, "algorithm.filter_groups.enable"):
        raise ConfigError(
            f"{kind} divides the rollouts of a batch, and algorithm.filter_groups.enable=True trains on a part of "
            "them; set algorithm.filter_groups.enable=False, or leave the allocator out"
        )
    rollouts = at_path(config, "actor_rollout_ref.rollout.n")
    if (asked := at_path(config, "data.rollwise.n_rollouts") or rollouts) != rollouts:
        raise ConfigError(
            f"{kind} gives each prompt data.rollwise.n_rollouts={asked} rollouts on the average, and steps keep their "
            f"size with actor_rollout_ref.rollout.n={rollouts}; give both the same number"
        )


def check_config(config: Mapping[str, Any], *, has_buffer: bool, n_prompts: int) -> None:
    """Refuse a configuration of verl under which the curriculum would not take effect.

    Raises:
        ConfigError: names the key and the value to give it.
    """
    if at_path(config, "trainer.v1") is None or not at_path(config, "trainer.use_v1"):
        raise ConfigError("the curriculum works in verl's v1 trainer: set trainer.use_v1=True (verl 0.9)")
    if (workers := at_path(config, "data.dataloader_num_workers")) != 0:
        raise ConfigError(
            f"data.dataloader_num_workers={workers}: workers hold copies of the curriculum that hear no outcome; set "
            "data.dataloader_num_workers=0"
        )
    if at_path(config, "data.shuffle"):
        raise ConfigError("data.shuffle=True: the curriculum decides the order; set data.shuffle=False")
    for key in ("data.custom_cls", _SAMPLER):
        path = at_path(config, f"{key}.path")
        if path and not str(path).startswith("pkg://"):
            raise ConfigError(
                f"{key}.path={path!r} is a file, which verl runs as a module of its own, so that data set and buffer "
                f"would not share a curriculum; set {key}.path={PATH}, or pkg:// and your module with a subclass"
            )
    if not has_buffer:
        raise ConfigError(
            f"the data set asks, but nothing tells: set {_SAMPLER}.path={PATH} and {_SAMPLER}.name=replay_buffer"
        )
    if (batch := int(at_path(config, "data.train_batch_size"))) > n_prompts:
        raise ConfigError(f"data.train_batch_size={batch}, but there are {n_prompts} prompts; give more data")
    _check_filtering(config)


def _check_filtering(config: Mapping[str, Any]) -> None:
    """Rewards must be there when groups are told; and a custom sampler gets no arguments of verl's filtering."""
    reward_model = at_path(config, "reward.reward_model") or {}
    if reward_model.get("enable") and not reward_model.get("enable_resource_pool"):
        raise ConfigError(
            "a colocated reward model scores after the curriculum is told; set "
            "reward.reward_model.enable_resource_pool=True"
        )
    kwargs = at_path(config, "trainer.v1.sampler.sampler_kwargs") or {}
    sync = (at_path(config, "trainer.v1.trainer_mode") or "sync") == "sync"
    filtering = at_path(config, "algorithm.filter_groups") or {}
    wanted: dict[str, Any] = {}
    if filtering.get("enable"):
        wanted["filter_groups_metric"] = filtering.get("metric")
    elif kwargs.get("filter_groups_metric"):
        raise ConfigError(
            "trainer.v1.sampler.sampler_kwargs.filter_groups_metric is set, but algorithm.filter_groups.enable is not; "
            "set algorithm.filter_groups.enable=True"
        )
    if sync and at_path(config, "trainer.v1.sampler.sync_refill_failed_groups"):
        wanted["sync_refill_failed_groups"] = True
    if sync and wanted:
        wanted |= {"train_batch_size": at_path(config, "data.train_batch_size"), "gen_batch_size": 1}
        if filtering.get("enable") and (ahead := filtering.get("max_inflight_gen_batches", 1)) != 1:
            wanted["max_inflight_gen_batches"] = ahead
    missing = {name: value for name, value in wanted.items() if kwargs.get(name) != value}
    if missing:
        keys = " ".join(f"+trainer.v1.sampler.sampler_kwargs.{name}={value}" for name, value in missing.items())
        raise ConfigError(f"verl does not pass algorithm.filter_groups and the like to a custom sampler; add {keys}")


def check_judging(config: Mapping[str, Any], curriculum: Curriculum) -> None:
    """`ConfigError` for a method that asks the live policy, where nothing could answer."""
    if curriculum.wants_answers and not at_path(config, _MANAGER):
        raise ConfigError(
            f"{type(curriculum).__name__} asks the live policy before it chooses; set "
            f"+{_MANAGER}=rollwise.engines.verl.JudgingManager"
        )
    warn_of_judging(curriculum)


def warn_of_judging(curriculum: Curriculum) -> None:
    """Say so where a method would train its judgments, or read the chances of answers: verl has no place for either."""
    if curriculum.wants_chances:
        logger.warning(
            "%s is to read how probable each answer is (answers=expected), and under verl it runs as with "
            "answers=sampled: an answer is generated; give answers=sampled to say so, or launch with --engine trl",
            type(curriculum).__name__,
        )
    if curriculum.wants_answers and curriculum.judge_weight:
        logger.warning(
            "%s is to train its judgments with judge_weight=%g, and under verl it runs as with judge_weight=0: they "
            "are asked for and used, and not trained; give judge_weight=0 to say so, or launch with --engine trl",
            type(curriculum).__name__,
            curriculum.judge_weight,
        )


def asking(config: Mapping[str, Any]) -> dict[str, Any]:
    """How questions are put to the live policy: as rollouts are, in context, sampling and chat template.

    Returns:
        Keyword arguments of `rollwise.engines.verl.judging.judge`.
    """
    rollout = at_path(config, "actor_rollout_ref.rollout") or {}
    sampling = {name: rollout[name] for name in ("temperature", "top_p", "top_k") if rollout.get(name) is not None}
    options = at_path(config, "data.apply_chat_template_kwargs") or {}
    return {"window": context_window(config), "sampling": sampling, "template_options": dict(options)}


def context_window(config: Mapping[str, Any]) -> int:
    """Tokens that a question may have, with room for the answer."""
    rollout = at_path(config, "actor_rollout_ref.rollout") or {}
    whole = rollout.get("max_model_len") or int(rollout.get("prompt_length") or 0) + int(
        rollout.get("response_length") or 0
    )
    return int(whole)


def run_facts(config: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """What `config.yaml` of the run says of verl's job, in the words of `rollwise train`."""
    return {
        "engine": "verl",
        "model": at_path(config, "actor_rollout_ref.model.path"),
        "trainer": at_path(config, "algorithm.adv_estimator"),
        "trainer_mode": at_path(config, "trainer.v1.trainer_mode"),
        "steps": at_path(config, "trainer.total_training_steps"),
        "prompts_per_step": at_path(config, "data.train_batch_size"),
        "group_size": settings.n_rollouts,
        "learning_rate": at_path(config, "actor_rollout_ref.actor.optim.lr"),
        "temperature": at_path(config, "actor_rollout_ref.rollout.temperature"),
        "max_completion_length": at_path(config, "data.max_response_length"),
        "reward": at_path(config, "reward.custom_reward_function.name"),
        "checkpoints": at_path(config, "trainer.default_local_dir"),
        "seed": settings.curriculum_options.get("seed", 0),
    }
