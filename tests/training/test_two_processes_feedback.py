"""What needs every rank's rollouts of a step: gains told after it, and posterior advantages."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["feedback", "posterior"])
def test_two_ranks_agree_and_resume(two_processes: Callable[[str], Path], name: str) -> None:
    folder = two_processes(name)
    straight, resumed = (json.loads((folder / f"{run}.json").read_text()) for run in ("straight", "resumed"))
    assert straight[0]["learnt"] == resumed[0]["learnt"]
    assert (name == "feedback") == bool(straight[0]["learnt"] and any(straight[0]["learnt"]))
    assert straight[1]["learnt"] is None
    assert len({rank["parameters"] for rank in (*straight, *resumed)}) == 1
