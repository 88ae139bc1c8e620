"""The parts of a run: its curriculum, data sets and adapter, and what to say of them."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

import pyarrow
from datasets import Dataset

from rollwise.curricula import Curriculum, Judged, make_curriculum
from rollwise.errors import ConfigError, PoolError
from rollwise.models import EMBEDDED, JUDGING
from rollwise.models.loading import need
from rollwise.options import check_options
from rollwise.profiling import add_pass_rates
from rollwise.sampling.eval_sets import check_aggregate
from rollwise.tasks.base import Task, with_all_columns
from rollwise.training.config import NO_GATE, TrainConfig
from rollwise.training.trainer.keep_best import check_score

_NO_TABLE = (pyarrow.ArrowException, OverflowError, UnicodeEncodeError)
"""What pyarrow raises of values that no table can hold."""


def curriculum_of(config: TrainConfig, task: Task) -> Curriculum:
    """The curriculum of a run, unbound.

    Raises:
        ConfigError: an option that the method does not have, a policy that can't answer what it asks, or a screening
            as large as a group.
    """
    rewards = task.rewards
    curriculum = make_curriculum(
        config.curriculum, seed=config.seed, reward_spec=rewards.spec, **config.method_options()
    )
    curriculum.range_declared = rewards.declared
    curriculum.check_screening(config.trainer_options.get("num_generations", config.num_generations))
    if curriculum.wants_answers and config.model == EMBEDDED:
        raise ConfigError(
            f"curriculum {config.curriculum!r} asks the policy for judgments, which the embedded one has not learnt to "
            f"write; use --model {JUDGING}, or a pretrained instruct model"
        )
    return curriculum


def judge_notes(curriculum: Curriculum) -> list[str]:
    """What the method's judge reads, in words; nothing of a method without one."""
    return [curriculum.judge_reads] if isinstance(curriculum, Judged) and curriculum.judge_reads else []


def first_rows(curriculum: Curriculum, n: int, *, group: int) -> list[int]:
    """Up to `n` rows of the data: what the method asks for first, or where its choice needs the policy, the first."""
    n = min(n, len(curriculum.pool))
    if curriculum.reads_policy:
        return list(range(n))
    asked = curriculum.ask(n, step=1, n_rollouts=group)
    return [int(slot) for slot in curriculum.pool.slots_of([ticket.prompt_id for ticket in asked])]


def left_out(curriculum: Curriculum, config: TrainConfig) -> list[str]:
    """The parts of the method's paper that the run's options leave out, in words."""
    name, parts = config.curriculum, []
    if curriculum.paper_gate is not None and config.gate == NO_GATE:
        gate, options = curriculum.paper_gate
        flags = " ".join([f"--gate {gate}", *(f"--gate_options.{key} {value}" for key, value in options.items())])
        parts.append(f"{name} has a gate in its paper, which this run has not: {flags}")
    if curriculum.paper_trainer not in (None, config.trainer):
        parts.append(f"{name}'s paper trains by {curriculum.paper_trainer}: --trainer {curriculum.paper_trainer}")
    return parts


def datasets_of(config: TrainConfig, task: Task) -> tuple[Dataset, dict[str, Dataset]]:
    """The prompts to train on, with a profile's pass rates, and the sets of those held out by name; empty sets not.

    The name of the only set without one is "".

    Raises:
        ConfigError: `eval_aggregate` or `keep_best` names no set or no score.
        PoolError: columns that no table can hold.
    """
    train = task.train_records(config.num_prompts or sys.maxsize, config.seed)
    sets = _eval_records(config.eval_prompts, config, task)
    check_aggregate(config.eval_aggregate, sets)
    if config.keep_best is not None:
        check_score(config.keep_best, sets, config.num_generations_eval)
    made = _table(train, task)
    if config.profile is not None:
        made = add_pass_rates(made, config.profile)
    return made, {name: _table(records, task) for name, records in sets.items()}


def _table(records: list[dict[str, Any]], task: Task) -> Dataset:
    """The records as a data set; `PoolError` names the first column that no table can hold."""
    try:
        return Dataset.from_list(with_all_columns(records))
    except _NO_TABLE as error:
        remedies = {
            OverflowError: "write numbers beyond 64 bits as text",
            UnicodeEncodeError: "cut texts between characters",
        }
        remedy = remedies.get(type(error), "use one kind a column")
        raise PoolError(f"{_bad_column(records)} of {task.name!r} makes no table: {error}; {remedy}") from error


def _bad_column(records: list[dict[str, Any]]) -> str:
    for name in records[0]:
        try:
            pyarrow.array([record.get(name) for record in records])
        except _NO_TABLE:
            return f"column {name!r}"
    return "a column"


def end_sets_of(config: TrainConfig, task: Task) -> dict[str, Dataset]:
    """The sets of the larger evaluation at the end of the run, by name as those of `datasets_of`; empty without one."""
    sets = _eval_records(config.eval_prompts_end, config, task)
    return {name: _table(records, task) for name, records in sets.items()}


def _eval_records(n: int, config: TrainConfig, task: Task) -> dict[str, list[dict[str, Any]]]:
    """Up to `n` held-out records of each set; empty sets not."""
    sets = task.eval_sets(n, config.seed) if n else {}
    return {name: records for name, records in sets.items() if records}


class OptionErrors:
    """Inside, what peft and TRL raise becomes a `ConfigError`: some options they look at only as they train."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        raised_in = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        words = {"peft": "peft refuses these options of --peft", "trl": "TRL refuses these options (trainer_options)"}
        if isinstance(error, TypeError | ValueError | ImportError) and raised_in in words:
            raise ConfigError(f"{words[raised_in]}: {' '.join(str(error).split())}") from error


def lora_config(options: dict[str, Any]) -> Any:
    """Peft's configuration of a LoRA adapter; None without options.

    Raises:
        ConfigError: an option that it does not have, or a value that it refuses.
        MissingExtraError: peft is not installed.
    """
    if not options:
        return None
    kind = need("peft", "training a LoRA adapter (--peft)").LoraConfig
    check_options("peft's LoraConfig", options, [f.name for f in fields(kind)])
    try:
        return kind(**{"task_type": "CAUSAL_LM", **options})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"peft refuses these options of --peft: {error}") from error
