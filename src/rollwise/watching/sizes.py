"""How many rollouts the last groups have, where these differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rollwise.evaluation.sizes import PARTS, GroupSizes, SizesByRate, group_sizes
from rollwise.runs.solved import SolvedRule
from rollwise.watching.glyphs import Glyphs, sparkline
from rollwise.watching.history import GroupLine

# Columns of the histogram.
_WIDTH = 12
# Where success rates are cut, in parts of `PARTS`: below 0.3, up to 0.7, above.
_CUTS = (0, 3, 7, PARTS)


def size_facts(sizes: GroupSizes, glyphs: Glyphs) -> list[str]:
    """The range with a histogram, the mean, and the mean by success rate: below 0.3, up to 0.7, above.

    >>> from rollwise.watching.glyphs import ASCII
    >>> size_facts(group_sizes([2, 2, 2, 8], [0.1, 0.9, 0.1, 0.5], [0.0, 1.0, 0.0, 0.5]), ASCII)
    ['2 #_____, 8', 'mean 3.5', 'believed <.3 2.0 to .7 8.0 >.7 2.0', 'got <.3 2.0 to .7 8.0 >.7 2.0']
    """
    counts = dict(sizes.histogram)
    low, high = sizes.histogram[0][0], sizes.histogram[-1][0]
    columns = [float(counts.get(size, 0)) for size in range(low, high + 1)]
    facts = [f"{low} {sparkline(columns, _WIDTH, glyphs, low=0.0)} {high}", f"mean {sizes.mean:.1f}"]
    named = (("believed", sizes.believed), ("got", sizes.realised))
    return facts + [f"{name} {_by_third(part)}" for name, part in named if part.any]


def recent_sizes(groups: Sequence[GroupLine], rule: SolvedRule) -> GroupSizes | None:
    """The sizes of these groups; None where all are of one size."""
    believed = [math.nan if group.predicted is None else group.predicted for group in groups]
    return group_sizes([group.size for group in groups], believed, [group.solved(rule) for group in groups])


def _by_third(part: SizesByRate) -> str:
    words = []
    for name, start, stop in zip(("<.3", "to .7", ">.7"), _CUTS, _CUTS[1:], strict=False):
        groups, rollouts = sum(part.groups[start:stop]), sum(part.rollouts[start:stop])
        words += [f"{name} {rollouts / groups:.1f}"] if groups else []
    return " ".join(words)
