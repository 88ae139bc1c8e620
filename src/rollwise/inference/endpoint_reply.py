"""Reads what an endpoint answered, as a stream or whole. Nothing is trusted: anything may stand anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollwise.inference.endpoint_failures import BadReplyError


@dataclass(frozen=True)
class Sample:
    """A finished sample.

    Attributes:
        text: The completion.
        truncated: Whether it was cut off.
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

    Attributes:
        began: Whether the endpoint began to answer, or may have; one that did not costs nothing.
        taken: Samples finished.
        chunks: Chunks of all samples together, finished or not.
        prompt_tokens: As the endpoint counts them; None if it does not, or did not come to it.
        completion_tokens: Of all samples together; None likewise.
    """

    take: Callable[[int, Sample], None]
    began: bool = False
    taken: int = 0
    chunks: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    _parts: dict[int, list[str]] = field(default_factory=dict)

    def add_chunk(self, chunk: Any, n: int, *, chat: bool, base_url: str) -> None:
        """One chunk of a stream that was asked for n samples.

        Raises:
            BadReplyError: it is an error, or none of the kind.
        """
        self._count(chunk)
        if self.prompt_tokens is not None and not _get(chunk, "choices"):
            return  # the last chunk holds the usage alone
        for choice in choices_of(chunk, base_url, least=0):
            at = _get(choice, "index") or 0
            if not isinstance(at, int) or not 0 <= at < n:
                continue
            text = text_of(choice, "delta" if chat else "", base_url=base_url)
            parts = self._parts.setdefault(at, [])
            if text:
                parts.append(text)
                self.chunks += 1
            reason = _get(choice, "finish_reason")
            if reason is not None:
                del self._parts[at]
                self._finish(at, Sample("".join(parts), reason == "length", len(parts)))

    def add_whole(self, given: Any, n: int, *, chat: bool, base_url: str) -> None:
        """A reply that came whole: anything that JSON has.

        Raises:
            BadReplyError: there is no sample, or one that can't be read.
        """
        choices = list(choices_of(given, base_url, least=1))[:n]
        samples = [
            Sample(
                text_of(choice, "message" if chat else "", base_url=base_url),
                _get(choice, "finish_reason") == "length",
            )
            for choice in choices
        ]
        self._count(given)
        for at, sample in enumerate(samples):
            self._finish(at, sample)

    def _finish(self, at: int, sample: Sample) -> None:
        self.taken += 1
        self.take(at, sample)

    def _count(self, given: Any) -> None:
        usage = _get(given, "usage")
        for name in ("prompt_tokens", "completion_tokens"):
            count = _get(usage, name)
            if isinstance(count, int) and not isinstance(count, bool):
                setattr(self, name, count)


def choices_of(given: Any, base_url: str, *, least: int) -> Iterator[Any]:
    """The samples of a reply or of a chunk; `BadReplyError` if it is an error, or holds fewer than `least`."""
    told = _get(given, "error")
    if told:  # some gateways send errors with status 200
        said = _get(told, "message")
        raise BadReplyError(f"{base_url} answered with an error: {said or told!r:.200}; see the server's log")
    choices = _get(given, "choices")
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
