"""What every method shares: ask, tell, probe, consult, saving, rails."""
