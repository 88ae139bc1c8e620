"""Numbers of a head against outcomes: pure functions."""
