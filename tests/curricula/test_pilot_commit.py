"""Pilot-Commit's window, buffer and eviction, by hand."""

import rollwise as rw

PILOTS, GROUP = 4, 16


def made(n: int = 40, **options: object) -> rw.PilotCommit:
    return rw.PilotCommit(rw.PromptPool(ids=[f"p{i}" for i in range(n)]), seed=0, screen_rollouts=PILOTS, **options)


def pilots(
    curriculum: rw.PilotCommit, solved: list[int], *, wanted: int, at_a_time: int = 64, n: int = PILOTS
) -> list[list[str]]:
    """The prompts of each call to `probe`. `solved` gives how many of a prompt's n pilots are right, in turn."""
    calls: list[list[str]] = []
    while tickets := curriculum.probe(at_a_time, n_rollouts=GROUP, wanted=wanted):
        calls.append([t.prompt_id for t in tickets])
        counts = [solved[int(t.prompt_id[1:]) % len(solved)] for t in tickets]
        pairs = zip(tickets, counts, strict=True)
        curriculum.tell([rw.Outcome(t.id, [1.0] * k + [0.0] * (n - k)) for t, k in pairs])
    return calls


def train(curriculum: rw.PilotCommit, n: int) -> list[rw.Ticket]:
    tickets = curriculum.ask(n, n_rollouts=GROUP)
    curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])
    return tickets


def test_the_defaults_are_those_of_the_releases_readme() -> None:
    curriculum = rw.PilotCommit()
    assert (curriculum.probe_rollouts, curriculum.low, curriculum.high) == (8, 0.125, 0.75)
    assert (curriculum.batches, curriculum.screen_limit, curriculum.max_age) == (3, 30, 4)
    assert curriculum.evict_from == 1.0


def test_one_right_pilot_of_eight_is_enough_and_six_are_not_too_many() -> None:
    curriculum = rw.PilotCommit(rw.PromptPool(ids=["p0", "p1", "p2", "p3"]), seed=0)
    (call,) = pilots(curriculum, [0, 1, 6, 7], wanted=2, n=8)
    assert sorted(call) == ["p0", "p1", "p2", "p3"]
    assert sorted(curriculum.pool.ids[slot] for slot in curriculum.awaited()) == ["p1", "p2"]


def test_three_batches_have_pilots_and_both_ends_of_the_window_qualify() -> None:
    curriculum = made(low=0.25)
    (call,) = pilots(curriculum, [0, 1, 3, 4], wanted=3)  # pass rates 0, 1/4, 3/4, 1
    assert len(call) == 9
    within = {x for x in call if int(x[1:]) % 4 in (1, 2)}
    assert curriculum.metrics()["qualified"] == len(within) >= 3
    tickets = train(curriculum, 3)
    assert {t.prompt_id for t in tickets} <= within
    assert {(t.lane, t.n_rollouts) for t in tickets} == {("continue", GROUP - PILOTS)}


def test_rounds_go_on_until_a_batch_waits_or_ten_are_made() -> None:
    assert len(pilots(made(200), [0], wanted=2)) == 10
    curriculum = made(200, batches=1)
    calls = pilots(curriculum, [0, 0, 0, 2], wanted=4)
    assert len(calls) > 1
    before = curriculum.metrics()["qualified"] - sum(int(x[1:]) % 4 == 3 for x in calls[-1])
    assert before < 4 <= curriculum.metrics()["qualified"]


def test_every_step_makes_a_whole_round_of_pilots_whatever_waits() -> None:
    curriculum = made(200)
    for step in range(1, 5):
        assert [len(call) for call in pilots(curriculum, [2], wanted=4, at_a_time=5)] == [5, 5, 2]
        assert curriculum.metrics()["qualified"] == 12 * step - 4 * (step - 1)
        train(curriculum, 4)


