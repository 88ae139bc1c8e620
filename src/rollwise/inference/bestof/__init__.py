"""The command `bestof`: options, settings taken from an evaluation, the run."""
