"""The report of an evaluation of best-of-N."""
