"""A bandit over categories over a per-prompt method."""

import numpy as np
import pytest

import rollwise as rw
from rollwise.testing import make_pool


def pool_of(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"category": [f"c{i % 3}" for i in range(n)]})


def teach(nested: rw.Nested) -> None:
    """One step in which c0 alone has contrast, prompts p0 and p1 middling, the later ones ever harder."""
    tickets = nested.ask(len(nested.pool))
    outcomes = []
    for t in tickets:
        i = int(t.prompt_id[1:])
        solved = max(0, 4 - i // 3) if i % 3 == 0 else 0
        outcomes.append(rw.Outcome(t.id, [1.0] * solved + [0.0] * (8 - solved)))
    nested.tell(outcomes)


def test_the_bandit_chooses_where_and_the_method_whom() -> None:
    """SEC pays c0 alone, so with tau = .01 every prompt is of c0; BOTS on means takes those nearest to a half."""
    nested = rw.Nested(
        pool_of(30),
        categories=rw.SEC(temperature=0.01, learning_rate=1.0),
        prompts=rw.BOTS(sampling="mean"),
        rails=None,
        seed=0,
    )
    teach(nested)
    tickets = nested.ask(4)
    assert [t.lane for t in tickets] == ["c0/mean"] * 4
    assert [t.prompt_id for t in tickets] == ["p0", "p3", "p6", "p9"]  # 4, 3, 2, 1 of 8 solved
    assert tickets[0].predicted == pytest.approx(0.5)
    rest = nested.ask(26)
    assert len({t.prompt_id for t in [*tickets, *rest]}) == 30


def test_within_a_category_it_is_what_the_method_would_choose_there() -> None:
    nested = rw.Nested(pool_of(60), categories=rw.SEC(), prompts=rw.BOTS(), rails=None, seed=4)
    teach(nested)
    tickets = nested.ask(12)
    scores, codes = -nested.ranked.keys.of(np.arange(60)), nested.pool.codes("category")[1]
    for category in range(3):
        own = [nested.pool.slot(t.prompt_id) for t in tickets if t.lane.startswith(f"c{category}/")]
        members = np.flatnonzero(codes == category)
        best = members[np.argsort(-scores[members])][: len(own)]
        assert own == best.tolist()


def test_asking_one_at_a_time_chooses_within_categories_as_asking_at_once() -> None:
    together, apart = (
        rw.Nested(pool_of(60), categories=rw.SEC(temperature=0.01), prompts=rw.BOTS(), rails=None, seed=4)
        for _ in range(2)
    )
    for nested in (together, apart):
        teach(nested)
    at_once = together.ask(8)
    step = apart.step + 1
    singly = [apart.ask(1, step=step)[0] for _ in range(8)]
    assert [t.prompt_id for t in at_once] == [t.prompt_id for t in singly]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"categories": rw.Uniform(), "prompts": rw.BOTS()}, "bandit"),
        ({"categories": rw.SEC(), "prompts": rw.Uniform()}, "ranks"),
        ({"categories": rw.SEC(), "prompts": rw.MoPPS()}, "candidates"),
        ({"categories": rw.SEC(), "prompts": rw.ActorCurator()}, "or a method that has no candidates"),
        ({"categories": rw.SEC.metis(), "prompts": rw.BOTS()}, "candidates"),
        ({"categories": rw.SEC(within="exhaust"), "prompts": rw.BOTS()}, "within"),
        ({"categories": rw.SEC(pool_of(3)), "prompts": rw.BOTS()}, "unbound"),
        ({"categories": rw.SEC(), "prompts": rw.BOTS(allocator="knapsack")}, "'prompts' would do nothing; .* Nested"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts: dict[str, rw.Curriculum], message: str) -> None:
    with pytest.raises(rw.ConfigError, match=message):
        rw.Nested(**parts)


def test_by_name_as_in_a_configuration_file() -> None:
    nested = rw.make_curriculum(
        "nested",
        categories={"curriculum": "sec", "options": {"temperature": 0.5}},
        prompts={"curriculum": "selector", "options": {"estimator": "beta"}},
    )
    nested.bind(pool_of(9))
    assert len(nested.ask(9)) == 9
    with pytest.raises(rw.ConfigError, match="categories"):
        rw.make_curriculum("nested", categories={"kind": "sec"}, prompts={"curriculum": "bots"})


def test_what_was_chosen_is_marked_in_the_method_that_chose_it() -> None:
    prompts = rw.EmpiricalBayes(candidate_multiplier=None)
    nested = rw.Nested(make_pool(12), categories=rw.SEC(), prompts=prompts, rails=None, seed=0)
    for _ in range(2):
        nested.tell([rw.Outcome(t.id, [1, 0]) for t in nested.ask(4)])
    assert nested.metrics()["prompts/asked"] == 8
    nested.ask(1)
    assert nested.child("prompts").step_size == 4  # type: ignore[attr-defined]


def test_pass_rates_that_were_measured_again_make_the_categories_anew() -> None:
    """GaussianTarget profiles again while SEC's place is its own: all had 1/4, and now have 3/4."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(12)], columns={"pass_rate": [0.25] * 12})
    target = rw.GaussianTarget(patience=1, profile_rollouts=4)
    nested = rw.Nested(pool, categories=target, prompts=rw.Selector(), rails=None, seed=0)
    first = nested.ask(4)
    nested.tell([rw.Outcome(t.id, [1, 0, 0, 0]) for t in first])
    for _ in range(2):
        nested.note_score(0.5)
    while probes := nested.probe(5):
        nested.tell([rw.Outcome(t.id, [1, 1, 1, 0]) for t in probes])
    second = nested.ask(12)
    assert {t.lane.partition("/")[0] for t in first} == {"0.25"}
    assert {t.lane.partition("/")[0] for t in second} == {"0.75"}
    assert len({t.prompt_id for t in second}) == 12
    assert nested.metrics()["categories/profiles"] == 1


def test_dots_within_categories_takes_up_what_it_measures_and_measures_again() -> None:
    nested = rw.Nested(make_pool(30), categories=rw.SEC(), prompts=rw.DOTS(reference_set=6), rails=None, seed=0)
    measured = []
    for _ in range(5):
        probes = nested.probe(30, n_rollouts=4, wanted=4)
        measured.append(len(probes))
        nested.tell([rw.Outcome(t.id, [1, 1, 1, int(t.prompt_id[1:]) % 2]) for t in probes])
        tickets = nested.ask(4)
        assert min(t.predicted or 0.0 for t in tickets) > 0.7  # all measured at 3/4 or 1
        nested.tell([rw.Outcome(t.id, [0, 0, 0, 0]) for t in tickets])
    assert measured == [6, 0, 6, 0, 6]
