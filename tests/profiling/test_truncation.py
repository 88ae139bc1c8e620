"""Answers that were cut off are no evidence of a wrong label; answers that are finished and misread still are."""

import io
from typing import Any

import pytest
from rich.console import Console

from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.display import show
from rollwise.profiling.summary import Summary
from rollwise.profiling.suspects import find_suspect
from rollwise.sampling.data import PromptData
from rollwise.sampling.scoring import Scorer
from rollwise.tickets.outcome import RewardSpec

CUT = "Step 1: we add the numbers 4 and {n} and then carry the 1, which"


def numbers_of(text: str, *, truncated: bool) -> dict[str, Any]:
    """Of a profile of 40 prompts whose 4 rollouts all say `text` and earn nothing."""
    rows = [{"prompt": f"{n}+4=", "answer": str(n + 4), "n": n} for n in range(40)]
    ids = [row["prompt"] for row in rows]
    groups = [
        {
            "id": row["prompt"],
            "prompt": row["prompt"],
            "rewards": [0.0] * 4,
            "tokens": [30] * 4,
            "truncated": [truncated] * 4,
            "texts": [text.format(n=row["n"], sum=row["answer"])] * 4,
        }
        for row in rows
    ]
    config = ProfileConfig(data="sums.jsonl", num_generations=4, planned_generations=4)
    scorer = Scorer(lambda **_: [], name="none", spec=RewardSpec())
    return Summary(config, PromptData(ids, rows, None), groups, scorer).to_dict()


def test_cut_off_answers_are_no_wrong_labels() -> None:
    numbers = numbers_of(CUT, truncated=True)
    assert numbers["tokens"]["truncated"] == 1.0
    assert (numbers["n_suspects"], numbers["suspects"]) == (0, [])
    headline = numbers["recommendation"]["headline"]
    assert headline.startswith("allow more tokens (--max_completion_length)")
    assert "100% were truncated" in numbers["recommendation"]["reasons"][0]
    shown = io.StringIO()
    show(numbers, Console(file=shown, width=200))
    assert "0 of 40 look answered" in shown.getvalue()
    assert "wrong label" not in shown.getvalue()


@pytest.mark.parametrize("text", ["4 and {n} are {sum}", "The answer is {sum}."])
def test_a_misread_reward_on_finished_answers_is_found(text: str) -> None:
    numbers = numbers_of(text, truncated=False)
    assert numbers["n_suspects"] == 40
    assert {suspect["kind"] for suspect in numbers["suspects"]} == {"answer-given"}
    assert numbers["recommendation"]["headline"].startswith("mend the answers or the reward first")


@pytest.mark.parametrize(
    "text", [r"\boxed{{{sum}}}", "#### {sum}", "answer: {sum}", "<answer>{sum}</answer> and so on"]
)
def test_a_marked_answer_counts_though_the_rest_was_cut_off(text: str) -> None:
    assert numbers_of(text, truncated=True)["n_suspects"] == 40


def test_finished_rollouts_count_and_cut_ones_beside_them_do_not() -> None:
    def found(recorded: str, texts: list[str], cut: list[bool]) -> tuple[str, int] | None:
        suspect = find_suspect("p", recorded, texts, [0.0] * len(texts), cut)
        return None if suspect is None else (suspect.kind, suspect.rollouts)

    assert found("7", ["so 7", "so 7"], [True, False]) == ("answer-given", 1)
    assert found("700", ["700 or 8", "9"], [True, False]) is None
    assert found("7", ["so 8", "so 8", "Step 1: 5"], [False, False, True]) == ("all-agree", 2)
    assert found("7", ["so 8", "so 8", "so 8"], [False, True, True]) is None  # one rollout agrees with itself
