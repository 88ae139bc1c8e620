"""Two gloo ranks train on one choice, and resume exactly."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from toys import GROUP, PROMPTS, toy_dataset

from rollwise.pool import content_id

HERE = Path(__file__).parent


def torchrun(*arguments: str, script: str = "two_ranks.py") -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    path = os.pathsep.join([*map(str, (HERE, HERE / "generation", HERE / "trainer")), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "ACCELERATE_USE_CPU": "true"}
    done = subprocess.run(
        [*command, str(HERE / script), *arguments], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_both_ranks_train_on_the_same_choice_and_resume(tmp_path: Path) -> None:
    torchrun(str(tmp_path))
    first, second = json.loads((tmp_path / "straight.json").read_text())
    assert (first["rank"], second["rank"]) == (0, 1)
    assert first["parameters"] == second["parameters"]
    assert second["trace"] == []  # rank 0 alone asks and is told
    prompt_of = {content_id(row["prompt"]): row["prompt"] for row in toy_dataset()}
    asked = [what for kind, what in first["trace"] if kind == "ask"]
    assert len(asked) == 4
    for step, ids in enumerate(asked):
        chosen = [prompt_of[i] for i in ids for _ in range(GROUP)]
        assert len(set(ids)) == PROMPTS
        assert first["seen"][step] + second["seen"][step] == chosen  # each rank its own contiguous slice

    torchrun(str(tmp_path), "resume")
    resumed: list[dict[str, Any]] = json.loads((tmp_path / "resumed.json").read_text())
    assert resumed[0]["trace"] == first["trace"][4:]
    assert {r["parameters"] for r in resumed} == {first["parameters"]}
