"""All rounds of a generation, and what of them is trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.gates import Refill
from rollwise.training.generation.groups import join_evidence
from rollwise.training.generation.messages import Chosen
from rollwise.training.generation.rounds import Round


class Collected:
    """The rounds of one batch.

    Args:
        batch: says which of the groups train.
    """

    def __init__(self, batch: Refill[int]) -> None:
        self.batch = batch
        self.rounds: list[Round] = []

    def chosen(self) -> Chosen:
        """What is trained on."""
        index = [own[:n].tolist() for r in self.rounds for own, n in zip(r.index, r.sizes.tolist(), strict=True)]
        groups, used = self.batch.groups, self.used()
        return Chosen(
            rows=[row for group in groups for row in index[group]],
            sizes=[len(index[group]) for group in groups],
            used=[i in used[group] for group in groups for i in range(len(index[group]))],
        )

    def used(self) -> list[set[int]]:
        """The rollouts of each group that are trained on."""
        shares = dict(zip(self.batch.groups, self.batch.shares, strict=True))
        kept = [own.tolist() for r in self.rounds for own in r.kept]
        return [set(own[: shares.get(group, 0)]) for group, own in enumerate(kept)]

    def fields(self) -> dict[str, Any]:
        """What `Groups` has of them."""
        parts = self.rounds
        width, n = max(r.rewards.shape[1] for r in parts), sum(len(r.tickets) for r in parts)
        arrays = {"rewards": np.nan, "advantages": 0.0, "lengths": 0}
        used = np.zeros((n, width), dtype=bool)
        for group, own in enumerate(self.used()):
            used[group, sorted(own)] = True
        return {
            **{name: np.concatenate([r.of_width(name, width, empty) for r in parts]) for name, empty in arrays.items()},
            "used": used,
            "sizes": np.concatenate([r.sizes for r in parts]),
            "texts": [own for r in parts for own in r.texts],
            "labels": [own for r in parts for own in r.labels] if all(r.labels for r in parts) else None,
            "evidence": join_evidence([r.evidence for r in parts]),
            "round": np.repeat(np.arange(1, len(parts) + 1), [len(r.tickets) for r in parts]),
            "admitted": np.concatenate([r.admitted for r in parts]),
            "trained": np.isin(np.arange(n), self.batch.groups),
            "screenings": [own for r in parts for own in r.screenings],
        }
