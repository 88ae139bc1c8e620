"""What was drawn of a prompt, sample by sample; and the file that keeps it through a kill."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from rollwise.inference.endpoint.replies import Reply, Sample
from rollwise.runs.lines import whole_lines

Line = dict[str, Any]


@dataclass
class Drawn:
    """A prompt's samples and requests, as lines of the file.

    Attributes:
        samples: Number -> {id, sample, request, answer, truncated, chunks, and perhaps text}.
        requests: Number -> {id, request, asked, unfinished, prompt_tokens, completion_tokens, chunks}; of one that
            was under way at a kill there are the finished samples alone.
    """

    samples: dict[int, Line] = field(default_factory=dict)
    requests: dict[int, Line] = field(default_factory=dict)
    next_request: int = 0

    def add(self, line: Line) -> None:
        """One line of the file."""
        if "sample" in line:
            self.samples[line["sample"]] = line
        else:
            self.requests[line["request"]] = line
        self.next_request = max(self.next_request, line["request"] + 1)

    def came(self) -> Counter[int]:
        """Samples of each request."""
        return Counter(line["request"] for line in self.samples.values())

    def cost(self, stop: int) -> dict[str, int | bool | None]:
        """What everything that was asked for cost, whether or not it is among the first `stop` samples.

        The tokens are those that the endpoint counted. It counts none for a request that was cancelled, broke off or
        was under way at a kill. Such a one is `uncounted`: it read the same prompt as the others, and wrote at least
        the chunks that came. Tokens are None where the endpoint counts none at all. `one_each` is there
        where a request for several samples got one, as the endpoint gives no more.

        Args:
            stop: How many samples were judged.
        """
        requests = list(self.requests.values())
        killed = {line["request"] for line in self.samples.values()} - set(self.requests)
        counted = [line for line in requests if None not in (line["prompt_tokens"], line["completion_tokens"])]
        chunks = sum(line["chunks"] for line in requests if line not in counted)
        chunks += sum(line["chunks"] for line in self.samples.values() if line["request"] in killed)
        uncounted = len(requests) + len(killed) - len(counted)
        tokens: dict[str, int | None] = {"prompt_tokens": None, "completion_tokens": None}
        if counted:
            read = sum(line["prompt_tokens"] for line in counted) + uncounted * counted[0]["prompt_tokens"]
            tokens = {
                "prompt_tokens": read,
                "completion_tokens": sum(line["completion_tokens"] for line in counted) + chunks,
            }
        unused = sum(at >= stop for at in self.samples) + sum(line["unfinished"] for line in requests)
        came = self.came()
        one_each = any(
            came[number] == 1 < line["asked"] and not line["unfinished"] for number, line in self.requests.items()
        )
        return {
            "requests": len(requests) + len(killed),
            **tokens,
            "uncounted": uncounted,
            "unused": unused,
            **({"one_each": True} if one_each else {}),
        }


def sample_line(id_: str, at: int, request: int, answer: str | None, sample: Sample, *, keep_text: bool) -> Line:
    """A finished sample as a line."""
    line = {"id": id_, "sample": at, "request": request, "answer": answer, "truncated": sample.truncated}
    line["chunks"] = sample.chunks
    return {**line, "text": sample.text} if keep_text else line


def request_line(id_: str, request: int, asked: int, reply: Reply, *, ended: bool) -> Line:
    """A request as a line; one that did not end by itself leaves samples `unfinished`, paid for and lost."""
    return {
        "id": id_,
        "request": request,
        "asked": asked,
        "unfinished": 0 if ended else asked - reply.taken,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "chunks": reply.chunks,
    }


class SampleFile:
    """The samples: a JSON line each, written when it is finished, and a line a request, with its tokens.

    A line is one write without a buffer, so `kill -9` loses none; only a machine that goes down may lose the last.

    Args:
        path: The file; made when it is first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None

    def read(self) -> dict[str, Drawn]:
        """What is there, by the prompts' ids. A torn last line is cut off.

        Raises:
            StateFileError: a line before the last is damaged.
        """
        found: dict[str, Drawn] = {}
        for line in whole_lines(self.path, _is_whole, mend=True):
            found.setdefault(line["id"], Drawn()).add(line)
        return found

    def append(self, line: Line) -> None:
        """Append a line."""
        if self._file is None:
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # open as long as the command runs
        self._file.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _is_whole(line: Line) -> bool:
    """Whether a line is that of a sample or of a request."""
    kind = {"sample", "answer", "truncated"} if "sample" in line else {"unfinished", "prompt_tokens"}
    return {"id", "request", "chunks"} | kind <= set(line)
