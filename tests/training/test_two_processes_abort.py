"""Two gloo ranks put the same rollouts to the same roulette, also those of a group that lies on both, and resume."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aborting import AT, head_file
from test_two_processes import torchrun
from toys import GROUP

from rollwise.inference.roulette import roulette_advantages


def test_two_ranks_abort_alike_and_resume(tmp_path: Path) -> None:
    head_file(tmp_path)
    torchrun(str(tmp_path), script="two_ranks_aborting.py")
    first, second = json.loads((tmp_path / "straight.json").read_text())
    assert first["parameters"] == second["parameters"]
    assert first["abort"] == second["abort"]
    assert second["trace"] == second["groups"] == []
    aborted = 0
    for groups, one, two in zip(first["groups"], first["trained"], second["trained"], strict=True):
        rewards, lengths, values, chances = (
            np.array(groups[name], dtype=float).ravel() for name in ("rewards", "lengths", "values", "chances")
        )
        assert len(rewards) == 3 * GROUP
        kept = ~np.isnan(rewards)
        aborted += int((~kept).sum())
        assert (lengths[~kept] == AT).all()
        expected = roulette_advantages(rewards, values, kept, chances, group=GROUP)
        for name, all_ranks in zip(("prefix", "suffix"), expected, strict=True):
            assert one[name] + two[name] == pytest.approx(all_ranks.tolist(), abs=1e-6), name
        assert one["lengths"] + two["lengths"] == lengths.tolist()
    assert aborted > 3

    torchrun(str(tmp_path), "resume", script="two_ranks_aborting.py")
    resumed: list[dict[str, Any]] = json.loads((tmp_path / "resumed.json").read_text())
    assert {r["parameters"] for r in resumed} == {first["parameters"]}
    assert {r["abort"] for r in resumed} == {first["abort"]}
    assert resumed[0]["trace"] == first["trace"][-len(resumed[0]["trace"]) :]
