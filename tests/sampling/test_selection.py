"""`--where`, `--limit` and `--stratify`: which rows of one's own data are used."""

import csv
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollwise.cli import main
from rollwise.errors import ConfigError, MissingColumnError, PoolError, RollwiseError
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.sampling.own_task import OwnTask
from rollwise.training.config import TrainConfig

ROWS = [
    {
        "prompt": f"{i}+{i}=",
        "answer": str(2 * i),
        "difficulty": i % 5 + 1,
        "source": "math" if i % 4 else "code",
        "rate": i / 100,
        "hard": i % 2 == 0,
        "extra_info": {"level": i % 3},
        "note": None if i else "first",
        "name": "a, b" if i else "d",
        "large": 2**53 + (i == 7),
        "huge": 10**400,
    }
    for i in range(100)
]


def written(path: Path, rows: list[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> str:
    return written(tmp_path / "a.jsonl", ROWS)


def load(data: str, **options: Any) -> PromptData:
    return load_data(DataConfig(data=data, reward="exact", **options), None)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("difficulty >= 3", 60),
        ("difficulty<2", 20),
        ("difficulty == 3.0", 20),
        ("difficulty != 3", 80),
        ("source == math", 75),
        ("source == 'code'", 25),
        ("source != math", 25),
        ("source in math, code", 100),
        ("source not in math", 25),
        ("difficulty in 1,2", 40),
        ("name in 'a, b', c", 99),
        ("large == 9007199254740993", 1),
        ("large > 9007199254740992", 1),
        ("huge > 5", 100),
        ("hard == true", 50),
        ("extra_info.level == 0", 34),
        ("note == first", 1),
        ("note != first", 99),
        (["difficulty >= 3", "source == math"], 45),
    ],
)
def test_conditions(where: Any, kept: int, data: str) -> None:
    assert len(load(data, where=where)) == kept


@pytest.mark.parametrize(
    ("where", "error", "reason"),
    [
        ("difficulty => 3", ConfigError, "can't be read"),
        ("difficulty = 3", ConfigError, "write COLUMN OP VALUE"),
        ("__import__('os')", ConfigError, "can't be read"),
        ("dificulty >= 3", MissingColumnError, "did you mean 'difficulty'?"),
        ("difficulty >= hard", ConfigError, "'hard' is no number"),
        ("source > 3", ConfigError, "is no number"),
        ("hard != 1", ConfigError, "'hard' is true or false, so it can't be compared with '1'; write hard == true"),
        ("hard in yes, no", ConfigError, "can't be compared with 'yes'"),
        ("extra_info == 3", ConfigError, "holds a dict"),
        ("source not in [math, code]", ConfigError, "write source not in math, code, or put"),  # all rows passed
        ("source in ('math', 'art', 'code')", ConfigError, "brackets would be part of the values"),  # 'art' alone did
        ("difficulty > 9", PoolError, "leaves none of the 100 rows"),
        (3, ConfigError, "where must be text or a list of texts"),
    ],
)
def test_conditions_that_cannot_be_used(where: Any, error: type[RollwiseError], reason: str, data: str) -> None:
    with pytest.raises(error) as caught:
        load(data, where=where)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stratified_sample_has_each_share_and_the_order_of_the_file_plays_no_part(tmp_path: Path, data: str) -> None:
    shuffled = written(tmp_path / "b.jsonl", random.Random(0).sample(ROWS, len(ROWS)))
    options = {"limit": 20, "stratify": "difficulty"}
    one, other = load(data, **options), load(shuffled, **options)
    assert sorted(one.ids) == sorted(other.ids)
    assert Counter(row["difficulty"] for row in one.rows) == dict.fromkeys(range(1, 6), 4)
    assert set(one.ids) < set(load(data, limit=40, stratify="difficulty").ids)
    assert set(one.ids) != set(load(data, **options, limit_seed=1).ids)
    assert one.ids == load(data, **options, seed=7).ids  # runs of several seeds have the same prompts


def test_many_numbers_are_cut_into_parts_by_rank(data: str) -> None:
    rates = sorted(row["rate"] for row in load(data, limit=20, stratify="rate").rows)
    assert [int(rate * 20) for rate in rates] == list(range(20))  # one of each part of five


def test_numbers_of_a_csv_file_are_cut_as_well(data: str, tmp_path: Path) -> None:
    """Each was a stratum by itself, so that the sample was a plain one."""
    with (tmp_path / "a.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([["prompt", "rate"], *([row["prompt"], row["rate"]] for row in ROWS)])
    wanted = [row["prompt"] for row in load(data, limit=20, stratify="rate").rows]
    assert sorted(load(str(tmp_path / "a.csv"), limit=20, stratify="rate").prompts) == sorted(wanted)


def test_a_limit_beyond_the_data_takes_all(data: str) -> None:
    assert len(load(data, limit=1000)) == 100


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"stratify": "difficulty"}, ConfigError, "add --limit N"),
        ({"limit_seed": 3}, ConfigError, "limit_seed 3 says how --limit draws, and none is given; add --limit N"),
        ({"limit": 0}, ConfigError, "limit must be a whole number >= 1"),
        ({"limit": 5, "stratify": "dificulty"}, MissingColumnError, "did you mean 'difficulty'?"),
        ({"limit": 5, "stratify": "extra_info"}, PoolError, "must hold text or numbers"),
    ],
)
def test_samples_that_cannot_be_drawn(options: Any, error: type[RollwiseError], reason: str, data: str) -> None:
    with pytest.raises(error, match="limit") if reason.startswith("limit") else pytest.raises(error) as caught:
        load(data, **options)
    assert reason in str(caught.value)


def test_training_and_evaluation_share_the_declaration_and_other_held_out_data_are_whole(
    data: str, tmp_path: Path
) -> None:
    config = TrainConfig(data=data, reward="exact", model="m", where="source == math", limit=40)
    task = OwnTask(config, verifier=None, eval_data=None, evaluated=True)
    assert len(task.data) + len(task.eval_records(100, 0)) == 40
    other = written(tmp_path / "b.jsonl", [{"prompt": "1+1", "answer": "2"}, {"prompt": "2+2", "answer": "4"}])
    task = OwnTask(replace(config, limit_seed=2), verifier=None, eval_data=other, evaluated=True)
    assert (len(task.data), len(task.eval_records(100, 0))) == (40, 2)


def test_a_task_has_options_of_its_own() -> None:
    for name, value in {"where": "difficulty > 2", "prompt_column": "question", "id": "uid"}.items():
        with pytest.raises(ConfigError, match=f"{name} describes your own data"):
            TrainConfig(**{name: value})
    with pytest.raises(ConfigError, match="where chooses rows of one's own data, and task 'countdown'"):
        from rollwise.models import task_for
        from rollwise.sampling.config import SampleConfig

        load_data(SampleConfig(data="countdown", where="difficulty > 2"), task_for("embedded", "countdown", {}))


def test_the_command_takes_conditions_one_by_one(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--data", data, "--reward", "exact", "--model", "m", "--print_config"]
    assert main([*words, "--where", "difficulty >= 3", "--where=source == math"]) == 0
    assert "where:\n- difficulty >= 3\n- source == math\n" in capsys.readouterr().out
