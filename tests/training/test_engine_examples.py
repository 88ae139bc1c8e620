"""The configurations of examples/engines/trl: read by accelerate's own parser, and by a dry run of `rollwise train`."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands import launch
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env
from own import maths_file, tiny_model
from trl.scripts.vllm_serve import ScriptArguments, build_command, make_parser

from rollwise.cli import main
from rollwise.training.config import TrainConfig

TRL = Path(__file__).parents[2] / "examples/engines/trl"
README = (TRL / "README.md").read_text()
LAUNCHES = re.findall(r"(accelerate launch [^`]+)`", README)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in TRL.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    maths_file(tmp_path).rename(tmp_path / "my.jsonl")
    tiny_model(tmp_path / "tiny", window=8192)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[Any, dict[str, str]]]:
    """Accelerate's options of a command, and the environment in which it would start the ranks."""

    def run(command: str) -> tuple[Any, dict[str, str]]:
        started: list[tuple[Any, dict[str, str]]] = []
        multi, deep = prepare_multi_gpu_env, prepare_deepspeed_cmd_env
        monkeypatch.setattr(launch, "multi_gpu_launcher", lambda args: started.append((args, multi(args))))
        monkeypatch.setattr(launch, "deepspeed_launcher", lambda args: started.append((args, deep(args)[1])))
        launch.launch_command(launch.launch_command_parser().parse_args(shlex.split(command)[2:]))
        return started[0]

    return run


@pytest.mark.parametrize("command", LAUNCHES)
def test_it_is_launched_on_that_many_ranks_and_trains(
    command: str, small: Path, launched: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    args, environment = launched(command)
    if "zero3" in command:
        assert environment["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == "3"
        assert environment["ACCELERATE_DEEPSPEED_ZERO3_INIT"] == "true"
    if "fsdp2" in command:
        assert environment["FSDP_VERSION"] == "2"
        assert environment["FSDP_STATE_DICT_TYPE"] == "SHARDED_STATE_DICT"
    assert environment["ACCELERATE_MIXED_PRECISION"] == "bf16"
    processes = 6 if "server" in command else 8
    assert args.num_processes == processes

    assert (args.module, args.training_script) == (True, "rollwise")
    name, option, file = args.training_script_args
    assert (name, option) == ("train", "--config")
    config = TrainConfig.from_dict(yaml.safe_load(Path(file).read_text()))
    per_pass, passes = config.batch(processes)
    assert per_pass == config.micro_batch
    assert per_pass * passes * processes == config.prompts_per_step * config.num_generations
    assert main(["train", "--config", file, "--model", str(small / "tiny"), "--dry_run", "true"]) == 0
    assert "cost" in capsys.readouterr().out
    assert not (small / "runs").exists()


def test_every_file_is_in_a_command() -> None:
    assert {word for command in LAUNCHES for word in command.split() if word.endswith(".yaml")} == {
        path.name for path in TRL.glob("*.yaml")
    }
    assert README.count("Not run on GPUs") == 1
    assert all("ot run on GPUs" in path.read_text() for path in TRL.glob("*.yaml"))


def test_the_served_model_is_what_trl_serves() -> None:
    words = shlex.split(re.search(r"trl vllm-serve ([^`]+)`", README)[1])
    served = make_parser().parse_args_and_config(words)[0]
    assert isinstance(served, ScriptArguments)
    assert f"{served.tensor_parallel_size} {served.port}" == "2 8000"
    assert "Qwen/Qwen2.5-1.5B-Instruct" in build_command(served)
    assert yaml.safe_load((TRL / "train-vllm-server.yaml").read_text())["model"] == served.model
