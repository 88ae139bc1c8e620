"""Puzzles of the package reasoning-gym: items by seed, scorers, and the task."""
