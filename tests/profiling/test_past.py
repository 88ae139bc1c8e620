"""A profile of past rollouts: its numbers by hand, what changed, what was wasted, and why a log is not replayed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rollwise.errors import ConfigError, StateFileError
from rollwise.profiling.config import PastConfig
from rollwise.profiling.display import show
from rollwise.profiling.past import run_past
from rollwise.profiling.tables import read_table

RUN = Path(__file__).parents[1] / "simulation/data/uniform-run"
Rows = list[dict[str, Any]]


def group(step: int, prompt: str, rewards: list[float], length: int = 10, **more: Any) -> dict[str, Any]:
    return {"step": step, "prompt": prompt, "rewards": rewards, "tokens": [length] * len(rewards), **more}


ROWS = [
    group(1, "a", [0, 0, 0, 0], 30),
    group(1, "b", [1, 0, 0, 0]),
    group(2, "a", [0, 0, 0, 0], 10),
    group(2, "b", [1, 1, 1, 1], 10),
    group(3, "a", [1, 0, 0, 0]),
    group(3, "b", [1, 1, 1, 1]),
]


def profile(folder: Path, rows: Rows, **options: Any) -> dict[str, Any]:
    path = folder / "past.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run_past(PastConfig(rollouts=str(path), out=str(folder / "out"), **options)).numbers


def shown(numbers: dict[str, Any]) -> str:
    text = io.StringIO()
    show(numbers, Console(file=text, width=400))
    return text.getvalue()


def test_half_a_character_is_written(tmp_path: Path) -> None:
    """JSON's escapes can name half a surrogate pair: the profile ended in a traceback before its files were whole."""
    row = group(1, "a\ud83d", [0, 0], texts=["answer: 7 \ud83d"] * 2, answer="7", category="c\ud83d")
    del row["step"]
    numbers = profile(tmp_path, [row], answer_column="answer")
    assert numbers["n_suspects"] == 1
    assert json.loads((tmp_path / "out/profile.json").read_text(encoding="utf-8")) == numbers
    assert next(iter(read_table(tmp_path / "out").values()))["category"] == "c\ud83d"
    assert (tmp_path / "out/pass_rates.parquet").exists()


def test_a_column_of_answers_may_be_nested_and_must_be_there(tmp_path: Path) -> None:
    """`info.answer` was no answer, and a wrong name was passed over."""
    rows = [group(0, "a", [0, 0], texts=["answer: 7"] * 2, info={"answer": 7}), group(0, "b", [1, 0], texts=["x"] * 2)]
    numbers = profile(tmp_path, rows, answer_column="info.answer")
    assert (numbers["answers_recorded"], numbers["n_suspects"]) == (1, 1)
    with pytest.raises(ConfigError, match=r"no 'anwser' \(--answer_column\).*; columns that are: info"):
        profile(tmp_path, rows, answer_column="anwser")


def test_thirty_categories_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    """A log with 5,000 categories filled 5,000 lines. All are in profile.json."""
    rows = [group(1, f"p{n}", [1, 0], category=f"c{n:02}") for n in range(33)]
    rows += [group(1, f"q{n}", [1, 0], category=f"c{n:02}") for n in range(5, 33)]
    numbers = profile(tmp_path, rows)
    text = shown(numbers)
    assert len(numbers["categories"]) == 33
    assert [f"c{n:02}" in text for n in range(33)] == [n < 2 or n >= 5 for n in range(33)]
    assert "3 categories with fewer prompts are in profile.json" in text


