"""Countdown: rewards by hand, generation, the split, demonstrations, prompts."""

from __future__ import annotations

import logging
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollwise.errors import ConfigError, TaskError
from rollwise.tasks import Countdown
from rollwise.tasks.arithmetic import evaluate
from rollwise.tasks.countdown.items import LEVELS, canonical_key
from rollwise.tasks.countdown.solver import solve
from rollwise.tasks.tags import extract_answer


@pytest.fixture(scope="module")
def task() -> Countdown:
    return Countdown()


# Numbers 3, 5, 7 to 22.
@pytest.mark.parametrize(
    ("completion", "reward"),
    [
        ("<answer>3*5+7</answer>", 1.0),
        ("<answer> 7 + 5 * 3 </answer>", 1.0),
        ("<answer>\n3*5+7\n</answer>", 1.0),
        ("thinking ... </think>\n<answer>(3*5)+7</answer> done", 1.0),
        ("<answer>1</answer> better: <answer>3*5+7</answer>", 1.0),
        ("<answer>3*5+7</answer> or <answer>3+5+7</answer>", 0.1),  # the last pair counts
        ("<answer>3*5+7</answer> or <answer>3+5", 1.0),  # an open tag is no pair
        ("<answer>3*5+7</answer></answer>", 1.0),
        ("<answer><answer>3*5+7</answer>", 1.0),
        ("<answer>-3*-5+7</answer>", 1.0),
        ("<answer>3+5+7</answer>", 0.1),  # wrong value
        ("<answer>22</answer>", 0.1),  # other numbers
        ("<answer>15+7</answer>", 0.1),
        ("<answer>3*5+7+3-3</answer>", 0.1),  # 3 three times
        ("<answer>3*5+7=22</answer>", 0.1),
        ("<answer>6**6**6**6</answer>", 0.1),
        ("<answer>no idea</answer>", 0.1),
        ("<answer>3*5\n+7</answer>", 0.1),
        ("<answer></answer>", 0.0),
        ("<answer>  </answer>", 0.0),
        ("3*5+7", 0.0),
        ("<answer>3*5+7", 0.0),
        ("</answer>3*5+7<answer>", 0.0),
        ("<ANSWER>3*5+7</ANSWER>", 0.0),
        ("", 0.0),
        ("<answer>" * 20_000, 0.0),
        ("</answer>" * 20_000, 0.0),
    ],
)
def test_rewards_by_hand(task: Countdown, completion: str, reward: float) -> None:
    chat = [{"role": "assistant", "content": completion}]
    rewards = task.reward(["", ""], [completion, chat], nums=[[7, 3, 5]] * 2, target=[22, 22], completion_ids=[[], []])
    assert rewards == [reward, reward]


def test_each_number_exactly_once_as_a_multiset() -> None:
    assert Countdown.score("2+2", [2, 2], 4) == 1.0
    assert Countdown.score("2+2", [2, 2, 0], 4) == 0.1
    assert Countdown.score("2*2", [4], 4) == 0.1


def test_only_the_assistants_words_count(task: Countdown) -> None:
    turns = [{"role": "tool", "content": "<answer>1+1</answer>"}, {"role": "assistant", "content": "hm"}]
    blocks = [{"role": "assistant", "content": [{"type": "text", "text": "<answer>1+1</answer>"}]}]
    assert task.reward([""] * 2, [turns, blocks], nums=[[1, 1]] * 2, target=[2, 2]) == [0.0, 1.0]


def test_reward_names_a_missing_column(task: Countdown) -> None:
    with pytest.raises(TaskError, match="column 'nums'"):
        task.reward([""], ["x"], target=[1])
    with pytest.raises(TaskError, match="'target' has 2 values for 1"):
        task.reward([""], ["x"], nums=[[1]], target=[1, 2])
    with pytest.raises(TaskError, match="a .csv file can't hold lists"):
        task.reward([""], ["<answer>3+5</answer>"], nums=["[3, 5]"], target=["8"])
    with pytest.raises(TaskError, match="needs nums, a list of whole numbers, .*; got 8 and 8"):
        task.reward([""], ["<answer>8</answer>"], nums=[8], target=[8])
    with pytest.raises(TaskError, match="text or a list of chat messages"):
        task.reward([""], [3], nums=[[1]], target=[1])  # type: ignore[list-item]


