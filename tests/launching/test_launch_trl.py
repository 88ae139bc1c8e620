"""`rollwise launch --engine trl`: the command, a run on two ranks, and its resume."""

import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import Command, ranks

from rollwise.cli import main, train
from rollwise.launching.command import Command as Launched
from rollwise.models import EmbeddedConfig
from rollwise.models.embedded import build_policy
from rollwise.models.loading import save_policy
from rollwise.runs.folder import RunFolder
from rollwise.tasks.countdown.task import Countdown
from rollwise.training import run
from rollwise.training.config import TrainConfig
from rollwise.yaml_file import read_yaml

BASE = "task: countdown\nprompts_per_step: 4\neval_prompts: 0\nsave_every: 1\nsteps: 1\n"


def _file(tmp_path: Path, more: str = "") -> str:
    path = tmp_path / "my.yaml"
    path.write_text(BASE + f"out: {tmp_path / 'run'}\n" + more)
    return str(path)


def test_the_command_is_torchruns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert main(["launch", path, "--engine", "trl", "--nproc", "2", "--dry-run", "true", "--", "--steps", "3"]) == 0
    said = capsys.readouterr().out.split()
    assert said[0] == "OMP_NUM_THREADS=1"
    assert said[2:8] == ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    assert said[8:] == ["rollwise", "train", "--config", path, "--steps", "3"]
    assert not (tmp_path / "run").exists()


def test_the_words_behind_decide_whether_the_processes_can_share_a_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["launch", _file(tmp_path), "--engine", "trl", "--nproc", "3", "--dry_run", "true"]
    assert main([*command, "--", "--prompts_per_step", "6"]) == 0
    assert main([*command, "--", "--prompts_per_step", "5"]) == 1
    assert "40 rollouts can't be shared by 3 processes" in capsys.readouterr().err


def test_a_dry_run_says_what_it_did_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path)
    assert main(["launch", path, "--engine", "trl", "--nproc", "1", "--dry_run", "true"]) == 0
    assert f"`rollwise train --config {path} --dry_run` checks data and model too" in capsys.readouterr().err


def test_a_learning_rate_of_the_embedded_policy_is_noted_for_verl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sums.jsonl").write_text("".join(f'{{"prompt": "{i}+1=", "answer": "{i + 1}"}}\n' for i in range(40)))
    path = tmp_path / "own.yaml"
    for rate, noted in (("", True), ("learning_rate: 1.0e-6\n", False)):
        path.write_text(
            f'data: {tmp_path}/sums.jsonl\nreward: exact\nsystem: ""\nmodel: some/model\nprompts_per_step: 4\n{rate}'
        )
        assert main(["launch", str(path), "--engine", "verl", "--nproc", "1", "--dry_run", "true"]) == 0
        assert ("note: learning rate 0.0003 is for the embedded policy" in capsys.readouterr().err) == noted


def test_prompts_that_verl_can_t_take_are_refused_before_all_are_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    records = Countdown.train_records

    def counted(self: Countdown, count: int, seed: int) -> list[dict[str, Any]]:
        made.append(count)
        return records(self, count, seed)

    monkeypatch.setattr(Countdown, "train_records", counted)
    recipe = str(Path(__file__).parents[2] / "examples/launch/sec-3b-countdown.yaml")
    assert main(["launch", recipe, "--engine", "verl", "--nproc", "1", "--dry_run", "true"]) == 1
    assert "verl takes chat messages" in capsys.readouterr().err
    assert made == [1]


def test_one_process_needs_no_torchrun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", _file(tmp_path), "--engine", "trl", "--nproc", "1", "--dry_run", "true"]) == 0
    assert "torch.distributed" not in capsys.readouterr().out


def test_engine_options_are_torchruns_and_not_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, "engine_options: {rdzv_endpoint: 'host:1', nnodes: 2}\n")
    assert main(["launch", path, "--engine", "trl", "--nproc", "2", "--dry_run", "true"]) == 0
    said = capsys.readouterr().out
    assert "--rdzv_endpoint host:1 --nnodes 2" in said
    assert "train.yaml" in said


