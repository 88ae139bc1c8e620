"""`rollwise consistency`: a file of prompts in, a file of chosen answers with what they cost out; resumable."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rollwise.errors import PoolError, StateFileError
from rollwise.inference.endpoint import Endpoint, Extractor, Line, answer_all
from rollwise.inference.endpoint_config import EndpointConfig
from rollwise.progress_bar import progress_bar
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.sampling.line_file import append_lines, check_same_options, read_lines
from rollwise.state import make_folder, write_atomically


class ResultFile:
    """The results: a JSON line a prompt, and beside it the options that decided them.

    Args:
        path: The file; made when it is first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.options = path.with_name(f"{path.name}.options.json")

    def begin(self, deciding: Mapping[str, Any]) -> dict[str, Line]:
        """The prompts that are done, by id. A torn last line is cut off.

        Raises:
            ConfigError: the file was begun with other options; the message names the first.
            StateFileError: a line before the last is damaged, or the options are missing.
        """
        plain = json.loads(json.dumps(deciding))
        if not self.path.exists():
            make_folder(self.path.parent)
            text = json.dumps(plain, indent=1, ensure_ascii=False)
            # Bytes of a path that are no UTF-8 are half characters in it; escaped so, JSON gives them back.
            write_atomically(self.options, text.encode("utf-8", "backslashreplace"))
            return {}
        check_same_options(self.path, self._read_options(), plain, what="answers")
        return read_lines(self.path, "answers", mend=True)

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


def run_consistency(
    config: EndpointConfig, *, console: Console | None = None
) -> tuple[Path, list[Line], dict[str, str]]:
    """Answer what is missing.

    Returns:
        The file, the lines of all prompts that are done, and of those that failed id -> what went wrong.

    Raises:
        ConfigError, PoolError: options or data that can't be used, or an endpoint that refuses, or fails all prompts.
    """
    console = console or Console(stderr=True)
    extract = Extractor(config.answer)
    source = DataConfig(data=config.data, id=config.id)
    source.answer = config.answer_column
    data = load_data(source, None)
    _check_prompts(data, config)
    count = min(len(data), config.limit or len(data))
    ids, rows = data.ids[:count], data.rows[:count]
    file = ResultFile(Path(config.out or f"consistency/{Path(config.data).stem}-{config.rule}.jsonl"))
    done = file.begin({**config.deciding(), "data_hash": data.fingerprint(), "answer_hash": extract.hash})
    missing = [at for at, id_ in enumerate(ids) if id_ not in done]
    failures: dict[str, str] = {}
    if missing:
        before = [done[id_] for id_ in ids if id_ in done]
        with _bar(console, len(ids), before) as show:

            def keep(line: Line) -> None:
                file.append(line)
                done[line["id"]] = line
                show(line)

            some_ids, some_rows = [ids[at] for at in missing], [rows[at] for at in missing]
            failures = asyncio.run(_answer(config, some_ids, some_rows, extract, keep, resumed=bool(before)))
    return file.path, [done[id_] for id_ in ids if id_ in done], failures


def summarise(lines: Sequence[Line], k: int) -> dict[str, Any]:
    """What the lines cost and came to; tokens are None where the endpoint did not count them.

    >>> line = {"samples": 5, "why": "agreed", "completion_tokens": 50, "chosen": "4", "correct": True, "requests": 1}
    >>> summarise([line], 40)["saved"]
    0.875
    """
    n = len(lines)
    samples = sum(line["samples"] for line in lines)
    judged = [line["correct"] for line in lines if "correct" in line]
    tokens = [line["completion_tokens"] for line in lines]
    return {
        "prompts": n,
        "samples": samples,
        "samples_mean": samples / n if n else None,
        "saved": 1 - samples / (n * k) if n else None,
        "requests": sum(line["requests"] for line in lines),
        "completion_tokens": None if None in tokens else sum(tokens),
        "why": dict(Counter(line["why"] for line in lines)),
        "unanswered": sum(line["chosen"] is None for line in lines),
        "judged": len(judged),
        "correct": sum(judged),
    }


def show_summary(numbers: Mapping[str, Any], config: EndpointConfig, console: Console) -> None:
    """Print what `summarise` gives."""
    table = Table(title=f"{config.rule}, at most {config.k} samples", title_justify="left", box=None, show_header=False)
    if numbers["prompts"]:
        table.add_row("prompts", f"{numbers['prompts']:,}", f"{numbers['unanswered']:,} without any answer")
        saved = f"{numbers['saved']:.1%} fewer than {config.k} each"
        table.add_row("samples a prompt", f"{numbers['samples_mean']:.2f}", saved)
        why = ", ".join(f"{name} {count:,}" for name, count in sorted(numbers["why"].items()))
        table.add_row("stopped", why, f"{numbers['requests']:,} requests")
    if numbers["completion_tokens"] is not None:
        table.add_row("tokens generated", f"{numbers['completion_tokens']:,}", "")
    if numbers["judged"]:
        share = numbers["correct"] / numbers["judged"]
        table.add_row(
            "right", f"{share:.1%}", f"{numbers['correct']:,} of {numbers['judged']:,} with a recorded answer"
        )
    console.print(table)


async def _answer(
    config: EndpointConfig,
    ids: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    extract: Extractor,
    keep: Any,
    *,
    resumed: bool,
) -> dict[str, str]:
    endpoint = Endpoint(config)
    try:
        return await answer_all(ids, rows, config, endpoint.ask, extract, keep, resumed=resumed)
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
