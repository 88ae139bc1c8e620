"""ARC-1D puzzles: a file of rules, and the task."""
