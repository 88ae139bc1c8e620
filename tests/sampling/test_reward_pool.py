"""Rewards in a pool of processes: the same scores, several at once, errors and rollouts that never end."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, MissingColumnError, RewardError
from rollwise.sampling.config import DataConfig
from rollwise.sampling.rewards import check_columns, reward_functions
from rollwise.sampling.scorers.pool import RewardPool

REWARDS = '''
import os, time
from pathlib import Path

def right(completions, answer, **_):
    """Noisy on its standard output."""
    print("scoring", completions)
    return [float(text == known) for text, known in zip(completions, answer)]

def together(completions, folder, **_):
    """Ends only when as many rollouts as there are have begun: at once, or never."""
    (Path(folder[0]) / completions[0]).touch()
    while len(list(Path(folder[0]).iterdir())) < 3:
        time.sleep(0.01)
    return [1.0]

def moody(completions, **_):
    if completions[0] == "hang":
        while True:
            time.sleep(1)
    if completions[0] == "die":
        os._exit(3)
    if completions[0] == "raise":
        raise ValueError("no such test")
    if completions[0] == "word":
        return ["good"]
    return [None if completions[0] == "unknown" else 0.5]

def alone(completions, **_):
    return [float(len(completions)) for _ in completions]

async def slow(completions, answer, **_):
    return [1.0 for _ in completions]

def process(completions, **_):
    return [float(os.getpid())]

def forking(completions, folder, **_):
    """Waits for a process that it forked, which has the pipes of this one open."""
    if (child := os.fork()) == 0:
        time.sleep(30)
        (Path(folder[0]) / "outlived").touch()
        os._exit(0)
    os.waitpid(child, 0)
    return [1.0]
'''


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Callable[..., RewardPool]]:
    (tmp_path / "rewards.py").write_text(REWARDS)
    made: list[RewardPool] = []

    def make(name: str, workers: int = 2, timeout: float = 60.0) -> RewardPool:
        made.append(RewardPool(f"{tmp_path / 'rewards.py'}:{name}", name=name, workers=workers, timeout=timeout))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_scores_come_in_the_order_of_the_rollouts(pool: Callable[..., RewardPool]) -> None:
    texts = [str(i) for i in range(20)]
    answers = [str(i if i % 3 else -1) for i in range(20)]
    given: dict[str, Any] = {"prompts": texts, "completions": texts, "answer": answers}
    scores = pool("right", 3)(**given, trainer_state=object(), log_metric=print)
    assert scores == [float(i % 3 > 0) for i in range(20)]


def test_what_a_late_rollout_started_ends_with_it(pool: Callable[..., RewardPool], tmp_path: Path) -> None:
    assert pool("forking", 1, timeout=2.0)(completions=["a"], folder=[str(tmp_path)]) == [None]
    assert not (tmp_path / "outlived").exists()


def test_each_call_has_one_rollout(pool: Callable[..., RewardPool]) -> None:
    assert pool("alone")(completions=["a", "b", "c"]) == [1.0] * 3


def test_rollouts_are_scored_at_once(pool: Callable[..., RewardPool], tmp_path: Path) -> None:
    """Three that wait for one another, in three processes."""
    (folder := tmp_path / "begun").mkdir()
    assert pool("together", 3)(completions=["a", "b", "c"], folder=[str(folder)] * 3) == [1.0] * 3


def test_processes_are_kept_and_are_not_this_one(pool: Callable[..., RewardPool]) -> None:
    made = pool("process", 1)
    assert made.__name__ == "process"
    first, second = made(completions=["a", "b"])
    assert first == second == made(completions=["c"])[0] != os.getpid()


def test_what_ends_its_process_is_not_scored(pool: Callable[..., RewardPool], caplog: pytest.LogCaptureFixture) -> None:
    made = pool("moody", 1)
    with caplog.at_level(logging.WARNING):
        assert made(completions=["a", "die", "unknown", "b"]) == [0.5, None, None, 0.5]
    assert "reward 'moody': 1 of 4 rollouts ended their process and are not scored" in caplog.text


def test_what_hangs_is_not_scored(pool: Callable[..., RewardPool], caplog: pytest.LogCaptureFixture) -> None:
    """Its process is begun again."""
    made = pool("moody", 2, timeout=0.5)
    with caplog.at_level(logging.WARNING):
        assert made(completions=["hang"] * 3) == [None] * 3
    assert "reward 'moody': 3 of 3 rollouts took more than 0.5 s (reward_timeout) and are not scored" in caplog.text
    for worker in made.workers:
        worker.timeout = 60.0
    assert made(completions=["a", "b", "c"]) == [0.5] * 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise", "reward 'moody' raised ValueError('no such test') in "),
        ("word", "reward 'moody' gives no score: it gave 'good'; a reward must be a number"),
    ],
)
def test_an_error_names_the_reward(pool: Callable[..., RewardPool], text: str, said: str) -> None:
    with pytest.raises(RewardError) as error:
        pool("moody")(completions=["a", text, "b"])
    assert said in str(error.value)


def test_a_reward_that_cannot_be_loaded(pool: Callable[..., RewardPool]) -> None:
    with pytest.raises(RewardError, match="reward 'absent' can't be loaded: .*absent"):
        pool("absent")(completions=["a"])


def config(tmp_path: Path, name: str, **options: Any) -> DataConfig:
    (tmp_path / "rewards.py").write_text(REWARDS)
    return DataConfig(data="my.jsonl", reward=f"{tmp_path / 'rewards.py'}:{name}", model="M", **options)


@pytest.mark.parametrize("name", ["right", "slow"])
def test_a_commands_rewards_are_scored_there(tmp_path: Path, name: str) -> None:
    """An asynchronous one too, which is then none; columns are still checked by its signature."""
    found = reward_functions(config(tmp_path, name, reward_workers=2))
    (function,) = found.functions
    assert function(prompts=["p"] * 2, completions=["1"] * 2, answer=["1"] * 2) == [1.0, 1.0]
    assert found.names == [name]
    with pytest.raises(MissingColumnError, match="'answer'"):
        check_columns(found.functions, "the reward", {"prompt": "p"})


def test_a_module_beside_the_rewards_may_be_called_as_one_of_rollwise(tmp_path: Path) -> None:
    """The processes look for modules where this one does, and not within rollwise."""
    (tmp_path / "models.py").write_text("SCORE = 0.25")
    file = tmp_path / "beside.py"
    file.write_text(
        "def score(completions, **_):\n    from models import SCORE\n    return [SCORE] * len(completions)\n"
    )
    pool = RewardPool(f"{file}:score", name="score", workers=1, timeout=60)
    try:
        assert pool(prompts=["p"], completions=["1"]) == [0.25]
    finally:
        pool.close()


def test_workers_decide_nothing_of_a_folder(tmp_path: Path) -> None:
    one, other = (config(tmp_path, "right", reward_workers=n) for n in (0, 4))
    assert one.decided() == other.decided()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reward_workers": -1}, "reward_workers must be"),
        ({"reward_timeout": 0}, "reward_timeout must be"),
        ({"reward_weights": 0.5}, "reward_weights must have a number for each of the 1 rewards, got 0.5"),
        ({"solved_at": "half"}, "solved_at must be a number or None, got 'half'"),
        ({"reward_timeout": 30}, "reward_timeout 30 ends rollouts in processes of their own.*add --reward_workers N"),
        ({"reward": None, "task": "countdown", "reward_workers": 2}, "reward_workers score by --reward"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DataConfig(**{"data": "my.jsonl", "reward": "exact", "model": "M"} | options)
