"""Past rollouts of every form are read as the same groups; what can't be read is refused by place and field."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.past import PastRollouts, read_past
from rollwise.runs.past_columns import Columns

Rows = list[dict[str, Any]]
PROMPTS = ("1+1=", "[1, 2]", "no, never")
REWARDS = {1: [[1, 0], [0, 0], [0, 0]], 2: [[1, 1], [1, 0], [0, 0]], 10: [[1, 1], [1, 1], [0, 0]]}
"""Step -> the rewards of each prompt's group of two."""


def completion_rows(prompt: str = "prompt", completion: str = "completion", reward: str = "reward") -> Rows:
    return [
        {"step": step, prompt: PROMPTS[i], completion: f"it is {r}", reward: float(r)}
        for step, groups in REWARDS.items()
        for i, rewards in enumerate(groups)
        for r in rewards
    ]


def group_rows() -> Rows:
    return [
        {"step": step, "prompt": PROMPTS[i], "rewards": rewards, "completions": [f"it is {r}" for r in rewards]}
        for step, groups in REWARDS.items()
        for i, rewards in enumerate(groups)
    ]


def write_jsonl(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_parquet(path: Path, rows: Rows) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def as_jsonl(folder: Path) -> Path:
    return write_jsonl(folder / "past.jsonl", completion_rows())


def as_groups(folder: Path) -> Path:
    return write_jsonl(folder / "past.ndjson", group_rows())


def as_json(folder: Path) -> Path:
    (folder / "past.json").write_text(json.dumps(completion_rows()))
    return folder / "past.json"


def as_csv(folder: Path, rows: Rows | None = None) -> Path:
    rows = completion_rows() if rows is None else rows
    with (folder / "past.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder / "past.csv"


def as_csv_of_groups(folder: Path) -> Path:
    lists = [{n: json.dumps(v) if isinstance(v, list) else v for n, v in row.items()} for row in group_rows()]
    return as_csv(folder, lists)


def as_parquet(folder: Path) -> Path:
    return write_parquet(folder / "past.parquet", completion_rows())


def as_trl(folder: Path) -> Path:
    """Of a run with `log_completions=True`: a file a step, a column for each reward function."""
    for step in REWARDS:
        rows = [r | {"advantage": 0.1} for r in completion_rows(reward="accuracy") if r["step"] == step]
        write_parquet(folder / f"out/completions/completions_{step:05d}.parquet", rows)
    return folder / "out"


def as_verl(folder: Path) -> Path:
    """verl's `rollout_data_dir`: STEP.jsonl, rows in any order, with the reward's extras beside them."""
    for step in REWARDS:
        rows = [r | {"gts": "2", "acc": r["score"]} for r in completion_rows("input", "output", "score")]
        write_jsonl(folder / f"dump/{step}.jsonl", [r for r in rows if r["step"] == step][::-1])
    return folder / "dump"


def as_run(folder: Path) -> Path:
    rows = [
        {"ticket": f"t{i}", "prompt_id": row["prompt"], "lane": "uniform", "texts": row["completions"], **row}
        for i, row in enumerate(group_rows())
    ]
    write_jsonl(folder / "run/rollouts.jsonl", rows)
    write_jsonl(folder / "run/metrics.jsonl", [{"step": step} for step in REWARDS])
    return folder / "run"


def rewards_of(past: PastRollouts) -> dict[int, list[list[float | None]]]:
    found: dict[int, dict[str, list[float | None]]] = {}
    for group in past.groups:
        found.setdefault(group.step, {})[past.prompts[group.prompt_id]] = sorted(group.rewards, reverse=True)
    return {step: [groups[prompt] for prompt in PROMPTS] for step, groups in found.items()}


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (as_jsonl, "rows"), (as_groups, "rows"), (as_json, "rows"), (as_csv, "rows"), (as_csv_of_groups, "rows"),
        (as_parquet, "rows"), (as_trl, "trl"), (as_verl, "verl"), (as_run, "run"),
    ],
)  # fmt: skip
def test_every_form_is_read_as_the_same_groups(make: Callable[[Path], Path], kind: str, tmp_path: Path) -> None:
    past = read_past(make(tmp_path))
    assert past.kind == kind
    assert rewards_of(past) == REWARDS
    assert (past.steps, past.group_size, past.has_steps, past.unit) == ([1, 2, 10], 2, True, "characters")
    first = next(group for group in past.groups if past.prompts[group.prompt_id] == "1+1=")
    assert sorted(first.texts) == ["it is 0", "it is 1"]
    assert len(past.prompts) == 3
    assert past.notes == []


