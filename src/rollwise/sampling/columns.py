"""A user's columns as rollwise names them: prompt, answer, id and category, also out of nested columns."""

from __future__ import annotations

import json
import logging
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.errors import ConfigError, MissingColumnError, PoolError
from rollwise.options import did_you_mean
from rollwise.prompt_ids import assign_ids
from rollwise.sampling.config import OwnData
from rollwise.sampling.suites.known import TEMPLATES
from rollwise.sampling.suites.lookup import ABSENT, Row, lookup

logger = logging.getLogger(__name__)

TAKEN = ("prompts", "completions")
"""Names by which a reward is given the rollouts; no column can have them."""

IMAGES = ("image", "images")
"""Columns of which TRL puts the images into the prompts, wherever they are; the policies here read text."""
_ESCAPED = re.compile("[\a\b\v\f].{0,8}")
"""A control character that is `\\a`, `\\b`, `\\v` or `\\f` in JSON or YAML, and what follows it."""


def named_columns(rows: list[Row], config: OwnData, source: str, places: Sequence[str]) -> list[Row]:
    """The rows with `prompt`, `answer` and the category and id columns in place, and the prompts as they are asked.

    Columns that no reward could be given are left out, with a warning. `places` (N,) say where each row stands.

    Raises:
        MissingColumnError: a column that is named is not there.
        ConfigError: a template names a column that is not there, or is used for chat messages.
        PoolError: a prompt is empty or no prompt, or has images.
    """
    names = _without_images(rows, config, places)
    wanted = {config.prompt_column: "prompt_column", config.answer_column: "answer_column", config.category: "category"}
    if config.id != "id":
        wanted[config.id] = "id"
    for name, option in wanted.items():
        if name is not None and all(lookup(row, name) is ABSENT for row in rows):
            raise MissingColumnError(_missing(name, option, names, source))
    moved = {"answer": config.answer_column, config.category or "category": config.category, config.id: config.id}
    for name in set(TAKEN).intersection(names) - {config.prompt_column, config.answer_column}:
        logger.warning("%s: column %r is left out, as rewards are given the rollouts by this name", source, name)
    out = []
    for row, place in zip(rows, places, strict=True):
        filled = {name: row.get(name) for name in names if name not in TAKEN}
        for name, column in moved.items():
            if column is not None and (value := lookup(row, column)) is not ABSENT:
                filled[name] = value
            elif column not in (None, name):  # this row has none: its own `answer` is not what was named
                filled[name] = None
        filled["prompt"] = _prompt(row, config, place)
        out.append(filled)
    return out


