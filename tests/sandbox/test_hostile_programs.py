"""No hostile program gets out, stalls, or scores more than 0, and each has a reason."""

import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sandbox.hostile import CALLED, READING, READS, RIGHT

from rollwise.sandbox import Limits
from rollwise.sandbox.programs import Score, score_program

LIMITS = Limits(seconds=0.8, memory=256, processes=8, output=64, disk=2)
ASSERTIONS = json.dumps(
    {"kind": "asserts", "code": "assert double(1234567) == 2469134\nassert abs(double(2) - 4) < 1e-6"}
)
INPUTS = json.dumps({"kind": "stdin", "cases": [["1234567\n", "2469134\n"]]})


@pytest.fixture(scope="module")
def scores(sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Score]:
    folder = tmp_path_factory.mktemp("machine")
    folder.chmod(0o777)
    (folder / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(4) as threads:
        names = {"FOLDER": str(folder), "PORT": str(server.getsockname()[1])}

        def score(program: str, tests: str) -> Score:
            for name, value in names.items():
                program = program.replace(name, value)
            return score_program(f"```python\n{program}\n```", tests, limits=LIMITS)

        programs = [(one, ASSERTIONS) for one in CALLED.values()] + [(one, INPUTS) for one in READING.values()]
        before = time.monotonic()
        found = dict(zip([*CALLED, *READING], threads.map(lambda both: score(*both), programs), strict=True))
        assert time.monotonic() - before < 10 * len(programs)
    assert [path.name for path in folder.iterdir()] == ["secret"]
    return found


@pytest.mark.parametrize("name", [*CALLED, *READING])
def test_an_attack_scores_0_with_a_reason(scores: dict[str, Score], name: str) -> None:
    passed, tests, reason = scores[name]
    assert (passed, tests) == (0, 2 if name in CALLED else 1)
    assert reason


def test_nothing_is_left(scores: dict[str, Score]) -> None:
    commands = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    ours = [path for path in commands if path.exists() and b"program.py" in path.read_bytes()]
    assert not ours
    assert not Path("/usr/lib/out").exists()


def test_without_an_attack_the_same_programs_pass(sandbox: None) -> None:
    assert score_program(RIGHT, ASSERTIONS, limits=LIMITS) == (2, 2, "")
    assert score_program(READS, INPUTS, limits=LIMITS) == (1, 1, "")
