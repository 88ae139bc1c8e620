"""What `rollwise consistency` cost, and what all K samples of every prompt would have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.samples import Line

_COUNTS = ("prompt_tokens", "completion_tokens")


def summarise(lines: Sequence[Line], config: EndpointConfig) -> dict[str, Any]:
    """What the lines cost and came to, beside what all K samples at once would have cost.

    `full` holds requests, tokens and money of all K samples. It is an estimate: K samples of each prompt's mean length,
    and the prompt once for each request that they need, at most `n` samples in one, or 1 where the endpoint gives no
    more. It covers the prompts whose tokens the endpoint counted. `cost_ratio` is the cost by that of all K at once, in
    money with prices, else in tokens. Above 1 stopping early did not pay, and `verdict` says so. Tokens and money are
    None where they are not known.

    >>> line = {"samples": 5, "why": "agreed", "prompt_tokens": 40, "completion_tokens": 50, "chosen": "4",
    ...         "correct": True, "requests": 2}
    >>> config = EndpointConfig(base_url="http://x", model="m", num_generations=40, price_in=1, price_out=2)
    >>> found = summarise([line], config)
    >>> found["full"]
    {'requests': 1, 'prompt_tokens': 20.0, 'completion_tokens': 400.0, 'money': 0.00082}
    >>> found["saved"], found["money"], round(found["cost_ratio"], 3), found["verdict"]
    (0.875, 0.00014, 0.171, None)
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
        "saved": 1 - (samples + unused) / (n * config.num_generations) if n else None,
        "uncounted": sum(line.get("uncounted", 0) for line in lines),
        **_cost(lines, config),
        "why": dict(Counter(line["why"] for line in lines)),
        "unanswered": sum(line["chosen"] is None for line in lines),
        "judged": len(judged),
        "correct": sum(judged),
        "judged_by": judged_by(config),
    }


def judged_by(config: EndpointConfig) -> str:
    """What says which answers are right, in words."""
    if config.reward is not None:
        return f"reward {config.reward}"
    return "the recorded answer, compared as " + ("mathematics" if config.same == "math" else "text")


def show_summary(
    numbers: Mapping[str, Any], config: EndpointConfig, console: Console, *, seconds: float, asked: int
) -> None:
    """Print what `summarise` gives, and how long this run took over how many prompts."""
    title = f"{config.rule}, at most {config.num_generations} samples, answers compared as {config.same}"
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")  # the path of a reward function may be long
    if numbers["prompts"]:
        table.add_row("prompts", f"{numbers['prompts']:,}", f"{numbers['unanswered']:,} without any answer")
        table.add_row("samples a prompt", f"{numbers['samples_mean']:.2f}", _saved_words(numbers, config))
        why = ", ".join(f"{name} {count:,}" for name, count in sorted(numbers["why"].items()))
        table.add_row("stopped", why, "")
    if asked:
        table.add_row("seconds", f"{seconds:,.1f}", f"{asked:,} prompts asked, {config.concurrency} samples in flight")
    if numbers["judged"]:
        share = numbers["correct"] / numbers["judged"]
        by = f"{numbers['correct']:,} of {numbers['judged']:,} by {numbers['judged_by']}"
        table.add_row("right", f"{share:.1%}", by)
    console.print(table)
    if numbers["prompts"]:
        _show_cost(numbers, config, console)


def _saved_words(numbers: Mapping[str, Any], config: EndpointConfig) -> str:
    if config.num_generations == 1:
        return "one sample: nothing to save"
    unused = f", {numbers['unused']:,} drawn in vain" if numbers["unused"] else ""
    return f"{numbers['saved']:.1%} fewer than {config.num_generations} each{unused}"