@given(st.text(max_size=200))
def test_extraction_never_raises(text: str) -> None:
    found = extract_answer(text)
    assert found is None or found in text
    assert extract_answer(f"{text}<answer>1</answer>") == "1"


def test_records_have_what_a_pool_needs(task: Countdown) -> None:
    records = task.train_records(600, seed=0)
    assert len({r["id"] for r in records}) == 600
    # Level 1 has 95 training puzzles; the others fill in.
    assert Counter(r["category"] for r in records) == {"L1": 95, "L2": 169, "L3": 168, "L4": 168}
    for r in records:
        assert set(r) == {"id", "prompt", "category", "difficulty", "embedding", "nums", "target"}
        level = LEVELS[int(r["difficulty"])]
        assert r["category"] == f"L{int(r['difficulty'])}"
        assert r["id"] == f"countdown:{canonical_key(r['nums'], r['target'])}"
        assert r["prompt"] == f"{','.join(map(str, r['nums']))}:{r['target']}="
        assert len(r["nums"]) == level.count
        assert max(r["nums"]) <= level.highest
        assert level.targets[0] <= r["target"] <= level.targets[1]


def test_every_puzzle_can_be_solved(task: Countdown) -> None:
    for r in task.train_records(200, seed=3):
        answer = solve(r["nums"], r["target"])
        assert answer is not None
        assert Countdown.score(answer, r["nums"], r["target"]) == 1.0


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_training_and_held_out_never_meet(seed: int, other: int) -> None:
    task = Countdown(levels=(1, 2, 3))
    held_out = {canonical_key(r["nums"], r["target"]) for r in task.eval_records(100, other)}
    train = {canonical_key(r["nums"], r["target"]) for r in task.train_records(300, seed)}
    shown = {_key(d["prompt"]) for d in task.demonstrations(300, seed)}
    assert not held_out & (train | shown)


def _key(prompt: str) -> str:
    nums, target = prompt.rstrip("=").split(":")
    return canonical_key([int(n) for n in nums.split(",")], int(target))


def test_same_seed_same_records_and_a_larger_set_begins_with_the_smaller(task: Countdown) -> None:
    assert task.train_records(60, seed=1) == task.train_records(90, seed=1)[:60]
    assert task.train_records(60, seed=1) != task.train_records(60, seed=2)
    assert task.demonstrations(60, seed=1) == task.demonstrations(90, seed=1)[:60]
    assert task.eval_records(30, seed=1) == task.eval_records(30, seed=1)


def test_an_exhausted_level_gives_what_exists_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        records = Countdown(levels=(1,)).train_records(5000, seed=0)
    assert 80 <= len(records) < 130
    assert f"only {len(records)} distinct ones exist" in caplog.text
    other = Countdown(levels=(1,)).train_records(5000, seed=9)
    assert {r["id"] for r in other} == {r["id"] for r in records}  # exhausted means all of them


def test_a_level_given_twice_counts_double() -> None:
    records = Countdown(levels=(2, 6, 6)).train_records(90, seed=0)
    assert Counter(r["category"] for r in records) == {"L2": 30, "L6": 60}


@pytest.mark.parametrize(("accuracy", "low", "high"), [(0.0, 0.0, 0.2), (0.35, 0.35, 0.55), (1.0, 1.0, 1.0)])
def test_demonstrations_are_right_as_often_as_asked(accuracy: float, low: float, high: float) -> None:
    task = Countdown(levels=(2, 3, 6))
    right = 0
    for demo in task.demonstrations(400, seed=0, accuracy=accuracy):
        nums, target = demo["prompt"].rstrip("=").split(":")
        answer = extract_answer(demo["completion"])
        assert answer is not None
        assert evaluate(answer).valid
        assert sorted(map(int, re.findall(r"\d+", answer))) == sorted(map(int, nums.split(",")))
        right += evaluate(answer).value == int(target)
        # The budget counts characters, two tags and the end of text.
        assert len(answer) + 3 <= task.max_completion_length
    assert low <= right / 400 <= high


