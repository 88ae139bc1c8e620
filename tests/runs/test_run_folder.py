"""Logs roll back to the step from which a run resumes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rollwise as rw
from rollwise.errors import StateFileError
from rollwise.runs.folder import RunFolder
from rollwise.runs.lines import clean
from rollwise.runs.log_ends import read_log
from rollwise.training.config import TrainConfig


def test_rolling_back_keeps_each_step_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.append(folder.metrics, [{"step": s, "rollouts": 10 * s, "tokens": 7 * s, "wall_s": s / 2} for s in range(6)])
    folder.append(folder.rollouts, [{"step": s, "ticket": f"t{s}"} for s in (1, 1, 2, 3, 3, 4, 5)])
    with open(folder.rollouts, "a") as file:
        file.write('{"step": 6, "tick')  # killed while writing
    totals = folder.roll_back(3)
    assert (totals.rollouts, totals.tokens, totals.wall_s) == (30, 21, 1.5)
    assert [json.loads(line)["step"] for line in folder.rollouts.read_text().splitlines()] == [1, 1, 2, 3, 3]
    assert [json.loads(line)["step"] for line in folder.metrics.read_text().splitlines()] == [0, 1, 2, 3]
    assert folder.roll_back(-1).rollouts == 0
    assert folder.metrics.read_text() == ""


def test_a_log_that_cannot_be_rewritten_is_named_and_not_its_scratch_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(old: str, new: str) -> None:
        raise OSError(28, "No space left on device", str(old), None, str(new))

    folder = RunFolder(tmp_path)
    folder.append(folder.metrics, [{"step": 1}, {"step": 2}])
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left") as raised:
        folder.roll_back(1)
    assert (raised.value.filename, raised.value.filename2) == (str(folder.metrics), None)
    assert folder.metrics.read_text().count("step") == 2


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.metrics.write_text('{"step": 1}\nnot json\n{"step": 3}\n')
    with pytest.raises(rw.StateFileError, match=r"metrics.jsonl.*line 2"):
        folder.roll_back(2)
    assert "not json" in folder.metrics.read_text()  # nothing is thrown away


def test_a_second_process_can_not_train_into_the_same_folder(tmp_path: Path) -> None:
    """Until the first is gone, killed or not; a child that it forked meanwhile does not go on holding it."""
    code = (
        "import multiprocessing, sys, time\nfrom rollwise.runs.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).held():\n"
        "    child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n    child.start()\n"
        "    print(child.pid, flush=True)\n    time.sleep(60)\n"
    )
    folder = RunFolder(tmp_path / "run")
    with subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        child = int(other.stdout.readline())
        try:
            with pytest.raises(StateFileError, match="another process is training into .*run"), folder.held():
                pass
        finally:
            other.kill()
            other.wait()
        with folder.held():
            assert folder.path.exists()
        os.kill(child, signal.SIGKILL)
    with folder.held():
        pass


def test_values_become_plain_json() -> None:
    line = {
        "a": np.float32(0.1),
        "b": float("nan"),
        "c": [np.int64(3)],
        "d": {"e": True},
        "f": Path("x"),
        "t": 1.7e9 + 0.25,
    }
    assert clean(line) == {"a": 0.1, "b": None, "c": [3], "d": {"e": True}, "f": "x", "t": 1.7e9 + 0.25}


@pytest.mark.parametrize(
    ("processes", "micro", "expected"), [(1, 512, (512, 1)), (1, 200, (128, 4)), (2, 512, (256, 1)), (1, 7, (4, 128))]
)
def test_a_steps_rollouts_are_shared_out_evenly(processes: int, micro: int, expected: tuple[int, int]) -> None:
    assert TrainConfig(micro_batch=micro).batch(processes) == expected


def test_a_pretrained_model_has_eight_rollouts_in_a_pass_unless_told(tmp_path: Path) -> None:
    """512 answers of 512 tokens from a vocabulary of 150,000 are 80 GB of logits in half precision."""
    assert TrainConfig(model="path/or/hub-id").batch(1) == (8, 64)
    assert TrainConfig(model="path/or/hub-id").eval_batch(1) == 64
    assert TrainConfig(model="path/or/hub-id", micro_batch=32).batch(1) == (32, 16)
    assert TrainConfig(model="path/or/hub-id", micro_batch=8, num_generations_eval=5).eval_batch(1) == 60
    small = {"prompts_per_step": 4, "num_generations": 4, "num_generations_eval": 4}
    assert TrainConfig(model="path/or/hub-id", micro_batch=8, **small).eval_batch(1) == 16  # training makes no more
    assert TrainConfig(model="path/or/hub-id", micro_batch=128).eval_batch(1) == 128
    assert TrainConfig(num_generations_eval=3).eval_batch(1) == 510
    assert TrainConfig().batch(1) == (512, 1)
    (tmp_path / "rollwise.json").touch()  # the folder of an embedded policy that was warm-started before
    assert TrainConfig(model=str(tmp_path)).batch(1) == (512, 1)


def test_paths_become_texts_which_the_runs_folder_can_hold() -> None:
    config = TrainConfig(model=Path("a/b"), out=Path("runs/c"), profile=Path("d"))  # type: ignore[arg-type]
    assert (config.model, config.out, config.profile) == (str(Path("a/b")), str(Path("runs/c")), "d")


def test_rollouts_that_can_not_be_shared() -> None:
    with pytest.raises(rw.ConfigError, match="3 processes"):
        TrainConfig().batch(3)


@pytest.mark.parametrize(
    "options",
    [{"steps": 0}, {"num_generations": 1}, {"learning_rate": 0}, {"temperature": -1}, {"trainer": "ppo"}, {"seed": -1}]
    + [{"advantages": "raw"}, {"eval_prompts": 1.5}, {"max_completion_length": 0}]
    + [{"model": 5}, {"model": ""}, {"task": ""}, {"out": 3}, {"profile": ["a"]}, {"task_options": [1]}],
)
def test_bad_options_are_named(options: dict) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        TrainConfig(**options)
    with pytest.raises(rw.ConfigError, match="stesp"):
        TrainConfig.from_dict({"stesp": 3})


def test_a_run_of_before_loads_unless_it_aborted_rollouts() -> None:
    assert TrainConfig.from_dict({"steps": 3, "abort": None}) == TrainConfig(steps=3)
    with pytest.raises(
        rw.ConfigError, match=r"^abort \{.head.: .h.\}: training-time abort was removed.*train anew without"
    ):
        TrainConfig.from_dict({"steps": 3, "abort": {"head": "h"}})


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_a_users_own_script_gets_a_run_folder_and_a_report(tmp_path: Path) -> None:
    from toys import PROMPTS, make_trainer, toy_dataset

    from rollwise.reports import write_report
    from rollwise.training import Recorder, RunFolder

    folder = RunFolder(tmp_path / "run")
    options = {"max_steps": 3, "eval_dataset": toy_dataset(4), "eval_strategy": "steps", "eval_steps": 2}
    trainer = make_trainer(tmp_path / "out", steps_per_generation=1, accumulate=1, **options)
    Recorder(folder, evaluate_first=True).attach(trainer)
    trainer.train()
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [line["step"] for line in metrics] == [0, 1, 2, 3]
    assert [line["step"] for line in metrics if "eval/pass@1" in line] == [0, 2, 3]  # and the last step
    assert len(folder.rollouts.read_text().splitlines()) == 3 * PROMPTS
    assert "<svg" in write_report(folder.path).read_text()


def test_a_line_torn_within_a_character_is_torn(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.append(folder.metrics, [{"step": 1, "text": "\u00e9"}])
    with open(folder.metrics, "ab") as file:
        file.write(b'{"step": 2, "text": "\xc3')
    folder.roll_back(5)
    assert [line["step"] for _, line in read_log(folder.metrics)] == [1]
