"""How methods rank by generated tokens and by FLOPs, in which prompts, judgments and training count too."""

from __future__ import annotations

import math

from rollwise.evaluation.comparison.results import Comparison

TOKENS, FLOPS = "tokens", "flops"


def gains(comparison: Comparison, axis: str) -> dict[str, float]:
    """Each method's gain over the baseline at the axis' budget, the baseline's own 0; the oracle left out."""
    found = {}
    for method in comparison.methods:
        result = method.axes.get(axis)
        if result is None or method.name == comparison.oracle:
            continue
        gain = result.score.difference
        if method.name == comparison.baseline:
            found[method.name] = 0.0
        elif gain is not None and not math.isnan(gain.mean):
            found[method.name] = round(gain.mean, 12)  # equal gains, in whichever order they were summed
    return found


def places(comparison: Comparison) -> dict[str, tuple[int, int]]:
    """Each method's place by tokens and by FLOPs, 1 and how many gained more, among methods that have both."""
    tokens, flops = (gains(comparison, axis) for axis in (TOKENS, FLOPS))
    both = [name for name in tokens if name in flops]

    def place(found: dict[str, float], name: str) -> int:
        return 1 + sum(found[other] > found[name] for other in both)

    return {name: (place(tokens, name), place(flops, name)) for name in both}


def rank_sentences(comparison: Comparison) -> list[str]:
    """Which methods rank otherwise by FLOPs than by generated tokens; empty where FLOPs were not recorded."""
    found = places(comparison)
    if len(found) < 2 or comparison.headline_axis != TOKENS:
        return []
    moved = [name for name, (tokens, flops) in found.items() if tokens != flops]
    if not moved:
        return ["At equal FLOPs, in which prompts, judgments and training count too, the methods rank the same."]
    by_tokens, by_flops = (gains(comparison, axis) for axis in (TOKENS, FLOPS))
    named = [
        f"{name} from {found[name][0]} ({by_tokens[name]:+.3f}) to {found[name][1]} ({by_flops[name]:+.3f})"
        for name in sorted(moved, key=lambda name: found[name])
    ]
    return [
        f"At equal FLOPs, in which prompts, judgments and training count too, ranks change: {'; '.join(named)}, of "
        f"{len(found)} by gain over {comparison.baseline}."
    ]
