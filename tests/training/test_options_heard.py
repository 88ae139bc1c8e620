"""Every option of `rollwise train` is read by something that acts on it, not by a check and `config.yaml` alone."""

import io
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rich.console import Console

from rollwise.models import EmbeddedConfig, embedded_policy
from rollwise.tasks import make_task
from rollwise.training import arguments, make_trainer, run
from rollwise.training.config import TrainConfig

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)


class Heard(TrainConfig):
    """Notes the options that are read of it."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        Heard.read.add(name)
        return super().__getattribute__(name)


def test_no_option_is_only_checked_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`match_uniform` was: the command refused what does not go with it, saved it, and trained without it."""
    policy = embedded_policy(make_task("reversal", longest=4), config=TINY, cache_dir=tmp_path / "cache")
    config = Heard(
        task="reversal", task_options={"longest": 4}, model=str(policy), out=str(tmp_path / "run"), steps=1,
        prompts_per_step=4, num_generations=2, num_prompts=40, eval_prompts=4, eval_prompts_end=4, gate="mixed",
    )  # fmt: skip
    for part, checks_and_says in (
        (make_trainer, "check_beforehand"), (arguments, "check_trainer_options"), (run, "check_new"),
        (run, "cautions"), (run, "left_out"), (run, "write_config"), (run, "ended_early"),
        (run, "needless"),
    ):  # fmt: skip
        monkeypatch.setattr(part, checks_and_says, lambda *_, **__: [])
    Heard.read.clear()
    run.start_run(config, console=Console(file=io.StringIO()))
    own = TrainConfig.__annotations__.keys() - {"eval_data"}  # which goes with `data`
    assert own <= Heard.read, own - Heard.read
