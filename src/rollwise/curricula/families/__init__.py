"""Bases that save a method work: ranked, arms, rotation, composite, judged; strata, embedding bank."""