def test_the_numbers_by_hand(tmp_path: Path) -> None:
    """Prompt a: 1 of 12, b: 9 of 12. Contrast in 2 of 6 groups, 80 of the 320 tokens; of the other 240, 160 failed."""
    numbers = profile(tmp_path, ROWS)
    assert numbers["pass_rate"]["mean"] == pytest.approx((1 / 12 + 9 / 12) / 2)
    assert numbers["histogram"] == [0, 1, 0, 1, 0, 0]
    assert numbers["estimate"]["effective"]["share"] == pytest.approx(1 / 3)
    lost = numbers["wasted"]
    assert (lost["unit"], lost["spent"], lost["groups_with_contrast"]) == ("tokens", 320, pytest.approx(1 / 3))
    assert (lost["share"], lost["none_solved"], lost["all_solved"]) == (0.75, 0.5, 0.25)
    assert [line["contrast"] for line in numbers["over_steps"]] == [0.5, 0.0, 0.5]
    assert [line["solved"] for line in numbers["over_steps"]] == [0.125, 0.5, 0.625]
    assert [line["size"] for line in numbers["over_steps"]] == [20.0, 10.0, 10.0]
    assert numbers["returned"] == {"prompts": 2, "first": 0.125, "last": 0.625}
    assert (numbers["group_size"], numbers["population"], numbers["tokens"]["truncated"]) == (4, 2, None)
    assert json.loads((tmp_path / "out/profile.json").read_text()) == numbers
    assert [row["pass_rate"] for row in read_table(tmp_path / "out").values()] == pytest.approx([1 / 12, 9 / 12])
    text = shown(numbers)
    assert "rows, 6 groups of 2 prompts, steps 1 to 3, 4 rollouts a group" in text
    assert "75.0% of the tokens (320 in all) were spent on groups without contrast" in text
    assert "2 prompts came at more than one step: pass rate 0.125 at first, 0.625 at last" in text


def test_characters_and_rollouts_are_named_as_such(tmp_path: Path) -> None:
    rows = [{"step": 1, "prompt": "a", "rewards": [1, 0], "texts": ["four", "fourteen"], "category": "sums"}]
    text = shown(profile(tmp_path, rows))
    assert "tokens" not in text.replace("the log has no numbers of tokens", "")
    assert "0.0% of the characters (12 in all)" in text
    assert "the log has no numbers of tokens, so characters of the completions are counted" in text
    text = shown(profile(tmp_path, [{"step": 1, "prompt": "a", "rewards": [1, 0]}]))
    assert "0.0% of the rollouts (2 in all)" in text
    assert "the log has no completions to look at" in text


def test_an_empty_completion_has_a_length(tmp_path: Path) -> None:
    """A .csv file has nothing there: 0 + 5 + 8 + 8 characters. The text shown had the reward of the empty one, 0.2."""
    path = tmp_path / "past.csv"
    path.write_text("prompt,completion,reward,answer\na,,0.2,10\na,so 10,0.4,10\nb,fourteen,1,14\nb,fourteen,0,14\n")
    numbers = run_past(PastConfig(rollouts=str(path), out=str(tmp_path / "out"), answer_column="answer")).numbers
    assert (numbers["wasted"]["unit"], numbers["wasted"]["spent"]) == ("characters", 21)
    assert [(s["text"], s["reward"]) for s in numbers["suspects"]] == [("so 10", 0.4)]


def test_texts_that_some_groups_lack_are_not_those_of_others(tmp_path: Path) -> None:
    """The texts of the second group were shown with the rewards of the first, 0.2."""
    rows = [group(1, "a", [0.2, 0.2], answer="7"), group(2, "a", [0.4, 0.4], answer="7", texts=["answer: 7"] * 2)]
    rows = [{"texts": None, **row} for row in rows]
    assert profile(tmp_path, [*rows, group(2, "b", [1, 1], texts=["x", "y"])])["suspects"] == []


def test_a_run_without_lengths_and_texts_counts_rollouts(tmp_path: Path) -> None:
    """An engine that tells neither writes zeros and empty texts: 0 characters, all of them wasted, were shown."""
    rows = [group(1, "a", [0, 0], 0, texts=["", ""]), group(1, "b", [1, 0], 0, texts=["", ""])]
    numbers = profile(tmp_path, in_lane(rows, "uniform"))
    assert numbers["wasted"]["unit"] == "rollouts"
    assert (numbers["wasted"]["spent"], numbers["wasted"]["share"]) == (4, 0.5)