def test_verls_keys_are_refused_before_torchrun_is_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were written out as `--data '{...}'`, and torchrun ended with its usage."""
    path = _file(tmp_path, "engine_options: {data: {max_prompt_length: 1024}}\n")
    assert main(["launch", path, "--engine", "trl", "--nproc", "2", "--dry_run"]) == 1
    said = capsys.readouterr().err
    assert "engine_options.data is {'max_prompt_length': 1024}" in said
    assert "torchrun" in said


def test_the_command_that_is_shown_is_the_one_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words with `=` were moved to the end: torchrun's rdzv_conf lost its value, and `rollwise train` got it."""
    path = _file(tmp_path, "engine_options: {rdzv_conf: timeout=900, nnodes: 2}\n")
    words = ["--seed=3", "--model", "a b"]
    assert main(["launch", path, "--engine", "trl", "--nproc", "2", "--dry_run", "true", "--", *words]) == 0
    said = shlex.split(capsys.readouterr().out.replace("\\\n", ""))
    assert said[1 + said.index("--rdzv_conf")] == "timeout=900"
    assert said[-3:] == words
    assert said[said.index("train") + 1 :][:2] == ["--config", str(tmp_path / "run/train.yaml")]


def test_a_run_that_torchrun_starts_again_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`max_restarts` was of no use: each further start ended with "holds a run already"."""
    went_on: list[str] = []
    monkeypatch.setattr(run, "resume_run", lambda folder, **_: went_on.append(folder) or Path(folder))
    monkeypatch.setattr(train, "_report", lambda folder: None)
    command = ["train", "--config", _file(tmp_path)]
    RunFolder(tmp_path / "run").write_config(TrainConfig.from_dict(read_yaml(command[-1])).to_dict())
    assert main(command) == 1
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert main(command) == 0
    assert went_on == [str(tmp_path / "run")]
    capsys.readouterr()
    assert main([*command, "--seed", "1"]) == 1  # of another run
    assert "holds a run already" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "launch"])
def test_an_interrupted_run_goes_on_by_the_command_that_began_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a launched run `rollwise train --resume` was said, which goes on in one process."""

    def interrupted(config: TrainConfig) -> None:
        RunFolder(config.folder).write_config(config.to_dict())
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "start_run", interrupted)
    if command == "launch":
        (tmp_path / "run").mkdir()
        (tmp_path / "run/launch.yaml").write_text("engine: trl\nnproc: 2\nnnodes: 1\n")
    assert main(["train", "--config", _file(tmp_path)]) == 130
    assert f"rollwise {command} --resume {tmp_path / 'run'} goes on" in capsys.readouterr().err


def test_a_resumed_run_may_go_on_on_other_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--nnodes was ignored without --nproc, and with it, where it was not given, one machine was taken."""
    (tmp_path / "config.yaml").write_text("task: countdown\n")
    (tmp_path / "launch.yaml").write_text("engine: trl\nnproc: 2\nnnodes: 2\n")
    for words, nnodes, nproc in (
        ([], "2", "2"),
        (["--nnodes", "4"], "4", "2"),
        (["--nproc", "4"], "2", "4"),
        (["--nproc", "4", "--nnodes", "4"], "4", "4"),
    ):
        assert main(["launch", "--resume", str(tmp_path), *words, "--dry_run", "true"]) == 0
        said = capsys.readouterr().out.split()
        assert [said[1 + said.index(name)] for name in ("--nnodes", "--nproc_per_node")] == [nnodes, nproc]
    assert main(["launch", "--resume", str(tmp_path), "--nproc", "3", "--nnodes", "1", "--dry_run", "true"]) == 1
    assert "512 rollouts can't be shared by 3 processes" in capsys.readouterr().err


def test_a_dry_run_of_a_resume_names_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It named `rollwise train --config None --dry_run`."""
    (tmp_path / "config.yaml").write_text("task: countdown\n")
    (tmp_path / "launch.yaml").write_text("engine: trl\nnproc: 1\nnnodes: 1\n")
    assert main(["launch", "--resume", str(tmp_path), "--dry_run"]) == 0
    assert capsys.readouterr().err == "nothing was run, and only the options were checked\n"


