"""A comparison in words: the verdict, and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rollwise.evaluation.bootstrap import FEWEST_SEEDS, MOST_LISTED, Interval
from rollwise.evaluation.comparison.estimates import Difference, Relative, Share
from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.evaluation.curves import AXES
from rollwise.reports.comparison.places import rank_sentences
from rollwise.reports.words import count
from rollwise.runs.lines import enumeration, scientific

NOTHING, NEVER = "-", "never"
# From this many seeds on, an interval is only a little too narrow.
ENOUGH_SEEDS = 10
# Fewer seeds than these are not enough to say that a method helped.
SURE_SEEDS = 5


def signed(value: float) -> str:
    """`+0.013`; a dash for NaN.

    >>> signed(0.0126), signed(-0.2)
    ('+0.013', '-0.200')
    """
    return NOTHING if math.isnan(value) else f"{value:+.3f}"


def plain(value: float) -> str:
    """`0.363`; a dash for NaN."""
    return NOTHING if math.isnan(value) else f"{value:.3f}"


def with_spread(mean: float, sd: float, digits: int = 3) -> str:
    """`0.363 ± 0.012`; no spread for one seed.

    >>> with_spread(0.3634, 0.0117), with_spread(0.5, float("nan"))
    ('0.363 ± 0.012', '0.500')
    """
    if math.isnan(mean):
        return NOTHING
    return f"{mean:,.{digits}f}" if math.isnan(sd) else f"{mean:,.{digits}f} ± {sd:,.{digits}f}"


def ratio(value: float) -> str:
    """`0.72`; `never` where a score is not reached (the papers' "-"), and `n/a` where there is none to reach.

    >>> ratio(0.718), ratio(float("inf")), ratio(float("nan"))
    ('0.72', 'never', 'n/a')
    """
    return "n/a" if math.isnan(value) else NEVER if math.isinf(value) else f"{value:.2f}"


def difference_text(found: Difference | None, write: str = "+.3f") -> str:
    """`+0.013 [+0.003, +0.019]`; without brackets where there are too few seeds."""
    if found is None or math.isnan(found.mean):
        return NOTHING
    return f"{found.mean:{write}}" + interval_text(found.interval, write)


def interval_text(interval: Interval | None, write: str) -> str:
    """` [+0.003, +0.019]`, or nothing."""
    if interval is None or math.isinf(interval.low):  # never in any resample
        return ""
    ends = (NEVER if math.isinf(end) else f"{end:{write}}" for end in (interval.low, interval.high))
    return f" [{', '.join(ends)}]"


def relative_text(found: Relative) -> str:
    """`0.72 [0.51, never]`."""
    return ratio(found.value) + interval_text(found.interval, ".2f")


def share_text(found: Share | None) -> str:
    """`62 % [40 %, 81 %]`."""
    if found is None:
        return NOTHING
    text = f"{found.value:.0%}{interval_text(found.interval, '.0%')}"
    return text.replace("-0%", "0%").replace("%", " %")


def amount(value: float, axis: str) -> str:
    """`218,743 generated tokens`."""
    if axis == "wall_s":
        return f"{value:,.0f} s of training"
    return f"{scientific(value) if axis == 'flops' else f'{value:,.0f}'} {AXES[axis]}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if math.isnan(seconds):
        return NOTHING
    return (
        f"{seconds:.3g} s"
        if seconds < 180
        else f"{seconds / 60:.1f} min"
        if seconds < 10800
        else f"{seconds / 3600:.1f} h"
    )


def contenders(comparison: Comparison) -> list[tuple[MethodResult, Difference]]:
    """The methods that are compared with the baseline, the oracle left out, by gain, with their difference in score."""
    found = []
    for method in comparison.methods:
        result = comparison.on_headline(method)
        if method.name not in (comparison.baseline, comparison.oracle) and result and result.score.difference:
            found.append((method, result.score.difference))
    return found


def verdict(comparison: Comparison) -> list[str]:
    """Did it help, at equal compute, by how much, how sure is that: the first sentence answers, the others explain."""
    compared = {(run.method, run.seed) for run in comparison.runs if run.status == "compared"}
    left_out = {(run.method, run.seed) for run in comparison.runs} - compared
    lost = [problem for problem in comparison.problems if problem.kind in ("missing", "damaged")]
    left_out |= {(problem.method, problem.seed) for problem in lost if problem.seed is not None} - compared
    missing = len(left_out) + sum(problem.seed is None for problem in lost)
    waiting = sum(problem.kind == "waiting" for problem in comparison.problems)
    sentences = _first_sentences(comparison)
    if comparison.provisional:
        sentences.append("No run has finished: those that have begun are compared as far as the shortest of them got.")
    elif missing:
        sentences.append(f"{count(missing, 'run')} missing, unfinished or unreadable: see the problems below.")
    if comparison.tune is not None and (tuned := sorted({run.seed for run in comparison.tune.runs})):
        seeds = f"Seed{'s' if len(tuned) > 1 else ''} {enumeration([str(seed) for seed in tuned])}"
        sentences.append(f"{seeds} {'were' if len(tuned) > 1 else 'was'} for choosing; no number here includes them.")
    if waiting:
        sentences.append("Not all of the runs that are planned have begun: see the problems below.")
    return sentences


def _first_sentences(comparison: Comparison) -> list[str]:
    if comparison.score is None or not comparison.budgets:
        return ["There is nothing to compare yet: no run has been evaluated twice."]
    base = comparison.method(comparison.baseline)
    if comparison.on_headline(base) is None:
        return [f"There is nothing to compare with yet: the baseline, {base.name}, has no finished run."]
    found = contenders(comparison)
    if not found:
        return ["There is nothing to compare yet: no other method has a finished run of the baseline's seeds."]
    best, gain = _surest(found)
    sentences = [_answer(comparison, best, gain)]
    if unequal := _unequal(comparison):
        sentences.insert(0, f"These numbers may mean nothing: {enumeration(unequal)}.")
    sentences += _by_set(comparison, best)
    if best is not found[0][0]:
        sentences.append(_greater(*found[0], best))
    if len(found) > 1:
        sentences += _sides(comparison, found)
    sentences += _time(comparison, best)
    sentences += rank_sentences(comparison)
    if comparison.oracle is not None:
        sentences.append(_oracle(comparison))
    sentences.append(_caution(comparison, found))
    return sentences


def _unequal(comparison: Comparison) -> list[str]:
    """In what the runs were not scored on the same thing."""
    return [problem.text for problem in comparison.problems if problem.kind == "unequal"]


def _surest(found: Sequence[tuple[MethodResult, Difference]]) -> tuple[MethodResult, Difference]:
    """The greatest gain of those that enough seeds show to be one, else of those that few show, else of all."""
    gains = [pair for pair in found if pair[1].interval is not None and pair[1].interval.low > 0]
    return ([pair for pair in gains if pair[1].n >= SURE_SEEDS] or gains or found)[0]


def _greater(first: MethodResult, gain: Difference, best: MethodResult) -> str:
    """Of the method with the greatest mean, where the answer is about another."""
    seeds = count(gain.n, "paired seed")
    return f"{first.name} has a greater mean than {best.name}, {difference_text(gain)}, and is less sure ({seeds})."


def _answer(comparison: Comparison, best: MethodResult, gain: Difference) -> str:
    axis, baseline = comparison.headline_axis, comparison.baseline
    budget, score = amount(comparison.budgets[axis].value, axis), comparison.score_name
    pairs = count(gain.n, "paired seed")
    if gain.interval is None:
        return (
            f"Not known yet whether it helped: {pairs} can't tell (at least {FEWEST_SEEDS} are needed, better 5 or "
            f"more). The best so far is {best.name}: after {budget} each its {score} is {signed(gain.mean)} from "
            f"{baseline}'s."
        )
    numbers = (
        f"after {budget} each its {score} is {difference_text(gain)} from {baseline}'s (95 % interval over {pairs}; "
        f"better in {gain.better} of {gain.n})"
    )
    if gain.interval.high < 0:
        return f"It did not help: even the best, {best.name}, is worse than {baseline}; {numbers}."
    if gain.interval.low <= 0:
        return f"It can't be told whether it helped: of the best, {best.name}, {numbers}, and that interval holds 0."
    if gain.n < SURE_SEEDS:
        # Signs alone: 2 of the 2^n ways in which n seeds of a method without effect can fall are all on one side.
        return (
            f"It may have helped, with {best.name}: {numbers}; but {gain.n} seeds fall on the same side by chance in 1 "
            f"of {2 ** (gain.n - 1)} cases, so run more."
        )
    return f"{'By the numbers alone it' if _unequal(comparison) else 'It'} helped, with {best.name}: {numbers}."


def _by_set(comparison: Comparison, best: MethodResult) -> list[str]:
    """What the answer's method gained on each set."""
    results = {name: own.on_headline(own.method(best.name)) for name, own in comparison.sets.items()}
    differences = {name: found.score.difference for name, found in results.items() if found}
    gains = [f"{difference_text(difference)} on {name}" for name, difference in differences.items() if difference]
    return [f"Set by set, {best.name} is {enumeration(gains)} from {comparison.baseline}."] if gains else []


def _sides(comparison: Comparison, found: Sequence[tuple[MethodResult, Difference]]) -> list[str]:
    known = [(method.name, gain.interval) for method, gain in found if gain.interval is not None]
    above = [name for name, interval in known if interval.low > 0]
    below = [name for name, interval in known if interval.high < 0]
    level = [name for name, interval in known if interval.low <= 0 <= interval.high]
    sides = [("Above", above), ("Below", below), ("Not to be told from", level)]
    return [f"{side} {comparison.baseline}: {enumeration(names)}." for side, names in sides if names]


def _time(comparison: Comparison, best: MethodResult) -> list[str]:
    result, axis = comparison.on_headline(best), comparison.headline_axis
    if result is None or math.isnan(result.ttb[100].value):
        return [f"{comparison.baseline}'s score never rises above its first, so there is no time to baseline (TTB)."]
    time, unit = result.ttb[100], AXES[axis]
    seeds = f"of the single seeds {time.reached} of {time.n} get there"
    if math.isinf(time.value):
        return [f"{best.name} does not reach {comparison.baseline}'s best score within the budget; {seeds}."]
    return [
        f"{best.name} reaches {comparison.baseline}'s best score with {relative_text(time)} of the {unit} that "
        f"{comparison.baseline} took (time to baseline, TTB(100 %), of the curves averaged over seeds); {seeds}."
    ]


def _oracle(comparison: Comparison) -> str:
    gain, limit = comparison.oracle_gains["score"], "the limit of the frontier idea, not of learning"
    name = f"The oracle ({comparison.oracle}: prompts nearest to a true pass rate of 0.5, {limit})"
    if gain.difference is None:
        return f"{name} has no finished run yet."
    gained = difference_text(gain.difference)
    if gain.tells_apart:
        return f"{name} gains {gained}: the task can tell methods apart, and each one's share of that gain is shown."
    if gain.difference.interval is None:
        few = count(gain.difference.n, "paired seed")
        return f"{name} is {gained} from {comparison.baseline}; {few} can't tell if that is a gain: no share is shown."
    return (
        f"{name} is {gained} from {comparison.baseline}, which is no sure gain: this task can't tell methods apart, "
        "and no share of it is shown."
    )


def _caution(comparison: Comparison, found: Sequence[tuple[MethodResult, Difference]]) -> str:
    fewest, most = min(gain.n for _, gain in found), max(gain.n for _, gain in found)
    how = (
        f"all n^n resamples of up to {MOST_LISTED} seeds"
        if most <= MOST_LISTED
        else f"{comparison.resamples:,} resamples of the seeds, or all where there are {MOST_LISTED} or fewer"
    )
    parts = [f"Intervals are paired percentile bootstraps ({how}), called 95 %"]
    if fewest < ENOUGH_SEEDS:
        parts.append(
            "; with few seeds they are too narrow and hold the truth less often: about 76 % of the time with 3 seeds, "
            "84 % with 5, 91 % with 10"
        )
    if fewest < FEWEST_SEEDS:
        parts.append(f"; none is given for fewer than {FEWEST_SEEDS}, where they would mean nothing")
    if len(found) > 1:
        parts.append(f"; the best of {len(found)} methods looks better than it is")
    return "".join(parts) + "."
