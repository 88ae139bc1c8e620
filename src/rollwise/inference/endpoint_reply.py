"""Reads what an endpoint answered. The `openai` client checks nothing, so anything may stand anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollwise.inference.endpoint_failures import BadReplyError


@dataclass
class Reply:
    """One request's samples.

    Attributes:
        texts: Completions.
        truncated: Whether each was cut off.
        prompt_tokens: As the endpoint counts them; None if it does not.
        completion_tokens: Of all samples together; None likewise.
    """

    texts: list[str]
    truncated: list[bool]
    prompt_tokens: int | None
    completion_tokens: int | None


def read_reply(given: Any, *, chat: bool, base_url: str) -> Reply:
    """The samples of what the `openai` client returned.

    Args:
        given: Mostly a completion object; any other value that JSON has, or text, if the endpoint answered so.
        chat: Whether samples are messages.
        base_url: The endpoint, for errors.

    Raises:
        BadReplyError: there is no sample, or one that can't be read.
    """
    told = getattr(given, "error", None)
    if told:  # some gateways send errors with status 200
        said = told.get("message") if isinstance(told, Mapping) else None
        raise BadReplyError(f"{base_url} answered with an error: {said or told!r:.200}; see the server's log")
    choices = getattr(given, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise BadReplyError(
            f"{base_url} answered without a sample: {given!r:.200}; is it an OpenAI-compatible endpoint?",
            of_endpoint=not isinstance(choices, list),
        )
    usage = getattr(given, "usage", None)
    return Reply(
        [_text(choice, chat=chat, base_url=base_url) for choice in choices],
        [getattr(choice, "finish_reason", None) == "length" for choice in choices],
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
    )


def _text(choice: Any, *, chat: bool, base_url: str) -> str:
    """A sample's text; empty where the endpoint says that there is none. Parts of a message are joined."""
    holder, name = (getattr(choice, "message", None), "content") if chat else (choice, "text")
    if not hasattr(holder, name):
        route = "completions" if chat else "chat"
        raise BadReplyError(
            f"{base_url} answered with a sample without {name}: {choice!r:.200}; is it --route {route}?"
        )
    content = getattr(holder, name)
    if isinstance(content, list):
        content = "".join(_part(part) for part in content)
    if content is not None and not isinstance(content, str):
        raise BadReplyError(f"{base_url} answered with {name} that is no text: {content!r:.200}; see the server's log")
    return content or ""


def _part(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else ""


def _count(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and not isinstance(count, bool) else None