def test_columns_by_name_nested_ones_too(tmp_path: Path) -> None:
    rows = [
        {"info": {"question": row["prompt"]}, "say": row["completion"], "mark": row["reward"], "t": row["step"],
         "uid": PROMPTS.index(row["prompt"]), "kind": row["prompt"][:2]}
        for row in completion_rows()
    ]  # fmt: skip
    names = Columns(
        prompt_column="info.question", completion_column="say", reward_column="mark", step_column="t", id="uid",
        category="kind",
    )  # fmt: skip
    past = read_past(write_jsonl(tmp_path / "past.jsonl", rows), names)
    assert rewards_of(past) == REWARDS
    assert past.categories == {"0": "1+", "1": "[1", "2": "no"}


def test_categories_that_some_prompts_lack_are_left_out_with_a_note(tmp_path: Path) -> None:
    rows = [
        {"prompt": p, "completion": "x", "reward": r, "category": c}
        for p, c in (("a", "k"), ("b", None))
        for r in (0, 1)
    ]
    past = read_past(write_jsonl(tmp_path / "log.jsonl", rows), columns=Columns(category="category"))
    assert past.categories == {}
    assert past.notes == [f"the categories are left out: 1 of 2 prompts have none, {past.groups[1].prompt_id!r} first"]


def test_tokens_truncation_and_chats(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "1+1="}]
    rows = [
        {"prompt": chat, "rewards": [1, None], "completions": [[{"role": "assistant", "content": "2"}], "cut"],
         "tokens": [3, [7, 8, 9, 9]], "truncated": [False, True]}
    ]  # fmt: skip
    past = read_past(write_jsonl(tmp_path / "past.jsonl", rows))
    (group,) = past.groups
    assert (past.unit, past.has_steps, list(past.prompts.values())) == ("tokens", False, [chat])
    assert (group.rewards, group.texts, group.sizes) == ([1.0, None], ["2", "cut"], [3, 4])
    assert group.truncated == [False, True]


def test_what_spreadsheets_and_columns_with_gaps_hold(tmp_path: Path) -> None:
    """TRUE is cut off, 12.0 is a number of tokens, and an empty nested reward is one that was not scored."""
    rows = [{"prompt": "a", "reward": 1, "tokens": "12.0", "truncated": cut} for cut in ("TRUE", "FALSE")]
    (group,) = read_past(as_csv(tmp_path, rows)).groups
    assert (group.sizes, group.truncated) == ([12, 12], [True, False])
    rows = [{"prompt": "a", "score": score} for score in ({"acc": None}, {"acc": 1}, None, {"acc": 0})]
    path, columns = write_jsonl(tmp_path / "nested.jsonl", rows), Columns(reward_column="score.acc")
    assert read_past(path, columns).groups[0].rewards == [None, 1.0, None, 0.0]


def test_lengths_that_an_engine_did_not_tell_are_no_tokens(tmp_path: Path) -> None:
    """Its run has a 0 for each rollout: characters are counted, so that what was wasted is a share of something."""
    rows = [{"step": 1, "ticket": f"t{i}", "prompt_id": f"p{i}", "rewards": [0.0, float(i)], "tokens": [0, 0],
             "texts": ["ab", "abcd"]} for i in range(2)]  # fmt: skip
    past = read_past(write_jsonl(tmp_path / "rollouts.jsonl", rows))
    assert (past.kind, past.unit, past.groups[0].sizes) == ("run", "characters", [2, 4])


def test_an_id_of_each_row_makes_no_prompts_and_one_of_each_prompt_does(tmp_path: Path) -> None:
    rows = [{"id": i, **row} for i, row in enumerate(completion_rows())]
    assert rewards_of(read_past(write_jsonl(tmp_path / "rows.jsonl", rows))) == REWARDS
    rows = [{"id": row["prompt"][:2], **row} for row in completion_rows()]
    assert sorted(read_past(write_jsonl(tmp_path / "prompts.jsonl", rows)).prompts) == ["1+", "[1", "no"]


def test_a_prompt_that_came_twice_in_a_step_has_two_groups(tmp_path: Path) -> None:
    twice = [row for row in completion_rows() if row["prompt"] == "1+1=" and row["step"] == 2]
    past = read_past(write_jsonl(tmp_path / "past.jsonl", completion_rows() + twice))
    assert [len(group.rewards) for group in past.groups] == [2] * 10


