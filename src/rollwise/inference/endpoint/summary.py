"""What `rollwise consistency` cost, and what all K samples of every prompt would have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.samples import Line


def summarise(lines: Sequence[Line], config: EndpointConfig) -> dict[str, Any]:
    """What the lines cost and came to; tokens are None where the endpoint did not count them.

    `tokens_saved` and `money_saved` are shares of what all K samples would have cost; below 0 they would have been
    cheaper. That is an estimate: K samples of a prompt's mean length, and the prompt once for each request that they
    need, at most `n` samples in one.

    >>> line = {"samples": 5, "why": "agreed", "prompt_tokens": 40, "completion_tokens": 50, "chosen": "4",
    ...         "correct": True, "requests": 2}
    >>> config = EndpointConfig(base_url="http://x", model="m", k=40, price_in=1, price_out=2)
    >>> found = summarise([line], config)  # all 40: 20 tokens in, 400 out
    >>> found["saved"], round(found["tokens_saved"], 3), found["money"], round(found["money_saved"], 3)
    (0.875, 0.786, 0.00014, 0.829)
    """
    n = len(lines)
    samples = sum(line["samples"] for line in lines)
    unused = sum(line.get("unused", 0) for line in lines)
    judged = [line["correct"] for line in lines if "correct" in line]
    return {
        "prompts": n,
        "samples": samples,
        "samples_mean": samples / n if n else None,
        "unused": unused,
        "saved": 1 - (samples + unused) / (n * config.k) if n else None,
        "requests": sum(line["requests"] for line in lines),
        "uncounted": sum(line.get("uncounted", 0) for line in lines),
        **_cost(lines, config),
        "why": dict(Counter(line["why"] for line in lines)),
        "unanswered": sum(line["chosen"] is None for line in lines),
        "judged": len(judged),
        "correct": sum(judged),
    }


def show_summary(
    numbers: Mapping[str, Any], config: EndpointConfig, console: Console, *, seconds: float, asked: int
) -> None:
    """Print what `summarise` gives, and how long this run took over how many prompts."""
    table = Table(title=f"{config.rule}, at most {config.k} samples", title_justify="left", box=None, show_header=False)
    if numbers["prompts"]:
        table.add_row("prompts", f"{numbers['prompts']:,}", f"{numbers['unanswered']:,} without any answer")
        saved = f"{numbers['saved']:.1%} fewer than {config.k} each"
        unused = f", {numbers['unused']:,} drawn in vain" if numbers["unused"] else ""
        table.add_row("samples a prompt", f"{numbers['samples_mean']:.2f}", saved + unused)
        why = ", ".join(f"{name} {count:,}" for name, count in sorted(numbers["why"].items()))
        table.add_row("stopped", why, f"{numbers['requests']:,} requests")
        _show_cost(table, numbers, config)
    if asked:
        table.add_row("seconds", f"{seconds:,.1f}", f"{asked:,} prompts asked, {config.concurrency} samples in flight")
    if numbers["judged"]:
        share = numbers["correct"] / numbers["judged"]
        table.add_row(
            "right", f"{share:.1%}", f"{numbers['correct']:,} of {numbers['judged']:,} with a recorded answer"
        )
    console.print(table)


def _show_cost(table: Table, numbers: Mapping[str, Any], config: EndpointConfig) -> None:
    if numbers["tokens_saved"] is None:
        table.add_row("tokens", "unknown", "the endpoint does not count them")
        return
    guessed = (
        f"{numbers['uncounted']:,} requests cut short: counted as far as they came" if numbers["uncounted"] else ""
    )
    lacking = numbers["prompts"] - numbers["prompts_counted"]
    table.add_row("tokens in", f"{numbers['prompt_tokens']:,}", f"without {lacking:,} prompts" if lacking else "")
    table.add_row("tokens out", f"{numbers['completion_tokens']:,}", guessed)
    total = numbers["prompt_tokens"] + numbers["completion_tokens"]
    table.add_row("tokens in all", f"{total:,}", _compared(numbers["tokens_saved"], "fewer", "more", config.k))
    if numbers["money"] is not None:
        saved = _compared(numbers["money_saved"], "less", "more", config.k)
        table.add_row("money", f"{numbers['money']:,.4f}", saved)


def _compared(saved: float, less: str, more: str, k: int) -> str:
    if round(saved, 3) == 0:
        return f"as much as {k} each"
    return f"{abs(saved):.1%} {less if saved >= 0 else more} than {k} each (estimated)"


def _cost(lines: Sequence[Line], config: EndpointConfig) -> dict[str, Any]:
    """Tokens, money, and shares saved of what all K would have cost: of the prompts whose tokens were counted."""
    names = ("prompt_tokens", "completion_tokens")
    lines = [line for line in lines if None not in (line[name] for name in names)]
    if not lines:
        return {"prompts_counted": 0, **dict.fromkeys((*names, "tokens_saved", "money", "money_saved"))}
    spent = tuple(sum(line[name] for line in lines) for name in names)
    requests = -(-config.k // config.per_request())
    full = (
        sum(line["prompt_tokens"] / line["requests"] * requests for line in lines),
        sum(line["completion_tokens"] / (line["samples"] + line.get("unused", 0)) * config.k for line in lines),
    )
    found: dict[str, Any] = {"prompts_counted": len(lines), **dict(zip(names, spent, strict=True))}
    found.update(tokens_saved=_share_saved(sum(spent), sum(full)), money=None, money_saved=None)
    if config.price_in is not None and config.price_out is not None:
        prices = (config.price_in / 1e6, config.price_out / 1e6)
        found["money"], all_k = (tokens[0] * prices[0] + tokens[1] * prices[1] for tokens in (spent, full))
        found["money_saved"] = _share_saved(found["money"], all_k)
    return found


def _share_saved(spent: float, full: float) -> float:
    return 1 - spent / full if full else 0.0
