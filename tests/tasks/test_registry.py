"""The registry of tasks, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.tasks import TASKS, Task, ToolTask, make_task, task_options


class _Bare(Task):
    name = "bare"
    max_completion_length = 1

    def train_records(self, n, seed):  # type: ignore[no-untyped-def]
        return []

    eval_records = train_records

    def reward(self, prompts, completions, **columns):  # type: ignore[no-untyped-def]
        return []

    def fingerprint(self):  # type: ignore[no-untyped-def]
        return {}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_keeps_the_contract(name: str) -> None:
    if name == "reasoning-gym":
        pytest.importorskip("reasoning_gym", reason="reasoning-gym, whose puzzles these are, is not installed")
    task = make_task(name)
    assert task.name == name
    if name == "bfcl":
        pytest.importorskip("bfcl_eval", reason="bfcl-eval, whose data these are, is not installed")
    assert task.reward_low <= task.solved_at <= task.reward_high
    train, held_out = task.train_records(20, seed=0), task.eval_records(10, seed=0)
    assert len({r["id"] for r in [*train, *held_out]}) == 30
    for record in [*train, *held_out]:
        assert {"id", "prompt", "category", "difficulty"} <= set(record)
        columns = {key: [value] for key, value in record.items() if key not in ("id", "prompt")}
        if isinstance(task, ToolTask):
            environment = task.environment()
            environment.reset(**record)
            columns["environments"] = [environment]
            assert task.reward_low <= task.reward([record["prompt"]], [""], **columns)[0] < task.solved_at
            continue
        assert task.reward([record["prompt"]], [""], **columns, trainer_state=None) == [task.reward_low]
    assert task.max_completion_length > 0


def test_options_are_listed_with_their_defaults() -> None:
    options = task_options("countdown")
    assert options["levels"] == (1, 2, 3, 4)
    assert make_task("countdown", **options).fingerprint() == make_task("countdown").fingerprint()


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown task 'countdwn' \(did you mean 'countdown'\?\); known are arc-1d, bfcl, boxes, countdown",
    ):
        make_task("countdwn")
    with pytest.raises(ConfigError, match="known are arc-1d, bfcl, boxes, countdown"):
        task_options("zzz")
    said = r"has no option 'level' \(did you mean 'levels'\?\); it has levels, eval_levels, broken, foreign, style"
    with pytest.raises(ConfigError, match=said):
        make_task("countdown", level=(1,))


def test_a_task_need_not_have_demonstrations() -> None:
    with pytest.raises(TaskError, match="'bare' has no demonstrations"):
        _Bare().demonstrations(1, 0)


def test_only_a_task_that_tells_failures_apart_says_why() -> None:
    assert _Bare().failure_of is None
    why = make_task("reversal").failure_of
    assert why is not None
    assert why("32", {"answer": "321"}) == "wrong-length"


def test_importing_tasks_needs_no_torch() -> None:
    code = (
        "import sys, rollwise.tasks; rollwise.tasks.make_task('countdown').train_records(5, 0); "
        "print([m for m in ('torch', 'transformers', 'datasets', 'pyarrow', 'trl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
