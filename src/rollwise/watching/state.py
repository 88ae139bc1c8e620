"""What is shown of a run, as plain values: each a pure function of its history and the time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rollwise.evaluation.named_sets import AGGREGATE, aggregate_words, set_column, set_of
from rollwise.runs.names import SCRIPT
from rollwise.runs.solved import SolvedRule
from rollwise.watching.calibration import calibrate
from rollwise.watching.history import GroupLine, History, one_line
from rollwise.watching.judge import judge_alarms, judge_state
from rollwise.watching.pace import (
    clock,
    evaluation_interval,
    evaluation_seconds,
    rate,
    step_seconds,
    time_left,
    uncharged_seconds,
)
from rollwise.watching.replay import replay_state
from rollwise.watching.sizes import recent_sizes
from rollwise.watching.snapshot import Category, Signal, Snapshot, Spent

# Steps whose groups are counted for lanes and categories.
RECENT_STEPS = 10
# A run without a new line for this long, and this many times longer than a step or evaluation takes, is reported.
QUIET_S = 60.0
QUIET_TIMES = 10.0
# A category counts as starved when the last steps, at the rate of those before, would have asked for it this often.
STARVED_AFTER = 5.0
NEWEST_GROUPS = 40
# Evaluation sets that have a row.
MOST_SETS = 8
POOLS = ("heap", "solved", "unsolved", "unseen")


def take_snapshot(name: str, history: History, now: float) -> Snapshot:
    """The run at `now` (seconds since the epoch)."""
    config, step = history.config, history.step
    steps = steps_to_do(config, history)
    quiet_s = max(0.0, now - values[-1]) if (values := history.signal("time").values) else 0.0
    status = _status(history, steps, quiet_s)
    recent = recent_groups(history.groups)
    trained = [group for group in recent if group.purpose == "train"]
    categories = by_category(trained, history.categories, history.rule)
    return Snapshot(
        name=name,
        facts=_facts(config),
        step=step,
        steps=steps,
        status=status,
        quiet_s=quiet_s,
        left_s=time_left(history, steps, evaluation_interval(config, history)),
        signals=_signals(history),
        pool=pool_sizes(history.latest),
        coverage=history.latest.get("curriculum/coverage"),
        lanes=lane_shares(recent),
        categories=categories,
        calibration=calibrate(history.groups, history.rule),
        spent=_spent(history),
        alarms=_alarms(history, trained, categories, status, quiet_s),
        groups=tuple(reversed([g for g in history.groups if g.purpose == "train"][-NEWEST_GROUPS:])),
        reward_range=(history.rule.spec.low, history.rule.spec.high),
        judge=judge_state(history.latest),
        replay=replay_state(history.latest),
        held_out=history.held_out,
        sizes=recent_sizes(trained, history.rule),
    )


def steps_to_do(config: Mapping[str, object], history: History) -> int | None:
    """The steps that a run will take: as many as are configured, or until its budget of tokens or hours is used up.

    How many a budget is enough for is estimated from what a step took so far. None where nothing is configured.
    """
    steps, step, hours = _whole(config.get("steps")), history.step, config.get("max_hours")
    budgets: dict[str, float | None] = {
        "tokens": _whole(config.get("token_budget")),
        "wall_s": 3600 * hours if isinstance(hours, int | float) else None,
    }
    for name, budget in budgets.items():
        spent = history.latest.get(name, 0.0)
        if steps is not None and budget is not None and step and spent:
            steps = min(steps, step if spent >= budget else max(step + 1, math.ceil(step * budget / spent)))
    return steps


def recent_groups(groups: Sequence[GroupLine], steps: int = RECENT_STEPS) -> list[GroupLine]:
    """The groups of the last `steps` steps that have any."""
    kept = sorted({group.step for group in groups})[-steps:]
    return [group for group in groups if kept and group.step >= kept[0]]


def lane_shares(groups: Sequence[GroupLine]) -> tuple[tuple[str, float], ...]:
    """Each lane's share of the groups, greatest first; probes are lanes of their own."""
    counts = Counter(g.lane if g.purpose == "train" else f"{g.lane} ({g.purpose})" for g in groups)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple((lane, count / len(groups)) for lane, count in ranked)


def by_category(groups: Sequence[GroupLine], known: Iterable[str], rule: SolvedRule) -> tuple[Category, ...]:
    """Share of the groups, pass rate over rollouts, and share of judged groups that are mixed; a row each."""
    rows = []
    for name in sorted(known):
        own = [group for group in groups if group.category == name]
        scored = [reward for group in own for reward in group.whole]
        judged = sum(bool(group.whole) for group in own)
        rows.append(
            Category(
                name=name,
                share=len(own) / len(groups) if groups else math.nan,
                pass_rate=sum(reward >= rule.threshold for reward in scored) / len(scored) if scored else math.nan,
                mixed=sum(group.mixed(rule) for group in own) / judged if judged else math.nan,
            )
        )
    return tuple(rows)


def pool_sizes(latest: Mapping[str, float]) -> dict[str, float]:
    """The pool's parts by name; those of a curriculum within another are named by their path."""
    sizes = {}
    for name, value in latest.items():
        parts = name.split("/")
        if parts[0] == "curriculum" and parts[-1] in POOLS:
            sizes["/".join(parts[1:])] = value
    return sizes


def _facts(config: Mapping[str, Any]) -> tuple[str, ...]:
    named = [str(config[name]) for name in ("task", "curriculum", "model") if isinstance(config.get(name), str)]
    gate = [f"gate {config['gate']}"] if config.get("gate") not in (None, "none") else []
    seed = [f"seed {config['seed']}"] if "seed" in config else []
    return (*named, *gate, *seed)


