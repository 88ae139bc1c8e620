"""Programs that a model wrote: read from its text, run in sandboxes, and scored by tests."""

from rollwise.sandbox.programs.scoring import Score, score_program

__all__ = ["Score", "score_program"]
