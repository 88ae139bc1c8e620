"""Fits a success head on rollouts."""
