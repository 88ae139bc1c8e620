"""The rollouts that the page holds for its search: which groups, and how they are embedded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.reports.run.digest import as_list, prompt_text
from rollwise.runs.group_table import NO_STEP, GroupTable, is_real

# The page holds at most this many groups, in at most this many bytes; fewer where completions are long.
MOST_GROUPS = 2000
MOST_BYTES = 6_000_000
# Of a longer text the beginning and the end are kept, where the task and the answer are.
LONGEST_TEXT = 4000
KEPT_END = 1500
FIELDS = (
    "step", "id", "prompt", "lane", "category", "purpose", "trained", "outcome", "expected", "rollouts",
)  # fmt: skip
SCREENED = "screened before"
OUTCOMES = ("mixed", "all solved", "all failed", "no reward")


@dataclass(frozen=True)
class Sample:
    """The groups that the page can search, oldest first.

    Attributes:
        rows: one list of `FIELDS` for each.
        total: how many the file holds.
        last_step_whole: whether all groups of the last step are there.
    """

    rows: list[list[Any]]
    total: int
    last_step_whole: bool = True

    def embedded(self) -> str:
        """As JSON that is safe within a `<script>` element."""
        return script_json({"fields": FIELDS, "groups": self.rows})


def sampled_rows(groups: GroupTable, most: int = MOST_GROUPS) -> NDArray[np.int64]:
    """At most `most` of M groups, as row numbers in their order: all of the last step, of the others evenly.

    Evenly means one from each of as many stretches of the file, at a random place within: groups of one step come in
    the order in which they were chosen, so that every n-th could always be the same lane. The same every time.
    """
    count = len(groups)
    if count <= most:
        return np.arange(count)
    last = np.flatnonzero(groups.step == groups.step.max()) if groups.step.max() != NO_STEP else np.arange(0)
    last = last[-most:]
    others = np.setdiff1d(np.arange(count), last)
    return np.sort(np.concatenate([others[even_places(len(others), most - len(last))], last]))


def even_places(count: int, wanted: int) -> NDArray[np.int64]:
    """One place in each of `wanted` equal stretches of 0 ... count-1, at random, the same every time."""
    edges = np.linspace(0, count, wanted + 1).astype(np.int64)
    low, high = edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)
    return np.asarray(np.random.default_rng(0).integers(low, high), dtype=np.int64)


def make_sample(
    groups: GroupTable,
    chosen: NDArray[np.int64],
    lines: Mapping[int, Mapping[str, Any]],
    *,
    most_bytes: int = MOST_BYTES,
) -> Sample:
    """The chosen groups, from the lines they are on; fewer, evenly, where they would take too many bytes."""
    outcomes = np.select([groups.mixed, groups.all_good, groups.all_bad], [0, 1, 2], default=3)
    rows = [
        _row(lines[line], OUTCOMES[outcomes[i]])
        for i, line in zip(chosen.tolist(), groups.line[chosen].tolist(), strict=True)
        if line in lines
    ]
    sizes = np.array([len(script_json(row)) + 1 for row in rows], dtype=np.int64)
    if sizes.sum() <= most_bytes:
        return Sample(rows, len(groups))
    kept = int(len(rows) * most_bytes / sizes.sum())
    rows = [rows[i] for i in even_places(len(rows), kept).tolist()] if kept else rows[-1:]
    return Sample(rows, len(groups), last_step_whole=False)


def _row(row: Mapping[str, Any], outcome: str) -> list[Any]:
    step, predicted = row.get("step"), row.get("predicted")
    return [
        step if isinstance(step, int) else None,
        _name(row.get("prompt_id")),
        shorten(prompt_text(row.get("prompt"))),
        _name(row.get("lane")),
        _name(row.get("category")),
        _name(row.get("purpose", "train")),
        bool(row.get("trained", True)),
        outcome,
        predicted if is_real(predicted) else None,
        _rollouts(row),
    ]


def _rollouts(row: Mapping[str, Any]) -> list[list[Any]]:
    """`[reward, text, kind of failure, how many]`, the same ones together, in the order of their first."""
    rewards, texts, labels = (as_list(row.get(name)) for name in ("rewards", "texts", "failures"))
    screened = row.get("screened")
    before = as_list(screened.get("rewards")) if isinstance(screened, Mapping) else []
    found: list[tuple[Any, str | None, Any]] = [(reward, None, SCREENED) for reward in before]
    for i in range(max(len(rewards), len(texts))):
        text = shorten(prompt_text(texts[i])) if i < len(texts) else None
        found.append((rewards[i] if i < len(rewards) else None, text, labels[i] if i < len(labels) else None))
    counts: dict[tuple[float | None, str | None, str], int] = {}
    for reward, text, label in found:
        key = float(reward) if is_real(reward) else None, text, _name(label)
        counts[key] = counts.get(key, 0) + 1
    return [[*key, times] for key, times in counts.items()]


def shorten(text: str) -> str:
    """A text of at most about `LONGEST_TEXT` characters: its beginning and its end, and how many are between."""
    if len(text) <= LONGEST_TEXT:
        return text
    left_out = len(text) - LONGEST_TEXT
    return f"{text[: LONGEST_TEXT - KEPT_END]}\n[… {left_out:,} characters left out …]\n{text[-KEPT_END:]}"


def script_json(value: Any) -> str:
    r"""JSON that can stand in a `<script>` element: ASCII alone, without `<`, `>` and `&`.

    Half surrogates and the line ends U+2028 and U+2029 are escapes then, and nothing can close the element.

    >>> script_json(["</script>", "\ud800"])
    '["\\u003c/script\\u003e","\\ud800"]'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _name(value: object) -> str:
    return "" if value is None else str(value)


def browser_script() -> str:
    """The page's script, which searches the groups."""
    return files("rollwise.reports.run").joinpath("page.js").read_text(encoding="utf-8")