@pytest.mark.parametrize("length", [-1, float("inf")])
def test_a_length_that_is_none_is_refused(length: float, tmp_path: Path) -> None:
    """Infinite ones ended in a traceback; of -1 for unknown the wasted share was 300 %."""
    with pytest.raises(StateFileError, match="line 1: 'tokens' must be a number of tokens, got (-1|inf)"):
        profile(tmp_path, [{"prompt": "a", "rewards": [1, 0], "tokens": [length, 3]}])


def test_rollouts_without_a_reward_are_no_failures(tmp_path: Path) -> None:
    """Solved 5 tokens, failed 7; the one of 100 was not scored, and failed ones seemed to be (7 + 100) / 2 long."""
    rows = [{"prompt": "a", "rewards": [1, 0, None], "tokens": [5, 7, 100]}]
    tokens = profile(tmp_path, rows)["tokens"]
    assert (tokens["of_solved"], tokens["of_failed"]) == (5.0, 7.0)


def test_folders_whose_names_have_a_dot_have_profiles_of_their_own(tmp_path: Path) -> None:
    """`lr1e-6.seed0` and `lr1e-6.seed1` were both profiles/lr1e-6, so the second took the place of the first."""
    for name in ("lr1e-6.seed0", "lr1e-6.seed1"):
        (tmp_path / name).mkdir()
    named = [PastConfig(rollouts=str(place)).folder.name for place in sorted(tmp_path.iterdir())]
    assert named == ["lr1e-6.seed0", "lr1e-6.seed1"]
    assert PastConfig(rollouts="logs/past.jsonl").folder == Path("profiles/past")


def test_replay_says_what_other_methods_would_have_found(tmp_path: Path) -> None:
    numbers = profile(tmp_path, ROWS)
    said = numbers["replay"]
    assert said["logged"] == pytest.approx(1 / 3)
    marks = {line["method"]: line["mark"] for line in said["methods"]}
    assert marks["sec"] == marks["dump"] == "no categories in this run: one arm, so it samples uniformly"
    assert marks["recommended"] is None
    assert "they are taken as drawn uniformly" in shown(numbers)


def test_a_run_and_its_replay(tmp_path: Path) -> None:
    numbers = run_past(PastConfig(rollouts=str(RUN), reward_column="rewards", out=str(tmp_path / "out"))).numbers
    assert numbers["replay"]["command"] == f"rollwise simulate --replay {RUN}"  # which knows a run's columns
    assert (numbers["past"]["kind"], numbers["population"]) == ("a run of rollwise, 212 groups of 40 prompts", 40)
    assert set(numbers["categories"]) == {"L1", "L2", "L3", "L4"}
    assert {line["mark"] for line in numbers["replay"]["methods"]} == {None}
    assert "taken as drawn uniformly" not in shown(numbers)


