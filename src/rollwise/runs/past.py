"""Past rollouts, whatever logged them: a run of rollwise, TRL's completions, verl's dump, or a file of rows.

Every row is checked; what can't be read is refused by file, line and field, as a page of wrong counts helps nobody.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.lines import Faults, enumeration
from rollwise.runs.names import PASS_RATES_FILE, PASS_RATES_PARQUET, PROFILE_FILE, ROLLOUTS_FILE
from rollwise.runs.past_columns import KINDS, Columns, Kind, Line, RowReader, prompt_id
from rollwise.runs.rows import ENDINGS, read_rows

_PROFILE = {PROFILE_FILE, PASS_RATES_FILE, PASS_RATES_PARQUET}  # of a profile whose --out is the log's folder
_Placed = tuple[str, Mapping[str, Any]]


@dataclass(slots=True)
class PastGroup:
    """The rollouts of one prompt at one step.

    Attributes:
        prompt_id: the prompt's.
        step: when they were made; 0 where the log has no steps.
        rewards: (k,) None for one that was not scored.
        sizes: (k,) their lengths in the log's unit.
        texts: (k,) the completions; empty where the log has none.
        truncated: (k,) which were cut off; empty where the log does not say.
    """

    prompt_id: str
    step: int
    rewards: list[float | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)

    def add(self, line: Line, unit: str) -> None:
        """Add a line's rollouts."""
        self.rewards += line.rewards
        self.texts += line.texts or []
        self.truncated += line.truncated or []
        if unit == "tokens":
            self.sizes += line.tokens or []
        else:
            self.sizes += [1] * len(line.rewards) if unit == "rollouts" else [len(t) for t in line.texts or []]

    def cut_into(self, size: int) -> list[PastGroup]:
        """Groups of `size` rollouts, in order; a list that some of the rollouts lack is left out."""
        lists: list[list[Any]] = [self.rewards, self.sizes, self.texts, self.truncated]
        lists = [own if len(own) == len(self.rewards) else [] for own in lists]
        starts = range(0, len(self.rewards), size)
        return [PastGroup(self.prompt_id, self.step, *(own[at : at + size] for own in lists)) for at in starts]


@dataclass(frozen=True)
class PastRollouts:
    """All groups of a log.

    Attributes:
        path: the file or folder.
        kind: what wrote it.
        groups: J groups, by step, then as they stand.
        prompts: N prompts by id, in the order in which they first came.
        columns: their other columns by id: those that never change for a prompt.
        categories: the prompts' categories by id; empty where there are none.
        has_steps: whether the log says which step each is of.
        unit: what `sizes` count: "tokens", else "characters" of the completions, else "rollouts".
        lanes: why groups were chosen, of a run of rollwise.
        left_out: groups that were made only to measure or screen prompts.
        notes: what its reader should know.
    """

    path: Path
    kind: Kind
    groups: list[PastGroup]
    prompts: dict[str, Any]
    columns: dict[str, dict[str, Any]]
    categories: dict[str, str]
    has_steps: bool
    unit: str
    lanes: frozenset[str]
    left_out: int
    notes: list[str]

    @property
    def steps(self) -> list[int]:
        """The steps that have groups, increasing."""
        return sorted({group.step for group in self.groups})

    @property
    def group_size(self) -> int:
        """Rollouts of a group: the most common number."""
        return Counter(len(group.rewards) for group in self.groups).most_common(1)[0][0]


def read_past(path: str | Path, columns: Columns | None = None) -> PastRollouts:
    """Read past rollouts.

    Args:
        path: A .jsonl, .json, .csv or .parquet file with a row for each completion or each group; or a folder: a run's,
            TRL's `output_dir` (trained with `log_completions=True`), verl's `rollout_data_dir`, or one of such files.
        columns: What the columns are called, where the usual names are not used.

    Raises:
        StateFileError: nothing is there, or a line lacks a field or holds something else than it should.
        ConfigError: a column can't be found, the file is of another kind, or no prompt has two rollouts in a step.
    """
    place, columns = Path(path), columns or Columns()
    files = _find_files(place)
    log, torn = _Log(columns), Faults()
    before: list[Any] = []
    repeated: list[str] = []
    for file in files:
        rows = [(f"{file}, {at}", row) for at, row in read_rows(file, torn)]
        contents = [(row.get("prompt"), row.get("completion")) for _, row in rows] if len(files) > 1 else []
        if contents and contents == before and all(text is not None for _, text in contents):
            repeated.append(file.name)
            continue
        before = contents
        log.read(rows)
    if not log.lines:
        raise ConfigError(f"{str(place)!r} has no rollouts; give a log with a row for each completion or group")
    notes = torn.sentences()
    if repeated:  # TRL writes its last batch at every logged step, also where no new one was generated
        names = enumeration(repeated[:3], len(repeated) - len(repeated[:3]))
        notes.append(f"{names} repeat the completions of the file before, and are counted once")
    return log.past(place, notes)


