"""One training batch: ask, roll out, tell, merge."""
