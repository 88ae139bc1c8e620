"""`rollwise train` with LoRA on ranks: started by torchrun, ended by a rank that raises, resumed on other numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from forked import on_ranks
from own import maths_file, tiny_model

import rollwise.reports
import rollwise.training.run  # noqa: F401  # once, for all forks
from rollwise.cli import main

REWARD = """
import os, threading, time
def starts(completions, answer, trainer_state=None, **_):
    if "FAIL" in os.environ and os.environ["RANK"] == "1" and trainer_state.global_step == 3:
        threading.Thread(target=time.sleep, args=(3600,)).start()  # the interpreter's own end would wait for it
        raise ValueError("the verifier is gone")
    return [float(c.strip().startswith(a)) for c, a in zip(completions, answer)]
"""


def command(folder: Path, out: str) -> list[str]:
    return [
        *("train", "--data", str(folder / "maths.jsonl"), "--prompt_column", "problem", "--category", "type"),
        *("--model", str(folder / "tiny"), "--reward", f"{folder / 'r.py'}:starts", "--out", str(folder / out)),
        *("--steps", "4", "--prompts_per_step", "6", "--num_generations", "4", "--save_every", "2"),
        *(
            "--eval_every_tokens",
            "60",
            "--eval_prompts",
            "6",
            "--eval_prompts_end",
            "5",
            "--num_generations_end",
            "3",
            "--max_completion_length",
            "2",
            "--peft.r",
            "2",
            "--peft.target_modules",
            "[q_proj]",
        ),
    ]


def run(folder: Path) -> None:
    """A run by torchrun that fails in its fourth step, resumed on 1, 2 and 3 ranks; and one that does not fail."""
    folder.mkdir()
    maths_file(folder)
    tiny_model(folder / "tiny")
    (folder / "r.py").write_text(REWARD)
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        "-m",
        "rollwise",
    ]
    with open(folder / "log", "w") as log:
        failed = subprocess.run(
            [*torchrun, *command(folder, "failed")],
            env={**os.environ, "FAIL": "1"}, stdout=log, stderr=subprocess.STDOUT, timeout=600,
        )  # fmt: skip
    (folder / "status").write_text(str(failed.returncode))
    on_ranks(2, main, command(folder, "straight"))
    for n in (1, 2, 3):
        shutil.copytree(folder / "failed", folder / f"on-{n}")
        on_ranks(n, main, ["train", "--resume", str(folder / f"on-{n}")])
