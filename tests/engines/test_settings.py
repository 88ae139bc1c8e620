"""What adapters share: settings, pools of an engine's rows, batches that can't be filled, hooks that moved."""

import pytest

import rollwise as rw
from rollwise.engines import Told
from rollwise.engines.hooks import check_hooks
from rollwise.engines.settings import ask_all, make_service, pool_of, split, tell_all
from rollwise.engines.skyrl_main import take_settings
from rollwise.errors import ConfigError, MissingColumnError, PoolError, ShortError, SilentNoOpError
from rollwise.testing import make_pool

POOL = rw.PromptPool(ids=["a", "b", "c"])


def test_a_service_is_made_of_an_engines_settings() -> None:
    settings = {
        "curriculum": "prioritized",
        "curriculum_options": {"seed": 5, "exploration": 0.25},
        "reward_spec": {"low": -1, "high": 1},
        "silent_after": 2,
        "columns": {"difficulty": "level"},
    }
    rows, options = split(settings)
    assert rows == {"columns": {"difficulty": "level"}}
    service = make_service(options, POOL)
    (ticket,) = service.ask(1)
    assert service.tell(rw.Outcome(ticket.id, [-1, 1])).taken == 1
    service.ask(1)
    service.ask(1)
    with pytest.raises(SilentNoOpError):
        service.ask(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"curiculum": "bots"}, "did you mean 'curriculum'"),
        ({"curriculum": "botz"}, "did you mean 'bots'"),
        ({"curriculum": "bots", "curriculum_options": {"sed": 1}}, "did you mean 'seed'"),
        ({"curriculum_options": "seed=1"}, "must be a mapping"),
        ({"reward_spec": {"lo": 0}}, "did you mean 'low'"),
        ({"silent_after": 0}, "silent_after"),
        ({"keep": 3}, "no option 'keep'"),  # engines keep the states in their own checkpoints
        ({"curriculum_options": {"allocator": "knapsack"}}, "allocator=Knapsack .* this engine makes as many of each"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_service(settings, POOL)
    with pytest.raises(ConfigError, match="rollwise's settings must be a mapping, got 'bots'"):
        split("bots")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("curriculum", "options", "wants"),
    [
        ("speed", {}, "SPEED measures prompts before it chooses"),
        ("metis", {}, "METIS asks the policy before it chooses"),
        ("actor-curator", {}, "ActorCurator learns from what each optimiser step gained"),
        ("bots", {"adaptive": "score"}, "BOTS follows the score of evaluations"),
        ("gaussian-target", {"patience": 3}, "GaussianTarget follows the score of evaluations"),
        ("prioritized", {"exploration": {"points": [[0, 0.5], [9, 0.1]], "by": "tokens"}}, "has a schedule by tokens"),
    ],
)
def test_what_a_method_wants_and_no_engine_gives_it_is_said(
    curriculum: str, options: dict, wants: str, caplog: pytest.LogCaptureFixture
) -> None:
    pool = make_pool(4)
    make_service({"curriculum": "bots", "curriculum_options": {"adaptive": True}}, pool)
    assert "has no place for" not in caplog.text
    make_service({"curriculum": curriculum, "curriculum_options": options}, pool)
    assert f"{wants}, which this engine has no place for; it uses its documented fallback" in caplog.text


def test_the_same_rows_have_the_same_ids_in_any_order() -> None:
    rows = [{"q": f"{i}", "info": {"level": i}} for i in range(5)]
    pool, other = (pool_of(list(way), columns={"difficulty": "info.level"}) for way in (rows, rows[::-1]))
    assert pool.ids == other.ids[::-1]
    assert pool.columns["difficulty"].tolist() == [0, 1, 2, 3, 4]
    assert pool_of([{"id": 7}, {"id": 8}]).ids == ["7", "8"]
    with pytest.raises(PoolError, match="duplicate id '7'"):
        pool_of([{"id": 7}, {"id": 7}])


def test_no_rows_are_an_empty_pool() -> None:
    with pytest.raises(PoolError, match="the pool is empty"):
        pool_of([])


def test_a_setting_of_skyrls_command_line_that_can_not_be_read_is_named() -> None:
    with pytest.raises(ConfigError, match=r"options=\{seed: 0 is not valid YAML .*; mend its value"):
        take_settings(["main_base", "rollwise.curriculum=bots", "rollwise.curriculum_options={seed: 0"])