def test_groups_that_were_cut_have_no_cut_off_rollouts_of_others(tmp_path: Path) -> None:
    """Where one row did not say whether it was cut off, the others' answers moved up by one."""
    rows = [{"step": 0, "prompt": f"p{n}", "completion": "x", "reward": 0.0, "truncated": True} for n in (1, 1, 2, 2)]
    rows += [{"step": 0, "prompt": "p3", "completion": "x", "reward": 0.0, "truncated": cut} for cut in (0, 0, 1, 1)]
    rows[4]["truncated"] = None
    groups = read_past(write_jsonl(tmp_path / "past.jsonl", rows)).groups
    assert [group.truncated for group in groups] == [[True, True], [True, True], [], []]


def test_a_torn_last_line_is_noted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "past.jsonl", completion_rows())
    whole = len(path.read_text().splitlines())
    path.write_text(path.read_text() + '{"step": 10, "pro')
    past = read_past(path)
    assert past.groups == read_past(as_jsonl(tmp_path / "whole")).groups
    note = f"past.jsonl has a torn last line ({whole + 1}), still being written or cut off; it was left out."
    assert past.notes == [note]


def test_a_row_that_is_a_group_is_one_whatever_others_its_prompt_has(tmp_path: Path) -> None:
    """Two groups without contrast are not one with it, in a step and in a log without steps; one of 4 is not cut."""
    groups = [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]
    rows = [{"step": 1, "prompt": "a", "rewards": rewards} for rewards in groups]
    assert [group.rewards for group in read_past(write_jsonl(tmp_path / "steps.jsonl", rows)).groups] == groups
    rows = [{"prompt": "a", "rewards": rewards} for rewards in groups]
    assert [group.rewards for group in read_past(write_jsonl(tmp_path / "none.jsonl", rows)).groups] == groups


def test_a_batch_that_trl_logs_again_counts_once(tmp_path: Path) -> None:
    folder = as_trl(tmp_path)
    again = [r | {"advantage": 0.1, "step": 3} for r in completion_rows(reward="accuracy") if r["step"] == 2]
    write_parquet(folder / "completions/completions_00003.parquet", again)
    past = read_past(folder)
    assert rewards_of(past) == REWARDS
    assert "completions_00003.parquet" in past.notes[0]


def test_screened_rollouts_are_in_the_group_that_went_on_with_them(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "ticket": "s", "prompt_id": "a", "lane": "screen", "purpose": "screen", "rewards": [0],
         "tokens": [5]},
        {"step": 1, "ticket": "m", "prompt_id": "b", "lane": "probe", "purpose": "measure", "rewards": [0],
         "tokens": [5]},
        {"step": 1, "ticket": "t", "prompt_id": "a", "lane": "priority", "purpose": "train", "rewards": [1],
         "tokens": [9], "screened": {"ticket": "s", "rewards": [0]}},
    ]  # fmt: skip
    past = read_past(write_jsonl(tmp_path / "rollouts.jsonl", rows))
    assert [(g.prompt_id, g.rewards, g.sizes) for g in past.groups] == [("a", [0.0, 1.0], [5, 9])]
    assert (past.left_out, past.lanes) == (1, {"priority"})


def test_tickets_of_several_runs_are_not_one(tmp_path: Path) -> None:
    """Two runs have the same names of tickets: of prompts that differ all count, and of a folder's files all."""
    runs = [
        [{"step": 1, "ticket": f"t{i}", "prompt_id": f"p{i + 2 * seed * i}", "rewards": [seed, 1]} for i in range(3)]
        for seed in (0, 1)
    ]
    past = read_past(write_jsonl(tmp_path / "rollouts.jsonl", runs[0] + runs[1]))
    assert [(g.prompt_id, g.rewards) for g in past.groups] == [
        ("p0", [1, 1]), ("p1", [0, 1]), ("p2", [0, 1]), ("p3", [1, 1]), ("p6", [1, 1])
    ]  # fmt: skip
    assert past.notes == [
        "groups with the ticket and prompt of a later line are left out (1); give the logs of several runs as files of "
        "one folder"
    ]
    for name, rows in zip("ab", runs, strict=True):
        write_jsonl(tmp_path / f"runs/{name}.jsonl", rows)
    past = read_past(tmp_path / "runs")
    assert (len(past.groups), past.notes) == (6, [])


