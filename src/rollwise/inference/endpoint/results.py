"""The files of `rollwise consistency`: a line a prompt, the options that decided them, samples, and the summary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import RollwiseError, StateFileError
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.samples import Line, SampleFile
from rollwise.inference.endpoint.summary import summarise
from rollwise.renamed import with_new_names
from rollwise.runs.lines import append_lines, check_same_options, lines_by_id
from rollwise.runs.lock import hold_lock_beside
from rollwise.runs.names import OPTIONS_ENDING, SAMPLES_ENDING, SUMMARY_ENDING
from rollwise.state import write_atomically

_BEFORE = {"prompt_column": "prompt", "same": "text", "reward_low": 0.0, "reward_high": 1.0, "reward_hash": ""}
"""What files were begun with that know nothing of these options."""


class ResultFile:
    """The results: a JSON line a prompt. Beside it the options that decided them, the samples, and what they cost.

    Args:
        path: The file; made when it is first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.options = path.with_name(path.name + OPTIONS_ENDING)
        self.samples = SampleFile(path.with_name(path.name + SAMPLES_ENDING))

    def begin(self, deciding: Mapping[str, Any]) -> dict[str, Line]:
        """The prompts that are done, by id. A torn last line is cut off.

        Where nothing was drawn yet, as by a wrong --model, it begins anew with other options.

        Raises:
            ConfigError: the file was begun with other options; the message names the first.
            StateFileError: a line before the last is damaged, the options are missing, or another process writes it.
        """
        plain = json.loads(json.dumps(deciding))
        taken = f"another process writes {str(self.path)!r}; wait for it, stop it, or name another --out"
        hold_lock_beside(self, self.path, taken)
        if not (self.path.exists() or self.samples.path.exists()):
            _write_json(self.options, plain)
            return {}
        try:
            check_same_options(self.path, self._read_options(), plain, what="answers")
        except RollwiseError:
            if self._holds_samples():
                raise
            self.samples.path.unlink(missing_ok=True)  # requests without a sample, of the options before
            _write_json(self.options, plain)
        return lines_by_id(self.path, "answers", mend=True)

    def append(self, line: Line) -> None:
        """Append a line, and make it durable."""
        append_lines(self.path, [line])

    def conclude(self, lines: Sequence[Line], config: EndpointConfig) -> None:
        """Write what these lines cost and came to, for the report."""
        _write_json(self.path.with_name(self.path.name + SUMMARY_ENDING), summarise(lines, config))

    def _holds_samples(self) -> bool:
        answered = self.path.exists() and self.path.stat().st_size > 0
        return answered or any(drawn.samples for drawn in self.samples.read().values())

    def _read_options(self) -> dict[str, Any]:
        try:
            before = dict(json.loads(self.options.read_text(encoding="utf-8")))
            return {**_BEFORE, **with_new_names("consistency", before)}
        except (OSError, ValueError, TypeError) as error:
            raise StateFileError(
                f"{str(self.path)!r} has no readable {self.options.name} beside it ({error}); name another --out"
            ) from error


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    # Bytes of a path that are no UTF-8 are half characters in it; escaped so, JSON gives them back.
    write_atomically(path, json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace"))
