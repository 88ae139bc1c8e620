"""The alarm names every category that a method starves, however small, and no other; the run's files have it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.seam.starvation import StarvationAlarm

NOTHING = np.zeros(2, dtype=bool)


class Stubborn(rw.Curriculum):
    """The free prompts that were asked for least; those of "lost" `every` times less often than others, or never."""

    def __init__(self, pool: rw.PromptPool | None = None, *, every: int = 0, **core: Any) -> None:
        super().__init__(pool, options={"every": every}, **core)
        self.every = every

    def build(self) -> None:
        names, codes = self.pool.codes("category")
        self.lost = codes == names.index("lost")
        self.free = np.zeros(len(self.pool), dtype=bool)

    def select(self, k: int) -> rw.Picks:
        free = np.flatnonzero(self.free & (~self.lost | (self.every > 0)))
        free = self.rng["order"].permutation(free)
        turns = self.columns["asked"][free] * np.where(self.lost[free], self.every, 1)
        return rw.Picks.of(free[np.argsort(turns, kind="stable")[:k]], "stubborn")

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True


def pool_of(n: int, lost: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"category": ["lost"] * lost + ["rest"] * (n - lost)})


def run(curriculum: rw.Curriculum, epochs: float, batch: int) -> None:
    for _ in range(int(epochs * len(curriculum.pool) / batch)):
        curriculum.tell([rw.Outcome(t.id, [0.0] * 4) for t in curriculum.ask(batch)])


@pytest.mark.parametrize(("n", "lost"), [(50, 5), (50, 10), (100, 5), (100, 9), (100, 10), (400, 9), (20_000, 4000)])
@pytest.mark.parametrize("rails", ["on", "off"])
def test_a_lost_category_of_any_size_is_named(n: int, lost: int, rails: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is due 20 prompts after 20 N / n of them, 4 epochs for one of 5."""
    curriculum = Stubborn(pool_of(n, lost), rails=rails)
    run(curriculum, max(22 / lost, 1.1) * (1.5 if rails == "on" else 1), min(n // 10, 100))
    assert len([r for r in caplog.records if "'lost' is starved" in r.getMessage()]) == 1
    metrics = curriculum.metrics()
    assert metrics["starved_categories"] == 1.0
    assert metrics["starved_categories/lost"] < 0.1


def test_a_small_category_of_a_large_pool_is_named_by_the_alarm_alone(caplog: pytest.LogCaptureFixture) -> None:
    """5 of 20,000 prompts are due 20 after 80,000."""
    alarm = StarvationAlarm(pool_of(20_000, 5))
    asked, streak = np.ones(20_000, dtype=np.int64), -np.ones(20_000, dtype=np.int64)
    for done in range(400, 80_001, 400):
        alarm.count(np.arange(400) + 5, asked=asked, streak=streak, failing=NOTHING)
        assert bool(alarm.starved) == (done == 80_000)
    assert "gave it 0 of the last 80000 prompts that it chose, where uniform sampling would have given it 20" in (
        caplog.text
    )


@pytest.mark.parametrize(("n", "lost"), [(50, 5), (100, 9), (1000, 10), (20_000, 4000)])
def test_categories_that_are_served_are_not_named(n: int, lost: int, caplog: pytest.LogCaptureFixture) -> None:
    epochs = 25 if n < 20_000 else 1
    run(rw.Uniform(pool_of(n, lost), seed=0), epochs, min(n // 10, 100))
    curriculum = Stubborn(pool_of(n, lost), every=2)
    run(curriculum, epochs, min(n // 10, 100))
    assert "starved" not in caplog.text
    assert curriculum.metrics()["starved_categories"] == 0.0


def test_a_category_that_is_served_again_is_no_longer_starved() -> None:
    alarm = StarvationAlarm(pool_of(50, 10))
    asked, streak = np.ones(50, dtype=np.int64), np.zeros(50, dtype=np.int64)
    for _ in range(5):
        alarm.count(np.arange(10, 40), asked=asked, streak=streak, failing=NOTHING)
    assert alarm.metrics() == {"starved_categories": 1.0, "starved_categories/lost": 0.0}
    for _ in range(5):
        alarm.count(np.arange(30), asked=asked, streak=streak, failing=NOTHING)
    assert alarm.metrics() == {"starved_categories": 0.0}


def test_after_a_resume_it_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    curriculum = Stubborn(pool_of(50, 5))
    run(curriculum, 6, 5)
    state = json.loads(json.dumps(curriculum.state_dict()))
    caplog.clear()
    fresh = Stubborn(pool_of(50, 5))
    fresh.load_state_dict(state)
    assert "starved categories, as of the saved state: 'lost' (0% of its fair share)" in caplog.text
    assert fresh.metrics() == curriculum.metrics()
    caplog.clear()
    fresh.rebind(pool_of(50, 5))
    assert "starved" not in caplog.text


@pytest.mark.usefixtures("no_figures")
def test_the_report_and_the_watcher_name_it(tmp_path: Path) -> None:
    """The run's files as a recorder writes them: the curriculum's metrics with their prefix."""
    from rollwise.reports import write_report
    from rollwise.watching.follow import RunFollower
    from rollwise.watching.state import take_snapshot

    curriculum = Stubborn(pool_of(50, 5))
    curriculum.lost[:] = False
    lines, groups = [], []
    for step in range(1, 61):
        tickets = curriculum.ask(5)
        curriculum.tell([rw.Outcome(t.id, [], failed=4) for t in tickets])
        numbers = {f"curriculum/{k}": v for k, v in curriculum.metrics().items()}
        lines.append({"step": step, "time": 1.0, "rollouts": 20 * step, "tokens": step, "wall_s": 1.0, **numbers})
        groups += [
            {"step": step, "ticket": t.id, "prompt_id": t.prompt_id, "lane": t.lane, "purpose": "train",
             "trained": True, "predicted": None, "propensity": None, "rewards": [0.0] * 4, "tokens": [1] * 4,
             "prompt": t.prompt_id, "texts": ["x"] * 4, "category": "rest"}
            for t in tickets
        ]  # fmt: skip
    lines[-1] |= {"curriculum/starved_categories": 1.0, "curriculum/starved_categories/lost": 0.03}
    for name, rows in (("metrics.jsonl", lines), ("rollouts.jsonl", groups)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = write_report(tmp_path).read_text()
    assert "Starved categories at the end, by what the method itself chose: lost (3" in page
    assert "Set aside at the end, as none of their rollouts got a reward any more: rest" in page
    follower = RunFollower(tmp_path)
    follower.look()
    alarms = " / ".join(take_snapshot("run", follower.history, 2.0).alarms)
    assert "starved categories: lost (3% of its fair share)" in alarms
    assert "prompts whose last group got no reward: 50 (category lost, category rest)" in alarms
