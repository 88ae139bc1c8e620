"""Several tasks as one: categories of family and level, sets by family, each task's own verifier."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.tasks import TASKS, Reversal, make_task
from rollwise.tasks.base import Text
from rollwise.tasks.mixed import Mixed


@pytest.fixture(scope="module")
def mixed() -> Mixed:
    return Mixed()


def test_nine_arms_and_two_sets_a_family(mixed: Mixed) -> None:
    """SEC-2D: three families by three levels; each family's fourth level is out of distribution."""
    records = mixed.train_records(90, seed=0)
    assert Counter(record["category"] for record in records) == {
        f"{family}/L{level}": 10 for family in mixed.tasks for level in (1, 2, 3)
    }
    assert mixed.train_records(90, seed=0) == records
    sets = mixed.eval_sets(3, seed=0)
    assert list(sets) == [f"{family}-{one}" for family in mixed.tasks for one in ("id", "ood")]
    assert {record["category"] for name in sets if "ood" in name for record in sets[name]} == {
        f"{family}/L4" for family in mixed.tasks
    }
    held_out = {record["id"] for one in sets.values() for record in one}
    assert not held_out & {record["id"] for record in records}
    assert len({record["task"] for record in mixed.eval_records(6, seed=0)}) == 3


def test_each_task_scores_its_own(mixed: Mixed) -> None:
    records = mixed.train_records(6, seed=0)
    columns = {key: [record[key] for record in records] for key in ("task", "item")}
    right = {"countdown": "<answer>{nums[0]}</answer>", "zebra": "<answer>{answer}</answer>"}
    said = [right.get(record["task"], "none").format(**json.loads(record["item"])) for record in records]
    wanted = {"countdown": 0.1, "zebra": 1.0, "arc-1d": 0.0}
    prompts = [record["prompt"] for record in records]
    assert mixed.reward(prompts, said, **columns, trainer_state=None) == [wanted[r["task"]] for r in records]
    kinds = {"countdown": "invalid-number-use", "zebra": None, "arc-1d": "format"}
    assert [mixed.failure(text, record) for text, record in zip(said, records, strict=True)] == [
        kinds[record["task"]] for record in records
    ]
    with pytest.raises(TaskError, match="needs the columns 'task' and 'item'"):
        mixed.reward(prompts, said)
    with pytest.raises(TaskError, match="'boxes' is scored by a mixture of countdown, zebra, arc-1d"):
        mixed.reward([""], [""], task=["boxes"], item=["{}"])


def test_weights_and_demonstrations() -> None:
    task = Mixed(tasks=("reversal", "arc-1d"), weights=(3, 1), parts={"reversal": {"longest": 4}})
    assert Counter(record["task"] for record in task.train_records(40, seed=0)) == {"reversal": 30, "arc-1d": 10}
    demos = task.demonstrations(8, seed=0)
    assert sum(">" in demo["prompt"] for demo in demos) == 2
    assert task.clean_first == make_task("reversal").clean_first
    assert task.stop_texts == ()
    assert list(task.eval_sets(2, 0)) == ["reversal", "arc-1d-id", "arc-1d-ood"]
    assert len(task.train_records(1, seed=0)) == 1


def test_a_text_style_gives_each_task_its_own() -> None:
    task = Mixed(tasks=("countdown", "reversal"), style="text")
    countdown = task.train_records(1, seed=0)[0]["prompt"]
    assert "Return the final answer in \\boxed{}" in countdown
    assert task.max_completion_length == 512
    other = Mixed(tasks=("countdown",), style="text", parts={"countdown": {"style": "tinyzero", "levels": [1]}})
    assert "<think>" in other.train_records(1, seed=0)[0]["prompt"]


class Noted(Reversal):
    """A task whose first record lacks a column, and whose numbers are numpy's."""

    notes: ClassVar[list[Any]] = []

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        first, *others = super().train_records(n, seed)
        return [first, *({**record, "note": np.int64(at)} for at, record in enumerate(others))]

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        self.notes.extend(columns["note"])
        return super().reward(prompts, completions, **columns)


def test_columns_that_the_first_record_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "noted", Noted)
    task = Mixed(tasks=("noted",))
    records = task.train_records(3, seed=0)
    columns = {key: [record[key] for record in records] for key in ("task", "item")}
    assert task.reward([""] * 3, [""] * 3, **columns) == [0.0] * 3
    assert Noted.notes == [None, 0, 1]


def test_a_record_without_a_difficulty_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "noted", Noted)
    monkeypatch.setattr(Noted, "train_records", lambda *_: [{"id": "a", "prompt": "1=", "category": "c"}])
    with pytest.raises(
        TaskError, match="'noted' can't be mixed: a record has no 'difficulty', got id, prompt, category"
    ):
        Mixed(tasks=("noted",)).train_records(1, seed=0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tasks": ("countdwn",)}, r"unknown task 'countdwn' \(did you mean 'countdown'\?\)"),
        ({"tasks": ("zebra", "zebra")}, "each once"),
        ({"tasks": ("zebra",), "weights": (1.0, 1.0)}, "one number for each of 1 tasks"),
        ({"tasks": ("zebra",), "parts": {"arc-1d": {}}}, "parts has no option 'arc-1d'"),
        ({"tasks": ("zebra",), "parts": {"zebra": {"level": 1}}}, r"task 'zebra' has no option 'level'"),
        ({"tasks": ("boxes",)}, "'boxes' can't be mixed"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Mixed(**options)
