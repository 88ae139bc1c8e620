"""Which columns of a log of rollouts hold what, and what one row of it says; checked by place and field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from rollwise.errors import ConfigError, StateFileError
from rollwise.options import check_text, shown
from rollwise.prompt_ids import content_id

Kind = Literal["run", "trl", "verl", "rows"]
"""A run of rollwise, TRL's logged completions, verl's dumped generations, or anything else."""
KINDS: Mapping[Kind, str] = {
    "run": "a run of rollwise",
    "trl": "completions logged by TRL",
    "verl": "rollouts dumped by verl",
    "rows": "rows",
}

USUAL: Mapping[str, Sequence[str]] = {
    "prompt_column": ("prompt", "input", "question", "problem", "query"),
    "completion_column": ("completion", "output", "response", "completions", "texts", "outputs", "responses"),
    "reward_column": ("reward", "rewards", "score", "scores"),
    "step_column": ("step", "global_step", "training_step"),
    "id": ("prompt_id", "id"),
    "category": ("category",),
    "tokens": ("tokens", "completion_tokens", "completion_length", "response_length", "completion_ids"),
    "truncated": ("truncated", "is_truncated"),
}
"""Names that are looked for, in this order, where none is given."""
_CUT = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": False, "none": False}
"""What `truncated` may hold, as text in small letters: .csv files have TRUE, True or 1."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of past rollouts are called; by default the usual names are looked for.

    Args:
        prompt_column: The prompts, text or chat messages.
        completion_column: The completions.
        reward_column: The rewards: a number for each completion, or a list where each row is a group.
        step_column: The training steps.
        id: Prompt ids; without them a prompt's id is the hash of its content.
        category: The prompts' categories.
    """

    prompt_column: str | None = None
    completion_column: str | None = None
    reward_column: str | None = None
    step_column: str | None = None
    id: str | None = None
    category: str | None = None

    def __post_init__(self) -> None:
        for f in fields(Columns):
            if getattr(self, f.name) is not None:
                check_text(f.name, getattr(self, f.name))


@dataclass(slots=True)
class Line:
    """What one row says.

    Attributes:
        place: where it stands, for messages.
        step: its step; None without such a column.
        prompt: the prompt, or None where there are ids alone.
        given_id: the id that it has, if any.
        category: the prompt's, if any.
        rewards: (k,) of its rollouts; None for one that was not scored.
        texts: (k,) the completions; None without.
        tokens: (k,) their lengths; None without.
        truncated: (k,) which were cut off; None where that is not said.
        row: the whole row.
    """

    place: str
    step: int | None
    prompt: Any
    given_id: str | None
    category: str | None
    rewards: list[float | None]
    texts: list[str] | None
    tokens: list[int] | None
    truncated: list[bool] | None
    row: Mapping[str, Any]


def kind_of(row: Mapping[str, Any]) -> Kind:
    """What wrote a row like this.

    >>> kind_of({"step": 1, "prompt": "a", "completion": "b", "accuracy": 1.0, "advantage": 0.5})
    'trl'
    """
    names = set(row)
    if {"ticket", "prompt_id", "rewards"} <= names:
        return "run"
    if {"prompt", "completion", "advantage"} <= names and "reward" not in names:
        return "trl"
    return "verl" if {"input", "output", "score"} <= names else "rows"


class RowReader:
    """Reads rows whose columns are those of the first.

    Raises:
        ConfigError: a column that is named, or the one of rewards, is not there.
    """

    def __init__(self, columns: Columns, first: Mapping[str, Any], place: str) -> None:
        self.kind = kind_of(first)
        given = {f.name: getattr(columns, f.name) for f in fields(Columns)}
        for option, name in given.items():
            if name is not None and value_at(first, name) is ...:
                raise ConfigError(f"{place}: no {name!r} (--{option}); it has {', '.join(first)}")
        if self.kind == "trl" and given["reward_column"] is None:
            given["reward_column"] = _rewards_of_trl(first, place)
        self.names: dict[str, str] = {}
        for what, usual in USUAL.items():
            name = given.get(what) or next((name for name in usual if name in first), None)
            if name is not None:
                self.names[what] = name
        if "reward_column" not in self.names:
            raise ConfigError(_lacking("reward_column", "rewards", place, first))
        if "prompt_column" not in self.names and "id" not in self.names:
            raise ConfigError(_lacking("prompt_column", "prompts", place, first))
        self.id_is_given = given["id"] is not None or self.names.get("id") == "prompt_id"

    def read(self, place: str, row: Mapping[str, Any]) -> Line:
        """What a row says.

        Raises:
            StateFileError: a column is missing, or holds something else than it should.
        """
        found = {what: self._value(what, row, place) for what in self.names}
        rewards, grouped = self._rewards(found["reward_column"], place)
        said = found.get("completion_column")
        if said is None and "completion_column" in found and not grouped and self.kind != "run":
            said = ""  # generated nothing: a .csv file has no other way to say so
        texts = _listed(said, grouped, self._named("completion_column", place), len(rewards))
        tokens = _listed(found.get("tokens"), grouped, self._named("tokens", place), len(rewards))
        cut = _listed(found.get("truncated"), grouped, self._named("truncated", place), len(rewards))
        category = found.get("category")
        return Line(
            place=place,
            step=self._step(found["step_column"], place) if "step_column" in found else None,
            prompt=_messages(found.get("prompt_column")),
            given_id=None if found.get("id") is None else str(found["id"]),
            category=None if category is None else str(category),
            rewards=rewards,
            texts=None if texts is None else [text_of(text) for text in texts],
            tokens=None if tokens is None else [self._length(value, place) for value in tokens],
            truncated=None if cut is None else [self._was_cut(value, place) for value in cut],
            row=row,
        )

    def _named(self, what: str, place: str) -> str:
        return f"{place}: {self.names.get(what)!r}"

    def _value(self, what: str, row: Mapping[str, Any], place: str) -> Any:
        name = self.names[what]
        value = value_at(row, name)
        if value is ...:
            if self.kind == "run" and what not in ("reward_column", "step_column", "id"):
                return None
            raise StateFileError(f"{place}: no {name!r}, which the rows before have; mend it, or leave it out")
        if value is None and what in ("prompt_column", "step_column", "id"):
            raise StateFileError(f"{place}: {name!r} is empty; mend it, or leave the row out")
        return value

    def _rewards(self, value: Any, place: str) -> tuple[list[float | None], bool]:
        value = _decoded(value)
        grouped, named = isinstance(value, list), self._named("reward_column", place)
        return [_reward(v, named) for v in (value if grouped else [value])], grouped

    def _step(self, value: Any, place: str) -> int:
        try:
            step = float(value) if not isinstance(value, bool) else math.nan
        except (TypeError, ValueError, OverflowError):
            step = math.nan
        if not step.is_integer():
            raise self._wrong("step_column", "a whole number", value, place)
        return int(step)

    def _wrong(self, what: str, wanted: str, value: Any, place: str) -> StateFileError:
        return StateFileError(f"{self._named(what, place)} must be {wanted}, got {shown(value)}; mend it")

    def _length(self, value: Any, place: str) -> int:
        length = len(found) if isinstance(found := _decoded(value), list) else found
        try:
            size = int(float(length))  # "12.0", as a column with gaps has it
        except (TypeError, ValueError, OverflowError):
            size = -1
        if size < 0:
            raise self._wrong("tokens", "a number of tokens", value, place)
        return size

    def _was_cut(self, value: Any, place: str) -> bool:
        if (word := str(value).lower()) not in _CUT:
            raise self._wrong("truncated", "true or false", value, place)
        return _CUT[word]


def prompt_id(prompt: Any, given: str | None) -> str:
    """The id given, else the hash of the prompt's content."""
    return content_id(prompt) if given is None else given


