"""The reports of best-of-N: an evaluation, and a file of `rollwise consistency`."""
