"""`rollwise consistency`: a file of prompts in, a file of chosen answers with what they cost out; resumable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rollwise.inference.endpoint.answers import Extractor, Right
from rollwise.inference.endpoint.asking import ask_endpoint
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.prompts import read_prompts
from rollwise.inference.endpoint.results import ResultFile
from rollwise.inference.endpoint.samples import Line
from rollwise.progress_bar import progress_bar
from rollwise.sampling.progress import Tenths
from rollwise.terminal import make_console


class Outcome(NamedTuple):
    """What a run came to: `failures` by id, and the seconds and the prompts asked of this time."""

    path: Path
    lines: list[Line]
    failures: dict[str, str]
    seconds: float
    asked: int


def run_consistency(config: EndpointConfig) -> Outcome:
    """Answer what is missing.

    Raises:
        ConfigError, PoolError: options or data that can't be used, or an endpoint that refuses, or fails all prompts.
        MissingExtraError: answers are to be compared by a library that is not installed.
    """
    extract, right = Extractor(config.answer_function), Right(config)
    data = read_prompts(config)
    right.check(data.rows[0])
    count = min(len(data), config.num_prompts or len(data))
    ids, rows = data.ids[:count], data.rows[:count]
    file = ResultFile(Path(config.out or f"consistency/{Path(config.data).stem}-{config.rule}.jsonl"))
    hashes = {"data_hash": data.fingerprint(), "answer_hash": extract.hash, "reward_hash": right.hash}
    done = file.begin({**config.deciding(), **hashes})
    missing = [at for at, id_ in enumerate(ids) if id_ not in done]
    failures: dict[str, str] = {}
    began = time.monotonic()
    before = [done[id_] for id_ in ids if id_ in done]
    drawn = file.samples.read() if missing else {}
    try:
        if missing:
            with _answers_bar(len(ids), before) as show:

                def keep(at: int, line: Line) -> None:
                    line |= right.judge(line, rows[missing[at]])
                    file.append(line)
                    done[line["id"]] = line
                    show(line)

                asked = [(ids[at], rows[at]["prompt"]) for at in missing]
                work = ask_endpoint(config, asked, drawn, extract, file.samples.append, keep, resumed=bool(before))
                failures = asyncio.run(work)
    finally:
        file.samples.close()
        lines = [done[id_] for id_ in ids if id_ in done]
        file.conclude(lines, config)
    return Outcome(file.path, lines, failures, time.monotonic() - began, len(missing))


@contextmanager
def _answers_bar(total: int, before: Sequence[Line]) -> Iterator[Any]:
    """Gives a function that takes each new line; without a terminal a line is printed for every tenth."""
    count, samples = len(before), sum(line["samples"] for line in before)
    console = make_console(stderr=True)
    tenths = Tenths(console, "prompts answered")
    with progress_bar(console, note="signals", disable=not console.is_terminal) as progress:
        task = progress.add_task("prompts", total=total, completed=count, signals="")

        def show(line: Line) -> None:
            nonlocal count, samples
            count, samples = count + 1, samples + line["samples"]
            note = f"{samples / count:.1f} samples each"
            progress.update(task, completed=count, signals=note)
            if progress.disable:
                tenths.update(count, total, note)

        yield show
