"""Rollouts, arrays and kept batches on disk."""

from rollwise.inference.files.arrays import Arrays, read_arrays, write_arrays
from rollwise.inference.files.kept_batches import KeptBatches, pass_facts, remove_kept
from rollwise.inference.files.model_of_rollouts import model_of
from rollwise.inference.files.rollout_folder import read_some, rollouts_folder
from rollwise.inference.files.rollout_set import RolloutSet

__all__ = [
    "Arrays",
    "KeptBatches",
    "RolloutSet",
    "model_of",
    "pass_facts",
    "read_arrays",
    "read_some",
    "remove_kept",
    "rollouts_folder",
    "write_arrays",
]
