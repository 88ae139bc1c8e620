"""Groups of different size on two processes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from allocated import SIZES


@pytest.mark.slow
def test_two_ranks_train_on_groups_of_different_size_and_resume(two_processes: Callable[[str], Path]) -> None:
    folder = two_processes("allocated")
    straight, resumed = (json.loads((folder / f"{name}.json").read_text()) for name in ("straight", "resumed"))
    assert straight[0]["sizes"] == [list(SIZES)] * 3
    assert resumed[0]["sizes"] == [list(SIZES)]
    assert straight[0]["told"] == resumed[0]["told"] == 3 * sum(SIZES)
    assert straight[1]["told"] is None
    assert len({rank["parameters"] for rank in (*straight, *resumed)}) == 1


@pytest.mark.parametrize("way", ["gate", "screening", "rounds"])
@pytest.mark.slow
def test_two_ranks_train_on_the_budget_of_groups_made_in_parts_and_resume(
    way: str, two_processes: Callable[[str], Path]
) -> None:
    folder = two_processes(f"allocated-{way}")
    straight, resumed = (json.loads((folder / f"{name}.json").read_text()) for name in ("straight", "resumed"))
    assert straight[0]["used"] == [16] * 3
    assert straight[0]["sizes"][2:] == resumed[0]["sizes"]
    assert len({n for sizes in straight[0]["sizes"] for n in sizes}) > 1
    assert straight[0]["told"] == resumed[0]["told"]
    assert len({rank["parameters"] for rank in (*straight, *resumed)}) == 1