def text_of(completion: Any) -> str:
    """A completion as text: itself, or what its chat messages say, one after another.

    >>> text_of([{"role": "assistant", "content": "4"}])
    '4'
    """
    completion = _messages(completion)
    if isinstance(completion, list):
        said = [m.get("content") if isinstance(m, Mapping) else m for m in completion]
        return "\n".join(part if isinstance(part, str) else json.dumps(part, default=str) for part in said if part)
    return "" if completion is None else str(completion)


def _rewards_of_trl(first: Mapping[str, Any], place: str) -> str:
    """The reward function's column: TRL writes one for each, between `completion` and `advantage`."""
    names = list(first)
    between = names[names.index("completion") + 1 : names.index("advantage")]
    found = [name for name in between if isinstance(first[name], int | float) or first[name] is None]
    if len(found) != 1:
        which = f"there are {len(found)} that may be ({', '.join(found)})" if found else "there is none"
        raise ConfigError(
            f"{place}: TRL logs a column for each reward function, and {which}; name one: --reward_column"
        )
    return found[0]


def _lacking(option: str, what: str, place: str, first: Mapping[str, Any]) -> str:
    looked = ", ".join(map(repr, USUAL[option]))
    return f"{place}: no {what}: none of {looked}; it has {', '.join(first)}: name the column, --{option} NAME"


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column; `a.b` is the field `b` of the column `a`, None where `a` is; `...` if it is not there."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part, ...) if isinstance(value, Mapping) else None if value is None else ...
    return value


def _decoded(value: Any) -> Any:
    """A list that a text file holds as JSON, as in .csv; anything else as it is."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _messages(value: Any) -> Any:
    """Chat messages that a text file holds as JSON; anything else as it is, also a text such as "[1, 2]"."""
    decoded = _decoded(value)
    chat = isinstance(decoded, list) and all(isinstance(m, Mapping) and "content" in m for m in decoded)
    return decoded if chat else value


def _listed(value: Any, grouped: bool, named: str, n: int) -> list[Any] | None:
    """The value for each of a row's n rollouts; of a row that is no group, its one value."""
    if value is None or not grouped:
        return None if value is None else [value]
    value = _decoded(value)
    if not isinstance(value, list) or len(value) != n:
        got = f"{len(value)}" if isinstance(value, list) else shown(value)
        raise StateFileError(f"{named} must be a list of {n}, one for each reward, got {got}; mend it")
    return value


def _reward(value: Any, named: str) -> float | None:
    try:
        number = None if value is None or value == "" else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if number is not None and math.isinf(number):
        raise StateFileError(f"{named} must be a number, got {shown(value)}; mend it, or name another: --reward_column")
    return None if number is None or math.isnan(number) else number
