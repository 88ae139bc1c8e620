"""ADCL against its algorithm written prompt by prompt."""

from collections.abc import Callable

import pytest

import rollwise as rw
from rollwise.testing import make_pool


def pool_of(difficulties: list[float]) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(difficulties))], columns={"difficulty": difficulties})


def measure(adcl: rw.ADCL, mean: Callable[[str], float], at_a_time: int = 5) -> list[str]:
    """Probe until nothing comes back; every rollout has the mean score (continuous rewards)."""
    seen = []
    while tickets := adcl.probe(at_a_time):
        assert {t.n_rollouts for t in tickets} == {adcl.probe_rollouts}
        adcl.tell([rw.Outcome(t.id, [mean(t.prompt_id)] * adcl.probe_rollouts) for t in tickets])
        seen += [t.prompt_id for t in tickets]
    return seen


def train(adcl: rw.ADCL, n: int) -> list[str]:
    tickets = adcl.ask(n)
    adcl.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])
    return [t.prompt_id for t in tickets]


def skill(prompt: str, step: int) -> float:
    """A mean score for each prompt and step, all different: what is hard changes as training goes on."""
    return ((int(prompt[1:]) * 37 + step * 101) % 211) / 211


def test_the_defaults_are_those_of_metis() -> None:
    """Table 5: eight chunks, four rollouts a prompt."""
    assert (rw.ADCL().chunks, rw.ADCL().probe_rollouts, rw.ADCL().rank_by) == (8, 4, "pass-rate")