def test_switches_of_torchrun_and_the_users_threads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that is off was given as `False`, which torchrun takes for the script; threads were set back to 1."""
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    path = _file(tmp_path, "engine_options: {no_python: false, log_dir: null, run_path: true, node_rank: 0}\n")
    assert main(["launch", path, "--engine", "trl", "--nproc", "2", "--dry_run", "true"]) == 0
    said = capsys.readouterr().out.split()
    assert said[0] == "OMP_NUM_THREADS=6"
    assert said[6 : said.index("-m", 4)] == ["--run_path", "--node_rank", "0"]


def test_empty_engine_options_are_not_trains_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So does the file that `--print_config` prints have them, and `rollwise train` refused it."""
    path = _file(tmp_path, "engine_options: {}\n")
    assert main(["launch", path, "--engine", "trl", "--nproc", "1", "--dry_run", "true"]) == 0
    said = capsys.readouterr().out
    assert str(tmp_path / "run/train.yaml") in said
    assert path not in said


def test_words_that_name_another_folder_are_noted_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`launch.yaml` once stood in the folder of the file's options, and `--resume` did not find it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Launched, "run", lambda self: 0)
    Path("my.yaml").write_text(BASE + "curriculum_options: {candidate_multiplier: 2}\n")
    words = ["--curriculum", "bots", "--seed=1", "--curriculum-options.sampling", "mean"]
    assert main(["launch", "my.yaml", "--engine", "trl", "--nproc", "1", "--", *words]) == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["countdown-bots-seed1"]
    assert read_yaml("runs/countdown-bots-seed1/launch.yaml")["overrides"] == words
    with pytest.raises(SystemExit):
        main(["launch", "my.yaml", "--engine", "trl", "--nproc", "1", "--", "--sed", "1"])
    assert "--seed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 1, "CONFIG, or --resume RUN"),
        (["{file}"], 1, "--engine is missing: add --engine trl or --engine verl"),
        (["{file}", "--engine", "trl", "--nproc", "0"], 1, "nproc"),
        (["{file}", "--print_config", "--", "--seed", "1"], 1, "write what stands behind -- into it"),
        (["{file}", "--engine", "trl", "--nproc", "3"], 1, "32 rollouts can't be shared by 3 processes"),
        (["missing.yaml", "--engine", "trl"], 1, "missing.yaml"),
        (["--resume", "{out}"], 1, "no run that was launched"),
        (["{file}", "--engine", "verl", "--dry_run", "true"], 1, "verl can't load the embedded policy"),
    ],
)
def test_what_is_wrong_is_one_line(
    words: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _file(tmp_path)
    assert main(["launch", *(word.format(file=file, out=tmp_path / "run") for word in words)]) == status
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()  # `--resume` of a run that is not there made its folder


def test_an_unknown_engine_is_a_wrong_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["launch", _file(tmp_path), "--engine", "vrel"])
    assert ended.value.code == 2
    assert "--engine must be 'trl', 'verl' or None, got 'vrel' (did you mean 'verl'?)" in capsys.readouterr().err


