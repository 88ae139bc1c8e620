"""The trainer gets every option of a run that it has an argument for."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rollwise.tasks import make_task
from rollwise.training import make_trainer
from rollwise.training.config import TrainConfig
from rollwise.training.trainer.curriculum_mixin import CurriculumMixin

GIVEN: dict[str, Any] = {
    "eval_aggregate": "prompts",
    "eval_temperature": 0.5,
    "keep_best": "pass@1",
    "log": "all",
    "match_uniform": True,
    "skip_zero_advantage": True,
    "probe_batch": 7,
    "max_judgment_length": 9,
}
ELSEWHERE = {"curriculum", "curriculum_options", "gate", "success", "stop", "judgments_per_step"}
"""Made into objects or a task, or given to the `Recorder`."""


def test_every_option_that_the_trainer_has_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rollwise train --match_uniform true` was checked and saved once, and had no effect."""
    options = set(inspect.signature(CurriculumMixin.__init__).parameters)
    assert options & set(TrainConfig.__dataclass_fields__) == GIVEN.keys() | ELSEWHERE
    got: dict[str, Any] = {}
    monkeypatch.setitem(make_trainer.TRAINERS, "grpo", (lambda **given: got.update(given), None))
    for name in ("check_beforehand", "embedded_of", "check_room"):
        monkeypatch.setattr(make_trainer, name, lambda *_: None)
    monkeypatch.setattr(make_trainer, "load_policy", lambda *_, **__: (type("Model", (), {"config": None}), None))
    config = TrainConfig(task="reversal", num_prompts=4, eval_prompts=4, out=str(tmp_path), **GIVEN)
    arguments = type("Arguments", (), {"reward_weights": None, "model_init_kwargs": None, "max_completion_length": 8})
    make_trainer.make_trainer(config, make_task("reversal"), None, None, arguments, Console(quiet=True))
    assert {name: got[name] for name in GIVEN} == GIVEN
