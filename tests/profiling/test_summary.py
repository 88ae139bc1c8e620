"""The numbers of a sample that shows one outcome alone."""

from typing import Any

import pytest

from rollwise.profiling.analysis import wilson
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.summary import Summary
from rollwise.sampling.data import PromptData
from rollwise.sampling.scoring import Scorer
from rollwise.tickets.outcome import RewardSpec


def numbers_of(reward: float, answers: list[str] | None = None) -> dict[str, Any]:
    """Of 12 prompts drawn of 100, whose 4 rollouts are all "x" and earn this."""
    rows = [{"prompt": f"{n}=", "answer": answers or str(n)} for n in range(100)]
    lists = {"rewards": [reward] * 4, "tokens": [1] * 4, "truncated": [False] * 4, "texts": ["x"] * 4}
    groups = [{"id": row["prompt"], "prompt": row["prompt"], **lists} for row in rows[:12]]
    config = ProfileConfig(data="sums.jsonl", num_generations=4, planned_generations=4)
    data = PromptData([row["prompt"] for row in rows], rows, None)
    return Summary(config, data, groups, Scorer(lambda **_: [], name="none", spec=RewardSpec())).to_dict()


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_twelve_alike_say_little_of_a_hundred(reward: float) -> None:
    """No resample differs from another, and no prompt from the next, so neither has a spread to go by."""
    found = numbers_of(reward)
    none, all_ = wilson(0, 12), wilson(12, 12)
    ends = {name: (one["low"], one["high"]) for name, one in found["estimate"].items() if isinstance(one, dict)}
    assert ends["hopeless"] == pytest.approx(none if reward else all_)
    assert ends["solved"] == pytest.approx(all_ if reward else none)
    assert ends["effective_by_fit"] == pytest.approx(none, abs=1e-3)
    assert ends["effective"] == pytest.approx(wilson(0, 12, population=100))
    rate = found["pass_rate"]
    assert (rate["low"], rate["high"]) == pytest.approx(wilson(12 * reward, 12, population=100))
    assert found["estimate"]["effective"]["high"] == found["shares"]["learnable"]["high"] > 0.2


def test_any_recorded_answer_of_a_list_is_looked_for() -> None:
    """Of prompts with several there was "no column of recorded answers"."""
    found = numbers_of(0.0, answers=["y", "x"])
    assert found["answers_recorded"] == 12
    assert found["n_suspects"] == 12
    assert {(one["kind"], one["recorded"]) for one in found["suspects"]} == {("answer-given", "x")}
