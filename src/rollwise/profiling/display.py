"""A profile in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rollwise.profiling.judge_check import COLUMNS, judge_rows
from rollwise.profiling.past_display import show_head, show_log
from rollwise.profiling.suspects import MEANINGS

_BAR = 40
_SUSPECTS_SHOWN = 5
_CATEGORIES_SHOWN = 30


def show(numbers: Mapping[str, Any], console: Console) -> None:
    """Print the contents of `profile.json` as tables."""
    if "past" in numbers:
        show_head(numbers, console)
    else:
        _head(numbers, console)
    if numbers["unscored"]:
        console.print(f"{numbers['unscored']} prompts were never scored (the reward gave None) and are left out")
    _histogram(numbers, console)
    _shares(numbers, console)
    if "past" in numbers:
        show_log(numbers, console)
    if unequal := numbers.get("unequal_groups"):
        console.print(f"\n[italic]Rollouts of a prompt[/italic]\n{escape(unequal['words'])}")
    _categories(numbers, console)
    _cost(numbers, console)
    _suspects(numbers, console)
    _methods(numbers, console)
    if "judge" in numbers:
        _judge(numbers["judge"], console)
    _recommendation(numbers["recommendation"], console, numbers.get("train", "..."))


def _head(numbers: Mapping[str, Any], console: Console) -> None:
    population, sampled = numbers["population"], numbers["sampled"]
    drawn = "all" if sampled == population else f"{sampled:,} of {population:,}"
    console.print(
        f"\n[bold]{escape(numbers['data'])}[/bold] with [bold]{escape(numbers['model'])}[/bold]: {drawn} prompts, "
        f"{numbers['rollouts']} rollouts each"
    )


def _histogram(numbers: Mapping[str, Any], console: Console) -> None:
    table = Table("solved", "prompts", "", title="Pass rates", title_justify="left", box=None)
    labels = numbers.get("histogram_labels")
    rows = list(zip(labels, numbers["histogram"], strict=True)) if labels else binned(numbers["histogram"])
    most = max(count for _, count in rows) or 1
    for label, count in rows:
        bar = "█" * round(_BAR * count / most)
        table.add_row(label, str(count), bar or ("▏" if count else ""))
    console.print(table)


def binned(counts: Sequence[int], bins: int = 16) -> list[tuple[str, int]]:
    """Labels and counts of a histogram of 0 to n solved: none, all, and what is between in at most `bins` steps.

    >>> binned([5, 1, 2, 3, 4], bins=2)
    [('0 of 4', 5), ('1-2 of 4', 3), ('3 of 4', 3), ('4 of 4', 4)]
    """
    n = len(counts) - 1
    width = max(1, math.ceil((n - 1) / bins))
    starts = [0, *range(1, n, width), n]
    ends = [*starts[1:], n + 1]
    return [
        (f"{low} of {n}" if high == low + 1 else f"{low}-{high - 1} of {n}", sum(counts[low:high]))
        for low, high in zip(starts, ends, strict=True)
    ]


def _shares(numbers: Mapping[str, Any], console: Console) -> None:
    table = Table("", "share", "95 %", "", title="\nShares of the prompts", title_justify="left", box=None)
    shares, estimate = numbers["shares"], numbers["estimate"]
    n, group = numbers["rollouts"], numbers["group_size"]
    fitted = "" if estimate["effective_measured"] else "fitted: "
    rows = [
        ("solved", shares["solved"], "all right" if "past" in numbers else f"all {n} right"),
        ("learnable", shares["learnable"], "some right"),
        ("hopeless", shares["hopeless"], "none right"),
        ("truly solved", estimate["solved"], "fitted: pass rate > 0.99"),
        ("truly hopeless", estimate["hopeless"], "fitted: pass rate < 0.01"),
        ("effective task ratio", estimate["effective"], f"{fitted}uniform groups of {group} with contrast"),
    ]
    if estimate["effective_measured"]:
        rows.append(("", estimate["effective_by_fit"], "the same, by the fitted pass rates"))
    known = numbers["sampled"] == numbers["population"]  # then these rollouts' shares have no error of sampling
    for name, share, note in rows:
        interval = "" if known and "fitted" not in note else _interval(share)
        table.add_row(name, f"{share['share']:.3f}", interval, note)
    rate = numbers["pass_rate"]
    table.add_row("mean pass rate", f"{rate['mean']:.3f}", "" if known else _interval(rate), "")
    console.print(table)


def _categories(numbers: Mapping[str, Any], console: Console) -> None:
    if not numbers["categories"]:
        return
    table = Table(title="\nBy category", title_justify="left", box=None)
    unit = numbers["tokens"].get("unit", "tokens")
    for name in ("category", "prompts", "pass rate", "solved", "hopeless", "effective", unit):
        table.add_column(name, justify="left" if name == "category" else "right")
    lines = numbers["categories"]
    shown = sorted(nlargest(_CATEGORIES_SHOWN, lines, key=lambda name: lines[name]["prompts"]))
    for name in shown:
        line = lines[name]
        solved, hopeless = (f"{line[k]['share']:.2f} {_short_interval(line[k])}" for k in ("solved", "hopeless"))
        table.add_row(
            escape(name), f"{line['prompts']:,} of {line['population']:,}", f"{line['pass_rate']:.3f}",
            solved, hopeless, f"{line['effective']:.3f}", f"{line['tokens']:.1f}",
        )  # fmt: skip
    console.print(table)
    if more := len(lines) - len(shown):
        console.print(f"{more:,} categories with fewer prompts are in profile.json")


def _cost(numbers: Mapping[str, Any], console: Console) -> None:
    tokens = numbers["tokens"]
    unit = tokens.get("unit", "tokens")
    if unit == "rollouts":
        return
    parts = [
        f"{name} {tokens[key]:.1f}" for name, key in (("solved", "of_solved"), ("failed", "of_failed")) if tokens[key]
    ]
    console.print(f"\n[italic]{unit.capitalize()}[/italic]")
    what = "log" if "past" in numbers else "profile"
    cut = "unknown" if tokens["truncated"] is None else f"{tokens['truncated']:.1%}"
    console.print(
        f"{tokens['mean']:.1f} a rollout ({', '.join(parts)}); truncated {cut}; this {what} "
        f"{tokens['spent']:,}; an epoch in groups of {numbers['group_size']}: {tokens['epoch_rollouts']:,} rollouts, "
        f"{tokens['epoch_tokens']:,.0f} {unit}"
    )


def _suspects(numbers: Mapping[str, Any], console: Console) -> None:
    console.print("\n[italic]Hopeless prompts that look answered[/italic]")
    lost = numbers["shares"]["hopeless"]["count"]
    if numbers["failures"]:
        named = ", ".join(f"{why} {count:,}" for why, count in numbers["failures"].items())
        console.print(f"why rollouts of the {lost} hopeless prompts failed: {escape(named)}")
    if numbers["partial_credit"]:
        console.print(
            f"{numbers['partial_credit']} of {lost} earned partial rewards: their answers are read, and found wrong"
        )
    if not numbers.get("past", {"texts": True})["texts"]:
        console.print("the log has no completions to look at")
        return
    if not numbers["answers_recorded"]:
        console.print("no column of recorded answers to compare with; name one with --answer_column")
        return
    console.print(f"{numbers['n_suspects']} of {lost} look answered, by the recorded answers")
    of = " rollouts" if "past" in numbers else f" of {numbers['rollouts']}"
    for suspect in numbers["suspects"][:_SUSPECTS_SHOWN]:
        text = " ".join(suspect["text"].split())[-160:]
        console.print(
            f"- {escape(suspect['id'])}: {MEANINGS[suspect['kind']]} ({suspect['rollouts']}{of}); "
            f"recorded {escape(repr(suspect['recorded']))}, reward {suspect['reward']}, rollout: {escape(text)}"
        )


def _methods(numbers: Mapping[str, Any], console: Console) -> None:
    table = Table(
        "method",
        "",
        "",
        title="\nWhat each method would need (probes as counted in a dry run)",
        title_justify="left",
        box=None,
    )
    for line in numbers["methods"]:
        probes = (
            f"{line['probe_rollouts']:,} rollouts of probes, {line['share']:.0%} of all"
            if line["probe_rollouts"]
            else ""
        )
        table.add_row(line["method"], line["verdict"], escape("; ".join(p for p in (probes, line["detail"]) if p)))
    console.print(table)


def _judge(judged: Mapping[str, Any], console: Console) -> None:
    table = Table(title="\nThe model's judgments (METIS)", title_justify="left", box=None)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "format" else "right")
    for row in judge_rows(judged):
        table.add_row(*row)
    console.print(table)
    shown = next((line for line in judged["formats"] if line["format"] == judged["take"]), judged["formats"][0])
    for answer in shown["answers"]:
        text = " ".join(answer.split())
        console.print(f"- {shown['format']}: {escape(text[:80] + ' ... ' + text[-80:] if len(text) > 165 else text)}")
    console.print(f"[bold]{escape(judged['verdict'])}[/bold]")


def _recommendation(advice: Mapping[str, Any], console: Console, options: str) -> None:
    console.print(f"\n[bold]Recommendation: {escape(advice['headline'])}[/bold]")
    if advice["arguments"]:
        console.print(f"rollwise train {escape(options)} {escape(advice['arguments'])}", soft_wrap=True)
    for reason in advice["reasons"]:
        console.print(f"- {escape(reason)}")


def _interval(share: Mapping[str, float]) -> str:
    return f"{share['low']:.3f} to {share['high']:.3f}"


def _short_interval(share: Mapping[str, float]) -> str:
    """Empty where all of a category were rolled out."""
    return "" if share["low"] == share["high"] else f"({share['low']:.2f}-{share['high']:.2f})"
