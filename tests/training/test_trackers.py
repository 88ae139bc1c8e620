"""Tables of the chosen prompts and the report, for trackers that take them; here a stub that notes what it gets."""

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from toys import make_trainer
from transformers import TrainerCallback

from rollwise.training import Recorder
from rollwise.training.recording.trackers import PromptTable, takers

STEPS = 4


class Closing(TrainerCallback):
    """A tracker's own callback, which closes its run when training ends."""

    def __init__(self, tracker: Any) -> None:
        self.tracker = tracker

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.tracker.events.append(("finish", None))


@pytest.fixture(params=["wandb", "trackio"])
def tracker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    stub: Any = ModuleType(request.param)
    stub.__spec__ = ModuleSpec(request.param, None)
    stub.events = []
    stub.Table = lambda dataframe: SimpleNamespace(rows=dataframe.to_dict("records"))
    stub.log = lambda values: stub.events.append(("log", values))
    stub.log_artifact = lambda path, name, type: stub.events.append(("artifact", (path, name, type)))
    monkeypatch.setitem(sys.modules, request.param, stub)
    return stub


def train(folder: Path, tracker: Any) -> None:
    name = tracker.__name__
    table = PromptTable([name], every=2)
    trainer = make_trainer(folder / "checkpoints", max_steps=STEPS, extra={"group_observers": [table]})
    trainer.add_callback(Closing(tracker))
    trainer.args.report_to = [name]  # only now: TRL and transformers would look for the real tracker
    Recorder(folder).attach(trainer)
    trainer.args.report_to = []
    trainer.train()


def test_a_table_each_n_steps_and_the_report_before_the_tracker_closes(tmp_path: Path, tracker: Any) -> None:
    train(tmp_path / "my run", tracker)
    tables = [values["rollwise/prompts"].rows for kind, values in tracker.events if kind == "log"]
    assert [{row["step"] for row in rows} for rows in tables] == [{1}, {2}, {4}]
    groups = [json.loads(line) for line in (tmp_path / "my run/rollouts.jsonl").read_text().splitlines()]
    expected = [(g["prompt_id"], g["lane"], sum(g["rewards"]) / len(g["rewards"])) for g in groups if g["step"] == 4]
    assert [(row["prompt_id"], row["lane"], row["pass_rate"]) for row in tables[-1]] == expected
    assert tables[-1][0]["prompt"].startswith("task ")
    kinds = [kind for kind, _ in tracker.events]
    assert kinds[-2:] == ["artifact", "finish"]
    path, name, kind = tracker.events[-2][1]
    assert (name, kind) == ("my-run-report", "report")
    page = Path(path).read_text()
    assert "Damaged or missing" not in page
    assert f"{STEPS} steps" in page  # the last one, too


def test_training_ends_well_though_the_tracker_fails(
    tmp_path: Path, tracker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    del tracker.log_artifact
    train(tmp_path / "run", tracker)
    assert f"{tracker.__name__} did not take the report" in caplog.text
    assert (tmp_path / "run/report.html").exists()


def test_who_takes_tables() -> None:
    assert takers(["tensorboard", "trackio", "wandb"]) == ["wandb", "trackio"]
    assert takers([]) == []
    assert "wandb" not in sys.modules  # neither is imported before it is used