def test_pilots_that_are_too_old_are_dropped_and_their_prompts_come_again() -> None:
    curriculum = made(12, max_age=2)
    pilots(curriculum, [2], wanted=3)  # nine wait
    kept = {t.prompt_id for t in train(curriculum, 3)}
    waiting = {curriculum.pool.ids[slot] for slot in curriculum.awaited()}
    assert len(waiting) == 6
    for wait in (6, 6, 6, 0):
        assert len(curriculum.awaited()) == wait
        curriculum.told_step = curriculum.step  # something was told in each step
        curriculum.ask(1, step=curriculum.step + 1, exclude=sorted(waiting))
    assert not kept & waiting
    assert curriculum.metrics()["qualified"] == 0


def test_pilots_grow_old_in_steps_in_which_nothing_is_told() -> None:
    """As where a scorer is down, or the rest of the groups takes long."""
    curriculum = made(8, max_age=4)
    pilots(curriculum, [2], wanted=2)
    assert curriculum.metrics()["qualified"] == 6
    assert {t.lane for t in curriculum.ask(2, step=curriculum.step + 4)} == {"continue"}
    assert {t.lane for t in curriculum.ask(2, step=curriculum.step + 1)} == {"unscreened"}
    assert curriculum.metrics()["qualified"] == 0


def test_what_is_all_right_leaves_the_pool_but_for_want_of_others() -> None:
    curriculum = made(24, batches=1, rounds=1)
    pilots(curriculum, [4, 2], wanted=24)  # even prompts are solved
    train(curriculum, 12)
    (call,) = pilots(curriculum, [4, 2], wanted=6)
    assert [int(x[1:]) % 2 for x in call] == [1] * 6
    train(curriculum, 6)
    (call,) = pilots(curriculum, [4, 2], wanted=24)  # a round of 24, and 12 prompts are left
    assert sorted(call) == sorted(x for x in curriculum.pool.ids if int(x[1:]) % 2)
    assert len(curriculum.ask(24, n_rollouts=GROUP)) == 24


def test_a_state_goes_on() -> None:
    curriculum, other = made(), made()
    for _ in range(3):
        pilots(curriculum, [0, 2, 4, 3], wanted=3)
        train(curriculum, 3)
    other.load_state_dict(curriculum.state_dict())
    for one in (curriculum, other):
        one.new_incarnation()
    calls = [pilots(one, [0, 2, 4, 3], wanted=3) for one in (curriculum, other)]
    assert calls[0] == calls[1]
    asked = [[t.prompt_id for t in train(one, 3)] for one in (curriculum, other)]
    assert asked[0] == asked[1]


def test_who_waits_is_drawn_at_random_each_time_it_qualifies() -> None:
    """All qualify, twice as many as train. A tie-breaker that changes with training alone left some out."""
    curriculum = made(24, max_age=1)
    for _ in range(60):
        pilots(curriculum, [2], wanted=2)
        train(curriculum, 2)
    assert curriculum.metrics()["coverage"] == 1.0
    assert curriculum.columns["asked"].max() < 3 * 120 / 24


def test_old_pilots_of_prompts_that_are_set_aside_do_not_bring_these_back() -> None:
    """In a `Mixture`, which sets aside for its lanes. Such a prompt was chosen twice, which is an error."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(40)], columns={"category": ["broken"] * 36 + ["fine"] * 4})
    pilot_commit = rw.PilotCommit(screen_rollouts=PILOTS, max_age=2, batches=40, rounds=1)
    lanes = {"pilots": (0.5, pilot_commit), "uniform": (0.5, rw.Uniform())}
    mixture = rw.Mixture(pool, lanes=lanes, rails="off", seed=0)
    mixture.tell([rw.Outcome(t.id, [1, 0, 0, 1]) for t in mixture.probe(40, step=0, wanted=40)])
    for step in range(1, 9):
        tickets = mixture.ask(20 if step == 1 else 4, step=step)
        broken = {t.id: int(t.prompt_id[1:]) < 36 for t in tickets}
        assert step == 1 or {t.lane for t in tickets if broken[t.id]} <= {"retry-unscored"}
        mixture.tell(rw.Outcome(t.id, [], failed=4) if broken[t.id] else rw.Outcome(t.id, [1, 0]) for t in tickets)