def _show_cost(numbers: Mapping[str, Any], config: EndpointConfig, console: Console) -> None:
    full = numbers["full"]
    if full is None:
        console.print(f" requests {numbers['requests']:,}; tokens unknown: the endpoint does not count them")
        return
    width = 2 if config.num_generations == 1 else 4  # of one sample there is no "all at once" to compare with
    table = Table(box=None, header_style="")
    for name in ("cost", config.rule, f"all {config.num_generations} at once (estimated)", "")[:width]:
        table.add_column(name, justify="left" if name in ("cost", "") else "right")
    for label, spent, all_k in (
        ("requests", numbers["requests"], full["requests"]),
        ("tokens in", numbers["prompt_tokens"], full["prompt_tokens"]),
        ("tokens out", numbers["completion_tokens"], full["completion_tokens"]),
        ("tokens in all", _tokens(numbers), _tokens(full)),
    ):
        table.add_row(*(label, f"{spent:,.0f}", f"{all_k:,.0f}", _compared(spent, all_k))[:width])
    if numbers["money"] is not None:
        money = (numbers["money"], full["money"])
        table.add_row(*("money", *(f"{one:,.4f}" for one in money), _compared(*money))[:width])
    console.print(table)
    lacking = numbers["prompts"] - numbers["prompts_counted"]
    if lacking:
        console.print(f" without {lacking:,} prompts whose tokens the endpoint did not count")
    if numbers["uncounted"]:
        console.print(f" {numbers['uncounted']:,} requests cut short: counted as far as they came")
    if numbers["verdict"]:
        console.print(f"\n{numbers['verdict']}", highlight=False)


def _compared(spent: float, full: float) -> str:
    saved = 1 - spent / full if full else 0.0
    if round(saved, 3) == 0:
        return "the same"
    return f"{abs(saved):.1%} {'less' if saved > 0 else 'more'}"


def _tokens(cost: Mapping[str, Any]) -> float:
    """In and out together."""
    return float(sum(cost[name] for name in _COUNTS))


def _cost(lines: Sequence[Line], config: EndpointConfig) -> dict[str, Any]:
    """Requests, tokens and money of the prompts whose tokens were counted, and of all K samples for them."""
    counted = [line for line in lines if None not in (line[name] for name in _COUNTS)]
    found: dict[str, Any] = {"requests": sum(line["requests"] for line in lines), "prompts_counted": len(counted)}
    found |= dict.fromkeys((*_COUNTS, "money", "full", "cost_ratio", "verdict"))
    if not counted:
        return found
    most = config.num_generations
    requests = -(-most // (1 if any(line.get("one_each") for line in lines) else config.per_request()))
    found |= {name: sum(line[name] for line in counted) for name in _COUNTS}
    found["full"] = full = {
        "requests": requests * len(lines),
        "prompt_tokens": sum(line["prompt_tokens"] / line["requests"] * requests for line in counted),
        "completion_tokens": sum(
            line["completion_tokens"] / (line["samples"] + line.get("unused", 0)) * most for line in counted
        ),
        "money": None,
    }
    for one in (found, full):
        if config.price_in is not None and config.price_out is not None:
            money = one["prompt_tokens"] * config.price_in + one["completion_tokens"] * config.price_out
            one["money"] = money / 1e6
    spent, all_k = (one["money"] if config.price_in is not None else _tokens(one) for one in (found, full))
    found["cost_ratio"] = spent / all_k if all_k else 1.0
    found["verdict"] = _verdict(found, config)
    return found


def _verdict(numbers: Mapping[str, Any], config: EndpointConfig) -> str | None:
    """A sentence where stopping early cost more than all K at once; None where it did not."""
    ratio, full = numbers["cost_ratio"], numbers["full"]
    if config.rule == "full" or ratio < 1.05:
        return None
    read = numbers["prompt_tokens"] - full["prompt_tokens"]
    saved = full["completion_tokens"] - numbers["completion_tokens"]
    answers = f"saved only {saved:,.0f}" if saved >= 0 else f"took {-saved:,.0f} more"
    exact = [f"--{name}" for name in ("window", "ahead") if getattr(config, name) is not None]
    advice = f"leave out {' and '.join(exact)}, or take --rule full" if exact else "take --rule full"
    return (
        f"{config.rule} cost {ratio:.1f} times what all {config.num_generations} at once would have: "
        f"{numbers['requests']:,} requests instead of {full['requests']:,} read {read:,.0f} prompt tokens more, and "
        f"{answers} answer tokens; "
        f"{advice}"
    )
