"""The numbers of a sample that shows one outcome alone."""

from typing import Any

import pytest

from rollwise.profiling.analysis import wilson
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.finished import trained_on
from rollwise.profiling.summary import Summary
from rollwise.sampling.data import PromptData
from rollwise.sampling.scoring import Scorer
from rollwise.tickets.outcome import RewardSpec


def numbers_of(
    reward: float, first: float | None = None, *, steps: int | None = None, prompts_per_step: int = 64, **columns: Any
) -> dict[str, Any]:
    """Of 12 prompts drawn of 100, whose 4 rollouts all earn this, but for the `first` of each."""
    rows = [{"prompt": f"{n}=", "answer": str(n)} | columns for n in range(100)]
    lists = {
        "rewards": [reward if first is None else first, *[reward] * 3],
        "tokens": [1] * 4,
        "truncated": [False] * 4,
        "texts": ["x"] * 4,
    }
    groups = [{"id": row["prompt"], "prompt": row["prompt"], **lists} for row in rows[:12]]
    plan: dict[str, Any] = {"planned_generations": 2, "steps": steps, "prompts_per_step": prompts_per_step}
    config = ProfileConfig(data="sums.jsonl", num_generations=4, **plan)
    data = PromptData([row["prompt"] for row in rows], rows, None)
    scorer = Scorer(lambda **_: [], name="none", spec=RewardSpec())
    return Summary(config, data, groups, scorer, trained_on=trained_on(config, data)).to_dict()


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
    found = numbers_of(0.0, answer=["y", "x"])
    assert found["answers_recorded"] == 12
    assert found["n_suspects"] == 12
    assert {(one["kind"], one["recorded"]) for one in found["suspects"]} == {("answer-given", "x")}


def test_reference_pass_rates_in_the_data_are_known() -> None:
    """Of 100 prompts 64 are visited, once; pairs have contrast in half of the groups."""
    known = numbers_of(0.0, first=1.0, steps=1, reference_pass_rates=[0.1, 0.5])["recommendation"]
    assert known["headline"] == "reference pass rates predict new prompts: Recommended"
    assert numbers_of(0.0, first=1.0, steps=1)["recommendation"]["headline"] == "uniform with dynamic sampling"


def test_visits_are_those_of_the_prompts_that_are_trained_on() -> None:
    """`train` holds 15 of these 100 out: 3 steps of 64 visit 85 prompts 2.3 times, not 1.9; none twice a step."""
    reasons = numbers_of(0.0, first=1.0, steps=3)["recommendation"]["reasons"]
    assert reasons[0].startswith("each prompt is visited 2.3 times")
    reasons = numbers_of(0.0, first=1.0, steps=3, prompts_per_step=512)["recommendation"]["reasons"]
    assert reasons[0].startswith("each prompt is visited 3.0 times")
