"""`rollwise consistency`: a file of prompts in, a file of chosen answers with what they cost out; resumable."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from rollwise.errors import PoolError, StateFileError
from rollwise.inference.endpoint.answers import Extractor
from rollwise.inference.endpoint.asking import answer_all
from rollwise.inference.endpoint.client import Endpoint
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.drawing import Desk, Slots
from rollwise.inference.endpoint.samples import Drawn, Line, SampleFile
from rollwise.progress_bar import progress_bar
from rollwise.runs.lines import append_lines, check_same_options, lines_by_id
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.state import make_folder, write_atomically
from rollwise.terminal import make_console


class ResultFile:
    """The results: a JSON line a prompt; beside it the options that decided them, and what was drawn, by sample.

    Args:
        path: The file; made when it is first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.options = path.with_name(f"{path.name}.options.json")
        self.samples = SampleFile(path.with_name(f"{path.name}.samples.jsonl"))

    def begin(self, deciding: Mapping[str, Any]) -> dict[str, Line]:
        """The prompts that are done, by id. A torn last line is cut off.

        Raises:
            ConfigError: the file was begun with other options; the message names the first.
            StateFileError: a line before the last is damaged, or the options are missing.
        """
        plain = json.loads(json.dumps(deciding))
        if not (self.path.exists() or self.samples.path.exists()):
            make_folder(self.path.parent)
            text = json.dumps(plain, indent=1, ensure_ascii=False)
            # Bytes of a path that are no UTF-8 are half characters in it; escaped so, JSON gives them back.
            write_atomically(self.options, text.encode("utf-8", "backslashreplace"))
            return {}
        check_same_options(self.path, self._read_options(), plain, what="answers")
        return lines_by_id(self.path, "answers", mend=True)

    def append(self, line: Line) -> None:
        """Append a line, and make it durable."""
        append_lines(self.path, [line])

    def _read_options(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.options.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise StateFileError(
                f"{str(self.path)!r} has no readable {self.options.name} beside it ({error}); name another --out"
            ) from error


class Outcome(NamedTuple):
    """What a run came to.

    Attributes:
        path: The file.
        lines: The lines of all prompts that are done.
        failures: Of those that failed id -> what went wrong.
        seconds: Seconds that asking took, this time.
        asked: Prompts that were asked, this time.
    """

    path: Path
    lines: list[Line]
    failures: dict[str, str]
    seconds: float
    asked: int


def run_consistency(config: EndpointConfig, *, console: Console | None = None) -> Outcome:
    """Answer what is missing.

    Raises:
        ConfigError, PoolError: options or data that can't be used, or an endpoint that refuses, or fails all prompts.
    """
    console = console or make_console(stderr=True)
    extract = Extractor(config.answer)
    source = DataConfig(data=config.data, id=config.id, answer_column=config.answer_column)
    data = load_data(source, None)
    _check_prompts(data, config)
    count = min(len(data), config.limit or len(data))
    ids, rows = data.ids[:count], data.rows[:count]
    file = ResultFile(Path(config.out or f"consistency/{Path(config.data).stem}-{config.rule}.jsonl"))
    done = file.begin({**config.deciding(), "data_hash": data.fingerprint(), "answer_hash": extract.hash})
    missing = [at for at, id_ in enumerate(ids) if id_ not in done]
    failures: dict[str, str] = {}
    began = time.monotonic()
    if missing:
        before = [done[id_] for id_ in ids if id_ in done]
        drawn = file.samples.read()
        with _bar(console, len(ids), before) as show:

            def keep(line: Line) -> None:
                file.append(line)
                done[line["id"]] = line
                show(line)

            some_ids, some_rows = [ids[at] for at in missing], [rows[at] for at in missing]
            try:
                failures = asyncio.run(
                    _answer(
                        config, some_ids, some_rows, drawn, extract, file.samples.append, keep, resumed=bool(before)
                    )
                )
            finally:
                file.samples.close()
    lines = [done[id_] for id_ in ids if id_ in done]
    return Outcome(file.path, lines, failures, time.monotonic() - began, len(missing))


async def _answer(
    config: EndpointConfig,
    ids: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    drawn: Mapping[str, Drawn],
    extract: Extractor,
    log: Callable[[Line], None],
    keep: Callable[[Line], None],
    *,
    resumed: bool,
) -> dict[str, str]:
    endpoint = Endpoint(config)
    desk = Desk(config, config.stopping_rule(), endpoint.ask, extract, Slots(config.concurrency), log)
    try:
        return await answer_all(ids, rows, drawn, desk, keep, resumed=resumed)
    finally:
        await endpoint.close()


def _check_prompts(data: PromptData, config: EndpointConfig) -> None:
    chat = next((id_ for id_, prompt in zip(data.ids, data.prompts, strict=True) if not isinstance(prompt, str)), None)
    if config.route == "completions" and chat is not None:
        raise PoolError(f"prompt {chat!r} is chat messages; --route completions takes text: use --route chat")


@contextmanager
def _bar(console: Console, total: int, before: Sequence[Line]) -> Iterator[Any]:
    count, samples = len(before), sum(line["samples"] for line in before)
    with progress_bar(console, note="signals", disable=not console.is_terminal) as progress:
        task = progress.add_task("prompts", total=total, completed=count, signals="")

        def show(line: Line) -> None:
            nonlocal count, samples
            count, samples = count + 1, samples + line["samples"]
            progress.update(task, completed=count, signals=f"{samples / count:.1f} samples each")
            if not console.is_terminal and count % max(1, total // 10) == 0:
                console.print(f"{count}/{total} prompts, {samples / count:.1f} samples each")

        yield show
