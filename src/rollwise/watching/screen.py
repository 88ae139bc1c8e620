"""One run on the screen: blocks of rich with one line a row, so that their height is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group, JustifyMethod, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from rollwise.runs.lines import scientific
from rollwise.watching.glyphs import Glyphs, sparkline
from rollwise.watching.held_out import HeldOut
from rollwise.watching.history import one_line
from rollwise.watching.pace import clock
from rollwise.watching.sizes import size_facts
from rollwise.watching.snapshot import Signal, Snapshot
from rollwise.watching.state import RECENT_STEPS

# Lines of a snapshot that no screen bounds.
TALL = 44
STATUS_STYLES = {"running": "green", "complete": "bold green", "quiet": "bold yellow"}
_LABEL, _LONGEST_LABEL, _NUMBER = 11, 20, 7
_WIDEST_SPARKLINE = 120
_SHORTEST_SPARKLINE = 8
_FEWEST_ROWS, _MOST_ROWS = 3, 12
_MOST_ALARMS = 3


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where it is drawn: columns, lines, and the characters to draw with."""

    width: int
    height: int
    glyphs: Glyphs

    def table(self, *columns: tuple[str, int | None], gap: int = 2) -> Table:
        """A table without lines whose rows never wrap.

        Args:
            *columns: header and width of each; one that begins with `>` is right-justified, None is as wide as needed.
            gap: blanks between two columns.
        """
        table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
        for header, width in columns:
            justify: JustifyMethod = "right" if header.startswith(">") else "left"
            name = Text(header.removeprefix(">"))  # as it is: a set's name may look like rich's markup
            table.add_column(name, width=width, justify=justify, no_wrap=True, overflow=self.overflow)
        return table

    @property
    def overflow(self) -> OverflowMethod:
        """What becomes of text that is too long."""
        return "crop" if self.glyphs.ascii else "ellipsis"

    def line(self, text: Text) -> Text:
        """One line, cut to the width."""
        text.truncate(self.width, overflow=self.overflow)
        text.no_wrap = True
        return text

    def join(self, facts: Sequence[str]) -> str:
        """Facts beside one another."""
        return f" {self.glyphs.dot} ".join(facts)


@dataclass(frozen=True, slots=True)
class Block:
    """Something of a known height."""

    body: RenderableType
    height: int


