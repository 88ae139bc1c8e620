"""A run's prompts in the form in which verl reads them, one row a prompt."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, PoolError
from rollwise.models import is_embedded
from rollwise.sampling.own_task import OwnTask, task_of
from rollwise.tasks import Task
from rollwise.training.config import TrainConfig

DATA_FOLDER = "data"
LISTS = ("reference_pass_rates", "embedding")
"""Columns that curricula read and that are lists, which verl's adapter takes where they are named."""
_FOR_POOL = ("id", "category", "difficulty", "pass_rate", *LISTS)
"""Columns that curricula read."""


def verl_task(config: TrainConfig) -> Task:
    """The run's task.

    Raises:
        ConfigError: the embedded policy, which no engine can load.
    """
    if is_embedded(config.model):
        raise ConfigError(f"verl can't load the {config.model} policy: name a model of transformers with model")
    return task_of(config)


def verl_rows(records: Sequence[Mapping[str, Any]], source: str, columns: Collection[str] = ()) -> list[dict[str, Any]]:
    """Records of a task as verl's rows: all of their columns stand in `extra_info`, where the reward finds them.

    Args:
        records: with `id`, `prompt` (chat messages) and the columns that the reward needs.
        source: verl's `data_source`.
        columns: more that the curriculum reads, as its options name them.

    Raises:
        ConfigError: prompts of text, where verl takes chat messages alone.
    """
    rows = []
    for index, record in enumerate(records):
        if isinstance(record["prompt"], str):
            raise ConfigError(
                f"verl takes chat messages, but prompt {record['id']!r} is text: give system, which makes messages of "
                'it ("" for none)'
            )
        rows.append(
            {
                **{name: record[name] for name in (*_FOR_POOL, *columns) if name in record},
                "data_source": source,
                "prompt": [dict(message) for message in record["prompt"]],
                "reward_model": {"style": "rule", "ground_truth": str(record.get("answer", ""))},
                "extra_info": {"index": index, **record},  # a column of that name is the reward's
            }
        )
    return rows


def named_columns(options: Any) -> list[str]:
    """The texts in a method's options, and in those of the methods within: if one names a column, the method reads it.

    >>> named_columns({"references": ["weak", "strong"], "history": {"options": {"prior": "past"}}, "momentum": 0.9})
    ['weak', 'strong', 'past']
    """
    if isinstance(options, str):
        return [options]
    parts = options.values() if isinstance(options, Mapping) else options if isinstance(options, list | tuple) else ()
    return [name for part in parts for name in named_columns(part)]


def write_verl_data(folder: Path, **rows: list[dict[str, Any]]) -> None:
    """Write each set of rows into the run's folder, as parquet by its name.

    Raises:
        PoolError: columns that parquet can't hold.
    """
    import pyarrow
    from datasets import Dataset

    (folder / DATA_FOLDER).mkdir(parents=True, exist_ok=True)
    for name, part in rows.items():
        try:
            Dataset.from_list(part).to_parquet(str(folder / DATA_FOLDER / f"{name}.parquet"))
        except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError) as error:
            raise PoolError(
                f"the columns of the data can't be written as verl's parquet: {error}; use one kind of value a column, "
                "and no empty mappings or halves of characters"
            ) from error


def splits(config: TrainConfig, task: Task) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows to train on and those held out; where nothing is to be held out, one row that is never read.

    Raises:
        ConfigError: prompts of text.
        PoolError: prompts that a profile does not know.
    """
    named = named_columns(config.curriculum_options)
    if not isinstance(task, OwnTask):  # the form of one prompt, before thousands are made
        verl_rows(task.train_records(1, config.seed), task.name, named)
    records = task.train_records(config.num_prompts or 10**9, config.seed)
    if config.profile is not None:
        from datasets import Dataset

        from rollwise.profiling import add_pass_rates

        records = list(add_pass_rates(Dataset.from_list(records), config.profile))
    sets = task.eval_sets(config.eval_prompts, config.seed) if config.eval_prompts else {}
    held_out = [row for name, rows in sets.items() for row in verl_rows(rows, f"{task.name}/{name}".rstrip("/"), named)]
    return verl_rows(records, task.name, named), held_out or verl_rows(records[:1], task.name, named)