def test_tinyzero_prompts(task: Countdown) -> None:
    text = Countdown(style="tinyzero").train_records(1, seed=0)[0]
    assert text["prompt"].startswith("A conversation between User and Assistant.")
    assert text["prompt"].endswith("Assistant: Let me solve this step by step.\n<think>")
    question = f"Using the numbers {text['nums']}, create an equation that equals {text['target']}."
    assert question in text["prompt"]
    chat = Countdown(style="tinyzero-chat").train_records(1, seed=0)[0]
    assert [m["role"] for m in chat["prompt"]] == ["system", "user"]
    assert chat["prompt"][1]["content"].startswith(question)
    assert chat["id"] == text["id"] == task.train_records(1, seed=0)[0]["id"]


@pytest.mark.parametrize("style", ["tinyzero", "tinyzero-chat"])
def test_demonstrations_earn_the_reward_in_every_style(style: str) -> None:
    task = Countdown(levels=(2,), style=style)
    for demo in task.demonstrations(20, seed=0, accuracy=1.0):
        prompt: Any = demo["prompt"] if isinstance(demo["prompt"], str) else demo["prompt"][1]["content"]
        nums, target = re.findall(r"numbers \[(.*?)\], create an equation that equals (\d+)", prompt)[0]
        columns = {"nums": [[int(n) for n in nums.split(",")]], "target": [int(target)]}
        assert task.reward([prompt], [demo["completion"]], **columns) == [1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ()}, "levels must be"),
        ({"levels": (11,)}, r"levels must be .* got \(11,\)"),
        ({"levels": "12"}, "levels must be"),
        ({"levels": (True,)}, "levels must be"),
        ({"levels": [[1]]}, "levels must be"),
        (
            {"style": "verbose"},
            "style must be 'compact', 'search', 'tinyzero', 'tinyzero-chat' or 'boxed', got 'verbose'",
        ),
        ({"style": ["compact"]}, "style must be 'compact'"),
        ({"eval_share": "a"}, "eval_share must be"),
        ({"data_file": 5}, "data_file must be a path"),
        ({"eval_share": 0}, "eval_share must be"),
        ({"eval_share": 1.0}, "eval_share must be"),
        ({"demo_accuracy": 1.5}, "demo_accuracy must be"),
        ({"demo_accuracy": float("nan")}, "demo_accuracy must be"),
        ({"broken": -0.1}, r"broken must be a number in \[0, 1\], got -0.1"),
        ({"foreign": "half"}, r"foreign must be a number in \[0, 1\], got 'half'"),
        ({"broken": 0.6, "foreign": 0.5}, r"broken \+ foreign must be at most 1, got 0\.6 \+ 0\.5"),
        ({"broken": 0.5, "data_file": "puzzles.jsonl"}, "leave them out with a data_file"),
    ],
)
def test_refuses_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Countdown(**options)


@pytest.mark.parametrize(("n", "seed"), [(0, 0), (-1, 0), (1.5, 0), (True, 0), (1, -1), (1, "a")])
def test_refuses_bad_counts_and_seeds(task: Countdown, n: Any, seed: Any) -> None:
    for make in (task.train_records, task.eval_records, task.demonstrations):
        with pytest.raises(ConfigError):
            make(n, seed)


def test_difficulty_rises_with_the_level(task: Countdown) -> None:
    assert all(a < b for a, b in pairwise(sorted({r["difficulty"] for r in task.train_records(60, seed=0)})))


def test_held_out_puzzles_of_other_levels() -> None:
    task = Countdown(levels=(1, 6, 6, 6), eval_levels=(1, 2))
    assert {r["category"] for r in task.train_records(40, seed=0)} == {"L1", "L6"}
    assert {r["category"] for r in task.eval_records(40, seed=0)} == {"L1", "L2"}
    assert task.fingerprint() == Countdown(levels=(1, 6, 6, 6)).fingerprint()  # the same demonstrations
    assert Countdown(levels=(3,)).eval_records(5, seed=0) == Countdown(levels=(3,), eval_levels=(3,)).eval_records(5, 0)
    with pytest.raises(ConfigError, match="levels must be"):
        Countdown(eval_levels=(11,))