def _find_files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise StateFileError(f"{str(place)!r} is not there; give a file or folder of past rollouts")
    for name in (ROLLOUTS_FILE, "groups.jsonl"):
        if (place / name).is_file():
            return [place / name]
    for folder in (place / "completions", place):
        if found := sorted(folder.glob("completions_*.parquet")):
            return found
    logs = (p for p in place.iterdir() if p.suffix.lower() in ENDINGS and p.is_file() and p.name not in _PROFILE)
    found = sorted(logs, key=_in_order)
    if not found or len({p.suffix.lower() for p in found}) > 1:
        what = f"files of several kinds ({found[0].name}, {found[-1].name})" if found else "no rollouts"
        raise StateFileError(
            f"{str(place)!r} holds {what}; give a file, a run's folder, TRL's output_dir (trained with "
            "log_completions=True) or verl's rollout_data_dir"
        )
    return found


def _in_order(path: Path) -> list[tuple[int, str]]:
    """By the numbers in the name, so that 10.jsonl comes after 9.jsonl."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


class _Log:
    """Collects the lines of a log."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.reader: RowReader | None = None
        self.lines: list[Line] = []
        self.left_out = self.again = 0

    def read(self, rows: Iterable[_Placed]) -> None:
        """Read a file's rows; tickets of another file are others, whatever their names."""
        lines = []
        for place, row in rows:
            self.reader = self.reader or RowReader(self.columns, row, place)
            lines.append(self.reader.read(place, row))
        if self.reader and self.reader.kind == "run":
            lines, left_out, again = _merge_screened(lines)
            self.left_out, self.again = self.left_out + left_out, self.again + again
        self.lines += lines

    def past(self, path: Path, notes: list[str]) -> PastRollouts:
        """All of it, as groups."""
        assert self.reader is not None
        lines, reader, kind = self.lines, self.reader, self.reader.kind
        if self.again:
            few = f"groups with the ticket and prompt of a later line are left out ({self.again})"
            notes.append(f"{few}; give the logs of several runs as files of one folder")
        ids = _ids(lines, given=reader.id_is_given)
        unit = next((u for u, has in _units(lines) if has), "rollouts")
        has_steps = "step_column" in reader.names
        parts = self._groups(ids, unit, has_steps, in_groups=kind == "run")
        if all(len(group.rewards) < 2 for group in parts):
            raise ConfigError(
                f"{str(path)!r}: no prompt has two rollouts" + " in a step" * has_steps + ", so no group has contrast; "
                "name the right columns: --prompt_column (or --id) and --step_column"
            )
        prompts: dict[str, Any] = {}
        for line, id_ in zip(lines, ids, strict=True):
            prompts.setdefault(id_, id_ if line.prompt is None else line.prompt)
        return PastRollouts(
            path=path,
            kind=kind,
            groups=sorted((g for g in parts if g.rewards), key=lambda g: g.step),
            prompts=prompts,
            columns={} if kind == "run" else _other_columns(lines, ids, set(reader.names.values())),
            categories=_categories(lines, ids, notes),
            has_steps=has_steps,
            unit=unit,
            lanes=frozenset(str(line.row.get("lane")) for line in lines) if kind == "run" else frozenset(),
            left_out=self.left_out,
            notes=notes,
        )

    def _groups(self, ids: list[str], unit: str, has_steps: bool, *, in_groups: bool) -> list[PastGroup]:
        """Rows that are groups, then completions by step and prompt."""
        parts: list[PastGroup] = []
        joined: dict[Any, PastGroup] = {}
        for line, id_ in zip(self.lines, ids, strict=True):
            group = PastGroup(id_, line.step or 0)
            if in_groups or len(line.rewards) != 1:
                parts.append(group)
            else:
                group = joined.setdefault((group.step, id_), group)
            group.add(line, unit)
        whole = list(joined.values())
        return parts + (list(_split(whole)) if has_steps else whole)


