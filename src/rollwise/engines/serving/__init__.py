"""The parts of `CurriculumService`: calls that wait, tickets in flight, saved states, measures."""
