"""`rollwise watch` as a user types it."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rollwise.cli import main


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder as `rollwise train` leaves it after two of nine steps."""
    folder = tmp_path / "first"
    folder.mkdir()
    (folder / "config.yaml").write_text("task: countdown\ncurriculum: uniform\nseed: 0\nsteps: 9\n")
    rows = [{"step": s, "time": 1.0 * s, "wall_s": 1.0 * s, "tokens": 9 * s, "frac_mixed": 0.5} for s in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    group = {"step": 2, "lane": "uniform", "rewards": [0, 1], "prompt": "1→2", "texts": ["ü"]}
    (folder / "rollouts.jsonl").write_text(json.dumps(group) + "\n")
    return folder


def test_a_pipe_gets_one_snapshot(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(run)]) == 0
    text = capsys.readouterr().out
    assert "step 2/9" in text
    assert "\x1b" not in text


def test_a_run_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "none"), "--once"]) == 1
    assert "none' holds no run" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--every", "0"], ["--every", "1e9"]])
def test_options_out_of_their_range(arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(run), *arguments]) == 1
    assert "every must be a number in [0.1, 3600]" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_block_characters(encoding: str, run: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rollwise", "watch", str(run)],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    text = done.stdout.decode(encoding)
    assert "step 2/9" in text
    assert "1?2 -> " in text


@pytest.mark.parametrize("no_color", [False, True])
def test_in_a_terminal_until_ctrl_c(no_color: bool, run: Path) -> None:
    """A real process on a pseudo-terminal: it draws, Ctrl-C ends it with status 0, the terminal is as it was."""
    main_end, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    environment |= {"NO_COLOR": "1"} if no_color else {}
    process = subprocess.Popen(
        [sys.executable, "-m", "rollwise", "watch", str(run)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={name: value for name, value in environment.items() if no_color or name != "NO_COLOR"},
        preexec_fn=lambda: at_a_terminal(terminal),
    )
    os.close(terminal)
    seen = b""
    while "1→2".encode() not in seen:  # a prompt on the last line
        seen += os.read(main_end, 65536)
    os.write(main_end, b"\x03")
    while part := read_or_end(main_end):
        seen += part
    assert process.wait() == 0
    text = seen.decode()
    assert "step 2/9" in text
    assert "Traceback" not in text
    assert text.rindex("\x1b[?1049l") > text.rindex("\x1b[?1049h")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert ("\x1b[32m" in text) != no_color


def at_a_terminal(terminal: int) -> None:
    """In the child: Ctrl-C reaches it as a signal, which a job in the background is born to ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.login_tty(terminal)


def read_or_end(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end was closed: Linux's way to say that nothing more comes
        return b""
