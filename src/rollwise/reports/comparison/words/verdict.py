"""A comparison in words: did it help, by how much, how sure is that.

The words follow one rule, that of `evaluation.comparison.estimates.Effect`: "helped" and "hurt" are said from 8 paired
seeds on. From 3 to 7 the page says what the intervals hold, and that these are too few; of fewer it says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rollwise.evaluation.bootstrap import FEWEST_SEEDS, MOST_LISTED
from rollwise.evaluation.comparison.estimates import ENOUGH_SEEDS, Difference, Effect
from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.evaluation.curves import AXES
from rollwise.reports.comparison.words.places import rank_sentences
from rollwise.reports.comparison.words.sentences import (
    amount,
    beside_text,
    both_text,
    difference_text,
    p_text,
    relative_text,
    signed,
)
from rollwise.reports.words import count
from rollwise.runs.lines import enumeration
from rollwise.runs.sets import CHOSEN_ON

Gains = Sequence[tuple[MethodResult, Difference]]


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
        sentences.append(
            "No run has finished yet: the runs are compared up to the point that the shortest of them has reached."
        )
    elif missing:
        sentences.append(f"{count(missing, 'run')} missing, unfinished or unreadable: see the problems below.")
    if comparison.tune is not None and (tuned := sorted({run.seed for run in comparison.tune.runs})):
        seeds = f"Seed{'s' if len(tuned) > 1 else ''} {enumeration([str(seed) for seed in tuned])}"
        was, it = ("were", "them") if len(tuned) > 1 else ("was", "it")
        sentences.append(f"{seeds} {was} for choosing; no number here includes {it}.")
    if uncounted := sum(problem.kind == "uncounted" for problem in comparison.problems):
        axis = AXES[comparison.headline_axis]
        sentences.append(
            f"{count(uncounted, 'run')} recorded no {axis}, and {'is' if uncounted == 1 else 'are'} left out."
        )
    if waiting:
        sentences.append("Not all planned runs have begun: see the problems below.")
    unlike = [problem.text for problem in comparison.problems if problem.kind == "timing"]
    sentences += [f"{text[0].upper()}{text[1:]}." for text in unlike]
    return sentences


def _first_sentences(comparison: Comparison) -> list[str]:
    if comparison.score is None or not comparison.budgets:
        return ["There is nothing to compare yet: no run has two evaluations, the first within the budget."]
    base = comparison.method(comparison.baseline)
    axis = AXES[comparison.headline_axis]
    counted = f"with two evaluations, the first within the budget, and with {axis} on record"
    if comparison.on_headline(base) is None:
        return [f"There is nothing to compare with yet: the baseline, {base.name}, has no finished run {counted}."]
    found = contenders(comparison)
    if not found:
        gained = comparison.oracle is not None and comparison.oracle_gains["score"].difference
        oracle = [_oracle(comparison)] if gained else []
        other = "method but baseline and oracle" if oracle else "other method"
        none = f"There is nothing to compare yet: no {other} has a finished run of the baseline's seeds {counted}."
        return [none, *oracle]
    best, gain = _answered(comparison, found)
    sentences = [_answer(comparison, best, gain)]
    if CHOSEN_ON in comparison.problems:
        sentences.insert(0, f"This is no result: {CHOSEN_ON.text}.")
    if unequal := _unequal(comparison):
        sentences.insert(0, f"These numbers may mean nothing: {enumeration(unequal)}.")
    if gain.n >= FEWEST_SEEDS:
        sentences += _by_set(comparison, best)
        if best is not found[0][0]:
            sentences.append(_greater(*found[0], best))
        if len(found) > 1:
            sentences += _sides(comparison, found)
        sentences += [*_time(comparison, best), *_needed(comparison, best), *rank_sentences(comparison)]
    if comparison.oracle is not None:
        sentences.append(_oracle(comparison))
    sentences.append(_caution(comparison, found))
    return sentences


def _unequal(comparison: Comparison) -> list[str]:
    """In what the runs were not scored on the same thing."""
    return [problem.text for problem in comparison.problems if problem.kind == "unequal"]


def _answered(comparison: Comparison, found: Gains) -> tuple[MethodResult, Difference]:
    """What the answer is about: the greatest gain that is sure, else that both intervals show, else that has any."""
    sure = [pair for pair in found if comparison.statistics.verdicts[pair[0].name].effect is Effect.HELPED]
    gains = [pair for pair in found if pair[1].side > 0]
    return (sure or gains or [pair for pair in found if pair[1].n >= FEWEST_SEEDS] or found)[0]


def _greater(first: MethodResult, gain: Difference, best: MethodResult) -> str:
    """Of the method with the greatest mean, where the answer is about another."""
    seeds = count(gain.n, "paired seed")
    return f"{first.name} has a higher mean than {best.name}, {difference_text(gain)}, but is less sure ({seeds})."


def _answer(comparison: Comparison, best: MethodResult, gain: Difference) -> str:
    axis, baseline, tests = comparison.headline_axis, comparison.baseline, comparison.statistics.tests
    where = amount(comparison.budgets[axis].value, axis)
    numbers = f"after {where} each, its {comparison.score_name} is {beside_text(gain.mean)} that of {baseline}"
    pairs = count(gain.n, "paired seed")
    if gain.n < FEWEST_SEEDS:
        return (
            f"It is too early to say whether it helped: {pairs} so far, while an interval needs {FEWEST_SEEDS} and a "
            f"verdict {ENOUGH_SEEDS}. {_leading(best, gain, baseline, ' so far')}: {numbers}."
        )
    said = comparison.statistics.verdicts[best.name]
    numbers += f" (95 % intervals over {pairs}: {both_text(gain)}; better in {gain.better} of {gain.n} seeds"
    if chance := p_text(said.p):
        numbers += f"; {chance}" + (f" after Holm's correction over {count(tests, 'method')}" if tests > 1 else "")
    numbers += ")"
    if said.effect is Effect.HELPED:
        return f"{'By the numbers alone it' if _unequal(comparison) else 'It'} helped, with {best.name}: {numbers}."
    if said.effect is Effect.HURT:
        return f"It did not help: even the best method, {best.name}, is worse than {baseline}: {numbers}."
    few = gain.n < ENOUGH_SEEDS
    verdict_needs = f"{gain.n} seeds are too few for a verdict, which needs {ENOUGH_SEEDS}"
    if not gain.side:
        why = f", and {verdict_needs}" if few else ""
        return (
            f"We can't tell whether it helped. {_leading(best, gain, baseline)}: {numbers}. "
            f"But {_holding(gain)} 0{why}."
        )
    if not few:
        alone = f"{best.name} alone would count as {'above' if gain.side > 0 else 'below'} {baseline}, but does not"
        return f"We can't tell whether it helped. {alone} among {count(tests, 'method')}: {numbers}."
    start = "It may have helped, with" if gain.side > 0 else "It may have hurt, even with the best,"
    return f"{start} {best.name}: {numbers}. But {verdict_needs}{_by_signs(comparison, best, gain)}."


def _leading(best: MethodResult, gain: Difference, baseline: str, so_far: str = "") -> str:
    """What comes before a method's numbers; those of one that is not ahead don't call it the best."""
    if beside_text(gain.mean).endswith("above"):
        return f"The best method{so_far} is {best.name}"
    return f"Even the best method{so_far}, {best.name}, is not ahead of {baseline}"


def _holding(gain: Difference) -> str:
    """Which of the intervals contain 0."""
    named = (("t", gain.t_interval), ("bootstrap", gain.interval))
    holding = [name for name, one in named if one is not None and one.low <= 0 <= one.high]
    return "both intervals contain" if len(holding) == 2 else f"the {''.join(holding)} interval contains"


def _by_signs(comparison: Comparison, best: MethodResult, gain: Difference) -> str:
    """How often seeds without any effect all fall on one side: 2 of the 2^n ways; one without a difference does not."""
    scores = {(run.method, run.seed): run.value("score", comparison.headline_axis) for run in comparison.runs}
    worse = sum(scores[best.name, seed] < scores[comparison.baseline, seed] for seed in best.paired)
    if gain.n not in (gain.better, worse):
        return ""
    return f", and {gain.n} seeds all fall on the same side by chance in 1 of {2 ** (gain.n - 1)} cases"


def _by_set(comparison: Comparison, best: MethodResult) -> list[str]:
    """What the answer's method gained on each set."""
    results = {name: own.on_headline(own.method(best.name)) for name, own in comparison.sets.items()}
    differences = {name: found.score.difference for name, found in results.items() if found}
    gains = [f"{difference_text(difference)} on {name}" for name, difference in differences.items() if difference]
    said = f"On each set, the difference of {best.name} from {comparison.baseline} is"
    return [f"{said} {enumeration(gains)}."] if gains else []


