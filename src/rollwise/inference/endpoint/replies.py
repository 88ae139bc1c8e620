"""Reads an endpoint's replies, and decides which failures are a prompt's own and when the endpoint is down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollwise.errors import RewardError

_HOPELESS = 3
"""So many prompts that the endpoint fails, and none that succeeds, and it counts as down."""

_REFUSED = 16
"""So many prompts that are refused for themselves, and none that succeeds, and it is not for themselves."""

LONGEST_WAIT = 8.0
"""Seconds between two tries, or for the count of tokens after the last sample, at most."""

_CUT = ("length", "content_filter", "abort")  # finish reasons of what did not end by itself: its text is no answer

_PASSING = (408, 429)
"""Refusals that say something of the endpoint's state, as 5xx do, and nothing of the prompt."""


class BadReplyError(RewardError):
    """A reply that holds no samples, or a prompt that can't be sent.

    Args:
        message: What is wrong.
        of_endpoint: It is no reply of an OpenAI-compatible endpoint at all; else it is this prompt's failure alone.
    """

    def __init__(self, message: str, *, of_endpoint: bool = False) -> None:
        super().__init__(message)
        self.of_endpoint = of_endpoint


class BrokenReplyError(BadReplyError):
    """A reply that began, and broke off, went silent or ended in an error that may pass. What came of it stays good."""

    def __init__(self, message: str) -> None:
        super().__init__(message, of_endpoint=True)


async def wait_again(failures: int) -> None:
    """Wait before a reply that broke off is asked for again, the longer the more of them failed."""
    await asyncio.sleep(min(LONGEST_WAIT, 0.25 * 2**failures))


class NotAskedError(Exception):
    """A prompt was not asked, as nothing but failures comes from the endpoint."""


class Watch:
    """Says whether nothing but failures comes from an endpoint, once N prompts are asked, several at once.

    A prompt that is refused for itself, as one that is too long, says nothing of the endpoint; many, and none that is
    not, say that an option can't be served. And failures come quickly where good answers take their time: all prompts
    under way at the first failure must have ended too.

    Args:
        n: Prompts to ask.
        done: Whether others succeeded before, so that a few failures prove nothing.

    Attributes:
        last: The endpoint's last failure in a line, else the first prompt's that was refused.
    """

    def __init__(self, n: int, *, done: bool = False) -> None:
        self.limit = _HOPELESS if done else min(_HOPELESS, n)
        self.last = ""
        self._done, self._kept, self._failed, self._refused = done, False, 0, 0
        self._under_way: set[int] = set()
        self._elders: set[int] = set()

    def begin(self, at: int) -> None:
        """Prompt `at` is asked.

        Raises:
            NotAskedError: the endpoint is down.
        """
        if self.down():
            raise NotAskedError(self.last)
        self._under_way.add(at)

    def hopeless(self, url: str) -> str:
        """Why no more is asked."""
        return f"nothing but failures from {url}, the last: {self.last}; look at the server"

    def succeeded(self) -> None:
        """A prompt was answered."""
        self._kept = True

    def failed(self, at: int, error: Exception) -> None:
        """Prompt `at` failed for good."""
        self._under_way.discard(at)
        self._elders.discard(at)
        if is_of_endpoint(error):
            if not self._failed:
                self._elders = set(self._under_way)
            self._failed += 1
            self.last = one_line(error)
        else:
            self._refused += 1
            self.last = self.last or one_line(error)

    def down(self) -> bool:
        """Whether to ask no more."""
        if self._kept:
            return False
        refused = self._refused >= _REFUSED and not self._done
        return refused or (self._failed >= self.limit and not self._elders)


def is_of_endpoint(error: Exception) -> bool:
    """Whether a failure is the endpoint's: a lost connection, a timeout, 429, 5xx; not one that the prompt caused."""
    if isinstance(error, BadReplyError):
        return error.of_endpoint
    status = getattr(error, "status_code", None)
    return status is None or status >= 500 or status in _PASSING


def one_line(error: Exception) -> str:
    """An error and its cause in one line of at most 300 characters."""
    cause = str(error.__cause__ or "")
    cause = f" ({cause})" if cause and cause not in str(error) else ""
    return " ".join(f"{error}{cause}".split())[:300]


@dataclass(frozen=True)
class Sample:
    """A finished sample.

    Attributes:
        text: The completion.
        truncated: Whether it was cut off, at the token limit or by the server.
        chunks: Chunks that it came in, mostly one a token; 0 if it came whole.
    """

    text: str
    truncated: bool = False
    chunks: int = 0


