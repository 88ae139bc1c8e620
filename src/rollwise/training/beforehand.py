"""What a run's trainer would refuse, refused before the policy is made or loaded, which takes minutes."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from rollwise.models import is_embedded, made_here
from rollwise.models.loading import load_tokenizer
from rollwise.models.prompt_check import check_prompts
from rollwise.sampling.own_task import OwnTask
from rollwise.sampling.setting import stop_texts
from rollwise.tasks import Task
from rollwise.training.config import NO_GATE, TrainConfig
from rollwise.training.parts import curriculum_of, datasets_of, lora_config
from rollwise.training.trainer.dataset import check_bindable
from rollwise.training.trainer.environments import environment_arguments
from rollwise.training.trainer.refusals import check_enough, check_parts
from rollwise.training.trainer.stopping import check_stop


def check_beforehand(config: TrainConfig, task: Task, arguments: Any, sets: Sequence[Any]) -> None:
    """Refuse options that don't go together, and prompts that the method or the model can't take.

    Args:
        config: of the run.
        task: of the run.
        arguments: TRL's, of the trainer that is to be made.
        sets: the data sets of the prompts: those to train on, then those held out.

    Raises:
        ConfigError: options that don't fit, fewer prompts than a step needs, or prompts that the model has no room for.
        PoolError, MissingColumnError: prompts that the method can't be bound to.
        MissingExtraError: an adapter is wanted, and peft is not installed.
    """
    lora_config(config.peft)
    if stop_texts(config, task):
        check_stop(arguments)
    curriculum = curriculum_of(config, task)
    parts = {
        "curriculum": curriculum,
        "gate": None if config.gate == NO_GATE else config.gate,
        "match_uniform": config.match_uniform,
        "posterior": config.advantages == "posterior",
        "skip_zero_advantage": config.skip_zero_advantage,
    }
    check_parts(SimpleNamespace(**vars(arguments), args=arguments, **parts))
    check_enough(arguments.generation_batch_size // arguments.num_generations, len(sets[0]))
    check_bindable(curriculum, config.model, sets[0])
    if not is_embedded(config.model):
        tokenizer, settings = load_tokenizer(config.model)
        check_room(config, task, sets, tokenizer, settings, arguments.max_completion_length)
        environment_arguments(task, trainer=config.trainer, tokenizer=tokenizer)


def check_prompts_beforehand(config: TrainConfig, task: Task) -> None:
    """What of `check_beforehand` needs neither TRL's arguments nor a model: for several runs.

    Raises:
        ConfigError, PoolError, MissingExtraError: what the run would raise.
    """
    curriculum = curriculum_of(config, task)
    lora_config(config.peft)
    train, _ = datasets_of(config, task)
    if not config.trainer_options:  # by which a step may need fewer
        check_enough(config.prompts_per_step, len(train))
    check_bindable(curriculum, config.model, train)


def check_room(config: TrainConfig, task: Task, sets: Sequence[Any], tokenizer: Any, settings: Any, limit: int) -> None:
    """`check_prompts` of the data sets, unless the model was made for the task's own prompts."""
    for part in sets if isinstance(task, OwnTask) or not made_here(config.model) else ():
        check_prompts(part["prompt"], tokenizer, settings, limit)