def test_files_of_one_kind_may_end_in_capitals_and_a_ticket_may_be_a_list(tmp_path: Path) -> None:
    """Two kinds of files, said the one; the other was a TypeError."""
    for number, name in enumerate(("1.jsonl", "2.JSONL")):
        rows = [row | {"step": 100 * number + row["step"], "completion": name} for row in completion_rows()]
        write_jsonl(tmp_path / f"both/{name}", rows)
    assert len(read_past(tmp_path / "both").groups) == 18
    rows = [{"step": 1, "id": name, "ticket": [1, name], "rewards": [1, 0], "lane": "x"} for name in "ab"]
    assert len(read_past(write_jsonl(tmp_path / "rollouts.jsonl", rows)).groups) == 2


def changed(number: int, **changes: Any) -> Rows:
    """The rows, one of them with other values, or without a column where the value is `...`."""
    rows = completion_rows()
    rows[number] = {n: v for n, v in {**rows[number], **changes}.items() if v is not ...}
    return rows


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"prompt": "a", "text": "b"}], r"line 1: no rewards: none of 'reward'.*it has prompt, text.*--reward_column"),
        ([{"text": "a", "reward": 1}], r"line 1: no prompts: none of 'prompt'.*--prompt_column"),
        (changed(6, reward=...), "line 7: no 'reward'"),
        (changed(6, step=...), "line 7: no 'step'"),
        (changed(6, prompt=None), "line 7: 'prompt' is empty"),
        (changed(6, completion=...), "line 7: no 'completion'"),
        (changed(6, reward="good"), "line 7: 'reward' must be a number, got 'good'"),
        (changed(6, reward=1e999), "line 7: 'reward' must be a number, got inf"),
        (changed(6, reward={}), "line 7: 'reward' must be a number, got {}"),
        ([{"prompt": "a", "reward": 1, "truncated": "yes"}], "line 1: 'truncated' must be true or false, got 'yes'"),
        (changed(6, step=1.5), "line 7: 'step' must be a whole number, got 1.5"),
        (changed(6, step=10**400), "line 7: 'step' must be a whole number, got 10000"),
        ([{"prompt": "a", "rewards": [1, 0], "completions": ["b"]}], "line 1: 'completions' must be a list of 2"),
        ([{**row, "prompt": f"{i}: {row['prompt']}"} for i, row in enumerate(completion_rows())], "has two rollouts"),
        ([], "has no rollouts"),
    ],
)
def test_refused_by_line_and_field(rows: Rows, reason: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "past.jsonl", rows)
    with pytest.raises((ConfigError, StateFileError), match=reason) as caught:
        read_past(path)
    assert "past.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refused_files_and_folders(tmp_path: Path) -> None:
    def refused(path: Path, reason: str, columns: Columns | None = None) -> None:
        with pytest.raises((ConfigError, StateFileError), match=reason):
            read_past(path, columns)

    refused(tmp_path / "nowhere", "is not there")
    refused(tmp_path, "holds no rollouts")
    (tmp_path / "past.txt").write_text("x")
    refused(tmp_path / "past.txt", r"does not end in \.jsonl")
    (tmp_path / "past.jsonl").write_text(json.dumps(completion_rows()[0]) + "\n{\n" + json.dumps({}) + "\n")
    refused(tmp_path / "past.jsonl", r"past\.jsonl, line 2: is not valid JSON")
    refused(as_csv(tmp_path), r"no 'marks' \(--reward_column\); it has step", Columns(reward_column="marks"))
    refused(tmp_path, r"files of several kinds \(past\.csv, past\.jsonl\)")
    (tmp_path / "short.csv").write_text("prompt,reward\na,1\nb\n")
    refused(tmp_path / "short.csv", "line 3 has fewer cells than the first line has columns")
    (tmp_path / "short.csv").write_text("prompt,reward,reward\na,1,0\n")  # the last one was taken
    refused(tmp_path / "short.csv", "has two columns 'reward'; rename or remove one")
    (tmp_path / "short.csv").write_text('prompt,reward\n"a\nb",1\n"c,1\n')
    refused(tmp_path / "short.csv", "line 4 is not valid CSV")
    (tmp_path / "past.parquet").write_bytes(b"no")
    pytest.importorskip("pyarrow")
    refused(tmp_path / "past.parquet", "can't be read as parquet")
    folder = as_trl(tmp_path)
    rows = [r | {"format": 1.0, "advantage": 0.1} for r in completion_rows(reward="accuracy")]
    write_parquet(folder / "completions/completions_00001.parquet", rows)
    refused(folder, r"2 that may be \(accuracy, format\); name one: --reward_column")