def render_run(snapshot: Snapshot, canvas: Canvas) -> RenderableType:
    """A run's screen, of at most the canvas's lines."""
    blocks = [_top(snapshot, canvas)]
    if snapshot.signals:
        blocks.append(_signals(snapshot.signals, canvas))
    blocks.append(_facts(snapshot, canvas))
    free = canvas.height - sum(block.height for block in blocks)
    rows = min(max(len(snapshot.lanes), len(snapshot.categories)), max(_FEWEST_ROWS, free // 2), _MOST_ROWS, free - 1)
    if rows > 0:
        blocks.append(_shares(snapshot, canvas, rows))
        free -= blocks[-1].height
    if (
        snapshot.held_out is not None
        and (rows := min(len(snapshot.held_out.rows), _MOST_ROWS, free - 1)) >= _FEWEST_ROWS
    ):
        blocks.append(_held_out(snapshot.held_out, canvas, rows))
        free -= blocks[-1].height
    spaced = free - len(blocks) >= _FEWEST_ROWS + 1
    groups = min(len(snapshot.groups), free - 1 - (len(blocks) if spaced else 0))
    if groups > 0:
        blocks.append(_groups(snapshot, groups, canvas))
    gap = [Text("")] if spaced else []
    return Group(blocks[0].body, *(part for block in blocks[1:] if block.height for part in (*gap, block.body)))


def bar(done: float, width: int, glyphs: Glyphs) -> Text:
    """A bar of `width` columns; the share `done` of them is filled; heavy and light, so that it needs no colour."""
    full = int(done * width)
    return Text.assemble((glyphs.done * full, "green"), (glyphs.open * (width - full), "dim"))


def _top(snapshot: Snapshot, canvas: Canvas) -> Block:
    title = Table.grid(expand=True, padding=(0, 1))
    title.add_column(no_wrap=True, overflow=canvas.overflow, ratio=1)
    title.add_column(no_wrap=True, justify="right")
    facts = canvas.join(["", *snapshot.facts]) if snapshot.facts else ""
    status = Text(snapshot.status, style=STATUS_STYLES.get(snapshot.status, ""))
    title.add_row(Text.assemble((snapshot.name, "bold"), (facts, "dim")), status)
    return Block(Group(title, canvas.line(_progress(snapshot, canvas))), 2)


def _progress(snapshot: Snapshot, canvas: Canvas) -> Text:
    if snapshot.status == "waiting":
        return Text("nothing there yet: waiting for the run to begin")
    if snapshot.step is None:
        return Text("no step yet: the model is being loaded or made, or the first evaluation goes on")
    if snapshot.steps is None or snapshot.done is None:
        return Text(f"step {snapshot.step:,}")
    left = "" if snapshot.left_s is None or snapshot.status == "complete" else f"  about {clock(snapshot.left_s)} left"
    before, after = f"step {snapshot.step}/{snapshot.steps} ", f" {snapshot.done:4.0%}{left}"
    width = max(5, canvas.width - len(before) - len(after))
    return Text.assemble(before, bar(snapshot.done, width, canvas.glyphs), after)


def _signals(signals: Sequence[Signal], canvas: Canvas) -> Block:
    label = max(_LABEL, *(min(_LONGEST_LABEL, cell_len(signal.name)) for signal in signals))
    free = canvas.width - label - 2
    cells = [[number(n) for n in (s.values[-1], s.values[0], min(s.values), max(s.values))] for s in signals]
    wide = max(_NUMBER, *(len(cell) for row in cells for cell in row))
    shown = min(4, max(1, (free - _SHORTEST_SPARKLINE) // (wide + 2)))  # numbers that are whole, the last one first
    room = max(1, min(_WIDEST_SPARKLINE, free - shown * (wide + 2)))
    numbers = [(name, wide) for name in (">last", ">first", ">low", ">high")[:shown]]
    table = canvas.table(("", label), *numbers, ("first step to last", room))
    for signal, (last, *others) in zip(signals, cells, strict=True):
        line = sparkline(signal.values, room, canvas.glyphs, low=signal.low, high=signal.high)
        table.add_row(Text(signal.name), Text(last, style="bold"), *others[: shown - 1], Text(line, style="cyan"))
    return Block(table, len(signals) + 1)


def _facts(snapshot: Snapshot, canvas: Canvas) -> Block:
    spent, found = snapshot.spent, snapshot.calibration
    pool = [f"{name} {size:,.0f}" for name, size in snapshot.pool.items()]
    if snapshot.coverage is not None:
        pool.append(f"coverage {snapshot.coverage:.0%}")
    belief = []
    if found is not None:
        correlation = "unknown" if math.isnan(found.correlation) else f"{found.correlation:.2f}"
        belief = [
            f"Brier {found.brier:.3f} (constant {found.constant:.3f})",
            f"correlation {correlation}",
            f"last {found.groups:,} groups",
        ]
    cost = [f"{value:,.0f} {noun}" for value, noun in ((spent.rollouts, "rollouts"), (spent.tokens, "tokens")) if value]
    if spent.probes and cost:
        cost[0] += f" ({spent.probes:,.0f} probes)"
    cost += [f"{scientific(spent.flops)} FLOPs"] if spent.flops else []
    cost += [f"{clock(spent.wall_s)} training"] if spent.wall_s else []
    speed = [f"{spent.tokens_per_s:,.0f} tokens/s"] if spent.tokens_per_s else []
    speed += [f"{spent.step_s:.2g} s a step"] if spent.step_s else []
    speed += [f"overhead {100 * spent.overhead:.2g}%"] if spent.overhead is not None else []
    judge = _judge_facts(snapshot, canvas)
    replay = [] if snapshot.replay is None else snapshot.replay.facts()
    sizes = [] if snapshot.sizes is None else size_facts(snapshot.sizes, canvas.glyphs)
    named = [("pool", pool), ("priority", replay), ("belief", belief), ("sizes", sizes), ("judge", judge)]
    named += [("spent", cost), ("speed", speed)]
    lines = [Text.assemble((f"{name:<{_LABEL + 2}}", "dim"), canvas.join(facts)) for name, facts in named if facts]
    lines += [Text(f"! {alarm}", style="bold yellow") for alarm in snapshot.alarms[:_MOST_ALARMS]]
    return Block(Group(*(canvas.line(line) for line in lines)), len(lines))


def _judge_facts(snapshot: Snapshot, canvas: Canvas) -> list[str]:
    facts: list[str] = []
    if (judge := snapshot.judge) is None:
        return facts
    if judge.reward is not None:
        baseline = "" if judge.baseline is None else f" (baseline {judge.baseline:.2f})"
        facts.append(f"reward {judge.reward:.2f}{baseline}")
    if judge.failure_rate is not None:
        facts.append(f"unread {percent(judge.failure_rate)}")
    if judge.mean is not None and judge.spread is not None:
        facts.append(f"predicts {judge.mean:.3f} {'+-' if canvas.glyphs.ascii else '±'} {judge.spread:.3f}")
    return facts


def _shares(snapshot: Snapshot, canvas: Canvas, rows: int) -> Block:
    """Lanes and, beside them, categories; where there are more than rows, the last row is the sum of the others."""
    header = f"lanes, last {RECENT_STEPS} steps"
    longest = [max(map(cell_len, [header, *(name for name, _ in snapshot.lanes)]))]
    if snapshot.categories:
        longest.append(max(map(cell_len, ["category", *(category.name for category in snapshot.categories)])))
    numbers = 5 + 9 + 5 + 3 * 2 + 2 + 4 if snapshot.categories else 0
    names = _rooms(longest, canvas.width - (5 + 2 * 2) - numbers - 4)
    lanes = canvas.table((header, names[0]), (">share", 5))
    listed = snapshot.lanes if len(snapshot.lanes) <= rows else snapshot.lanes[: rows - 1]
    for lane, share in listed:
        lanes.add_row(Text(lane), percent(share))
    rest = snapshot.lanes[len(listed) :]
    if rest:
        lanes.add_row(f"{len(rest)} others", percent(sum(share for _, share in rest)))
    if not snapshot.categories:
        return Block(lanes, rows + 1)
    categories = canvas.table(("category", names[1]), (">share", 5), (">pass rate", 9), (">mixed", 5))
    chosen = list(snapshot.categories)
    if len(chosen) > rows:
        chosen = sorted(chosen, key=lambda category: (-category.share, category.name))
    kept = chosen if len(chosen) <= rows else chosen[: rows - 1]
    for category in kept:
        shares = [percent(value) for value in (category.share, category.pass_rate, category.mixed)]
        categories.add_row(Text(category.name), *shares)
    if others := chosen[len(kept) :]:
        categories.add_row(f"{len(others)} others", percent(sum(category.share for category in others)))
    side = Table.grid(padding=(0, 4, 0, 0))
    side.add_row(lanes, categories)
    return Block(side, rows + 1)


def _held_out(held_out: HeldOut, canvas: Canvas, rows: int) -> Block:
    """The last pass@1 of each category on each evaluation set; categories beyond `rows` are counted."""
    header = f"held out, step {held_out.step}"
    names = [name for name, _ in held_out.rows]
    width = min(max(map(cell_len, [header, *names])), canvas.width // 3)
    sets = [(f">{one_line(name)}", min(max(_NUMBER, cell_len(name)), 12)) for name in held_out.sets]
    sets = sets[: max(1, (canvas.width - width) // (12 + 2))]
    table = canvas.table((header, width), *sets)
    kept = held_out.rows if len(held_out.rows) <= rows else held_out.rows[: rows - 1]
    for name, scores in kept:
        cells = ["" if math.isnan(score) else number(score) for score in scores[: len(sets)]]
        table.add_row(Text(one_line(name)), *cells)
    if more := len(held_out.rows) - len(kept):
        table.add_row(f"{more} others")
    return Block(table, rows + 1)


def _rooms(longest: Sequence[int], room: int) -> list[int]:
    """The columns that texts get of `room`: what they need, else what the others leave, at least an equal share.

    >>> _rooms([20, 10], 40), _rooms([20, 60], 40), _rooms([50, 60], 40)
    ([20, 10], [20, 20], [20, 20])
    """
    fair = max(1, room // len(longest))
    left = max(room - sum(min(need, fair) for need in longest), 0)
    return [min(need, fair + left) if need > fair else need for need in longest]


def _groups(snapshot: Snapshot, newest: int, canvas: Canvas) -> Block:
    """The newest groups; `said` is the mean score that was predicted, where one was, and `got` the one that came."""
    groups, (low, high) = snapshot.groups[:newest], snapshot.reward_range
    believed = ["" if group.predicted is None else f"{group.predicted:.2f}" for group in groups]
    got = [f"{(sum(own) / len(own) - low) / (high - low):.2f}" if (own := group.scored) else "" for group in groups]
    lane = min(max(len(group.lane) for group in groups), max(10, canvas.width // 4))
    rollouts = min(max(7, *(len(group.rewards) for group in groups)), max(8, canvas.width // 8))
    step = max(4, len(str(groups[0].step)))
    said = [(">said", max(4, *map(len, believed)))] if any(believed) else []
    kept = [(">step", step), ("lane", max(4, lane)), *said, (">got", max(4, *map(len, got))), ("rewards", rollouts)]
    room = max(1, canvas.width - sum(width + 2 for _, width in kept) - 2)
    table = canvas.table(*kept, ("prompt and first completion", room))
    for group, *numbers in zip(groups, believed, got, strict=True):
        rewards = [math.nan if reward is None else reward for reward in group.rewards]
        table.add_row(
            str(group.step),
            Text(group.lane),
            *(numbers if said else numbers[1:]),
            Text(sparkline(rewards, rollouts, canvas.glyphs, low=low, high=high), style="cyan"),
            Text.assemble(group.prompt, (f" {canvas.glyphs.to} ", "dim"), group.text),
        )
    return Block(table, len(groups) + 1)


def number(value: float) -> str:
    """Three decimals for a share or a small number, fewer for a large one."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent; nothing where it is not known.

    >>> percent(0.25), percent(0.004), percent(float("nan"))
    ('25%', '<1%', '')
    """
    if math.isnan(share):
        return ""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