def _sides(comparison: Comparison, found: Gains) -> list[str]:
    """Every method in one of these lists, by what can be said of it."""
    base, few = comparison.baseline, f"with fewer than {ENOUGH_SEEDS} seeds"
    lists: dict[str, list[str]] = {}
    for method, gain in found:
        effect = comparison.statistics.verdicts[method.name].effect
        if effect in (Effect.HELPED, Effect.HURT):
            side = effect.capitalize()
        elif gain.n < FEWEST_SEEDS:
            side = f"Fewer than {FEWEST_SEEDS} seeds"
        elif effect is Effect.FEW and gain.side:
            side = f"{'Above' if gain.side > 0 else 'Below'} {base} by both intervals, {few}"
        else:
            side = f"No sure difference from {base}"
        lists.setdefault(side, []).append(method.name)
    return [f"{side}: {enumeration(names)}." for side, names in lists.items()]


def _time(comparison: Comparison, best: MethodResult) -> list[str]:
    result, axis = comparison.on_headline(best), comparison.headline_axis
    if result is None or math.isnan(result.ttb[100].value):
        return [f"{comparison.baseline}'s score never rises above its first, so there is no time to baseline (TTB)."]
    time, unit = result.ttb[100], AXES[axis]
    seeds = f"{time.reached} of {count(time.n, 'seed')} reach it"
    if math.isinf(time.value):
        return [f"{best.name} does not reach {comparison.baseline}'s best score within the budget on average; {seeds}."]
    return [
        f"{best.name} reaches {comparison.baseline}'s best score with {relative_text(time)} of the {unit} that "
        f"{comparison.baseline} took (time to baseline, TTB(100 %), of the curves averaged over seeds); {seeds}."
    ]


