"""Which prompts of each arm of a bandit are free, and draws of distinct ones: uniform, or in rounds."""

from __future__ import annotations

import numpy as np

_BLOCK = 64


class ArmMembers:
    """Which slots of each arm are free, and uniform draws of distinct ones.

    The slots lie arm after arm in one row of flags, counted in blocks: the r-th free one is found by searching the
    blocks' running counts, then within one block. So nothing is done arm by arm, and what is drawn depends on who is
    free alone, not on the order in which it came about.

    >>> members = ArmMembers(np.array([1, 0, 1]), 2)
    >>> members.set(np.array([0, 1, 2]), True)
    >>> slots, chances = members.draw(np.random.default_rng(0), 1, 5)
    >>> sorted(slots.tolist()), chances.tolist(), members.left.tolist()
    ([0, 2], [0.5, 1.0], [1, 0])
    """

    def __init__(self, arm_of: np.ndarray, n_arms: int) -> None:
        n = len(arm_of)
        self.sizes = np.bincount(arm_of, minlength=n_arms)
        """(C,) how many slots each arm has."""
        self.left = np.zeros(n_arms, dtype=np.int64)
        """(C,) how many of them are free."""
        self._arm_of = arm_of
        self._ends = np.cumsum(self.sizes)
        self._slot_at = np.argsort(arm_of, kind="stable")
        self._place = np.empty(n, dtype=np.int64)
        self._place[self._slot_at] = np.arange(n)
        self._free = np.zeros((n // _BLOCK + 1, _BLOCK), dtype=bool)
        self._in_block = np.zeros(len(self._free), dtype=np.int64)

    def is_free(self, slots: np.ndarray) -> np.ndarray:
        """Whether each of K slots is free, (K,)."""
        return np.asarray(self._free.reshape(-1)[self._place[slots]])

    def slots_of(self, arm: int) -> np.ndarray:
        """All slots of an arm, (M,), free or not."""
        end = int(self._ends[arm])
        return self._slot_at[end - int(self.sizes[arm]) : end]

    def set(self, slots: np.ndarray, free: bool) -> None:
        """Make K distinct slots free, or not; some may be so already."""
        flags = self._free.reshape(-1)
        places = self._place[slots]
        changed = flags[places] != free
        slots, places = slots[changed], places[changed]
        flags[places] = free
        step = 1 if free else -1
        np.add.at(self.left, self._arm_of[slots], step)
        np.add.at(self._in_block, places // _BLOCK, step)

    def draw(self, rng: np.random.Generator, arm: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Take out up to k distinct free slots of an arm, uniformly, one after another.

        Returns:
            slots: (K,) in the order drawn.
            chances: (K,) each one's probability at its turn, within the arm.
        """
        return self._take(rng, int(self.left[:arm].sum()), int(self.left[arm]), k)

    def draw_each(
        self, rng: np.random.Generator, arms: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `draw` gives for A distinct arms and counts, one after another; at once where no slot comes twice.

        Returns:
            slots: (K,).
            chances: (K,).
            given: (A,) how many of them are each arm's.
        """
        left, state = self.left[arms], rng.bit_generator.state
        if (counts <= left).all():
            arm = np.repeat(np.arange(len(arms)), counts)
            ranks = np.minimum((rng.random(len(arm)) * left[arm]).astype(np.int64), left[arm] - 1)
            places = self._find((np.cumsum(self.left) - self.left)[arms][arm] + ranks)
            if len(set(places.tolist())) == len(places):
                slots = self._slot_at[places]
                self.set(slots, False)
                before = np.arange(len(slots)) - np.repeat(np.cumsum(counts) - counts, counts)
                return slots, 1.0 / (left[arm] - before), counts
            rng.bit_generator.state = state
        return self.draw_in_turn(rng, arms, counts)

    def draw_in_turn(
        self, rng: np.random.Generator, arms: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same, arm by arm."""
        drawn = [self.draw(rng, arm, k) for arm, k in zip(arms.tolist(), counts.tolist(), strict=True)]
        slots, chances = (np.concatenate(part) for part in zip(*drawn, strict=True))
        return slots, chances, np.array([len(own) for own, _ in drawn])

    def draw_any(self, rng: np.random.Generator, k: int) -> np.ndarray:
        """Take out up to k distinct free slots of all arms, uniformly, (K,)."""
        return self._take(rng, 0, int(self.left.sum()), k)[0]

    def _take(self, rng: np.random.Generator, first: int, left: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Up to k of the `left` free slots from the `first` on; repeats are drawn again, which leaves the law as is."""
        drawn: list[np.ndarray] = [np.empty(0, dtype=np.int64)]
        chances: list[np.ndarray] = [np.empty(0)]
        while k > 0 and left > 0:
            ranks = np.minimum((rng.random(k) * left).astype(np.int64), left - 1)
            places = self._find(first + ranks)
            _, at = np.unique(places, return_index=True)
            slots = self._slot_at[places[np.sort(at)]]
            drawn.append(slots)
            chances.append(1.0 / (left - np.arange(len(slots))))
            self.set(slots, False)
            left -= len(slots)
            k -= len(slots)
        return np.concatenate(drawn), np.concatenate(chances)

    def _find(self, ranks: np.ndarray) -> np.ndarray:
        """The places (K,) of the free slots that have `ranks` (K,) among all that are free."""
        if len(ranks) > len(self._free):
            return np.asarray(np.flatnonzero(self._free.reshape(-1))[ranks])
        ends = np.cumsum(self._in_block)
        block = np.searchsorted(ends, ranks, side="right")
        within = ranks - (ends[block] - self._in_block[block])
        counts = np.cumsum(self._free[block], axis=1, dtype=np.int16)
        return np.asarray(block * _BLOCK + (counts > within[:, None]).argmax(axis=1))


class ArmRounds(ArmMembers):
    """The same, but no slot of an arm is drawn a second time before every other was drawn once.

    A round of an arm ends when all its slots were drawn. The next one begins with all of them, in a new random order;
    those still in flight are drawn when they are back. Where the rest of a round is in flight for another reason (the
    caller excluded it, another lane asked for it), free slots of this round are drawn again meanwhile. A round does not
    wait for slots that are set aside.

    Args:
        arm_of: (N,) each slot's arm.
        n_arms: how many arms there are.
        drawn: (N,) whether a slot was drawn in its arm's round. Changed here; it is all that there is to save.
        aside: (N,) whether a slot is set aside for want of rewards; the owner changes it.

    >>> rounds = ArmRounds(np.zeros(3, dtype=np.int64), 1, np.zeros(3, dtype=np.int8), np.zeros(3, dtype=bool))
    >>> rounds.set(np.arange(3), True)
    >>> rng, order = np.random.default_rng(0), []
    >>> for _ in range(6):
    ...     slots, _ = rounds.draw(rng, 0, 1)
    ...     rounds.set(slots, True)
    ...     order += slots.tolist()
    >>> sorted(order[:3]), sorted(order[3:])
    ([0, 1, 2], [0, 1, 2])
    """

    def __init__(self, arm_of: np.ndarray, n_arms: int, drawn: np.ndarray, aside: np.ndarray) -> None:
        super().__init__(arm_of, n_arms)
        self._drawn, self._aside = drawn, aside
        self._fresh = ArmMembers(arm_of, n_arms)  # those free and not drawn in this round

    def set(self, slots: np.ndarray, free: bool) -> None:
        super().set(slots, free)
        self._fresh.set(slots[self._drawn[slots] == 0], free)

    def draw(self, rng: np.random.Generator, arm: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        k = min(k, int(self.left[arm]))
        slots, chances = self._draw_fresh(rng, arm, k)
        if len(slots) == k:
            return slots, chances
        everyone = self.slots_of(arm)
        if (self._aside[everyone] | (self._drawn[everyone] != 0)).all():
            self._drawn[everyone] = 0
            self._fresh.set(everyone[self.is_free(everyone)], True)
            more = self._draw_fresh(rng, arm, k - len(slots))
        else:
            more = super().draw(rng, arm, k - len(slots))
        return np.concatenate([slots, more[0]]), np.concatenate([chances, more[1]])

    draw_each = ArmMembers.draw_in_turn

    def _draw_fresh(self, rng: np.random.Generator, arm: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        slots, chances = self._fresh.draw(rng, arm, k)
        super().set(slots, False)
        self._drawn[slots] = 1
        return slots, chances