def _units(lines: list[Line]) -> Iterator[tuple[str, bool]]:
    known = any(any(line.tokens or ()) for line in lines)  # an engine that tells no lengths has zeros
    yield "tokens", known and all(line.tokens is not None for line in lines)
    written = any(any(line.texts or ()) for line in lines)  # nor texts, which are empty then
    yield "characters", written and all(line.texts is not None for line in lines)


def _ids(lines: list[Line], *, given: bool) -> list[str]:
    """The prompts' ids: those given; of a column `id` that nobody named, only if it has one for each prompt."""
    hashed = [prompt_id(line.prompt, line.given_id if line.prompt is None or given else None) for line in lines]
    if given or any(line.given_id is None for line in lines):
        return hashed
    named = [str(line.given_id) for line in lines]
    pairs = len(set(zip(named, hashed, strict=True)))
    return named if pairs == len(set(named)) == len(set(hashed)) else hashed


def _split(groups: list[PastGroup]) -> Iterator[PastGroup]:
    """Groups as large as most are: a prompt that came twice in a step has two."""
    size = max(Counter(len(group.rewards) for group in groups).most_common(1), default=(1, 0))[0]
    for group in groups:
        yield from group.cut_into(size) if size > 1 and len(group.rewards) % size == 0 else [group]


def _merge_screened(lines: list[Line]) -> tuple[list[Line], int, int]:
    """A run's groups as last written, with their screened rollouts; how many only measured, how many written again."""
    by_ticket = {(str(line.row.get("ticket", line.place)), line.given_id): line for line in lines}
    train = [line for line in by_ticket.values() if line.row.get("purpose", "train") == "train"]
    used = 0
    for line in train:
        screened = line.row.get("screened")
        first = by_ticket.get((str(screened.get("ticket")), line.given_id)) if isinstance(screened, Mapping) else None
        if first is not None:
            used += 1
            line.rewards = first.rewards + line.rewards
            for name in ("texts", "tokens", "truncated"):
                parts = getattr(first, name), getattr(line, name)
                setattr(line, name, None if None in parts else parts[0] + parts[1])
    return train, len(by_ticket) - len(train) - used, len(lines) - len(by_ticket)


def _categories(lines: list[Line], ids: list[str], notes: list[str]) -> dict[str, str]:
    """Each prompt's category; none, with a note, where some prompts have none."""
    found = {id_: line.category for line, id_ in zip(lines, ids, strict=True) if line.category is not None}
    lacking = list(dict.fromkeys(id_ for id_ in ids if id_ not in found))
    if not found or not lacking:
        return found
    known = len(found) + len(lacking)
    notes.append(f"the categories are left out: {len(lacking)} of {known} prompts have none, {lacking[0]!r} first")
    return {}


def _other_columns(lines: list[Line], ids: list[str], used: set[str]) -> dict[str, dict[str, Any]]:
    """The columns of text and numbers that always have the same value for a prompt, such as a recorded answer."""
    found: dict[str, dict[str, Any]] = {}
    changing: set[str] = set(used)
    for line, id_ in zip(lines, ids, strict=True):
        if id_ in found:
            changing |= {n for n, v in found[id_].items() if n not in changing and line.row.get(n) != v}
        else:
            found[id_] = {n: v for n, v in line.row.items() if isinstance(v, str | int | float | Mapping)}
    return {id_: {n: v for n, v in row.items() if n not in changing} for id_, row in found.items()}


def words_of(past: PastRollouts) -> str:
    """What a log is, in a few words."""
    groups = f"{len(past.groups):,} group{'s' if len(past.groups) != 1 else ''}"
    return f"{KINDS[past.kind]}, {groups} of {len(past.prompts):,} prompt{'s' if len(past.prompts) != 1 else ''}"
