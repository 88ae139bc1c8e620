"""Shadow evaluation: estimators follow the log of a uniform run, and predict each step (BOTS, F.2)."""

from rollwise.simulation.shadow.following import ESTIMATORS, Shadow, follow, follow_all, held_bytes
from rollwise.simulation.shadow.results import begin_shadow, draw_shadow, shadow_table, write_shadow

__all__ = [
    "ESTIMATORS",
    "Shadow",
    "begin_shadow",
    "draw_shadow",
    "follow",
    "follow_all",
    "held_bytes",
    "shadow_table",
    "write_shadow",
]