def _status(history: History, steps: int | None, quiet_s: float) -> str:
    step = history.step
    if step is None:
        return "starting" if history.config else "waiting"
    if steps is not None and step >= steps:
        return "complete"
    longest = max(step_seconds(history) or QUIET_S, evaluation_seconds(history) or 0.0) + uncharged_seconds(history)
    return "quiet" if quiet_s > max(QUIET_S, QUIET_TIMES * longest) else "running"


def _signals(history: History) -> tuple[Signal, ...]:
    names = [name for name in history.series if name.startswith("eval/pass@")]
    k = sorted((name for name in names if name != "eval/pass@1"), key=lambda name: (len(name), name))[-1:]
    sets = evaluation_sets(history)
    made = f", {aggregate_words(history.config.get(AGGREGATE))}" if sets else ""
    rows: list[tuple[str, str, float | None, float | None]] = [
        ("eval/pass@1", f"pass@1{made}", None, None),
        *((column, f"  {one_line(name)}", None, None) for name, column in sets.items()),
        *((name, name.removeprefix("eval/"), None, None) for name in k),
        ("frac_mixed", "mixed", 0.0, 1.0),
        ("frac_all_good", "all solved", 0.0, 1.0),
        ("frac_all_bad", "all failed", 0.0, 1.0),
        ("abs_advantage", "mean |A|", None, None),
        ("reward", "reward", None, None),
    ]
    found = [Signal(shown, tuple(history.signal(key).values), low, high, key) for key, shown, low, high in rows]
    return tuple(signal for signal in found if signal.values)


def evaluation_sets(history: History) -> dict[str, str]:
    """The named evaluation sets and the series of each one's score, in the order in which they were logged."""
    scores: dict[str, str] = {}
    for column in history.series:
        if (name := set_of(column)) and column == set_column(name, "pass@1"):
            scores[name] = column
    return dict(list(scores.items())[:MOST_SETS])


def _spent(history: History) -> Spent:
    totals = {
        name: (values[-1] if (values := history.signal(name).values) else None)
        for name in ("rollouts", "tokens", "flops", "wall_s")
    }
    wall, probes = totals["wall_s"], history.signal("probe_rollouts").values
    inside = history.signal("ask_s").values + history.signal("tell_s").values
    return Spent(
        **totals,
        probes=sum(probes) if probes else None,
        tokens_per_s=rate(history.signal("tokens"), history.signal("wall_s")),
        step_s=step_seconds(history),
        overhead=sum(inside) / wall if wall and inside else None,
    )


def _alarms(
    history: History, recent: Sequence[GroupLine], categories: Sequence[Category], status: str, quiet_s: float
) -> tuple[str, ...]:
    alarms = []
    asked = max(1, history.categories.total())
    expected = {name: count / asked * len(recent) for name, count in history.categories.items()}
    if status == "quiet":
        alarms.append(f"no new line for {clock(quiet_s)}; if training was stopped: {_how_to_go_on(history)}")
    mixed = history.signal("frac_mixed").values[-RECENT_STEPS:]
    if len(mixed) == RECENT_STEPS and not any(mixed):
        alarms.append(f"no group had contrast in the last {RECENT_STEPS} steps: nothing is being learnt")
    for name, value in history.latest.items():
        path = name.split("/")
        if path[-1] == "starved" and value > 0:
            alarms.append(f"starved prompts: {value:,.0f} (unsolved, and not asked for in long)")
        if name == "curriculum/unseen_long":
            alarms.append(f"prompts never asked for, though a pass over the pool is done: {value:,.0f}")
        if name == "curriculum/failed" and value > 0:
            alarms.append(f"rollouts that could not be scored: {value:,.0f}")
        if name == "curriculum/unscored" and value > 0:
            named = [f"category {one_line(c)}" for c in _parts(history.latest, "curriculum/set_aside/")]
            which = f" ({', '.join(named)})" if named else ""
            alarms.append(f"prompts whose last group got no reward: {value:,.0f}{which}; look at their scorer")
    given = _parts(history.latest, "curriculum/starved_categories/")
    if given:
        named = [f"{one_line(name)} ({share:.0%} of its fair share)" for name, share in given.items()]
        alarms.append(f"starved categories: {', '.join(named)}")
    starved = [c.name for c in categories if c.share == 0 and expected.get(c.name, 0.0) >= STARVED_AFTER]
    if starved:
        alarms.append(f"categories not asked for in the last {RECENT_STEPS} steps: {', '.join(starved)}")
    alarms += judge_alarms(judge_state(history.latest))
    alarms += history.faults.values()
    if history.damaged:
        alarms.append(f"damaged lines in the logs, left out: {history.damaged:,}")
    return tuple(alarms)


def _how_to_go_on(history: History) -> str:
    """The command that began a run resumes it; a run without options is a script's, of an older version."""
    if history.launched:
        return "rollwise launch --resume RUN"
    if history.config.get("engine") == "verl":
        return "verl's own command with trainer.resume_mode=auto"
    by_script = not history.config or history.config.get("kind") == SCRIPT
    return "trainer.train(resume_from_checkpoint=True) in its script" if by_script else "rollwise train --resume RUN"


def _parts(latest: Mapping[str, float], prefix: str) -> dict[str, float]:
    """The numbers whose names begin so, by what follows."""
    return {name.removeprefix(prefix): value for name, value in latest.items() if name.startswith(prefix)}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
