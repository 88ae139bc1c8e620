"""One generation of a trainer: asked, rolled out and told in rounds until a batch is there. Lives on rank 0."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.evidence import Evidence
from rollwise.gates import DynamicSampling
from rollwise.outcome import Outcome
from rollwise.ticket import Ticket
from rollwise.training.groups import Groups, join_evidence


@dataclass(frozen=True, slots=True)
class Round:
    """M groups of G rollouts of one call to the trainer's generation, the same on every rank but for `output`.

    Attributes:
        output: what the trainer returned: this rank's share.
        rewards: (M G,) tensor of the reward functions' weighted sum; NaN where unscorable.
        advantages: (M G,) tensor, as returned.
        told: (M, G) the advantages, scaled as the trainer scales them.
        lengths: (M, G) generated tokens.
        texts: M G completions.
    """

    output: dict[str, Any]
    rewards: torch.Tensor
    advantages: torch.Tensor
    told: np.ndarray
    lengths: np.ndarray
    texts: list[Any]


class Generation:
    """Asks for a batch's prompts, tells what came of each round, and says which groups are trained on.

    Args:
        curriculum: whom to ask and tell.
        sampling: the gate, and how often to refill.
        n_prompts: groups that are trained on.
        group: rollouts of each.
        share: rounds are of a multiple of so many groups, so that every rank has as many rollouts.
        step: the training step.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        sampling: DynamicSampling,
        *,
        n_prompts: int,
        group: int,
        share: int,
        step: int,
    ) -> None:
        self.curriculum, self.n_prompts, self.group, self.share, self.step = curriculum, n_prompts, group, share, step
        self.batch = sampling.batch(n_prompts)
        self.tickets: list[Ticket] = []
        self.ask_seconds = self.tell_seconds = 0.0
        self._evidence: list[Evidence] = []
        self._admitted: list[np.ndarray] = []

    def ask(self) -> np.ndarray:
        """Slots of the prompts to roll out next, (M,); none when the batch is there.

        Raises:
            ConfigError: at first, the curriculum has fewer than are trained on.
        """
        if not self.batch.missing:
            return np.empty(0, dtype=np.int64)
        started = time.perf_counter()
        asked = self.batch.ask(self.curriculum, step=self.step, n_rollouts=self.group, multiple_of=self.share)
        if len(asked) < self.n_prompts and not self.tickets:
            raise ConfigError(
                f"the curriculum gave {len(asked)} prompts where a step needs {self.n_prompts}: "
                f"{self.curriculum.ledger.n_open - len(asked)} of {len(self.curriculum.pool)} are in flight"
            )
        self.tickets += asked
        self.ask_seconds += time.perf_counter() - started
        return self.curriculum.pool.slots_of([t.prompt_id for t in asked])

    def tell(self, rolled: Round, *, first: bool) -> None:
        """Tell the round of rollouts that was asked for last; `first`: of the whole training run.

        Raises:
            SilentNoOpError: nothing in the first one could be scored.
        """
        started = time.perf_counter()
        rewards = rolled.rewards.double().cpu().numpy().reshape(-1, self.group)
        scored = ~np.isnan(rewards)
        if first and not scored.any():
            raise SilentNoOpError(
                f"none of the {scored.size} rollouts of the first step could be scored: every reward function returned "
                "None or NaN, so the curriculum would never learn"
            )
        tickets = self.tickets[-len(rewards) :]
        evidence = self.curriculum.tell(
            Outcome(t.id, rewards=r[s], advantages=a[s], failed=int((~s).sum()))
            for t, r, a, s in zip(tickets, rewards, rolled.told, scored, strict=True)
        )
        numbers = range(len(self.batch), len(self.batch) + len(tickets))
        self._admitted.append(self.batch.add(numbers, evidence))
        self._evidence.append(evidence)
        self.tell_seconds += time.perf_counter() - started

    def rows(self) -> list[int]:
        """The rollouts that are trained on, counted through all rounds."""
        return [number * self.group + i for number in self.batch.groups for i in range(self.group)]

    def groups(self, rounds: list[Round], rows: list[dict[str, Any]], *, gated: bool) -> Groups:
        """All that was rolled out, for those who observe."""
        texts = [text for r in rounds for text in r.texts]
        counts, more = self.batch.metrics(), len(self.tickets) - self.n_prompts
        gate = {name: counts[name] for name in ("rounds", "rejected", "filled", "surplus")}
        return Groups(
            step=self.step,
            tickets=self.tickets,
            rewards=np.concatenate([r.rewards.double().cpu().numpy() for r in rounds]).reshape(-1, self.group),
            advantages=np.concatenate([r.told for r in rounds]),
            lengths=np.concatenate([r.lengths for r in rounds]),
            texts=[texts[i : i + self.group] for i in range(0, len(texts), self.group)],
            rows=rows,
            evidence=join_evidence(self._evidence),
            round=np.repeat(np.arange(1, len(rounds) + 1), [len(r.lengths) for r in rounds]),
            admitted=np.concatenate(self._admitted),
            trained=np.isin(np.arange(len(self.tickets)), self.batch.groups),
            gate={**gate, "extra_rollouts": float(more * self.group)} if gated else {},
            curriculum=self.curriculum.metrics(),
            ask_seconds=self.ask_seconds,
            tell_seconds=self.tell_seconds,
        )
