"""The contract of `probe`, as tests: measured prompts are never trained on, never lost, and never asked for twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import ConfigError
from rollwise.testing.play import Contract, Script, check_refused, few, make_pool, play, scripts
from rollwise.tickets.outcome import Outcome


class ProbeConformance(Contract):
    """A part of `CurriculumConformance`; a method that never wants a probe passes it too."""

    @few
    @given(script=scripts, amount=st.integers(1, 30), told=st.booleans())
    def test_probing_until_nothing_comes_back_ends(self, script: Script, amount: int, told: bool) -> None:
        player = play(self.make(make_pool(20), seed=6), script)
        curriculum = player.curriculum
        for _ in range(100):  # five times as often as there are prompts
            tickets = curriculum.probe(amount, n_rollouts=4)
            assert len({t.prompt_id for t in tickets}) == len(tickets) <= amount
            if not tickets:
                break
            if told:
                curriculum.tell([player.outcome(t) for t in tickets])
        else:
            pytest.fail("probe wants prompts for ever")
        eligible = 20 - int(curriculum.metrics()["open"])
        assert len(curriculum.ask(20)) == eligible

    @few
    @given(script=scripts)
    def test_probes_are_counted_apart_and_never_trained_on(self, script: Script) -> None:
        player = play(self.make(make_pool(20), seed=7), script)
        curriculum = player.curriculum
        before = curriculum.metrics()
        tickets = curriculum.probe(20, n_rollouts=4)
        assert all(t.purpose != "train" for t in tickets)
        evidence = curriculum.tell([player.outcome(t) for t in tickets])
        assert len(evidence) == len(tickets)
        assert evidence.probe.all()
        after = curriculum.metrics()
        trained = ("asked", "told", "rollouts", "failed", "mixed", "all_good", "all_bad", "coverage", "short")
        assert {name: after[name] for name in trained} == {name: before[name] for name in trained}
        assert after["probed"] == before["probed"] + len(tickets)
        assert after["probe_rollouts"] == before["probe_rollouts"] + evidence.count.sum()

    def test_an_ask_after_probes_is_of_their_step(self) -> None:
        curriculum = self.make(make_pool(100), seed=0)  # more than are in flight at any time
        for step in (1, 2, 3):
            probes = curriculum.probe(4) + curriculum.probe(4)
            tickets = curriculum.ask(2)
            assert {t.step for t in probes + tickets} == {step}
        curriculum.probe(4, step=9)
        assert {t.step for t in curriculum.ask(1)} == {9}
        assert {t.step for t in curriculum.ask(1)} == {10}
        assert {t.step for t in curriculum.probe(1, step=10) + curriculum.ask(1)} == {10}

    def test_probes_never_told_expire_and_free_their_prompts(self) -> None:
        curriculum = self.make(make_pool(10), seed=0, expire_after=3)
        lost = curriculum.probe(10, step=1)
        assert len(curriculum.ask(10, step=3)) == 10 - len(lost)
        curriculum.ask(10, step=7)
        assert curriculum.metrics()["expired"] == 10
        assert curriculum.metrics()["open"] == 10
        evidence = curriculum.tell([Outcome(t.id, [1, 0]) for t in lost])
        assert evidence.late.all()
        assert curriculum.metrics()["open"] == 10

    def test_a_failed_probe_frees_its_prompt(self) -> None:
        curriculum = self.make(make_pool(10), seed=0)
        tickets = curriculum.probe(10, n_rollouts=4)
        curriculum.tell([Outcome(t.id, [], failed=t.n_rollouts or 4) for t in tickets])
        assert curriculum.metrics()["open"] == 0
        assert len(curriculum.ask(10)) == 10

    def test_a_wrong_probe_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(5), seed=0)
        wrong: list[dict[str, Any]] = [{"n": 0}, {"n": 1.5}, {"n": 1, "step": -1}, {"n": 1, "n_rollouts": 0}]
        check_refused(curriculum, ConfigError, lambda probe: curriculum.probe(**probe), wrong)
