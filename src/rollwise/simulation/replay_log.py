"""The log that a replay has as its world: a run of uniform sampling, or any past rollouts that may be one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateFileError
from rollwise.evaluation import RunData, read_run
from rollwise.runs.names import METRICS_FILE, ROLLOUTS_FILE
from rollwise.runs.past import PastRollouts, read_past
from rollwise.runs.past_columns import Columns
from rollwise.simulation.run_log import NO_CATEGORY, RunLog, levels_of, solved_score
from rollwise.tickets.outcome import RewardSpec

MOST_UNEVEN = 2.0
"""Variance over mean of the visits to prompts: at most about 1 at random; beyond this, prompts were chosen."""
FEW_GROUPS = 20
"""With fewer groups, contrast in all of them may be luck."""


def read_log(run: str | Path, columns: Columns | None = None) -> RunLog:
    """The log of a finished run with uniform sampling, or of other past rollouts (`read_past`).

    Rewards are mapped to [0, 1] by the run's `RewardSpec`. Where its folder has none, those outside [0, 1] are: the
    least to 0 and the greatest, which counts as solved, to 1.

    Args:
        run: A run's folder, or what `read_past` reads.
        columns: What the columns of other past rollouts are called.

    Raises:
        StateFileError: it is not there, or damaged.
        ConfigError: it has no rollouts, or was not made with uniform sampling: then what it has seen of a prompt, and
            when, depends on how the prompt did. Or columns are named, and it is a run's folder.
    """
    if not (Path(run) / METRICS_FILE).is_file():
        return log_of(read_past(run, columns))
    if named := [name for name, value in vars(columns or Columns()).items() if value is not None]:
        raise ConfigError(f"{str(run)!r} is a run's folder, whose columns are known; leave {named[0]} out")
    data = read_run(run)
    groups = [g for g in _trained(data) if len(g["rewards"])]
    if not groups:
        raise ConfigError(f"{str(run)!r} has no rollouts with a reward; replay needs a run's rollouts.jsonl")
    if chosen := chosen_by_lanes({str(g["lane"]) for g in groups}):
        raise ConfigError(f"{str(run)!r} {chosen}")
    ids = list(dict.fromkeys(str(g["prompt_id"]) for g in groups))
    number = {id_: i for i, id_ in enumerate(ids)}
    of = {id_: g for g, id_ in ((g, str(g["prompt_id"])) for g in reversed(groups))}
    levels, counts, mixed = levels_of([np.array(g["rewards"], dtype=np.float64) for g in groups], data.rewards)
    steps = np.array([g["step"] for g in groups], dtype=np.int64)
    return RunLog(
        ids=ids,
        prompts=[of[id_].get("prompt", id_) for id_ in ids],
        category=[str(of[id_].get("category", NO_CATEGORY)) for id_ in ids],
        columns=_columns(data, ids),
        slot=np.array([number[str(g["prompt_id"])] for g in groups], dtype=np.int64),
        step=steps,
        counts=counts,
        levels=levels,
        mixed=mixed,
        steps=int(steps.max()),
        batch=_batch(data, steps),
        group_size=_group_size(data, counts.sum(axis=1)),
        advantage="std" if data.config.get("advantages") == "std" else "centred",
        solved_at=1.0 if data.rewards is None else solved_score(data.rewards),
    )


def log_of(past: PastRollouts, spec: RewardSpec | None = None) -> RunLog:
    """Past rollouts as the log of a run; its steps are numbered from 1.

    Args:
        past: From `read_past`.
        spec: The range of rewards; None to map the least to 0 and the greatest to 1, where they leave [0, 1].

    Raises:
        ConfigError: none has a reward, or they can't be replayed; see `why_no_replay`.
    """
    if why := why_no_replay(past):
        raise ConfigError(f"{str(past.path)!r} {why}")
    groups = [group for group in past.groups if any(r is not None for r in group.rewards)]
    if not groups:
        raise ConfigError(f"{str(past.path)!r} has no rollout with a reward; name its column: --reward_column")
    ids = list(dict.fromkeys(group.prompt_id for group in groups))
    number, place = {id_: i for i, id_ in enumerate(ids)}, {step: i for i, step in enumerate(past.steps, start=1)}
    scored = [np.array([r for r in group.rewards if r is not None], dtype=np.float64) for group in groups]
    levels, counts, mixed = levels_of(scored, spec)
    steps = np.array([place[group.step] for group in groups], dtype=np.int64)
    return RunLog(
        ids=ids,
        prompts=[past.prompts[id_] for id_ in ids],
        category=[past.categories.get(id_, NO_CATEGORY) for id_ in ids],
        columns={},
        slot=np.array([number[group.prompt_id] for group in groups], dtype=np.int64),
        step=steps,
        counts=counts,
        levels=levels,
        mixed=mixed,
        steps=len(place),
        batch=int(np.median(np.unique(steps, return_counts=True)[1])),
        group_size=past.group_size,
        advantage="centred",
        solved_at=1.0 if spec is None else solved_score(spec),
    )


def _batch(data: RunData, steps: np.ndarray) -> int:
    """Prompts a step; of a run with a gate, whose steps have several rounds, those of one."""
    said = data.config.get("prompts_per_step")
    return said if isinstance(said, int) and said > 0 else int(np.bincount(steps).max())


def _group_size(data: RunData, sizes: np.ndarray) -> int:
    """Rollouts of a group, of groups of unequal `sizes` (J,) the mean that the run was given."""
    said = data.config.get("num_generations")
    return said if isinstance(said, int) and said > 0 else int(sizes.max())


def _trained(data: RunData) -> list[dict[str, Any]]:
    """The groups that were not only measured, by ticket as last written, without the rollouts that have no reward."""
    rows = {}
    for number, row in data.rollout_lines():
        if missing := [name for name in ("ticket", "prompt_id", "lane", "step") if name not in row]:
            raise StateFileError(
                f"{data.path / ROLLOUTS_FILE}, line {number}: no {missing[0]!r}, so it is no line of a run"
            )
        if row.get("purpose", "train") == "train":
            rows[row["ticket"]] = row
    return [{**row, "rewards": [r for r in row["rewards"] if r is not None]} for row in rows.values()]


def _columns(data: RunData, ids: list[str]) -> dict[str, list[Any]]:
    """The columns that are known of all these prompts, name -> N values."""
    logged = data.prompt_columns()
    known = [logged.get(id_, {}) for id_ in ids]
    return {name: [columns[name] for columns in known] for name in sorted(set.intersection(*map(set, known)))}


def why_no_replay(past: PastRollouts) -> str | None:
    """Why past rollouts can't be replayed, as what follows their name; None if nothing speaks against it.

    Nothing but a run of rollwise says how its prompts were chosen. So what other logs show is looked at: how often each
    prompt came, and whether groups without contrast are there at all.
    """
    if chosen := chosen_by_lanes(past.lanes):
        return chosen
    if not past.has_steps:
        return "does not say what was rolled out when; name its column of steps: --step_column"
    visits = np.array(list(Counter(group.prompt_id for group in past.groups).values()), dtype=np.float64)
    if len(visits) > 1 and visits.var() / visits.mean() > MOST_UNEVEN + 5.0 * math.sqrt(2.0 / (len(visits) - 1)):
        return (
            f"was not made with uniform sampling: prompts came {visits.min():.0f} to {visits.max():.0f} times, more "
            "unevenly than at random; replay a log of uniform sampling"
        )
    scored = [[r for r in group.rewards if r is not None] for group in past.groups]
    if len(scored) >= FEW_GROUPS and all(rewards and max(rewards) > min(rewards) for rewards in scored):
        return (
            f"has contrast in all of its {len(scored)} groups: either there is nothing to gain, or a filter such as "
            "dynamic sampling left groups out, so it does not show uniform sampling"
        )
    return None


def chosen_by_lanes(lanes: Iterable[str]) -> str | None:
    """What follows the name of a run some of whose groups were chosen, by the lanes of its groups; else None."""
    others = sorted(set(lanes) - {"uniform"})
    if not others:
        return None
    return (
        f"was not made with uniform sampling: it has groups by the lane {others[0]!r}; replay the log of a run with "
        "--curriculum uniform"
    )