def test_a_run_of_another_engine_is_not_trained_on_by_trl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("steps: 1\n")
    (tmp_path / "launch.yaml").write_text("engine: verl\nnproc: 1\nnnodes: 1\n")
    assert main(["train", "--resume", str(tmp_path)]) == 1
    assert f"rollwise launch --resume {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "engine is None"),
        ("- trl\n", "engine is None"),
        ("engine: trl\nnproc: many\nnnodes: 1\n", "nproc is 'many'"),
        ("engine: trl\nnproc: 1\n", "nnodes is None"),
        ("engine: trl\nnproc: 1\nnnodes: 1\nengine_options: [a]\n", "engine_options is ['a']"),
        ("engine: verl\nnproc: 1\nnnodes: 1\noverrides: 3\n", "overrides is 3"),
    ],
)
@pytest.mark.parametrize("command", ["train", "launch"])
def test_a_damaged_note_of_the_launch_is_named(
    command: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("steps: 1\n")
    (tmp_path / "launch.yaml").write_text(text)
    assert main([command, "--resume", str(tmp_path)]) == 1
    assert f"launch.yaml' is damaged: {said}; put back what `rollwise launch` wrote" in capsys.readouterr().err


def test_a_wrong_option_is_named_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", _file(tmp_path, "stepz: 3\n"), "--engine", "trl"]) == 1
    said = capsys.readouterr().err
    assert "'stepz'" in said
    assert "my.yaml" in said


def test_signals_reach_the_engine() -> None:
    """Ctrl-C killed the engine's own process, and another signal the launcher alone: the workers trained on."""
    code = "from rollwise.launching.command import Command; import os, sys; print(os.getpid()); "
    code += "Command([sys.executable, '-c', 'import os; print(os.getpid()); exit(7)']).run()"
    launcher = subprocess.Popen([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE)
    said, _ = launcher.communicate()
    assert said.split() == [str(launcher.pid)] * 2
    assert launcher.returncode == 7


TORCHRUN = """
import os, sys
from forked import torchrun
from rollwise.cli import main

def here(program, words, environment):
    # In place of exec, and a new interpreter for torchrun.
    assert words[1:3] == ["-m", "torch.distributed.run"], words
    os.environ.update(environment)
    torchrun(*words[3:])

os.execvpe = here
sys.exit(main(sys.argv[1:]))
"""


def test_two_ranks_train_and_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32)
    save_policy(*build_policy(small), tmp_path / "policy")  # the command's own would have to be warm-started
    few = "num_prompts: 8\nnum_generations: 2\nmax_completion_length: 4\n"
    path = _file(tmp_path, f"model: {tmp_path / 'policy'}\n{few}")
    first = Command("launch", path, "--engine", "trl", "--nproc", "2", code=TORCHRUN)
    assert first.wait() == 0, first.said[-2000:]
    assert read_yaml(tmp_path / "run/launch.yaml")["nproc"] == 2
    assert main(["launch", path, "--engine", "trl"]) == 1
    assert "holds a run already" in capsys.readouterr().err
    resume = ["launch", "--resume", str(tmp_path / "run"), "--dry_run", "true", "--", "--steps", "2"]
    assert main(resume) == 0
    torchrun, resumed = capsys.readouterr().out.split(" -m rollwise ")
    assert torchrun.endswith("-m torch.distributed.run --standalone --nproc_per_node 2")
    both = ranks(2, *shlex.split(resumed))
    assert [rank.wait() for rank in both] == [0, 0], both[0].said[-2000:]
    lines = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert all(len(line["texts"]) == len(line["rewards"]) == 2 for line in lines)
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == [1, 2]
    assert (tmp_path / "run/report.html").exists()


def test_without_verl_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder was made, verl was missing, and the same command was refused, as it "holds a run already"."""
    if importlib.util.find_spec("verl") is not None:
        pytest.skip("verl is here")
    (tmp_path / "d.jsonl").write_text("".join(f'{{"prompt": "{i}+1=", "answer": "{i + 1}"}}\n' for i in range(40)))
    options = {"data": str(tmp_path / "d.jsonl"), "reward": "exact", "model": "Qwen/none", "system": "", "steps": 1}
    path, out = tmp_path / "my.yaml", tmp_path / "run"
    path.write_text(yaml.safe_dump({**options, "prompts_per_step": 8, "learning_rate": 1e-6, "out": str(out)}))
    command = ["launch", str(path), "--engine", "verl", "--nproc", "1"]
    assert main(command) == 1
    assert "verl is not installed here" in capsys.readouterr().err
    assert not out.exists()
    (tmp_path / "here/verl").mkdir(parents=True)  # a clone of verl, say, which Python takes for a namespace
    monkeypatch.syspath_prepend(tmp_path / "here")
    assert main([*command, "--dry_run"]) == 0
    assert "verl is not installed here, so its keys were not checked" in capsys.readouterr().err
    assert main(command) == 1
    assert not out.exists()
