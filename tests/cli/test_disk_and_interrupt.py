"""A disk that takes no more and Ctrl-C end `train` in one line that says how to go on; and then it does."""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from processes import Command

from rollwise.cli.main import main
from rollwise.cli.train import _report
from rollwise.errors import StateFileError

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.usefixtures("no_figures")

LIMITED = """
import os, resource, subprocess, sys
said = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # what is said has no limit
for number in (1, 2):
    os.dup2(said.stdin.fileno(), number)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
from rollwise.cli.main import main
status = main(sys.argv[1:])
sys.stdout.flush()
os.closerange(1, 3)
said.communicate()
os._exit(status)
"""


def last_line(text: str) -> str:
    assert "Traceback" not in text, text[-3000:]
    return text.strip().splitlines()[-1]


@pytest.mark.parametrize("where", ["logs", "optimizer"])
@pytest.mark.slow
def test_a_disk_that_takes_no_more(where: str, policy: Path, options: list[str], tmp_path: Path) -> None:
    """A limit of file sizes stands for a full disk: the optimizer's file is twice as large as the weights."""
    run = tmp_path / "run"
    limit = 2_000 if where == "logs" else (policy / "model.safetensors").stat().st_size + 10_000
    command = Command(*options, "--out", str(run), code=LIMITED.format(limit=limit))
    assert command.wait() == 1, command.said[-3000:]
    line = last_line(command.said)
    assert re.search(r"^rollwise: '.*run/.*' can't be written .*rollwise train --resume .*/run goes on$", line), line
    assert main(["train", "--resume", str(run)]) == 0


@pytest.mark.slow
def test_after_ctrl_c_the_line_names_what_goes_on(options: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = Command(*options, "--steps", "400", "--out", str(run))  # it must not end before
    command.wait_until((run / "rollouts.jsonl").exists)
    command.send(signal.SIGINT)
    assert command.wait() == 130, command.said[-3000:]
    said = command.said
    assert last_line(said) == f"rollwise: interrupted; what was saved is kept: rollwise train --resume {run} goes on"


def test_other_commands_and_runs_not_begun_go_on_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rollwise.cli import commands

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run_command", interrupted)
    assert main(["curricula"]) == 130
    assert capsys.readouterr().err.endswith("what was saved is kept: the same command goes on\n")
    run = tmp_path / "run"
    assert main(["train", "--out", str(run)]) == 130  # there is nothing to resume
    assert capsys.readouterr().err.endswith("the same command begins the run\n")
    run.mkdir()
    (run / "config.yaml").touch()
    (tmp_path / "my.yaml").write_text(f"out: {run}\n")
    for words in (
        ["--out", str(run)],
        [f"--out={run}"],
        ["--config", str(tmp_path / "my.yaml")],
        ["--resume", str(run)],
    ):
        assert main(["train", *words]) == 130
        assert capsys.readouterr().err.endswith(f"rollwise train --resume {run} goes on\n")
    monkeypatch.chdir(tmp_path)
    run.rename("runs")
    Path("runs/countdown-recommended-seed7").mkdir()
    Path("runs/config.yaml").rename("runs/countdown-recommended-seed7/config.yaml")
    assert main(["train", "--seed", "7"]) == 130
    assert capsys.readouterr().err.endswith("rollwise train --resume runs/countdown-recommended-seed7 goes on\n")


def test_a_page_that_can_not_be_written_is_no_run_to_be_made_again(
    tmp_path: Path,
) -> None:
    """`train --out` is the run's folder, so the page's own remedy was no help."""
    run = tmp_path / "run"
    shutil.copytree(Path(__file__).parents[1] / "simulation/data/uniform-run", run)
    (run / "report.html").mkdir()
    os.utime(run / "report.html", (0, 0))  # older than the run, so that it is to be written
    with pytest.raises(StateFileError, match=rf"'{run}' is trained and kept, but .*: rollwise report {run} --out FILE"):
        _report(run)
