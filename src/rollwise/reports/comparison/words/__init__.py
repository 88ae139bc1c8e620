"""A comparison in words: its verdict, its numbers, and the cells of its tables."""
