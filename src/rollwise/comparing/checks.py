"""Which runs of a plan are meant, and what they would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from rollwise.comparing.plan import Plan, Run
from rollwise.errors import ConfigError, RollwiseError
from rollwise.models import is_embedded
from rollwise.models.loading import check_model_folder, load_tokenizer
from rollwise.runs.names import CONFIG_FILE
from rollwise.sampling.config import OwnData
from rollwise.sampling.own_task import task_of
from rollwise.tasks import Task
from rollwise.training.arguments import check_trainer_options
from rollwise.training.beforehand import check_prompts_beforehand
from rollwise.training.config import TrainConfig
from rollwise.training.trainer.environments import check_trainer


def setting_of(config: TrainConfig) -> str:
    """Data, rewards and model of a run as a key: runs of one key differ in how they train."""
    names = [*OwnData.__dataclass_fields__, "eval_data", "task", "task_options", "model"]
    numbers = ["max_completion_length", "eval_prompts", "num_prompts"]
    values = [getattr(config, name) for name in [*names, *numbers]]
    return json.dumps([*values, config.trainer_options.get("max_completion_length")], sort_keys=True, default=str)


def chosen_runs(plan: Plan, folder: Path, methods: Sequence[str] | None, seeds: Sequence[int] | None) -> list[Run]:
    """The runs of these methods and seeds.

    Raises:
        ConfigError: a method or seed is not in the plan.
    """
    _check_known("method", methods or (), plan.methods)
    _check_known("seed", seeds or (), plan.every_seed)
    return [
        run
        for run in plan.runs(folder)
        if (methods is None or run.method in methods) and (seeds is None or run.seed in seeds)
    ]


def _check_known(what: str, wanted: Sequence[object], known: Collection[object]) -> None:
    for one in wanted:
        if one not in known:
            raise ConfigError(f"{what} {one!r} is not in the plan; it has {', '.join(map(str, known))}")


def check_runs(runs: Sequence[Run], each: Callable[[Collection[Run]], Iterable[Run]] = iter) -> None:
    """Refuse now what a run would refuse in an hour: tasks, methods for this policy, trainer options, missing files.

    Args:
        runs: those that are to begin.
        each: gives them one after another, for a progress bar: a task that makes its prompts may take minutes.
    """
    for model in {run.config.model for run in runs if not is_embedded(run.config.model)}:
        if Path(model).is_dir():
            check_model_folder(model)
        else:
            load_tokenizer(model)  # a hub id, or a folder that is not there: one look-up, not one a run
    tasks: dict[str, Task] = {}
    chosen = {run.method: run for run in runs}.values()  # one of a method's seeds stands for all
    for run in each(chosen):
        try:
            _check_run(run, tasks)
        except RollwiseError as error:
            raise ConfigError(f"method {run.method!r}: {error}") from error


def _check_run(run: Run, tasks: dict[str, Task]) -> None:
    """Refuse what this run would refuse; `tasks` has those made already."""
    config = run.config
    key = setting_of(config)
    tasks[key] = tasks.get(key) or task_of(config)
    check_trainer(tasks[key], config.trainer)
    check_trainer_options(config, begun=(run.folder / CONFIG_FILE).exists())
    if not config.eval_prompts:
        raise ConfigError("eval_prompts 0 evaluates nothing, and scores are what is compared; give more")
    if config.profile is not None and not Path(config.profile).exists():
        raise ConfigError(
            f"there is no profile {config.profile!r}; `rollwise profile` makes one (for the plans of "
            "examples/compare the references.py beside them), or leave the method out, with --methods"
        )
    check_prompts_beforehand(config, tasks[key])
