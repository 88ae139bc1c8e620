"""The embedded policy as a run gets it: made once, with a bar; from the cache without."""

import io
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from rollwise.errors import ConfigError
from rollwise.models import EmbeddedConfig, embedded_policy, sources
from rollwise.tasks import make_task
from rollwise.training import warm_start
from rollwise.training.config import TrainConfig

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)


def test_a_bar_names_the_task_while_the_policy_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = partial(embedded_policy, config=TINY, cache_dir=tmp_path)
    monkeypatch.setitem(sources._MAKERS, "embedded", make)
    task, shown = make_task("reversal", longest=4), (io.StringIO(), io.StringIO())
    first, second = (
        warm_start.make_embedded("embedded", task, Console(file=out, force_terminal=True, width=100)) for out in shown
    )
    assert first == second
    assert (first / "config.json").is_file()
    assert "warm start: reversal" in shown[0].getvalue()
    assert "warm start" not in shown[1].getvalue()


@pytest.mark.parametrize("first", [True, False])
def test_of_several_ranks_one_makes_it_in_a_process_outside_their_group(
    monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """The trainer of a warm start within the group would wait for the other ranks, which wait for the policy."""
    ranks = SimpleNamespace(num_processes=2, is_local_main_process=first, local_main_process_first=nullcontext)
    monkeypatch.setattr(warm_start, "ranks_of_run", lambda: ranks)
    monkeypatch.setattr(warm_start, "policy_source", lambda model, task: f"{model} of {task.name}")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "ROLLWISE_OWN"):
        monkeypatch.setenv(name, "1")
    calls: list[dict[str, Any]] = []

    def run(command: list[str], **given: Any) -> SimpleNamespace:
        calls.append(given)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(warm_start.subprocess, "run", run)
    config = TrainConfig(task="reversal", seed=3)
    assert warm_start.embedded_of(config, make_task("reversal"), Console()) == "embedded of reversal"
    assert len(calls) == first
    for call in calls:
        assert TrainConfig.from_dict(json.loads(call["input"])) == config
        left = {name for name, value in call["env"].items() if value == "1"}
        assert "ROLLWISE_OWN" in left
        assert not left & {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "TORCHELASTIC_RUN_ID"}


def test_a_policy_that_could_not_be_made_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = SimpleNamespace(num_processes=2, is_local_main_process=True, local_main_process_first=nullcontext)
    monkeypatch.setattr(warm_start, "ranks_of_run", lambda: ranks)
    monkeypatch.setattr(warm_start.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    with pytest.raises(ConfigError, match="'embedded' could not be made"):
        warm_start.embedded_of(TrainConfig(task="reversal"), make_task("reversal"), Console())
