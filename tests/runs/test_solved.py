"""What counts as solved: the core, a report and a watcher say the same of the same rewards."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.evaluation import Faults, read_run
from rollwise.reports.run.digest import RolloutDigest, headlines
from rollwise.runs.group_table import GroupTable, group_table
from rollwise.watching.follow import RunFollower
from rollwise.watching.state import by_category, take_snapshot

SPECS = {
    "default": (rw.RewardSpec(), [[1, 1], [0.9, 0.9], [0, 0], [1, 0]]),
    "solved at a half": (rw.RewardSpec(solved_at=0.5), [[0.6, 0.6], [0.4, 0.4], [0.5, 0.5], [0.6, 0.4]]),
    "from -1": (rw.RewardSpec(low=-1, high=1), [[1, 1], [-1, -1], [0, 0], [-1, 1]]),
    "of ten": (rw.RewardSpec(low=0, high=10, solved_at=8), [[8, 8], [7.9, 7.9], [9, 9], [0, 8.5]]),
}


def write_run(folder: Path, spec: rw.RewardSpec | None, groups: Sequence[Sequence[float]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 0.0}\n')
    rows = [
        {"step": 1, "prompt_id": f"p{i}", "lane": "uniform", "category": f"c{i}", "rewards": own}
        for i, own in enumerate(groups)
    ]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if spec is not None:
        high = spec.high if spec.solved_at is None else spec.solved_at
        (folder / "rewards.json").write_text(json.dumps({"low": spec.low, "high": spec.high, "solved_at": high}))
    return folder


def table_of(folder: Path) -> GroupTable:
    run = read_run(folder)
    return group_table(run.rollout_lines(Faults()), run.rule)


@pytest.mark.parametrize("name", SPECS)
def test_core_report_and_watch_agree(name: str, tmp_path: Path) -> None:
    spec, groups = SPECS[name]
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(len(groups))])
    curriculum = rw.Uniform(pool, reward_spec=spec)
    tickets = sorted(curriculum.ask(len(groups)), key=lambda ticket: ticket.prompt_id)
    evidence = curriculum.tell([rw.Outcome(t.id, own) for t, own in zip(tickets, groups, strict=True)])
    order = np.argsort(evidence.slots)

    run = read_run(write_run(tmp_path, spec, groups))
    assert run.rewards is not None
    assert run.rewards.threshold == spec.threshold
    table = group_table(run.rollout_lines(Faults()), run.rule)
    follower = RunFollower(tmp_path)
    follower.look()
    watched = by_category(follower.history.groups, [f"c{i}" for i in range(len(groups))], follower.history.rule)

    for reported, told in ((table.solved, evidence.solved), (table.mixed, evidence.mixed)):
        assert reported.tolist() == told[order].tolist()
    assert table.all_good.tolist() == evidence.all_good[order].tolist()
    assert table.all_bad.tolist() == evidence.all_bad[order].tolist()
    assert [category.pass_rate for category in watched] == evidence.solved[order].tolist()
    assert [category.mixed for category in watched] == evidence.mixed[order].tolist()
    solved = [f"p{i}" for i in np.flatnonzero(table.all_good)]
    assert sorted(curriculum.mastered(1)) == solved


def test_what_they_agree_on_by_hand(tmp_path: Path) -> None:
    """Solved from 1/2: 0.6 and 0.5 are, 0.4 is not. Of ten, solved from 8: 8, 9 and one of 0 and 8.5 are."""
    shares = {
        "default": [1, 0, 0, 0.5],
        "solved at a half": [1, 0, 1, 0.5],
        "from -1": [1, 0, 0, 0.5],
        "of ten": [1, 0, 1, 0.5],
    }
    for name, (spec, groups) in SPECS.items():
        assert table_of(write_run(tmp_path / name, spec, groups)).solved.tolist() == shares[name]


def test_an_older_folder_is_read_by_a_guess_and_says_so(tmp_path: Path) -> None:
    """Without `rewards.json`: 1, or the greatest reward where that is more. Of [8, 8], [9, 9] the second is solved."""
    run = read_run(write_run(tmp_path, None, SPECS["of ten"][1]))
    assert run.rewards is None
    digest = RolloutDigest.of(run, Faults())
    assert digest.table.all_good.tolist() == [False, False, True, False]
    rows = {row.label: row for row in headlines(run, digest)}
    assert (rows["solved from"].value, rows["solved from"].note.split(",")[0]) == ("reward 9", "guessed")
    assert digest.table.rule.words == "reward 9 (guessed)"
    follower = RunFollower(tmp_path)
    follower.look()
    assert (follower.history.rule.at, follower.history.rule.guessed) == (9.0, True)

    spec, groups = SPECS["of ten"]
    run = read_run(write_run(tmp_path, spec, groups))
    rows = {row.label: row for row in headlines(run, RolloutDigest.of(run, Faults()))}
    assert (rows["solved from"].value, rows["solved from"].note) == ("reward 8", "as the curriculum had it")
    follower.look()  # the file came later
    assert (follower.history.rule.at, follower.history.rule.guessed) == (8.0, False)


@pytest.mark.parametrize("text", ["[1]", "{", '{"low": 2}', '{"lower": 0}', "3"])
def test_a_damaged_file_is_said(text: str, tmp_path: Path) -> None:
    write_run(tmp_path, None, [[1, 1]])
    (tmp_path / "rewards.json").write_text(text)
    with pytest.raises(rw.StateFileError, match=r"rewards\.json can't be read"):
        read_run(tmp_path)
    faults = Faults()
    assert read_run(tmp_path, faults).rewards is None
    assert any("rewards.json" in sentence for sentence in faults.sentences())
    follower: Any = RunFollower(tmp_path)
    follower.look()
    assert any("rewards.json" in alarm for alarm in take_snapshot("x", follower.history, 0.0).alarms)
