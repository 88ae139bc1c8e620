"""Curricula that visit every prompt once a round: in random order, or by difficulty.

The prompts with the fewest visits come first, so a round needs no list: a prompt in flight when its turn came is served
when it is back, prompts that join later join the round that is under way, and saving takes one column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal, Unpack

import numpy as np

from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import MaxTree, pack, rank_of_fewest, ties
from rollwise.errors import PoolError
from rollwise.pool import PromptPool
from rollwise.tickets.outcome import LearnsFrom


class _Rotation(Curriculum):
    columns_spec = {"turns": (np.int64, 0)}
    lane = ""
    extra_lanes: ClassVar[frozenset[str]] = frozenset()
    """Lanes that come besides the rotation, and use up no turn: what is drawn in rotation stays uniform."""

    def build(self) -> None:
        self.queue = MaxTree(len(self.pool))

    def turns_of(self, slots: np.ndarray) -> np.ndarray:
        """int64 (K,): prompts with the fewest come first."""
        return np.asarray(self.columns["turns"][slots])

    def order(self, slots: np.ndarray) -> np.ndarray:
        """uint32 (K,): prompts with the greater number come first within a round."""
        raise NotImplementedError

    def select(self, k: int) -> Picks:
        return Picks.of(self.queue.pop(k), self.lane)

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        extra = self.picked_by(self.extra_lanes, picks)
        self.columns["turns"][picks.slots[~extra]] += 1

    @staticmethod
    def picked_by(lanes: Collection[str], picks: Picks) -> np.ndarray:
        """(K,) bool, which of the picks came by one of the lanes."""
        return np.array([lane in lanes for lane in picks.lanes], dtype=bool)

    def hold(self, slots: np.ndarray) -> None:
        self.queue.set(slots, 0)

    def release(self, slots: np.ndarray) -> None:
        if len(slots):
            self.queue.set(slots, pack(rank_of_fewest(self.turns_of(slots)), self.order(slots)))

    def own_metrics(self) -> dict[str, float]:
        return {"epoch": float(self.columns["turns"].mean())}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        old = np.delete(self.columns["turns"], added)
        self.columns["turns"][added] = old.min()


class Uniform(_Rotation, name="uniform", paper="the baseline of all", needs="nothing"):
    """Every prompt once an epoch, in a new random order each time, without replacement.

    The baseline of all five papers. Its epochs are exact across `ask` sizes, resume and prompts in flight: no prompt
    is asked for the (e+1)-th time while another has not been asked e times, unless that one is in flight.

    >>> pool = PromptPool(ids=["a", "b", "c"])
    >>> uniform = Uniform(pool, seed=0)
    >>> sorted(t.prompt_id for t in uniform.ask(3))
    ['a', 'b', 'c']
    """

    lane = "uniform"
    learns_from: LearnsFrom = "means"
    rotates = True

    def __init__(self, pool: PromptPool | None = None, **core: Unpack[CoreOptions]) -> None:
        super().__init__(pool, **core)

    def order(self, slots: np.ndarray) -> np.ndarray:
        return self.ties(slots)


class Ordered(
    _Rotation,
    name="ordered",
    paper="the offline curriculum that BOTS and others compare with (appendix B.6)",
    needs="a column of difficulties, or `reference_pass_rates`",
):
    """Every prompt once a round, from easy to hard or from hard to easy.

    The offline curriculum that the papers compare with: BOTS (section 4.4) sorts by the pass rates of reference models
    once, by those of the weaker one, of equal ones by those of the stronger (appendix B.6). That is
    `Ordered(column="reference_pass_rates")`.

    Args:
        pool: needs `column`.
        column: a column of finite numbers, greater for harder. Of `reference_pass_rates`, and of any column with
            several numbers for each prompt, they are pass rates, greater for easier: the first decides, the next where
            it is equal.
        direction: "easy-to-hard" or "hard-to-easy". Equal difficulties come in random order.

    >>> pool = PromptPool(ids=["hard", "easy"], columns={"difficulty": [0.9, 0.1]})
    >>> [t.prompt_id for t in Ordered(pool).ask(2)]
    ['easy', 'hard']
    >>> pool = PromptPool(ids=["a", "b", "c"], columns={"reference_pass_rates": [[0.2, 0.5], [0.2, 0.9], [0.7, 0.8]]})
    >>> [t.prompt_id for t in Ordered(pool, column="reference_pass_rates").ask(3)]
    ['c', 'b', 'a']
    """

    lane = "ordered"
    learns_from: LearnsFrom = "means"
    rotates = True

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        column: str = "difficulty",
        direction: Literal["easy-to-hard", "hard-to-easy"] = "easy-to-hard",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.column, self.direction = column, direction
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.difficulty_NC = self._difficulty()
        self._rank()

    def _difficulty(self) -> np.ndarray:
        """(N, C), greater for later in the round; where a column's are equal, the next decides."""
        values = self.pool.require(
            self.column,
            "Ordered",
            f"add a column of numbers, greater for harder, or pass column=... (not {self.column!r})",
        )
        numeric = values.dtype.kind in "biuf" and values.ndim in (1, 2) and values.size > 0
        if not numeric or not np.isfinite(values).all():
            raise PoolError(f"Ordered needs one finite number for each prompt in column {self.column!r}, or pass rates")
        harder = values[:, None].astype(np.float64) if values.ndim == 1 else -values.astype(np.float64)
        return harder if self.direction == "easy-to-hard" else -harder

    def _rank(self) -> None:
        """Give every prompt its place; equal difficulties are ordered by the seed alone, however often asked."""
        n = len(self.pool)
        chance = ties(self.rng.seed, self.id_hashes, np.zeros(n, dtype=np.int64))
        columns = [self.difficulty_NC[:, c] for c in reversed(range(self.difficulty_NC.shape[1]))]
        by_difficulty = np.lexsort((chance, *columns))  # the last key decides first
        self.rank: np.ndarray = np.empty(n, dtype=np.uint32)
        self.rank[by_difficulty] = np.arange(n, 0, -1, dtype=np.uint32)

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        if self.rng.seed != self.seed:  # the saved seed goes on, and the order is by it
            self._rank()

    def order(self, slots: np.ndarray) -> np.ndarray:
        ranks: np.ndarray = self.rank[slots]
        return ranks
