"""Each option of `rollwise train`, and what verl 0.9.1 makes of it: the docs' table is made from this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from rollwise.curricula import make_curriculum
from rollwise.engines.verl.settings import check_allocator, warn_of_judging
from rollwise.errors import ConfigError
from rollwise.training.config import NO_GATE, TrainConfig

_LORA = {"r": "lora_rank", "lora_alpha": "lora_alpha", "target_modules": "target_modules"}
_LORA_DEFAULTS = {"r": 8, "lora_alpha": 8}
"""peft's own, as in `rollwise train`; verl's rank of 0 means no adapter, and its alpha is 16."""
_TRACKERS = ("clearml", "mlflow", "swanlab", "tensorboard", "trackio", "wandb")
"""Values of `report_to` that verl knows as well."""


@dataclass(frozen=True)
class Option:
    """How verl takes one option.

    Attributes:
        keys: verl's keys that get its value.
        by: how rollwise takes care of it, where there is no key for the plain value.
        refused: why verl can't honour it; any value but the default is refused.
        make: option -> {verl's key: value}, in place of the plain value.
    """

    keys: tuple[str, ...] = ()
    by: str = ""
    refused: str = ""
    make: Callable[[TrainConfig], Mapping[str, Any]] | None = None


def _advantages(config: TrainConfig) -> dict[str, Any]:
    if config.advantages == "posterior":
        raise ConfigError("verl has no posterior advantages: give 'centred' or 'std', or launch with --engine trl")
    if config.trainer == "rloo":
        if config.advantages == "std":
            raise ConfigError(
                "verl's rloo does not divide by the standard deviation: advantages 'std' needs --trainer grpo"
            )
        return {}
    return {"algorithm.norm_adv_by_std_in_grpo": config.advantages == "std"}


def _gate(config: TrainConfig) -> dict[str, Any]:
    if config.gate == NO_GATE:
        return {}
    if config.gate != "mixed" or config.gate_options:
        raise ConfigError(
            f"verl has one gate, groups with contrast: gate must be 'mixed' without gate_options, got {config.gate!r} "
            f"with {config.gate_options!r}"
        )
    wanted = {"filter_groups_metric": "reward", "train_batch_size": config.prompts_per_step, "gen_batch_size": 1}
    return {
        "algorithm.filter_groups.enable": True,
        "algorithm.filter_groups.metric": "reward",
        **{f"+trainer.v1.sampler.sampler_kwargs.{key}": value for key, value in wanted.items()},
    }


def _method(config: TrainConfig) -> dict[str, Any]:
    options = {"seed": config.seed, **config.method_options()}
    curriculum = make_curriculum(config.curriculum, **options)
    check_allocator({"algorithm": {"filter_groups": {"enable": config.gate != NO_GATE}}}, curriculum)
    warn_of_judging(curriculum)
    manager = "+actor_rollout_ref.rollout.agent.agent_loop_manager_class"
    return {
        "+data.rollwise.curriculum_options": options,
        **({manager: "rollwise.engines.verl.JudgingManager"} if curriculum.wants_answers else {}),
    }


def _peft(config: TrainConfig) -> dict[str, Any]:
    if wrong := sorted(config.peft.keys() - _LORA.keys()):
        raise ConfigError(f"verl takes {', '.join(_LORA)} of peft's options, not {wrong[0]!r}; leave it out")
    given = {**_LORA_DEFAULTS, **config.peft} if config.peft else {}
    return {f"actor_rollout_ref.model.{_LORA[key]}": value for key, value in given.items()}


def _batches(config: TrainConfig, name: str) -> int:
    """An option that counts optimiser steps, in verl's steps, which are batches of `prompts_per_step`."""
    value: int = getattr(config, name)
    if value % config.updates:
        raise ConfigError(
            f"verl counts batches, each of {config.updates} optimiser steps here: {name} must be a multiple of "
            f"{config.updates}, got {value!r}"
        )
    return value // config.updates


def _counted(name: str, key: str) -> Option:
    return Option((key,), make=lambda config: {key: _batches(config, name)})


def _stop(config: TrainConfig) -> dict[str, Any]:
    if config.stop:
        raise ConfigError(f"verl's rollouts end with the end of text alone, not with {config.stop!r}; give --stop []")
    return {}


def _evaluation(config: TrainConfig) -> dict[str, Any]:
    if not config.eval_prompts:
        return {"trainer.test_freq": -1, "trainer.val_before_train": False}
    return {"trainer.test_freq": _batches(config, "eval_every"), "trainer.val_before_train": True}


def _reports(config: TrainConfig) -> dict[str, Any]:
    if config.report_to not in ("none", *_TRACKERS):
        raise ConfigError(
            f"verl logs to {', '.join(_TRACKERS)}: report_to must be one of them, or none, got {config.report_to!r}"
        )
    return {"trainer.logger": ["console", *([] if config.report_to == "none" else [config.report_to])]}


_MINI_BATCH = "actor_rollout_ref.actor.ppo_mini_batch_size"
_DATA = "read by rollwise, and written to the run's folder as verl's parquet"
_ALLOCATOR = "data.rollwise.curriculum_options; not in rounds, not with a gate"
_REWARD = "called by rollwise's reward function, which verl calls"
VERL: Mapping[str, Option] = {
    **dict.fromkeys(
        ("data", "prompt_column", "answer_column", "category", "id", "system", "template"), Option(by=_DATA)
    ),
    **dict.fromkeys(("where", "limit", "stratify", "limit_seed"), Option(by=_DATA)),
    **dict.fromkeys(("task", "task_options", "eval_data", "num_prompts", "eval_prompts", "profile"), Option(by=_DATA)),
    **dict.fromkeys(
        ("reward", "reward_weights", "success", "reward_low", "reward_high", "solved_at"), Option(by=_REWARD)
    ),
    "stop": Option(by="rollouts end with the end of text alone: only `[]` is taken", make=_stop),
    "model": Option(("actor_rollout_ref.model.path",)),
    "curriculum": Option(("+data.rollwise.curriculum",)),
    "curriculum_options": Option(by="data.rollwise.curriculum_options, with the seed", make=_method),
    "gate": Option(by="`mixed` is algorithm.filter_groups; others are refused", make=_gate),
    "gate_options": Option(refused="verl's filter has no such options"),
    "match_uniform": Option(refused="verl computes its advantages itself"),
    "skip_zero_advantage": Option(refused="verl updates on every rollout of a batch"),
    **dict.fromkeys(("allocator", "allocator_options"), Option(by=_ALLOCATOR)),
    "trainer": Option(("algorithm.adv_estimator",)),
    "trainer_options": Option(refused="they are TRL's; verl's own keys go under engine_options"),
    "steps": _counted("steps", "trainer.total_training_steps"),
    "token_budget": Option(refused="verl ends by steps"),
    "max_hours": Option(refused="verl ends by steps"),
    "prompts_per_step": Option(("data.train_batch_size",)),
    "mini_batch_prompts": Option(
        (_MINI_BATCH,), make=lambda config: {_MINI_BATCH: config.mini_batch_prompts or config.prompts_per_step}
    ),
    "num_generations": Option(("actor_rollout_ref.rollout.n", "+data.rollwise.n_rollouts")),
    "advantages": Option(by="algorithm.norm_adv_by_std_in_grpo", make=_advantages),
    "learning_rate": Option(("actor_rollout_ref.actor.optim.lr",)),
    "warmup_steps": _counted("warmup_steps", "actor_rollout_ref.actor.optim.lr_warmup_steps"),
    "temperature": Option(
        ("actor_rollout_ref.rollout.temperature", "actor_rollout_ref.rollout.val_kwargs.temperature")
    ),
    "eval_temperature": Option(("actor_rollout_ref.rollout.val_kwargs.temperature",)),
    "max_completion_length": Option(by="data.max_response_length; by default the task's, 512 for your own data"),
    "micro_batch": Option(
        by="actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu, at most a GPU's share of an optimiser step"
    ),
    "probe_batch": Option(refused="verl's loader has no rollouts that are not trained on"),
    "max_judgment_length": Option(refused="a judgment there is as long as its format needs"),
    "judgments_per_step": Option(refused="judgments.jsonl is written by TRL's trainers"),
    **dict.fromkeys(("reward_workers", "reward_timeout"), Option(refused="verl scores in workers of its own")),
    "eval_every": Option(
        by="trainer.test_freq and trainer.val_before_train; off without eval_prompts", make=_evaluation
    ),
    "eval_every_tokens": Option(refused="verl evaluates by steps; give eval_every"),
    **dict.fromkeys(
        ("eval_prompts_end", "num_generations_end"), Option(refused="verl's evaluations are all of one size")
    ),
    "num_generations_eval": Option(("actor_rollout_ref.rollout.val_kwargs.n",)),
    "eval_aggregate": Option(refused="all sets are one there, in which each prompt weighs the same"),
    "save_every": _counted("save_every", "trainer.save_freq"),
    "keep_checkpoints": Option(("trainer.max_actor_ckpt_to_keep",)),
    "keep_best": Option(refused="verl keeps the newest"),
    "seed": Option(("data.seed", "actor_rollout_ref.actor.data_loader_seed", "actor_rollout_ref.rollout.seed")),
    "peft": Option(
        by="r, lora_alpha, target_modules: actor_rollout_ref.model.lora_rank, ...; by default 8, 8, all linear layers",
        make=_peft,
    ),
    "out": Option(("+data.rollwise.run",)),
    "report_to": Option(by="trainer.logger, beside console", make=_reports),
    "log": Option(refused="verl's tracker gets every number"),
}
"""Option of `rollwise train` -> how verl takes it."""
NOTHING = Option(refused="verl has nothing for it")
"""Of an option that has no row."""


def verl_keys(config: TrainConfig) -> dict[str, Any]:
    """Verl's keys and values for the options that have some; what verl can't honour is refused.

    Raises:
        ConfigError: an option that verl has nothing for.
    """
    defaults = TrainConfig()
    keys: dict[str, Any] = {}
    for name in [field.name for field in fields(TrainConfig)]:
        option, value = VERL.get(name, NOTHING), getattr(config, name)
        if option.refused and value != getattr(defaults, name):
            raise ConfigError(f"--engine verl can't honour {name} {value!r}: {option.refused}; leave it out")
        if option.make is not None:
            keys |= option.make(config)
        elif value is not None and value != {}:
            keys |= dict.fromkeys(option.keys, value)
    return keys


def option_table() -> str:
    """The options and what verl makes of them, as a table in Markdown."""
    rows = ["| option | verl |", "|---|---|"]
    for name in [field.name for field in fields(TrainConfig)]:
        option = VERL.get(name, NOTHING)
        keys = ", ".join(f"`{key.lstrip('+')}`" for key in option.keys)
        rows.append(f"| `{name}` | {keys or option.by or f'refused: {option.refused}'} |")
    return "\n".join(rows)