@pytest.mark.parametrize("wrong", [{"columns": {"difficulty": None}}, {"id": 3}, {"prompt": 3}])
def test_a_wrong_path_into_rows_is_named(wrong: dict) -> None:
    with pytest.raises(ConfigError, match="(columns.difficulty|id|prompt) must be .* got (None|3)"):
        pool_of([{"id": 7}], **wrong)


def test_a_column_that_is_not_there_is_said_when_a_method_needs_it() -> None:
    pool = pool_of([{"q": "1", "level": 1}, {"q": "2"}], columns={"difficulty": "level"})
    with pytest.raises(MissingColumnError, match="difficulty"):
        make_service({"curriculum": "adarft"}, pool)


def test_rewards_of_another_range_are_taken_unless_one_was_given(caplog: pytest.LogCaptureFixture) -> None:
    """Of rewards -1 and 1 only the groups of ones were taken, so that all that was heard was all good."""
    service = make_service({"curriculum": "bots"}, POOL)
    rewards = [[-1, 1], [1, 1], [-1, -1]]
    told = tell_all(service, (rw.Outcome(t.id, r) for t, r in zip(ask_all(service, 3), rewards, strict=True)))
    assert told == Told(taken=3, repeated=0)
    metrics = service.metrics()
    assert [metrics[name] for name in ("mixed", "all_good", "all_bad")] == [1, 1, 1]
    assert "it is [-1, 1] now: give reward_spec.low, .high" in caplog.text
    tell_all(service, [rw.Outcome(ticket.id, mean=-3.0, count=2) for ticket in ask_all(service, 1)])
    assert service.metrics()["told"] == 4
    (ticket,) = ask_all(service, 1)
    assert tell_all(service, [rw.Outcome(ticket.id, [float("nan"), 1.0], failed=1)]).taken == 1
    assert service.metrics()["failed"] == 2  # the whole group was refused, and its prompt held
    solved = make_service({"curriculum": "bots", "reward_spec": {"solved_at": 2.0}}, POOL)
    assert tell_all(solved, [rw.Outcome(ticket.id, [3.0, 1.0]) for ticket in ask_all(solved, 1)]).taken == 1
    assert "it is [0, 3] now" in caplog.text
    given = make_service({"curriculum": "bots", "reward_spec": {"high": 2}}, POOL)
    assert len(tell_all(given, [rw.Outcome(ticket.id, [-1]) for ticket in ask_all(given, 1)]).refused) == 1


def test_a_batch_that_can_not_be_filled_says_why() -> None:
    service = make_service({"curriculum": "uniform"}, POOL)
    (ticket, *_) = ask_all(service, 2)
    with pytest.raises(SilentNoOpError, match="look at the operator"):
        ask_all(service, 2, hint="look at the operator")
    service.tell(rw.Outcome(ticket.id, [1, 0]))
    with pytest.raises(ShortError, match="a batch needs 3 prompts, 2 are free and 1 are in flight"):
        ask_all(service, 3)
    assert service.status()["open"] == 1  # the free ones were held for a hundred steps
    assert len(ask_all(service, 2)) == 2
    bounded = make_service({"curriculum": "uniform", "max_open": 1}, POOL)
    tell_all(bounded, [rw.Outcome(ticket.id, [1, 0]) for ticket in ask_all(bounded, 1)])
    with pytest.raises(ShortError, match="or a larger max_open"):  # prompts are free, and more would not help
        ask_all(bounded, 2)


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        (
            {"rollwise.pool:PromptPool.slot": ("self", "prompt_id"), "rollwise.pool:PromptPool.slots": None},
            "slots is not",
        ),
        ({"rollwise.no_such_module:PromptPool": None}, "no_such_module:PromptPool is not there"),
        (
            {"rollwise.pool:PromptPool.slot": ("self", "row")},
            r"slot takes \['self', 'prompt_id'\] where \['self', 'row'\]",
        ),
    ],
)
def test_a_hook_that_moved_is_named(hooks: dict, message: str) -> None:
    with pytest.raises(SilentNoOpError, match=message):
        check_hooks("engine 1.2", hooks)
