"""Rollouts, arrays and kept batches on disk."""
