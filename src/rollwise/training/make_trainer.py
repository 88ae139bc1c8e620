"""TRL's trainer with a run's parts."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from rollwise.curricula import Curriculum
from rollwise.gates import DynamicSampling
from rollwise.models import is_embedded, load_policy
from rollwise.sampling.setting import stop_texts
from rollwise.tasks import Task
from rollwise.training.arguments import TRAINERS
from rollwise.training.beforehand import check_beforehand, check_room
from rollwise.training.config import TrainConfig
from rollwise.training.parts import OptionErrors, datasets_of, lora_config
from rollwise.training.trainer.environments import environment_arguments
from rollwise.training.trainer.ranks import on_main, ranks_of_run
from rollwise.training.warm_start import embedded_of

_HANDED_ON = (
    *("eval_aggregate", "eval_temperature", "keep_best", "log", "match_uniform", "skip_zero_advantage", "probe_batch"),
    "max_judgment_length",
)
"""Options of a run that are the trainer's arguments as they are."""


def make_trainer(
    config: TrainConfig,
    task: Task,
    curriculum: Curriculum,
    gate: DynamicSampling | None,
    arguments: Any,
    console: Console,
) -> Any:
    """TRL's trainer with the run's parts.

    Raises:
        ConfigError: a model that can't be loaded, prompts that it can't take, or options that don't fit.
        MissingExtraError: an adapter is wanted, and peft is not installed.
    """
    train, held_out = datasets_of(config, task)
    sets = (train, *held_out.values())
    on_main(ranks_of_run(), lambda: check_beforehand(config, task, arguments, sets))
    source = embedded_of(config, task.warm_start, console) if is_embedded(config.model) else config.model
    model, tokenizer = load_policy(source, dtype=_take_dtype(arguments, config))
    if is_embedded(config.model):  # of any other it was known beforehand
        check_room(config, task, sets, tokenizer, model.config, arguments.max_completion_length)
    rewards = task.rewards
    arguments.reward_weights = rewards.weights or arguments.reward_weights
    with OptionErrors():
        return TRAINERS[config.trainer][0](
            model=model,
            reward_funcs=rewards.functions,
            success=rewards.success,
            args=arguments,
            train_dataset=train,
            eval_dataset=held_out.get("", held_out) or None,
            processing_class=tokenizer,
            curriculum=curriculum,
            gate=gate,
            posterior_advantages=config.advantages == "posterior",
            failure_of=task.failure_of,
            stop=stop_texts(config, task),
            **{name: getattr(config, name) for name in _HANDED_ON},
            peft_config=lora_config(config.peft),
            **environment_arguments(task, trainer=config.trainer, tokenizer=tokenizer),
        )


def _take_dtype(arguments: Any, config: TrainConfig) -> str | None:
    """What the weights are held in, as TRL does it: float32 where all are trained, unless `model_init_kwargs` says.

    Of bfloat16's three digits a step of a usual learning rate changes none. With an adapter they stay as they come,
    but on a CPU, which is slow in bfloat16, even where the machine has an accelerator.
    """
    given = dict(arguments.model_init_kwargs or {})
    dtype = given.pop("dtype", None)
    arguments.model_init_kwargs = given or None  # of the others TRL says that they have no effect
    return dtype or (None if config.peft and not arguments.use_cpu else "float32")
