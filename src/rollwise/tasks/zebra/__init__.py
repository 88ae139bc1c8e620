"""Zebra puzzles: how they are made, and the task."""
