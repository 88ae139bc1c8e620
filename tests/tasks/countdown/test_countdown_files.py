"""Reading the public data set's form: what is read, how it is split, and what is said of a bad file."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import MissingExtraError, TaskError
from rollwise.tasks import Countdown

ROWS = [{"target": 10 + a + b, "nums": [a, b, 10]} for a in range(1, 11) for b in range(a, 11)]


def _write(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    return path


def _write_parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


def test_a_file_is_split_by_puzzle_without_overlap(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = Countdown(data_file=_write(tmp_path / "a.jsonl", [*ROWS, *ROWS]), levels=(1,))
    with caplog.at_level(logging.WARNING):
        train, held_out = task.train_records(1000, seed=0), task.eval_records(1000, seed=0)
    assert len(train) + len(held_out) == len(ROWS)
    assert not {r["id"] for r in train} & {r["id"] for r in held_out}
    assert len(held_out) > 2
    assert "asked for 1000 train puzzles" in caplog.text
    assert train[0]["category"] == "N3"
    assert train[0]["difficulty"] == 3.0
    assert task.train_records(5, seed=0) == train[:5]
    assert task.train_records(5, seed=1) != train[:5]


def test_parquet_and_jsonl_give_the_same_records(tmp_path: Path) -> None:
    columns = {"target": [r["target"] for r in ROWS], "nums": [r["nums"] for r in ROWS], "other": ["x"] * len(ROWS)}
    parquet = Countdown(data_file=_write_parquet(tmp_path / "a.parquet", columns))
    jsonl = Countdown(data_file=_write(tmp_path / "a.jsonl", ROWS))
    assert parquet.train_records(20, seed=0) == jsonl.train_records(20, seed=0)
    marked = tmp_path / "b.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.jsonl").read_bytes())  # a byte order mark
    assert Countdown(data_file=marked).train_records(20, seed=0) == jsonl.train_records(20, seed=0)


def test_an_eval_file_is_taken_out_of_training(tmp_path: Path) -> None:
    data = _write(tmp_path / "a.jsonl", ROWS)
    shuffled = [{"target": r["target"], "nums": r["nums"][::-1]} for r in ROWS[:10]]
    task = Countdown(data_file=data, eval_file=_write(tmp_path / "b.jsonl", shuffled))
    train, held_out = task.train_records(45, seed=0), task.eval_records(10, seed=0)
    assert len(train) == 45
    assert not {r["id"] for r in train} & {r["id"] for r in held_out}


def test_an_eval_file_with_generated_training(tmp_path: Path) -> None:
    easy = [{"target": a + b, "nums": [a, b]} for a in range(1, 10) for b in range(1, 10)]
    task = Countdown(levels=(1,), eval_file=_write(tmp_path / "b.jsonl", easy))
    held_out = {r["id"] for r in task.eval_records(30, seed=0)}
    assert not held_out & {r["id"] for r in task.train_records(50, seed=0)}


def test_demonstrations_of_a_file_with_puzzles_that_have_no_solution(tmp_path: Path) -> None:
    task = Countdown(data_file=_write(tmp_path / "a.jsonl", [{"target": 99, "nums": [1, n]} for n in range(1, 9)]))
    demos = task.demonstrations(20, seed=0, accuracy=1.0)
    assert len(demos) == 20
    assert all(d["completion"].startswith("<answer>") for d in demos)


def test_a_file_entirely_on_one_side(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.jsonl", ROWS[:1])
    task = Countdown(data_file=file, eval_file=file)
    with pytest.raises(TaskError, match="a.jsonl is on the train side"):
        task.train_records(1, seed=0)
    with pytest.raises(TaskError, match="a.jsonl is on the training side"):
        task.demonstrations(1, seed=0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not a JSON object"),
        ("[" * 100_000, "line 2: not a JSON object"),
        ("3", "line 2: expected an object"),
        ('{"nums": [1, 2]}', "line 2: field 'target' is missing"),
        ('{"target": 3}', "line 2: field 'nums' is missing"),
        ('{"target": "3", "nums": [1, 2]}', "line 2: field 'target' must be a whole number, got '3'"),
        ('{"target": true, "nums": [1, 2]}', "line 2: field 'target'"),
        ('{"target": NaN, "nums": [1, 2]}', "line 2: field 'target'"),
        ('{"target": 3, "nums": 12}', "line 2: field 'nums' must be a list"),
        ('{"target": 3, "nums": [1, 2.5]}', "line 2: field 'nums' must be a list"),
        ('{"target": 3, "nums": [1, -2]}', "line 2: field 'nums' must be a list of non-negative"),
        ('{"target": 3, "nums": []}', "line 2: field 'nums' must hold 1 to 6 numbers, got 0"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{json.dumps(ROWS[0])}\n{line}\n", encoding="utf-8")
    with pytest.raises(TaskError, match="bad.jsonl, ") as caught:
        Countdown(data_file=path)
    assert message in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="does not exist"):
        Countdown(data_file=tmp_path / "none.jsonl")
    with pytest.raises(TaskError, match="must end in .jsonl or .parquet, got '.csv'"):
        Countdown(eval_file=_write(tmp_path / "a.csv", ROWS))
    with pytest.raises(TaskError, match="no rows"):
        Countdown(data_file=_write(tmp_path / "empty.jsonl", []).resolve())
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match="not UTF-8"):
        Countdown(data_file=tmp_path / "binary.jsonl")


def test_bad_parquet(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="columns are target, numbers"):
        Countdown(data_file=_write_parquet(tmp_path / "a.parquet", {"target": [3], "numbers": [[1, 2]]}))
    with pytest.raises(TaskError, match="row 2: field 'target' must be"):
        Countdown(data_file=_write_parquet(tmp_path / "b.parquet", {"target": [3, None], "nums": [[1, 2], [1, 2]]}))
    (tmp_path / "c.parquet").write_text("not parquet")
    with pytest.raises(TaskError, match="can't be read as parquet"):
        Countdown(data_file=tmp_path / "c.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'pip install "rollwise\[train\]"'):
        Countdown(data_file=tmp_path / "a.parquet")


def test_the_fingerprint_follows_the_contents(tmp_path: Path) -> None:
    one, two = _write(tmp_path / "a.jsonl", ROWS), _write(tmp_path / "b.jsonl", ROWS)
    print_one = Countdown(data_file=one).fingerprint()
    assert json.loads(json.dumps(print_one)) == print_one
    assert print_one == Countdown(data_file=two).fingerprint()
    _write(two, ROWS[1:])
    assert print_one != Countdown(data_file=two).fingerprint()