def test_a_runs_rollouts_by_their_file_are_read_as_the_run_says(tmp_path: Path) -> None:
    """Solved from 0.5 on, and cut off at 10 tokens, as the folder has it; not from 1 on, which is the guess."""
    rows = [{**row, "ticket": f"t{i}", "prompt_id": row["prompt"], "lane": "uniform", "rewards": [0.0, 0.5]}
            for i, row in enumerate(group(step, "a", [0, 0]) for step in (1, 2))]  # fmt: skip
    run = tmp_path / "run"
    run.mkdir()
    (run / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
    (run / "rewards.json").write_text('{"low": 0.0, "high": 1.0, "solved_at": 0.5}')
    (run / "config.yaml").write_text("max_completion_length: 10\n")
    for place in (run, run / "rollouts.jsonl"):
        numbers = run_past(PastConfig(rollouts=str(place), out=str(tmp_path / f"of-{place.name}"))).numbers
        assert (numbers["pass_rate"]["mean"], numbers["tokens"]["truncated"]) == (0.5, 1.0)


def in_lane(rows: Rows, lane: str) -> Rows:
    return [{**row, "ticket": f"t{i}", "prompt_id": row["prompt"], "lane": lane} for i, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (in_lane(ROWS, "priority"), "was not made with uniform sampling: it has groups by the lane 'priority'"),
        ([{n: v for n, v in row.items() if n != "step"} for row in ROWS], "--step_column"),
        (
            [group(step, "a", [1, 0]) for step in range(80)] + [group(step, f"p{step}", [0, 0]) for step in range(40)],
            "prompts came 1 to 80 times, more unevenly than at random",
        ),
        ([group(i // 4, f"p{i % 8}", [1, 0]) for i in range(40)], "has contrast in all of its 40 groups"),
    ],
)
def test_why_a_log_is_not_replayed(rows: Rows, reason: str, tmp_path: Path) -> None:
    numbers = profile(tmp_path, rows)
    assert reason in numbers["replay"]["why"]
    assert f"not replayed: {numbers['replay']['why']}" in shown(numbers)


def test_the_range_of_rewards(tmp_path: Path) -> None:
    signed = [group(1, "a", [-1, 1]), group(1, "b", [-1, -1])]
    assert profile(tmp_path, signed)["past"]["rewards"] == {"low": -1.0, "high": 1.0, "solved_at": 1.0}
    assert profile(tmp_path, signed)["pass_rate"]["mean"] == 0.25
    large = profile(tmp_path, [group(1, "a", [0, 10])], solved_at=5.0)
    assert large["past"]["rewards"] == {"low": 0.0, "high": 10.0, "solved_at": 5.0}
    small = shown(profile(tmp_path, [group(1, "a", [0, 0.5])]))
    assert "no reward reaches 1, from which on a rollout counts as solved; say another with --solved_at" in small
    with pytest.raises(ConfigError, match=r"go from -1 to 1, outside \[0, 1\]; say their range with --reward_low"):
        profile(tmp_path, signed, reward_low=0.0)


def test_cut_off_completions_are_no_wrong_labels_here_either(tmp_path: Path) -> None:
    rows = [group(1, f"{n}+4=", [0] * 4, 30, texts=["Step 1: take the 4"] * 4, answer=str(n)) for n in range(10)]
    assert profile(tmp_path, rows)["n_suspects"] == 10  # nothing says that they were cut off
    numbers = profile(tmp_path, rows, max_completion_length=30)
    assert (numbers["n_suspects"], numbers["tokens"]["truncated"]) == (0, 1.0)
    assert numbers["recommendation"]["headline"].startswith("allow more tokens")
    uncounted = [{name: value for name, value in row.items() if name != "tokens"} for row in rows]
    with pytest.raises(ConfigError, match="max_completion_length 30 counts tokens, and .* does not say how many"):
        profile(tmp_path, uncounted, max_completion_length=30)


def test_a_misread_reward_is_found_in_a_dump_of_verl(tmp_path: Path) -> None:
    for step in (1, 2):
        rows = [
            {"input": f"{n}+4=", "output": f"It is {n + 4}", "gts": str(n + 4), "score": 0.0, "step": step}
            for n in range(10)
            for _ in range(2)
        ]
        (tmp_path / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    numbers = run_past(PastConfig(rollouts=str(tmp_path), out=str(tmp_path / "out"))).numbers
    assert (numbers["answers_recorded"], numbers["n_suspects"]) == (10, 10)
    assert numbers["recommendation"]["headline"].startswith("mend the answers or the reward first")


def test_nothing_of_a_models_profile_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/groups.jsonl").write_text("")
    with pytest.raises(ConfigError, match="holds the profile of a model; give another folder with --out"):
        profile(tmp_path, ROWS)


def test_a_log_whose_profile_is_written_beside_it_can_be_read_again(tmp_path: Path) -> None:
    for step in (1, 2):
        rows = [{"input": "a", "output": str(n), "score": n % 2, "step": step} for n in range(4)]
        (tmp_path / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = PastConfig(rollouts=str(tmp_path), out=str(tmp_path))
    assert run_past(config).numbers == run_past(config).numbers


def test_nothing_of_another_logs_profile_is_overwritten(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    configs = [PastConfig(rollouts=str(tmp_path / name / "rollouts.jsonl"), out=str(tmp_path / "out")) for name in "ab"]
    first = run_past(configs[0]).numbers
    with pytest.raises(ConfigError, match=r"holds the profile of '.*a/rollouts.jsonl'; give another folder with --out"):
        run_past(configs[1])
    assert run_past(configs[0]).numbers == first  # its own may be made again
