"""How far training has come, by its steps."""

from __future__ import annotations


def progress(step: int, steps: int) -> float:
    """0 at step 1, 1 at step `steps` and from then on, linear between.

    >>> [progress(step, 5) for step in (1, 2, 5, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    return min(max((step - 1) / max(steps - 1, 1), 0.0), 1.0)