def test_held_out_puzzles_of_the_training_levels_stay_beside_those_of_others() -> None:
    task = Countdown(levels=(1, 6), eval_levels=(2,))
    sets = task.eval_sets(12, seed=0)
    assert list(sets) == ["id", "ood"]
    assert sets["id"] == Countdown(levels=(1, 6)).eval_records(12, seed=0)
    assert sets["ood"] == task.eval_records(12, seed=0)
    assert {r["category"] for r in sets["ood"]} == {"L2"}
    for same in (Countdown(levels=(1, 6)), Countdown(levels=(1, 6), eval_levels=(6, 1))):
        assert same.eval_sets(12, seed=0) == {"": same.eval_records(12, seed=0)}


def test_broken_puzzles_can_not_be_solved_and_look_like_the_others() -> None:
    """800 of which .75 are broken: within three deviations of a binomial, 3 sqrt(800 .75 .25) = 37."""
    records = Countdown(levels=(1, 2, 3, 6), broken=0.75).train_records(800, seed=3)
    clean = Countdown(levels=(1, 2, 3, 6)).train_records(800, seed=3)
    unsolvable = [r for r in records if solve(r["nums"], r["target"]) is None]
    assert abs(len(unsolvable) - 600) < 37
    assert {r["category"] for r in unsolvable} == {r["category"] for r in clean} == {"L1", "L2", "L3", "L6"}
    assert len({r["id"] for r in records}) == 800
    most = {"L1": 9 * 9, "L2": 9 + 9 + 9}  # as of the level's own
    assert all(r["target"] <= most[r["category"]] for r in unsolvable if r["category"] in most)


def test_foreign_puzzles_say_so_by_category_and_embedding() -> None:
    records = Countdown(levels=(1, 2), foreign=0.5).train_records(100, seed=0)
    far = [r for r in records if r["category"].endswith(" far")]
    assert 35 < len(far) < 65
    assert all(r["target"] >= 1000 and solve(r["nums"], r["target"]) is None for r in far)
    near = [r for r in records if r not in far]
    assert all(solve(r["nums"], r["target"]) is not None for r in near)
    assert min(r["embedding"][0] for r in far) > max(r["embedding"][0] for r in near)


def test_a_share_of_unsolvable_puzzles_leaves_everything_else_as_it_is() -> None:
    """Held-out puzzles and demonstrations are the same, so one start serves all; a larger set begins as a smaller."""
    spoiled, plain = Countdown(levels=(1, 2, 3), broken=0.5, foreign=0.25), Countdown(levels=(1, 2, 3))
    assert spoiled.eval_records(50, seed=1) == plain.eval_records(50, seed=1)
    assert spoiled.demonstrations(20, seed=1) == plain.demonstrations(20, seed=1)
    assert spoiled.fingerprint() == plain.fingerprint()
    records = spoiled.train_records(60, seed=1)
    assert records[:30] == spoiled.train_records(30, seed=1)
    assert not any(spoiled.held_out(r["id"].removeprefix("countdown:")) for r in records)


def test_answers_of_larger_numbers_have_room(tmp_path: Path) -> None:
    """25+6/(50/(75*(3+100))) and its tags are 27 tokens at the most."""
    path = tmp_path / "puzzles.jsonl"
    path.write_text('{"nums": [25, 50, 75, 100, 3, 6], "target": 952}\n')
    assert Countdown(data_file=path).max_completion_length == 27
    assert Countdown().max_completion_length == 18


def test_a_side_without_puzzles_is_said_and_not_waited_for() -> None:
    empty = Countdown(levels=(1,), eval_share=0.999999)
    with pytest.raises(TaskError, match="no puzzle of levels"):
        empty.demonstrations(3, 0)


def test_a_small_held_out_share_is_not_taken_for_an_exhausted_one() -> None:
    assert len(Countdown(levels=(4,), eval_share=0.001).eval_records(20, 0)) == 20
