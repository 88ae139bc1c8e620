"""`rollwise train` with LoRA on ranks: started by torchrun, ended by a rank that raises, resumed on other numbers."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from pathlib import Path

from forked import on_ranks, torchrun
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
        *("--eval_every_tokens", "60", "--eval_prompts", "6", "--eval_prompts_end", "5", "--num_generations_end", "3"),
        *("--max_completion_length", "2", "--peft.r", "2", "--peft.target_modules", "[q_proj]"),
    ]


def fail(folder: Path) -> None:
    """A run by torchrun whose rank 1 raises in its fourth step; what all of it says goes to a file."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(log, number)
    os.environ["FAIL"] = "1"
    torchrun("--standalone", "--nproc_per_node", "2", "-m", "rollwise", *command(folder, "failed"))


def run(folder: Path) -> None:
    """A run by torchrun that fails in its fourth step, resumed on 1, 2 and 3 ranks; and one that does not fail."""
    folder.mkdir()
    maths_file(folder)
    tiny_model(folder / "tiny")
    (folder / "r.py").write_text(REWARD)
    failed = multiprocessing.get_context("fork").Process(target=fail, args=(folder,))
    failed.start()
    failed.join()
    (folder / "status").write_text(str(failed.exitcode))
    on_ranks(2, main, command(folder, "straight"))
    for n in (1, 2, 3):
        shutil.copytree(folder / "failed", folder / f"on-{n}")
        on_ranks(n, main, ["train", "--resume", str(folder / f"on-{n}")])