@dataclass
class Reply:
    """One request: how far it came.

    Args:
        take: Called with each sample as soon as it is finished, and its place in the request.
        stops: The request's stop texts, which are put back.

    Attributes:
        began: Whether the endpoint began to answer, or may have; one that did not costs nothing.
        taken: Samples finished.
        chunks: Chunks of all samples together, finished or not.
        prompt_tokens: As the endpoint counts them; None if it does not, or did not come to it.
        completion_tokens: Of all samples together; None likewise.
    """

    take: Callable[[int, Sample], None]
    stops: Sequence[str] = ()
    began: bool = False
    taken: int = 0
    chunks: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    _parts: dict[int, list[str]] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)

    def add_chunk(self, chunk: Any, n: int, *, chat: bool, base_url: str) -> None:
        """One chunk of a stream that was asked for n samples.

        Raises:
            BadReplyError: it is an error, or none of the kind.
        """
        self._count(chunk)
        for choice in choices_of(chunk, base_url, least=0):
            at = _get(choice, "index") or 0
            if not isinstance(at, int) or not 0 <= at < n or at in self._ended:  # some gateways end a sample twice
                continue
            text = text_of(choice, "delta" if chat else "", base_url=base_url)
            parts = self._parts.setdefault(at, [])
            if text:
                parts.append(text)
                self.chunks += 1
            reason = _get(choice, "finish_reason")
            if reason:
                self._ended.add(at)
                del self._parts[at]
                text = "".join(parts)
                text += taken_away(text, choice, self.stops)
                self._finish(at, Sample(text, reason in _CUT, len(parts)))

    def add_whole(self, given: Any, n: int, *, chat: bool, base_url: str) -> None:
        """A reply that came whole: anything that JSON has.

        Raises:
            BadReplyError: there is no sample, or one that can't be read.
        """
        choices = list(choices_of(given, base_url, least=1))[:n]
        texts = [text_of(choice, "message" if chat else "", base_url=base_url) for choice in choices]
        samples = [
            Sample(text + taken_away(text, choice, self.stops), _get(choice, "finish_reason") in _CUT)
            for text, choice in zip(texts, choices, strict=True)
        ]
        self._count(given)
        for at, sample in enumerate(samples):
            self._finish(at, sample)

    def _finish(self, at: int, sample: Sample) -> None:
        self.taken += 1
        self.take(at, sample)

    def _count(self, given: Any) -> None:
        for name, count in counts_of(given).items():
            setattr(self, name, count)


def counts_of(given: Any) -> dict[str, int]:
    """The tokens that a reply, or a chunk, counts: `prompt_tokens` and `completion_tokens`, of each if it says so.

    >>> counts_of({"usage": {"prompt_tokens": 7, "completion_tokens": None}}), counts_of({"usage": None})
    ({'prompt_tokens': 7}, {})
    """
    found = {name: _get(_get(given, "usage"), name) for name in ("prompt_tokens", "completion_tokens")}
    return {name: count for name, count in found.items() if isinstance(count, int) and not isinstance(count, bool)}


def taken_away(text: str, choice: Any, stops: Sequence[str]) -> str:
    """The stop text that a server left out at the end of a finished sample; "" where there is none.

    vLLM names it in `stop_reason`, which is null at the end of text. Where a server does not say, it is the first.

    >>> taken_away("<answer>4", {"finish_reason": "stop"}, ["</answer>"])
    '</answer>'
    >>> taken_away("no idea", {"finish_reason": "stop", "stop_reason": None}, ["</answer>"])
    ''
    """
    if _get(choice, "finish_reason") != "stop" or not stops or any(stop in text for stop in stops):
        return ""
    named = choice.get("stop_reason", stops[0])
    return named if named in stops else ""


def choices_of(given: Any, base_url: str, *, least: int) -> Iterator[Any]:
    """The samples of a reply or of a chunk.

    Raises:
        BrokenReplyError: it is an error that may pass.
        BadReplyError: it is another error, or holds fewer than `least`.
    """
    told = _get(given, "error")
    if told:  # some gateways send errors with status 200
        said, code = _get(told, "message"), _get(told, "code")
        kind = BrokenReplyError if isinstance(code, int) and (code in _PASSING or code >= 500) else BadReplyError
        raise kind(f"{base_url} answered with an error: {said or told!r:.200}; see the server's log")
    choices = _get(given, "choices")
    if not choices and not least and counts_of(given):
        return  # the last chunk holds the usage alone
    if not isinstance(choices, list) or len(choices) < least:
        raise BadReplyError(
            f"{base_url} answered without a sample: {given!r:.200}; is it an OpenAI-compatible endpoint?",
            of_endpoint=not isinstance(choices, list),
        )
    yield from choices


def text_of(choice: Any, holder: str, *, base_url: str) -> str:
    """A sample's text, or the next part of it; empty where there is none. Parts of a message are joined.

    Args:
        choice: The sample.
        holder: Where its content stands: in its message, or in a stream its delta; "" for a text without either.
        base_url: The endpoint, for errors.
    """
    within, name = (_get(choice, holder), "content") if holder else (choice, "text")
    # The last chunks of a stream may have no content.
    if not isinstance(within, Mapping) or (name not in within and holder != "delta"):
        route = "completions" if holder else "chat"
        raise BadReplyError(
            f"{base_url} answered with a sample without {name}: {choice!r:.200}; is it --route {route}?"
        )
    content = within.get(name)
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    if content is not None and not isinstance(content, str):
        raise BadReplyError(f"{base_url} answered with {name} that is no text: {content!r:.200}; see the server's log")
    return content or ""


def _part(part: Any) -> str:
    text = _get(part, "text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else ""


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else None
