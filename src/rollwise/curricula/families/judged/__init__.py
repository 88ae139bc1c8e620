"""Curricula with a judge."""

from rollwise.curricula.families.judged.candidates import JUDGED, Judged

__all__ = ["JUDGED", "Judged"]