def _without_images(rows: list[Row], config: OwnData, places: Sequence[str]) -> list[str]:
    """The names of the columns, but for those of images where they are empty; `PoolError` where they are not."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    unused = set(IMAGES).intersection(names) - {config.prompt_column, config.answer_column, config.category, config.id}
    for name in sorted(unused):
        place = next((place for row, place in zip(rows, places, strict=True) if row.get(name)), None)
        if place is not None:
            raise PoolError(
                f"{place}: column {name!r} holds an image, and policies are trained on text alone here; "
                "leave such rows out, or remove the column where the prompts can be answered without it"
            )
    return [name for name in names if name not in unused]


def check_one_form(rows: Sequence[Row], places: Sequence[str]) -> None:
    """`PoolError` where some prompts are text and others messages."""
    kinds: dict[bool, str] = {}
    for row, place in zip(rows, places, strict=True):
        kinds.setdefault(isinstance(row["prompt"], str), place)
    if len(kinds) == 2:
        raise PoolError(f"{kinds[True]} has a prompt of text, and {kinds[False]} one of messages; use one form")


def _missing(name: str, option: str, names: Sequence[str], source: str) -> str:
    likely = {"prompt": ("question", "problem", "input", "instruction", "query")}.get(name, ())
    found = next((other for other in likely if other in names), None)
    hint = f"; --{option} {found} names it" if found else did_you_mean(name, names)
    return f"{source} has no column {name!r} (--{option}); it has {', '.join(names)}{hint or ': name or rename one'}"


def _prompt(row: Row, config: OwnData, where: str) -> Any:
    prompt = lookup(row, config.prompt_column)
    prompt = None if prompt is ABSENT else prompt
    chat = isinstance(prompt, list) and prompt and all(isinstance(m, Mapping) and "role" in m for m in prompt)
    _check_filled(prompt, where)
    if not chat and not isinstance(prompt, str):
        raise PoolError(f"{where}: a prompt must be text or a list of chat messages, got {prompt!r:.80}")
    for message in prompt if chat and prompt else ():
        _check_message(message, where)
    try:
        json.dumps(prompt, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise PoolError(
            f"{where}: the prompt holds half a character ({error.object[error.start]!r}), which no tokenizer takes; "
            "cut texts between characters"
        ) from error
    if config.template is not None:
        template = TEMPLATES.get(config.template, config.template)
        if chat:
            raise ConfigError(f"{where}: template is for prompts of text, and this one has chat messages; leave it out")
        prompt = _filled(template, {**row, "prompt": prompt}, where)
        _check_filled(prompt, where)
    if config.system is None:
        return prompt
    system = [{"role": "system", "content": config.system}] if config.system else []
    if not chat:
        return [*system, {"role": "user", "content": prompt}]
    return prompt if prompt[0]["role"] == "system" else [*system, *prompt]


def _check_filled(prompt: Any, where: str) -> None:
    if prompt == [] or (isinstance(prompt, str) and not prompt.strip()):
        raise PoolError(f"{where}: the prompt is empty; write it, or remove the row")


def _check_message(message: Mapping[str, Any], where: str) -> None:
    content = message.get("content")
    if isinstance(content, str) or (content is None and message.get("tool_calls")):
        return
    parts = content if isinstance(content, list) else [content]
    other = [part for part in parts if not isinstance(part, Mapping) or part.get("type") != "text"]
    if other or not parts:
        raise PoolError(
            f"{where}: the content of a chat message must be text, got {(other or [content])[0]!r:.80}; policies are "
            "trained on text alone here, so leave out rows with images"
        )


def _filled(template: str, row: Mapping[str, Any], where: str) -> str:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"template {template!r} has unbalanced braces ({error}); write {{{{ for a brace") from error
    text = []
    for literal, column, form, conversion in parts:
        text.append(literal)
        if column is not None:
            value = lookup(row, column)
            if value is ABSENT:
                raise MissingColumnError(
                    f"{where}: template needs the column {column!r}, but the row has {', '.join(row)}; write {{{{ "
                    "for a brace"
                )
            if form or conversion:
                raise ConfigError(
                    f"template {template!r} formats the column {column!r}, and columns are put in as they are; leave "
                    "out what stands behind its name"
                )
            text.append("" if value is None else str(value))
    if template and all(column is None for _, column, _, _ in parts):
        raise ConfigError(
            f"template {template!r} names no column in braces{did_you_mean(template, TEMPLATES)}, so all prompts would "
            "be the same; write {prompt} where the prompt belongs"
        )
    return "".join(text)


def ids_of(rows: Sequence[Row], column: str, places: Sequence[str]) -> list[str]:
    """The rows' ids (N,): of the column, or hashes of the prompts; `PoolError` for what is no id, or is repeated."""
    given = [row.get(column) for row in rows]
    for id_, place in zip(given, places, strict=True):
        if id_ is not None and (not isinstance(id_, str | int) or id_ == ""):
            raise PoolError(f"{place}: an id must be text or a whole number, got {id_!r}; name another with --id")
    ids, _ = assign_ids(given, [row["prompt"] for row in rows], on_duplicate="number")
    repeated = [id_ for id_, n in Counter(ids).items() if n > 1]
    if repeated:
        first, second, *_ = (place for id_, place in zip(ids, places, strict=True) if id_ == repeated[0])
        raise PoolError(
            f"id {repeated[0]!r} is in {first} and in {second} ({len(repeated)} ids are repeated); make them "
            "distinct, or name another column with --id"
        )
    return ids


def categories_of(rows: Sequence[Row], column: str, places: Sequence[str]) -> list[str] | None:
    """The rows' categories (N,), of lists joined; None where there is no such column."""
    if column not in rows[0]:
        return None
    named = []
    for row, place in zip(rows, places, strict=True):
        value = row[column]
        parts = value if isinstance(value, list | tuple) else [value]
        if not parts or any(part is None or part != part or isinstance(part, Mapping) for part in parts):  # NaN
            raise PoolError(
                f"{place}: column {column!r} must hold text or numbers, got {value!r:.80}; fill it, or remove the row "
                "or the column"
            )
        named.append(" | ".join(str(part) for part in parts))
    return named


def warn_of_escapes(rows: Sequence[Row], source: str) -> None:
    """Say that texts hold a control character, as a single backslash makes one in JSON and YAML."""
    texts = (text for row in rows for text in (*_contents(row["prompt"]), row.get("answer")))
    if odd := [found[0] for text in texts if isinstance(text, str) and (found := _ESCAPED.search(text))]:
        logger.warning(
            "%s: %d prompts or answers have a control character (%r): JSON, and YAML in double quotes, make one of "
            r"\boxed, \frac and the like; if so, write two backslashes there",
            *(source, len(odd), odd[0]),
        )


def _contents(prompt: Any) -> list[Any]:
    return [prompt] if isinstance(prompt, str) else [message.get("content") for message in prompt]
