"""What only one process may write at a time is refused to the second, by name."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rollwise.comparing.workers import alone_in
from rollwise.errors import StateFileError
from rollwise.inference.endpoint.results import ResultFile
from rollwise.inference.files.kept_batches import KeptBatches
from rollwise.sampling.folder import SampleFolder

HOLD = (
    "import sys\nfrom rollwise.runs.lock import lock_file\n"
    "lock = lock_file(sys.argv[1], 'taken')\nprint('held', flush=True)\nsys.stdin.read()\n"
)


def _sample(place: Path) -> None:
    SampleFolder(place, lines="groups.jsonl", what="a profile's folder", command="profile").begin({})


@pytest.mark.parametrize(
    ("begin", "lock"),
    [
        (_sample, "out/.lock"),
        (lambda place: ResultFile(place).begin({}), ".out.lock"),
        (alone_in, "out/lock"),
        (lambda place: KeptBatches(place, {}), ".out.lock"),  # one head's scores were taken for another's
    ],
)
def test_the_second_of_two_commands_is_refused(begin: Callable[[Path], object], lock: str, tmp_path: Path) -> None:
    """Both would pay for the same rollouts, or overwrite each other's options. When the first ends, it may begin."""
    place = tmp_path / "out"
    (tmp_path / lock).parent.mkdir(exist_ok=True)
    command = [sys.executable, "-c", HOLD, str(tmp_path / lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        said = rf"another process .*{re.escape(str(place))}.*another --out \(process {other.pid}\)"
        with pytest.raises(StateFileError, match=said):
            begin(place)
        other.communicate("")
    begin(place)
    assert (tmp_path / lock).read_text() == str(os.getpid())
