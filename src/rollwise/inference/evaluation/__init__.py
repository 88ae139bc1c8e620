"""Replay, matched cost, calibration and tables: the command `head evaluate`."""
