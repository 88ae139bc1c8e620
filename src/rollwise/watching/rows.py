"""Several runs on the screen, one row each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from rollwise.evaluation.named_sets import set_of
from rollwise.watching.glyphs import sparkline
from rollwise.watching.pace import clock
from rollwise.watching.screen import STATUS_STYLES, Canvas, bar
from rollwise.watching.snapshot import Snapshot

_BAR = 10
_BAR_FROM_WIDTH = 100
_LONGEST_NAME = 40
_SHORTEST_NAME = 12
_WIDEST_SET = 8
_FEWEST_SPARKS, _MOST_SPARKS = 6, 40
_NUMBERS = ((">step", 7), (">left", 7), (">pass@1", 6), (">best", 5), (">mixed", 5), (">tokens", 6), ("status", 8))
_ORDER = {"running": 0, "quiet": 1, "starting": 2, "complete": 3, "waiting": 4}


def render_rows(snapshots: Sequence[Snapshot], canvas: Canvas) -> RenderableType:
    """A row for each run; where they are more than the canvas has lines, those that go on come first."""
    finished = sum(s.status == "complete" for s in snapshots)
    head = canvas.line(Text(f"{finished} of {len(snapshots)} runs complete", style="bold"))
    room = max(1, canvas.height - 3)
    shown = list(snapshots)
    if len(shown) > room:
        shown = sorted(shown, key=lambda s: _ORDER.get(s.status, 9))[:room]
    rest = len(snapshots) - len(shown)
    bars = _BAR if canvas.width >= _BAR_FROM_WIDTH else 0
    free = canvas.width - sum(width + 1 for _, width in _NUMBERS) - (bars + 1 if bars else 0) - 1
    name = min(_LONGEST_NAME, max(3, *(cell_len(s.name) for s in shown)), max(_SHORTEST_NAME, free))
    sets = _sets(shown, free - name)
    sparks = min(_MOST_SPARKS, free - name - sum(width + 1 for _, width in sets.values()))
    columns: list[tuple[str, int | None]] = [("run", name), *([("", bars)] if bars else []), *_NUMBERS, *sets.values()]
    if sparks >= _FEWEST_SPARKS:
        columns.append(("pass@1", sparks))
    table = canvas.table(*columns, gap=1)
    for snapshot in shown:
        row: list[RenderableType] = [Text(shorten(snapshot.name, name, canvas.glyphs.more), style="bold")]
        if bars:
            row.append(Text("") if snapshot.done is None else bar(snapshot.done, bars, canvas.glyphs))
        row += _numbers(snapshot)
        row += [f"{values[-1]:.3f}" if (values := _scores(snapshot, key)) else "" for key in sets]
        if sparks >= _FEWEST_SPARKS:
            row.append(Text(sparkline(_scores(snapshot), sparks, canvas.glyphs), style="cyan"))
        table.add_row(*row)
    more = [canvas.line(Text(f"and {rest} more", style="dim"))] if rest else []
    return Group(head, table, *more)


def _sets(snapshots: Sequence[Snapshot], room: int) -> dict[str, tuple[str, int]]:
    """Column, head and width of each evaluation set's last score, as many as there is room for."""
    named = {s.key: s.name.strip() for snapshot in snapshots for s in snapshot.signals if set_of(s.key)}
    columns = {key: (f">{name}", min(_WIDEST_SET, max(5, cell_len(name)))) for key, name in named.items()}
    while columns and sum(width + 1 for _, width in columns.values()) > room:
        columns.popitem()
    return columns


def _numbers(snapshot: Snapshot) -> list[RenderableType]:
    scores, tokens = _scores(snapshot), snapshot.spent.tokens
    mixed = next((signal.values[-1] for signal in snapshot.signals if signal.name == "mixed"), None)
    steps = "" if snapshot.steps is None else f"/{snapshot.steps}"
    left = snapshot.left_s if snapshot.status == "running" else None
    return [
        "" if snapshot.step is None else f"{snapshot.step}{steps}",
        "" if left is None else clock(left),
        f"{scores[-1]:.3f}" if scores else "",
        f"{max(scores):.3f}" if scores else "",
        "" if mixed is None else f"{mixed:.2f}",
        "" if tokens is None else short(tokens),
        Text(snapshot.status, style=STATUS_STYLES.get(snapshot.status, "")),
    ]


def _scores(snapshot: Snapshot, key: str = "eval/pass@1") -> tuple[float, ...]:
    return next((signal.values for signal in snapshot.signals if signal.key == key), ())


def shorten(name: str, width: int, more: str) -> str:
    """A name in at most `width` columns, without its middle: the method is at its beginning, the seed at its end.

    >>> shorten("prioritized-replay-seed0", 16, "~")
    'priorit~ay-seed0'
    """
    if cell_len(name) <= width:
        return name
    tail = width // 2
    end = next(name[i:] for i in range(len(name) + 1) if cell_len(name[i:]) <= tail)
    return set_cell_size(name, width - tail - cell_len(more)) + more + end


def short(amount: float) -> str:
    """A large number in few characters.

    >>> short(950), short(224362), short(3.2e9)
    ('950', '224k', '3.2G')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:.3g}{unit}"
    return f"{amount:.0f}"
