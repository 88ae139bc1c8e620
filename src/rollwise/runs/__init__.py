"""The folder of a run: names, lines, writing, reading."""
