"""A curriculum inside distributed engines: a service for many workers, and adapters to engines. Imports no engine."""

from rollwise.engines.calls import Told
from rollwise.engines.service import CurriculumService

__all__ = ["CurriculumService", "Told"]
