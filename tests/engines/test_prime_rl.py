"""The adapter to prime-rl over its `TrainSource`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from engines.worlds import other_signature

from rollwise.errors import ConfigError, ShortError, SilentNoOpError, StateError

SETTINGS = {"curriculum": "bots", "curriculum_options": {"seed": 2, "expire_after": 3}}


@pytest.fixture
def make_source(prime_rl: Any, prime_env: Any) -> Any:
    """`make_source()`: a `TrainSource` of one environment, with the adapter installed."""

    def make(**settings: Any) -> Any:
        prime_rl.install({**SETTINGS, **settings})
        return prime_rl.train_source.TrainSource([prime_env()])

    return make


def sampler_of(source: Any) -> Any:
    return source.curricula["sums"].sampler


def finish(source: Any, episode: Any, task: Any) -> bool:
    """A group of four rollouts of a task comes back; the third had an error."""
    number = int(str(task.key).rpartition("-")[2][-1], 16)
    rewards = [float((number + k) % 2) for k in range(2)]
    return bool(source.on_result([episode(task, r) for r in (*rewards, None, 1.0)]))


def go(source: Any, episode: Any, steps: range) -> list[list[str]]:
    asked = []
    for step in steps:
        tasks = [source.next_task(step=step).task for _ in range(3)]
        asked.append([task.key for task in tasks])
        for task in tasks:
            assert finish(source, episode, task)
    return asked


def test_a_hook_that_moved_is_named(prime_rl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prime_rl.TaskSampler, "observe", other_signature)
    with pytest.raises(SilentNoOpError, match=r"TaskSampler\.observe takes"):
        prime_rl.install(SETTINGS)


def test_a_resumed_run_asks_as_the_straight_one(make_source: Any, prime_episode: Any) -> None:
    straight = make_source()
    go(straight, prime_episode, range(1, 4))
    straight.next_task(step=4)  # in flight when the state is saved
    state = straight.state_dict()
    json.dumps(state["envs"])
    sampler_of(straight).service.lose("loader")  # prime-rl would lose it at the resume
    resumed = make_source()
    resumed.load_state_dict(state)
    assert go(straight, prime_episode, range(4, 7)) == go(resumed, prime_episode, range(4, 7))
    metrics = sampler_of(resumed).service.metrics()
    assert metrics["told"] == 18
    assert metrics["failed"] == 18


def test_tasks_that_were_in_flight_at_a_save_are_free_after_the_resume(make_source: Any) -> None:
    """They were held for `expire_after` steps, so that a run with 8 of 12 tasks in flight could not go on."""
    source = make_source()
    for _ in range(8):
        source.next_task(step=1)
    resumed = make_source()
    resumed.load_state_dict(source.state_dict())
    assert len({resumed.next_task(step=1).task.key for _ in range(8)}) == 8


def test_the_state_of_another_sampler_is_refused(make_source: Any) -> None:
    with pytest.raises(StateError, match=r"another sampler's state, \['order'\]"):
        sampler_of(make_source()).load_state_dict({"order": [1, 2]})


def test_the_samplers_know_the_learners_step(make_source: Any) -> None:
    source = make_source()
    source.next_task(step=5)
    assert sampler_of(source).service.status()["step"] == 5
    source.next_task(step=5)
    assert sampler_of(source).service.status()["step"] == 5


def test_stale_groups_which_are_never_observed_expire(make_source: Any, prime_episode: Any) -> None:
    source = make_source()
    lost = [source.next_task(step=1).task for _ in range(4)]
    (heard, *_) = lost
    finish(source, prime_episode, heard)
    source.next_task(step=4)
    metrics = sampler_of(source).service.metrics()
    assert (metrics["expired"], metrics["told"], metrics["open"]) == (3, 1, 1)


def test_no_task_is_in_flight_twice_and_too_few_tasks_are_an_error(make_source: Any, prime_episode: Any) -> None:
    source = make_source()
    tasks = [source.next_task(step=1).task for _ in range(11)]
    finish(source, prime_episode, tasks[0])
    tasks += [source.next_task(step=1).task for _ in range(2)]
    assert len({task.key for task in tasks}) == 12
    with pytest.raises(ShortError, match="12 are in flight"):
        source.next_task(step=1)


def test_an_endless_task_set_is_refused(prime_rl: Any, prime_tasks: list[Any]) -> None:
    def endless() -> Iterator[Any]:
        yield from prime_tasks

    with pytest.raises(ConfigError, match="finite task set"):
        prime_rl.CurriculumSampler(endless(), {})


def test_a_sampler_of_prime_rls_own_is_refused_and_not_dropped(
    prime_rl: Any, prime_tasks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class DifficultyPoolSampler(prime_rl.TaskSampler):  # type: ignore[misc,name-defined]
        def __next__(self) -> Any:
            return prime_tasks[0]

    made = prime_rl.Curriculum.__init__

    def with_a_sampler(self: Any, config: Any, tasks: Any) -> None:
        made(self, config, tasks)
        self.sampler = DifficultyPoolSampler()

    monkeypatch.setattr(prime_rl.Curriculum, "__init__", with_a_sampler)
    prime_rl.install(SETTINGS)
    with pytest.raises(ConfigError, match=r"in place of DifficultyPoolSampler: leave curriculum\.sampler out"):
        prime_rl.train_source.Curriculum(None, prime_tasks)


def test_metrics_are_prime_rls_own(make_source: Any) -> None:
    source = make_source()
    source.next_task(step=1)
    assert source.metrics()["curriculum/sums/sampler/asked"] == 1


def test_a_source_that_never_hears_is_an_error(make_source: Any) -> None:
    source = make_source(silent_after=5)
    with pytest.raises(SilentNoOpError):
        for _ in range(8):
            source.next_task(step=1)


def test_a_settings_file_that_is_not_there_is_one_line(prime_rl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLWISE_SETTINGS", "/nowhere.yaml")
    with pytest.raises(ConfigError, match="'/nowhere.yaml' can't be read: No such file"):
        prime_rl.main()
    monkeypatch.delenv("ROLLWISE_SETTINGS")
    with pytest.raises(ConfigError, match="set ROLLWISE_SETTINGS to a YAML file"):
        prime_rl.main()
