"""The contract that every allocator keeps, as tests to inherit.

class TestMine(AllocatorConformance):
    def make(self, **options):
        return Mine(**options)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.allocators import Allocator, Rates, Rounds
from rollwise.curricula import Curriculum, make_curriculum
from rollwise.errors import ConfigError
from rollwise.testing.play import few, make_pool
from rollwise.tickets.outcome import Outcome

MEAN = 8
_shares = st.lists(st.one_of(st.just(np.nan), st.floats(0.0, 1.0)), min_size=1, max_size=20)


class AllocatorConformance:
    """Inherit, implement `make`, and pytest runs the contract."""

    mean = MEAN
    """Rollouts of a prompt on the average; one that the allocator can divide."""
    impossible = 1
    """One that it can't."""

    def make(self) -> Allocator:
        """A fresh allocator."""
        raise NotImplementedError

    @few
    @given(last=_shares, screened=st.integers(0, MEAN - 1), seed=st.integers(0, 9))
    def test_the_sum_is_the_budget_and_no_group_leaves_its_bounds(
        self, last: list[float], screened: int, seed: int
    ) -> None:
        allocator = self.make()
        if allocator.in_rounds:
            return
        low, high = allocator.bounds(self.mean)
        alpha, beta = np.random.default_rng(seed).uniform(0.1, 9.0, (2, len(last)))
        have = np.where(np.arange(len(last)) % 2, min(screened, self.mean - 1), 0)
        rates = Rates(alpha, beta, np.array(last), have)
        sizes = allocator.allocate(rates, self.mean)
        assert sizes.dtype == np.int64
        assert int(sizes.sum()) == self.mean * len(last)
        assert low <= sizes.min() <= sizes.max() <= high
        assert (sizes > have).all()
        again = self.make().allocate(rates, self.mean)
        assert again.tolist() == sizes.tolist()  # equal beliefs, equal sizes: no chance, no memory

    @few
    @given(n=st.integers(1, 12), seed=st.integers(0, 9), missing=st.sampled_from([0.0, 0.3, 1.0]))
    def test_a_step_trains_on_its_budget_and_tells_all_that_was_made(self, n: int, seed: int, missing: float) -> None:
        rng = np.random.default_rng(seed)
        curriculum = self._curriculum("recommended")
        made = 0
        for _ in range(3):
            rounds = Rounds(curriculum, curriculum.ask(n, n_rollouts=self.mean), n_rollouts=self.mean)
            for _ in range(64):
                if not (tickets := rounds.ask()):
                    break
                rewards = [(rng.random(t.n_rollouts) < rng.random()).astype(float) for t in tickets]
                made += sum(map(len, rewards))
                scored = [own[rng.random(len(own)) >= missing] for own in rewards]
                pairs = list(zip(tickets, scored, strict=True))
                rounds.tell([Outcome(t.id, own, failed=(t.n_rollouts or 0) - len(own)) for t, own in pairs])
            assert not rounds.ask()
            assert sum(len(group.kept) for group in rounds.groups) == n * self.mean
            for group in rounds.groups:
                assert len(np.unique(group.kept)) == len(group.kept)
                assert set(group.kept) <= set(range(len(group.rewards)))
        numbers = curriculum.metrics()
        assert numbers["told"] == 3 * n
        assert numbers["rollouts"] + numbers["failed"] == made

    def test_a_mean_that_it_cannot_give_is_refused_before_anything_changes(self) -> None:
        curriculum = self._curriculum("uniform")
        with pytest.raises(ConfigError, match=type(curriculum.allocator).__name__):
            curriculum.ask(4, n_rollouts=self.impossible)
        assert curriculum.metrics()["asked"] == 0

    def test_the_rails_get_as_great_a_share_of_the_rollouts_as_of_the_prompts(self) -> None:
        rails = {"explore": 0.2, "retest_every": 1, "retest_solved": 1, "retest_unsolved": 1, "at_most": 0.8}
        curriculum = self._curriculum("recommended", rails=rails)
        railed: dict[str, set[int]] = {}
        for step in range(12):
            rounds = Rounds(curriculum, curriculum.ask(8, n_rollouts=self.mean), n_rollouts=self.mean)
            while tickets := rounds.ask():
                solved = [float(int(t.prompt_id[1:]) % 3 > step % 2) for t in tickets]
                rounds.tell(Outcome(t.id, [one] * (t.n_rollouts or 0)) for t, one in zip(tickets, solved, strict=True))
            for group in rounds.groups:
                railed.setdefault(group.ticket.lane, set()).add(len(group.rewards))
        for lane in ("rail-explore", "rail-retest-solved", "rail-retest-unsolved"):
            assert railed[lane] == {self.mean}

    def _curriculum(self, name: str, **options: Any) -> Curriculum:
        curriculum = make_curriculum(name, seed=0, allocator=self.make(), **options)
        curriculum.bind(make_pool(40))
        return curriculum