def _needed(comparison: Comparison, best: MethodResult) -> list[str]:
    """How many seeds the method would need, where nothing is sure."""
    found, said = comparison.statistics.needed.get(best.name), comparison.statistics.verdicts[best.name]
    if found is None or said.effect in (Effect.HELPED, Effect.HURT):
        return []
    sizes = [
        f"{needed_text(seeds)} seeds to detect a true difference of {size:g}" for size, seeds in found.in_plan.items()
    ]
    among = f", corrected for {count(comparison.statistics.tests, 'method')}" if comparison.statistics.tests > 1 else ""
    spread = f"With the standard deviation of its differences so far ({found.sd:.3f})"
    return [f"{spread}, {best.name} needs {enumeration(sizes)} (power 80 %{among})."]


def needed_text(seeds: int | None) -> str:
    """`34`; `more than 1,000`."""
    return "more than 1,000" if seeds is None else str(seeds)


def _oracle(comparison: Comparison) -> str:
    gain, limit = comparison.oracle_gains["score"], "the limit of the frontier idea, not of learning"
    name = f"The oracle ({comparison.oracle}: prompts nearest to a true pass rate of 0.5, {limit})"
    if gain.difference is None:
        there = comparison.method(str(comparison.oracle)).seeds
        return f"{name} has no finished run {f'to compare with those of {comparison.baseline}' if there else 'yet'}."
    gained = f"{signed(gain.difference.mean)} ({both_text(gain.difference)})"
    if gain.tells_apart:
        return f"{name} gains {gained}: the task can tell methods apart, and each one's share of that gain is shown."
    if gain.difference.interval is None:
        few = count(gain.difference.n, "paired seed")
        return f"{name}: {few} can't tell if it gains; no share is shown."
    return (
        f"{name} differs from {comparison.baseline} by {gained}, which is no sure gain: this task can't tell methods "
        "apart, and no share of it is shown."
    )


def _caution(comparison: Comparison, found: Gains) -> str:
    fewest, most = min(gain.n for _, gain in found), max(gain.n for _, gain in found)
    how = (
        f"all n^n resamples of up to {MOST_LISTED} seeds"
        if most <= MOST_LISTED
        else f"{comparison.resamples:,} resamples of the seeds, or all where there are {MOST_LISTED} or fewer"
    )
    parts = [
        f'"Helped" and "hurt" need {ENOUGH_SEEDS} paired seeds, a t and a bootstrap interval that exclude 0, and '
        "p below 0.05 by the paired t test after Holm's correction over the plan's methods; intervals are 95 %, each "
        f"alone. Bootstraps are paired percentile bootstraps ({how})"
    ]
    if fewest < ENOUGH_SEEDS:
        parts.append(
            "; with few seeds they are too narrow and contain the true difference less often: about 75 % of the time "
            "with 3 seeds, 84 % with 5, 91 % with 10"
        )
    if fewest < FEWEST_SEEDS:
        parts.append(f"; fewer than {FEWEST_SEEDS} seeds have none")
    if len(found) > 1:
        parts.append(f"; the best of {len(found)} methods looks better than it is")
    return "".join(parts) + "."
