"""A curriculum inside distributed engines: a service for many workers, and adapters to engines. Imports no engine."""

from rollwise.engines.service import CurriculumService
from rollwise.engines.serving.calls import Told

__all__ = ["CurriculumService", "Told"]
