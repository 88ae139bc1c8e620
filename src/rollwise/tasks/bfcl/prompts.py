"""What a policy reads of a BFCL item: a system message that describes every function, and the user's requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rollwise.tasks.bfcl.data import Item, documentation, package_module

_SYSTEM = """You help a user by calling functions. You can call these with the tool `call`, by name and with named \
arguments, one or several at a time:

{functions}

Do what the user's current request asks for and nothing more. When it is done, or can't be done because a function or \
a piece of information is missing, call `next_request`: its result is the user's next request. When there are no more \
requests, answer without calling a tool."""
_MARK = "Tool description:"


def prompt_of(item: Item) -> list[dict[str, str]]:
    """The system message, which describes every function offered at the start, and the first request."""
    withheld = {name for names in item.withheld.values() for name in names}
    parts = []
    for api in item.apis:
        docs = documentation(api)
        about = next(iter(docs.values()))["description"].partition(_MARK)[0].strip()
        parts.append("\n".join([f"## {about}", *function_lines(docs, withheld)]))
    system = _SYSTEM.format(functions="\n\n".join(parts))
    return [{"role": "system", "content": system}, {"role": "user", "content": request_text(item, 0)}]


def request_text(item: Item, turn: int) -> str:
    """The user's words in a turn; where functions were withheld so far, what they do."""
    given = item.withheld.get(turn, ())
    if not given:
        return item.requests[turn]
    docs = {name: doc for api in item.apis for name, doc in documentation(api).items() if name in given}
    words = package_module("constants.default_prompts").DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC
    return "\n".join([part for part in (item.requests[turn], *function_lines(docs), words) if part])


def function_lines(docs: Mapping[str, Mapping[str, Any]], leave_out: Collection[str] = ()) -> list[str]:
    """A line for each function: its name, parameters with their types, what it does, what the parameters mean."""
    return [_line(doc) for name, doc in docs.items() if name not in leave_out]


def _line(doc: Mapping[str, Any]) -> str:
    known, required = doc["parameters"]["properties"], doc["parameters"].get("required", [])
    named = ", ".join(f"{name}: {about['type']}{'' if name in required else '?'}" for name, about in known.items())
    meant = " ".join(f"{name}: {_about(about)}" for name, about in known.items())
    what = doc["description"].partition(_MARK)[2].strip() or doc["description"].strip()
    return f"- {doc['name']}({named}): {_sentence(what)} {meant}".rstrip()


def _about(parameter: Mapping[str, Any]) -> str:
    inner = parameter.get("properties") or {}
    entries = ", ".join(f"{name} ({about['type']})" for name, about in inner.items())
    return _sentence(parameter.get("description", "")) + (f" Its entries: {entries}." if inner else "")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text.endswith(".") else f"{text}."
