"""Who is aborted, what the curriculum is told of it, and whether it pays: all that needs no model. Experimental.

*What the curriculum is told.* The rollouts that are left are no fair sample: most of those that were aborted would have
failed, so a pass rate among the rest is too high. V in place of their rewards is as wrong as the head is, and makes a
prompt that nobody solves look mixed. r_hat lies outside of the rewards' range. So each rollout of a group that was put
to the roulette is told with the same chance c, doomed or not: a doomed one when it was kept, any other by a draw of its
own. Whether a reward is told then does not depend on what it is: pass rates stay unbiased, every reward that is told
was earned, and the price is evidence: c times as much. The others are counted as `Outcome.failed`. Advantages, of which
some are weighted by 1/c, are not told.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.errors import RewardError, StateError
from rollwise.inference.roulette import draw_kept, estimated_rewards, roulette_advantages
from rollwise.inference.roulette_gate import RouletteGate, measure_gate
from rollwise.rng import RngStreams
from rollwise.state import decode_array, encode_array
from rollwise.training.abort_options import AbortOptions
from rollwise.training.calls import Drawn

logger = logging.getLogger(__name__)

ENOUGH = 32
"""Groups that have to be whole before a warning is given."""


class Aborting:
    """The roulette over a run: its random numbers, its costs, and its gate.

    On every rank alike: all draw for all, from the same numbers.

    Args:
        options: When, whom and how.
        head: Names the success head, so that a run is not resumed with another.
        seed: Root of the draws.
    """

    def __init__(self, options: AbortOptions, *, head: str, seed: int) -> None:
        self.options, self.head = options, head
        self.roulette = options.roulette
        self._rng = RngStreams(seed)
        self._window: deque[np.ndarray] = deque(maxlen=options.window)  # (3, G, K): rewards, tokens, values
        self.step: dict[str, float] = {}
        """Measures of the last generation."""
        self._warned = ""

    @property
    def dry(self) -> bool:
        """Whether nothing is ever aborted."""
        return self.options.chance == 1

    def draw(self, values: np.ndarray, alive: np.ndarray, group: int) -> Drawn:
        """Put N rollouts, those of one prompt adjacent, to the roulette.

        Args:
            values: (N,) V at the abort point; anything where a rollout ended before.
            alive: (N,) bool, whether it has tokens to come.
            group: Rollouts of each prompt.
        """
        n = len(values)
        whole = np.repeat(self._rng["abort/whole"].random(n // group) < self.options.whole, group) | self.dry
        values = np.where(alive, values, np.nan)
        chances = np.where(whole, 1.0, self.roulette.chances(values, alive))
        kept = draw_kept(chances, self._rng["abort/kept"])
        others = self._rng["abort/told"].random(n) < self.options.chance
        return Drawn(
            values=values, chances=chances, kept=kept, told=kept & (whole | (chances < 1) | others), whole=whole
        )

    def advantages(self, rewards: np.ndarray, drawn: Drawn, group: int) -> tuple[np.ndarray, np.ndarray]:
        """Advantages (N,) of prefixes and of suffixes; see `rollwise.inference.roulette`.

        Args:
            rewards: (N,); anything where a rollout was aborted.
            drawn: What the roulette did.
            group: Rollouts of each prompt.

        Raises:
            RewardError: a rollout that was run to its end has no reward.
        """
        missing = int((drawn.kept & np.isnan(rewards)).sum())
        if missing:
            raise RewardError(
                f"{missing} of {len(rewards)} rollouts could not be scored, and leaving them out of the baseline would "
                "bias the gradient of the roulette; let the reward function give every rollout a number, or train "
                "without abort"
            )
        return roulette_advantages(rewards, drawn.values, drawn.kept, drawn.chances, group=group)

    def observe(self, rewards: np.ndarray, lengths: np.ndarray, drawn: Drawn, group: int) -> None:
        """Book a generation: (N,) rewards and generated tokens, and what the roulette did."""
        c, at_stake = self.options.chance, drawn.chances < 1
        suffixes = (lengths - self.options.at) * (at_stake & drawn.kept)
        saved = float(suffixes.sum()) * (1 - c) / c
        self.step = {
            "doomed": float((drawn.values < self.options.threshold).mean()),
            "aborted": float((~drawn.kept).mean()),
            "tokens_saved": saved,
            "saved": saved / (float(lengths.sum()) + saved),
        }
        if at_stake.any():
            estimate = estimated_rewards(rewards, drawn.values, drawn.kept, drawn.chances)
            self.step["reward"] = float(estimate.mean())
        columns = np.stack([rewards, lengths.astype(np.float64), drawn.values]).reshape(3, -1, group)
        measured = drawn.whole.reshape(-1, group)[:, 0] & ~np.isnan(columns[0]).any(axis=1)
        self._window.append(columns[:, measured])

    def gate(self) -> RouletteGate | None:
        """Whether it pays, by the whole groups of the window: at the chance in use, or the best one if that is 1.

        None where there are none, or no two rewards of any group differ.
        """
        rewards, tokens, values = self._measured()
        options = self.options
        if not len(rewards):
            return None
        try:
            return measure_gate(
                rewards,
                tokens,
                values,
                at=options.at,
                threshold=options.threshold,
                chance=None if self.dry else options.chance,
            )
        except RewardError:
            return None

    def metrics(self) -> dict[str, float]:
        """Of the last generation, and of the gate; warns when the gate's verdict becomes another, and is bad.

        doomed: share of all rollouts. aborted: likewise. tokens_saved: estimated, without bias, from those doomed
        rollouts that went on. saved: their share of the tokens that there would have been. reward: mean of r_hat, the
        unbiased mean of the rewards as they would have been. rho, tau, factor, low, high: `RouletteGate`'s, over
        `groups` whole groups.
        """
        gate = self.gate()
        if gate is None:
            return dict(self.step)
        groups = len(self._measured()[0])
        self._warn(gate, groups)
        found = {name: float(getattr(gate, name)) for name in ("rho", "tau", "chance", "factor", "low", "high")}
        return {**self.step, **found, "groups": float(groups)}

    def _measured(self) -> np.ndarray:
        """(3, G, K) rewards, tokens and values of the window's whole groups."""
        parts = list(self._window)
        return np.concatenate(parts, axis=1) if parts else np.empty((3, 0, 2))

    def _warn(self, gate: RouletteGate, groups: int) -> None:
        if self.dry or groups < ENOUGH:
            return
        verdict = "costs more than it saves here" if gate.low > 1 else "is not shown to save anything here"
        verdict = "" if gate.pays else verdict
        if verdict and verdict != self._warned:
            logger.warning(
                "abort %s: for the same precision of the gradient, tokens times %.2f (%.2f to %.2f) by %d whole groups "
                "of the last %d generations (rho %.2f, tau %.2f); train without abort",
                verdict,
                gate.factor,
                gate.low,
                gate.high,
                groups,
                len(self._window),
                gate.rho,
                gate.tau,
            )
        self._warned = verdict

    # ---- saving ----

    def state_dict(self) -> dict[str, Any]:
        """The random numbers' positions, the window and the last verdict, JSON-safe."""
        return {
            "head": self.head,
            "rng": self._rng.state_dict(),
            "window": [encode_array(part) for part in self._window],
            "warned": self._warned,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back `state_dict`.

        Raises:
            StateError: it is damaged, or of a run with another head.
        """
        try:
            if state["head"] != self.head:
                raise StateError("this run's doomed rollouts were aborted by another success head; give it the same")
            self._rng.load_state_dict(state["rng"])
            self._window.clear()
            self._window.extend(decode_array(part) for part in state["window"])
            self._warned = str(state["warned"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the state of the abort is damaged: {error!r}") from error
