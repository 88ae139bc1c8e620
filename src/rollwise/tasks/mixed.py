"""Several tasks as one, so that a curriculum chooses among families and levels: SEC-2D (SEC, section 3.3)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from rollwise.errors import ConfigError, TaskError
from rollwise.options import NonEmptyText, Positive, check_mapping, check_options, check_whole
from rollwise.plugins import short_name
from rollwise.tasks.base import TASKS, Task, Text, make_task, with_all_columns
from rollwise.tasks.seeding import in_shares
from rollwise.tasks.tool_conversation import ToolTask

_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "compact": {"countdown": {"levels": (1, 2, 3), "eval_levels": (4,)}},
    "text": {"countdown": {"levels": (7, 8, 9), "eval_levels": (10,), "style": "boxed"}},
}
"""Style -> task -> options, where none are given: three levels to train on and a fourth, as the other two have."""

_OWN = frozenset({"id", "prompt", "category", "difficulty", "embedding"})


class Mixed(Task, name="mixed"):
    """Several tasks as one; by default SEC-2D: Countdown, zebra puzzles and ARC-1D, nine arms of family and level.

    A prompt's category is its task and its category there, `zebra/L2`. Each task's held-out sets are sets here:
    `zebra-id`, `zebra-ood`, or `reversal` of a task with one. Rewards are the tasks' own, from 0 to 1, solved at 1.

    Args:
        tasks: Names of tasks: built in, installed, `file.py:Name` or `package.module:Name`.
        weights: How often each is drawn, in proportion; by default all alike.
        parts: Task -> its options.
        style: `compact`, for the embedded policy; `text`, each task's form for pretrained models.

    Raises:
        ConfigError: there is no such task or option, or a task whose rewards have another range or that calls tools.

    >>> task = Mixed(tasks=("reversal", "countdown"), parts={"reversal": {"longest": 4}})
    >>> [record["category"] for record in task.train_records(4, seed=0)]
    ['reversal/reverse 03-04', 'countdown/L1', 'reversal/reverse 03-04', 'countdown/L2']
    """

    text_style: ClassVar[str] = "text"

    def __init__(
        self,
        *,
        tasks: Sequence[NonEmptyText] = ("countdown", "zebra", "arc-1d"),
        weights: Sequence[Positive] | None = None,
        parts: dict[str, Any] | None = None,
        style: Literal["compact", "text"] = "compact",
    ) -> None:
        names = [short_name(name) for name in tasks]
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"tasks must name one or more tasks, each once, got {tasks!r}")
        if weights is not None and len(weights) != len(names):
            raise ConfigError(f"weights must have one number for each of {len(names)} tasks, got {weights!r}")
        given = check_mapping("parts", parts or {})
        check_options("parts", given, tasks)
        self.tasks = {
            short: _part(name, str(style), check_mapping(f"parts.{name}", given.get(name, {})))
            for short, name in zip(names, tasks, strict=True)
        }
        self._weights = dict(zip(names, weights or [1.0] * len(names), strict=True))
        self.clean_first = max(task.clean_first for task in self.tasks.values())  # type: ignore[misc]

    @property
    def max_completion_length(self) -> int:
        """The most of the tasks'."""
        return max(task.max_completion_length for task in self.tasks.values())

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """Texts that complete an answer in every task."""
        first, *others = (task.stop_texts for task in self.tasks.values())
        return tuple(text for text in first if all(text in other for other in others))

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records, of the tasks in turn by their weights; fewer where a task has fewer.

        Columns: `task`, and `item` with the task's own columns as JSON.
        """
        found = {name: self.tasks[name].train_records(part, seed) for name, part in self._parts(n).items()}
        return self._in_turn({name: _records(name, records) for name, records in found.items()}, n)

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` held-out records, of all sets alike."""
        sets = self.eval_sets(check_whole("n", n, least=1), seed)
        turns = in_shares({name: iter(records) for name, records in sets.items()}, dict.fromkeys(sets, 1.0))
        return list(itertools.islice(turns, n))

    def eval_sets(self, n: int, seed: int) -> dict[str, list[dict[str, Any]]]:
        """The held-out sets of each task, up to `n` records in each."""
        return {
            f"{name}-{one}" if one else name: list(_records(name, records))
            for name, task in self.tasks.items()
            for one, records in task.eval_sets(n, seed).items()
        }

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` demonstrations, of the tasks in turn by their weights."""
        found = {name: self.tasks[name].demonstrations(part, seed, accuracy) for name, part in self._parts(n).items()}
        return self._in_turn({name: iter(demos) for name, demos in found.items()}, n)

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """Each task's reward of its own completions.

        Raises:
            TaskError: the columns `task` and `item` are missing, or a task is none of these.
        """
        names, items = columns.get("task"), columns.get("item")
        if names is None or items is None or not len(names) == len(items) == len(completions):
            raise TaskError("the reward of 'mixed' needs the columns 'task' and 'item' of its records")
        rewards = [0.0] * len(completions)
        for name in dict.fromkeys(names):
            rows = [at for at, other in enumerate(names) if other == name]
            own = with_all_columns([json.loads(items[at]) for at in rows])
            scored = self._task(name).reward(
                [prompts[at] for at in rows],
                [completions[at] for at in rows],
                **{column: [one[column] for one in own] for column in own[0]},
            )
            for at, reward in zip(rows, scored, strict=True):
                rewards[at] = reward
        return rewards

    def failure(self, completion: Text, record: Mapping[str, Any]) -> str | None:
        return self._task(record["task"]).failure(completion, json.loads(record["item"]))

    def fingerprint(self) -> dict[str, Any]:
        parts = {name: task.fingerprint() for name, task in self.tasks.items()}
        return {"task": self.name, "version": 1, "weights": self._weights, "tasks": parts}

    def _task(self, name: str) -> Task:
        if name not in self.tasks:
            raise TaskError(f"a record of task {name!r} is scored by a mixture of {', '.join(self.tasks)}")
        return self.tasks[name]

    def _parts(self, n: int) -> dict[str, int]:
        """How many of `n` each task gives, at least one."""
        total, least = sum(self._weights.values()), check_whole("n", n, least=1)
        ends = itertools.accumulate(self._weights.values())
        stops = [0, *(round(least * end / total) for end in ends)]
        return {name: max(1, b - a) for name, (a, b) in zip(self._weights, itertools.pairwise(stops), strict=True)}

    def _in_turn(self, sources: Mapping[str, Iterator[dict[str, Any]]], n: int) -> list[dict[str, Any]]:
        return list(itertools.islice(in_shares(sources, self._weights), n))


def _part(name: str, style: str, given: Mapping[str, Any]) -> Task:
    """A task of a mixture."""
    kind = TASKS.find(name)
    own: dict[str, Any] = {"style": kind.text_style} if style == "text" and kind.text_style else {}
    own |= {**_OPTIONS[style].get(name, {}), **given}
    task = make_task(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in own.items()})
    spec = task.rewards.spec
    if (spec.low, spec.high, spec.solved_at) != (0.0, 1.0, 1.0) or len(task.rewards.functions) != 1:
        raise ConfigError(f"task {name!r} can't be mixed: its rewards must be one number from 0 to 1, solved at 1")
    if isinstance(task, ToolTask):
        raise ConfigError(f"task {name!r} can't be mixed: it calls tools")
    return task


def _records(name: str, records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """A task's records as those of a mixture. Embeddings are left out: those of two tasks can't be compared.

    Raises:
        TaskError: a record lacks a column that all records have, or holds something that is no plain data.
    """
    for record in records:
        if missing := [one for one in ("id", "prompt", "category", "difficulty") if one not in record]:
            raise TaskError(f"task {name!r} can't be mixed: a record has no {missing[0]!r}, got {', '.join(record)}")
        yield {
            "id": f"{name}/{record['id']}",
            "prompt": record["prompt"],
            "category": f"{name}/{record['category']}",
            "difficulty": record["difficulty"],
            "task": name,
            "item": json.dumps({key: value for key, value in record.items() if key not in _OWN}, default=_plain),
        }


def _plain(value: Any) -> Any:
    """Numpy's numbers and arrays as Python's."""
    if not hasattr(value, "tolist"):
        raise TaskError(f"a record of a mixture can't hold {value!r:.80}; give text, numbers, lists or mappings")
    return value.tolist()
