"""Whether a log can be replayed: only one of uniform sampling shows what other prompts would have earned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from rollwise.runs.past import PastRollouts

MOST_UNEVEN = 2.0
"""Variance over mean of the visits to prompts: at most about 1 at random; beyond this, prompts were chosen."""
FEW_GROUPS = 20
"""With fewer groups, contrast in all of them may be luck."""


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
