"""What the profile of past rollouts shows besides a profile's own tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def show_head(numbers: Mapping[str, Any], console: Console) -> None:
    """What the log is, and how its rewards were read."""
    past, rewards = numbers["past"], numbers["past"]["rewards"]
    steps = f"steps {past['steps'][0]} to {past['steps'][1]}" if past["steps"] else "without steps"
    console.print(
        f"\n[bold]{escape(numbers['data'])}[/bold]: {past['kind']}, {steps}, {numbers['rollouts']} rollouts a group"
    )
    console.print(
        f"rewards from {rewards['low']:g} to {rewards['high']:g}, solved from {rewards['solved_at']:g}; pass rates are "
        "those of all the log's policies together"
    )
    if past["left_out"]:
        console.print(f"{past['left_out']:,} groups that were made only to measure or screen prompts are left out")
    for note in past["notes"]:
        console.print(escape(note))


def show_log(numbers: Mapping[str, Any], console: Console) -> None:
    """What changed over the steps, what taught nothing, and what a replay says."""
    _over_steps(numbers, console)
    lost = numbers["wasted"]
    console.print("\n[italic]Groups without contrast[/italic]")
    console.print(
        f"{lost['share']:.1%} of the {lost['unit']} ({lost['spent']:,} in all) were spent on groups without contrast, "
        f"which teach nothing: {lost['none_solved']:.1%} where none was solved, {lost['all_solved']:.1%} where all were"
    )
    if lost["unit"] == "characters":
        console.print("the log has no numbers of tokens, so characters of the completions are counted")
    _replay(numbers, console)


def _over_steps(numbers: Mapping[str, Any], console: Console) -> None:
    if not numbers["over_steps"]:
        console.print("\nno column of steps, so nothing is said of changes; name it with --step_column")
        return
    table = Table(title="\nOver the steps", title_justify="left", box=None)
    for name in ("steps", "groups", "prompts", "score", "solved", "contrast", "length", "cut off", "wasted"):
        table.add_column(name, justify="left" if name == "steps" else "right", no_wrap=True)
    for line in numbers["over_steps"]:
        steps = f"{line['first']}" if line["first"] == line["last"] else f"{line['first']}-{line['last']}"
        table.add_row(
            steps, f"{line['groups']:,}", f"{line['prompts']:,}", _number(line["score"], ".3f"),
            _number(line["solved"], ".3f"), f"{line['contrast']:.3f}", _number(line["size"], ".1f"),
            _number(line["truncated"], ".1%"), f"{line['wasted']:.1%}",
        )  # fmt: skip
    console.print(table)
    if again := numbers["returned"]:
        console.print(
            f"{again['prompts']:,} prompts came at more than one step: pass rate {again['first']:.3f} at first, "
            f"{again['last']:.3f} at last"
        )


def _replay(numbers: Mapping[str, Any], console: Console) -> None:
    said = numbers["replay"]
    console.print("\n[italic]Replay (SIMULATED): which methods would have found more contrast[/italic]")
    if "why" in said:
        console.print(f"not replayed: {escape(said['why'])}")
        return
    table = Table(box=None)
    for name in ("method", "effective ratio", "difference", ""):
        table.add_column(name, justify="right" if name in ("effective ratio", "difference") else "left")
    for line in said["methods"]:
        ratio, mark = f"{line['ratio']:.3f} ± {line['sd']:.3f}", line["mark"] or ""
        table.add_row(escape(line["method"]), ratio, f"{line['difference']:+.3f}", escape(mark))
    console.print(table)
    some = f"its first {said['steps']} of {said['of']} steps, " if said["steps"] < said["of"] else ""
    console.print(
        f"{some}{said['seeds']} seeds; the log itself has {said['logged']:.3f}{' in these' if some else ''}. More: "
        f"{escape(said['command'])}"
    )
    if not numbers["past"]["says_lanes"]:
        console.print("nothing in the log says how its prompts were chosen; they are taken as drawn uniformly")


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
