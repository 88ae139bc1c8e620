"""Two gloo ranks leave rollouts without an advantage out of the update."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.slow
def test_both_ranks_take_as_many_rollouts_and_make_the_same_update(two_processes: Callable[[str], Path]) -> None:
    first, second = json.loads((two_processes("skipping") / "skipping.json").read_text())
    assert first["parameters"] == second["parameters"]
    assert max(first["apart"], second["apart"]) < 2e-6
    assert first["rows"] == second["rows"]
    assert first["all_rows"] == [1] * 24
    assert 3 <= len(first["rows"]) < 24