@pytest.mark.parametrize(("n", "chunks", "batch"), [(24, 4, 3), (24, 4, 6), (24, 3, 4), (23, 4, 5), (12, 6, 4)])
@pytest.mark.parametrize("offline", [True, False])
def test_the_algorithm_step_by_step(n: int, chunks: int, batch: int, offline: bool) -> None:
    """Sort, cut, train on each chunk in order; before each but the first, re-estimate and re-sort that one alone."""
    given = [(i * 17 % n) / n for i in range(n)]
    pool = pool_of(given) if offline else rw.PromptPool(ids=[f"p{i}" for i in range(n)])
    adcl = rw.ADCL(pool, chunks=chunks, difficulty="column" if offline else "measured")
    difficulty = {f"p{i}": given[i] for i in range(n)}
    measured = measure(adcl, lambda x: skill(x, 0))
    assert sorted(measured) == ([] if offline else sorted(pool.ids))
    if not offline:
        difficulty = {x: 1 - skill(x, 0) for x in pool.ids}
    order = sorted(pool.ids, key=difficulty.__getitem__)
    parts = [[x for place, x in enumerate(order) if place * chunks // n == c] for c in range(chunks)]
    todo: list[str] = []
    next_chunk = asked = 0
    for step in range(1, 2 * n // batch):  # into the second round
        expected_measured: list[str] = []
        reach = 1 if step == 1 else batch  # how far the next batch is expected to go
        while len(todo) < reach:
            c = next_chunk % chunks
            if next_chunk > 0:
                expected_measured += parts[c]
                parts[c] = sorted(parts[c], key=lambda x: 1 - skill(x, step))
            todo += parts[c]
            next_chunk += 1
        assert sorted(measure(adcl, lambda x: skill(x, step))) == sorted(expected_measured)  # noqa: B023 - called here
        while len(todo) < batch:  # the first batch reached further than expected: no estimate, the order it had
            todo += parts[next_chunk % chunks]
            next_chunk += 1
        asked += len(expected_measured)
        assert train(adcl, batch) == todo[:batch]
        todo = todo[batch:]
    assert adcl.metrics()["probed"] == asked + len(measured)
    assert adcl.metrics()["probe_rollouts"] == 4 * (asked + len(measured))


def test_a_chunk_is_estimated_by_the_policy_that_has_finished_the_one_before() -> None:
    """Chunks of four, batches of two: after the first batch two are left, so the estimate can wait for the second."""
    adcl = rw.ADCL(pool_of([float(i) for i in range(8)]), chunks=2, difficulty="column")
    counts = []
    for _ in range(4):
        counts.append(len(measure(adcl, lambda x: 0.5)))
        train(adcl, 2)
    assert counts == [0, 0, 4, 0]


def test_the_least_variance_is_easiest_where_rewards_are_continuous() -> None:
    """Variances 0, .01 and .25, though the mean scores fall the other way."""
    adcl = rw.ADCL(rw.PromptPool(ids=["a", "b", "c"]), chunks=1, rank_by="variance", rails=None, probe_rollouts=2)
    scores = {"a": [1.0, 0.0], "b": [0.6, 0.4], "c": [0.1, 0.1]}
    adcl.tell([rw.Outcome(t.id, scores[t.prompt_id]) for t in adcl.probe(3)])
    assert train(adcl, 3) == ["c", "b", "a"]


def test_the_policy_measures_the_whole_pool_though_the_pool_has_difficulties() -> None:
    """METIS, A.5: "the base policy is rolled out on the entire training set". A column has no say, not even in ties."""
    n = 800
    adcl = rw.ADCL(pool_of([float(i) for i in range(n)]))
    seen = []
    while tickets := adcl.probe(256):
        assert len(tickets) == min(256, n - len(seen))
        seen += [t.prompt_id for t in tickets]
        adcl.tell([rw.Outcome(t.id, [float(int(t.prompt_id[1:]) >= n // 2)] * 4) for t in tickets])
    assert sorted(seen) == sorted(adcl.pool.ids)
    assert adcl.metrics()["probe_rollouts"] == 4 * n
    first = [int(x[1:]) for x in train(adcl, n // 8)]
    assert min(first) >= n // 2  # those solved are easy, though the column calls them hard
    assert max(first) - min(first) > n // 4  # and of equal ones those that chance puts first


def test_nobody_moves_to_another_chunk() -> None:
    adcl = rw.ADCL(pool_of([float(i) for i in range(6)]), chunks=2, difficulty="column")
    first = train(adcl, 3)
    measure(adcl, lambda x: 1.0 - int(x[1:]) / 10)
    measure(adcl, lambda x: 1.0)
    assert first == ["p0", "p1", "p2"]
    assert sorted(train(adcl, 3)) == ["p3", "p4", "p5"]


def test_without_probes_it_goes_by_the_column_round_after_round() -> None:
    adcl = rw.ADCL(pool_of([3.0, 1.0, 2.0, 0.0]), chunks=2, difficulty="column")
    assert [train(adcl, 2) for _ in range(4)] == [["p3", "p1"], ["p2", "p0"]] * 2


def test_a_lost_probe_does_not_mix_two_scales() -> None:
    """The column says 0 to 70, an estimate 0 to 1: the prompt without one comes after those that have one."""
    adcl = rw.ADCL(pool_of([0.0, 10.0, 50.0, 60.0, 70.0]), chunks=2, difficulty="column", expire_after=1)
    train(adcl, 2)
    train(adcl, 1)
    tickets = adcl.probe(9)
    told = {t.prompt_id: t for t in tickets}
    assert sorted(told) == ["p3", "p4"]
    adcl.tell([rw.Outcome(told["p4"].id, [0.0] * 4)])
    adcl.ask(2, step=adcl.step)
    assert train(adcl, 1) == ["p3"]  # expired, and last though the column's 60 is less than 70


def test_prompts_that_the_rails_ask_for_early_do_not_hide_a_chunk() -> None:
    pool = rw.PromptPool(
        ids=[f"p{i}" for i in range(12)],
        columns={"difficulty": list(range(12)), "category": ["hard" if i > 7 else "easy" for i in range(12)]},
    )
    adcl = rw.ADCL(pool, chunks=2, difficulty="column", rails={"explore": 0.0, "at_most": 0.5, "category_share": 1.0})
    lanes = []
    for _ in range(2):
        tickets = adcl.ask(3)
        lanes += [t.lane for t in tickets]
        adcl.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])
    assert "rail-quota" in lanes
    assert len(measure(adcl, lambda x: 0.5)) == 6


def test_more_chunks_than_prompts() -> None:
    adcl = rw.ADCL(pool_of([2.0, 1.0]), chunks=8, difficulty="column")
    seen = []
    for _ in range(4):
        measure(adcl, lambda x: 0.5)
        seen += train(adcl, 1)
    assert seen == ["p1", "p0", "p1", "p0"]


def test_a_resume_within_a_chunk_goes_on_in_its_order() -> None:
    """Estimates, places and what was measured survive, whatever the seed of the new one."""
    straight = rw.ADCL(rw.PromptPool(ids=[f"p{i}" for i in range(20)]), chunks=4, rails=None, seed=1)
    measure(straight, lambda x: round(skill(x, 0)))  # many ties
    for step in range(1, 30):
        resumed = rw.ADCL(straight.pool, chunks=4, rails=None, seed=step + 5)
        resumed.load_state_dict(straight.state_dict())
        now = [measure(c, lambda x: round(skill(x, step))) for c in (straight, resumed)]  # noqa: B023 - called here
        assert now[0] == now[1]
        assert train(straight, 3) == train(resumed, 3)


def test_a_prompt_that_joins_is_estimated_with_the_last_chunk_however_easy_it_is_given() -> None:
    adcl = rw.ADCL(pool_of([0.1, 0.2, 0.3, 0.4]), chunks=2, difficulty="column", rails=None)
    assert [train(adcl, 1) for _ in range(2)] == [["p0"], ["p1"]]
    adcl.rebind(pool_of([0.1, 0.2, 0.3, 0.4, 0.0]))
    assert sorted(measure(adcl, lambda x: skill(x, 0))) == ["p2", "p3", "p4"]


def test_bad_options_are_named() -> None:
    with pytest.raises(rw.ConfigError, match="chunks"):
        rw.ADCL(chunks=0)
    with pytest.raises(rw.ConfigError, match="rank_by"):
        rw.ADCL(rank_by="mood")  # type: ignore[arg-type]
    with pytest.raises(rw.PoolError, match="one finite number"):
        rw.ADCL(rw.PromptPool(ids=["a"], columns={"level": ["x"]}), difficulty="column", column="level")
    with pytest.raises(rw.ConfigError, match="difficulty must be"):
        rw.ADCL(difficulty="guessed")  # type: ignore[arg-type]
    with pytest.raises(rw.MissingColumnError, match="difficulty"):
        rw.ADCL(rw.PromptPool(ids=["a"]), difficulty="column")


def test_other_chunks_divide_a_saved_pool_anew() -> None:
    one, other = rw.ADCL(make_pool(16), seed=0), rw.ADCL(make_pool(16), chunks=3, seed=0)
    one.tell([rw.Outcome(t.id, [1, 0]) for t in one.ask(12)])
    other.load_state_dict(one.state_dict(), strict=False)
    seen = [t.prompt_id for _ in range(4) for t in other.ask(4)]
    assert len(set(seen)) == 16


def test_chunks_are_estimated_though_a_category_is_set_aside() -> None:
    """Those that get no reward wait in their chunk, and hid that the next batch begins another."""
    columns = {"category": ["fine", "broken"] * 20, "difficulty": list(range(40))}
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(40)], columns=columns)
    adcl = rw.ADCL(pool, chunks=2, difficulty="column", rails=None, seed=0)
    for step in range(1, 13):
        seen = measure(adcl, lambda x: skill(x, 0))
        assert all(int(x[1:]) % 2 == 0 for x in seen) or step < 5
        tickets = adcl.ask(4, step=step)
        broken = {t.id: int(t.prompt_id[1:]) % 2 == 1 for t in tickets}
        adcl.tell(rw.Outcome(t.id, [], failed=2) if broken[t.id] else rw.Outcome(t.id, [1, 0]) for t in tickets)
    assert adcl.metrics()["set_aside"] == 20
    assert adcl.metrics()["probed"] == 30  # the fine half of each of the three chunks that were begun since
