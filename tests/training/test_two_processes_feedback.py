"""Gains told after a step and posterior advantages need every rank's rollouts; prompts are read on rank 0 alone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["feedback", "posterior", "hive", "prepo"])
def test_two_ranks_agree_and_resume(two_processes: Callable[[str], Path], name: str) -> None:
    folder = two_processes(name)
    straight, resumed = (json.loads((folder / f"{run}.json").read_text()) for run in ("straight", "resumed"))
    assert straight[0]["learnt"] == resumed[0]["learnt"]
    assert (name != "posterior") == bool(straight[0]["learnt"] and any(straight[0]["learnt"]))
    assert straight[1]["learnt"] is None
    assert len({rank["parameters"] for rank in (*straight, *resumed)}) == 1
