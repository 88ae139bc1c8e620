"""Two gloo ranks judge a share each, agree on what was answered, and average one joint gradient."""

import json
from pathlib import Path

import pytest
from test_two_processes import torchrun


@pytest.mark.parametrize("kind", ["grpo", "rloo", "expected"])
def test_two_ranks_judge_and_learn_as_one(kind: str, tmp_path: Path) -> None:
    torchrun(str(tmp_path), kind, script="two_ranks_judging.py")
    first, second = json.loads((tmp_path / "ranks.json").read_text())
    for name in ("lessons", "answers", "straight", "resumed"):
        assert first[name] == second[name]
    assert first["straight"] == first["resumed"]
    assert len({tuple(map(tuple, answers)) for answers in first["answers"]}) > 1
    for rank in (first, second):
        assert max(rank["errors"]) < 2e-6
        assert min(rank["sizes"]) > 1e-4
