"""The embedded policy as a run gets it: made once, with a bar; from the cache without."""

import io
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from rollwise.models import EmbeddedConfig, embedded_policy, sources
from rollwise.tasks import make_task
from rollwise.training import parts

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)


def test_a_bar_names_the_task_while_the_policy_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = partial(embedded_policy, config=TINY, cache_dir=tmp_path)
    monkeypatch.setitem(sources._MAKERS, "embedded", make)
    task, shown = make_task("reversal", longest=4), (io.StringIO(), io.StringIO())
    first, second = (
        parts.make_embedded("embedded", task, Console(file=out, force_terminal=True, width=100)) for out in shown
    )
    assert first == second
    assert (first / "config.json").is_file()
    assert "warm start: reversal" in shown[0].getvalue()
    assert "warm start" not in shown[1].getvalue()
