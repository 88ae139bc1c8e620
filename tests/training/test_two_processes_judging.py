"""Two gloo ranks judge a share each, agree on what was answered, and average one joint gradient."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize("kind", ["grpo", "rloo", "expected"])
@pytest.mark.slow
def test_two_ranks_judge_and_learn_as_one(kind: str, two_processes: Callable[[str], Path]) -> None:
    first, second = json.loads((two_processes(f"judging-{kind}") / "ranks.json").read_text())
    for name in ("lessons", "answers", "losses", "straight", "resumed"):
        assert first[name] == second[name]
    assert first["straight"] == first["resumed"]
    assert len({tuple(map(tuple, answers)) for answers in first["answers"]}) > 1
    for rank in (first, second):
        assert max(rank["errors"]) < 2e-6
        assert min(rank["sizes"]) > 1e-4
