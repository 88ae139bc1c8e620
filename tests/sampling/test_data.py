"""Reading DATA, its faults, and the order in which prompts are sampled."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, MissingColumnError, PoolError, RollwiseError
from rollwise.profiling.config import ProfileConfig
from rollwise.sampling.data import load_data, sampling_order
from rollwise.tasks import TASKS, make_task

ROWS: list[dict[str, Any]] = [{"prompt": f"{i}+1=", "answer": i + 1, "kind": "ab"[i % 2]} for i in range(6)]


def jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def load(path: Path, **options: Any) -> Any:
    return load_data(ProfileConfig(data=str(path), **options), None)


def test_three_kinds_of_files_hold_the_same(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    lines = jsonl(tmp_path / "a.jsonl", ROWS)
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    data = load(lines, category="kind")
    assert data.rows == ROWS
    assert data.categories == list("ababab")
    assert len(set(data.ids)) == 6
    for other in ("a.json", "a.parquet"):
        assert load(tmp_path / other, category="kind") == data
    shuffled = load(jsonl(tmp_path / "b.jsonl", ROWS[::-1]))
    assert shuffled.fingerprint() == data.fingerprint()  # the same prompts, whatever their order
    assert load(jsonl(tmp_path / "c.jsonl", ROWS[:5])).fingerprint() != data.fingerprint()


def test_ids_are_those_that_training_gives(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("torch")
    from rollwise.training.trainer.dataset import pool_from_dataset

    rows = [*ROWS, ROWS[0]]  # a prompt that is there twice is numbered
    for own in (rows, [row | {"id": i} for i, row in enumerate(rows)]):
        data = load(jsonl(tmp_path / "a.jsonl", own))
        assert data.ids == pool_from_dataset(datasets.Dataset.from_list(own)).ids


def test_a_task_brings_its_own_records() -> None:
    task = make_task("countdown", levels=(1,))
    data = load_data(ProfileConfig(data="countdown", pool_prompts=20, seed=3), task)
    assert data.rows == task.train_records(20, 3)
    assert set(data.categories or []) == {"L1"}


@pytest.mark.parametrize(
    ("rows", "options", "error", "reason"),
    [
        ([], {}, PoolError, "has no rows"),
        (
            [{"question": "1+1="}],
            {},
            MissingColumnError,
            "no column 'prompt' (--prompt_column); it has question; --prompt_column question",
        ),
        (ROWS, {"category": "topic"}, MissingColumnError, "no column 'topic' (--category)"),
        (ROWS, {"id": "key"}, MissingColumnError, "no column 'key' (--id)"),
        (ROWS, {"answer_column": "gold"}, MissingColumnError, "no column 'gold' (--answer_column)"),
        (ROWS, {"id": "kind"}, PoolError, "a.jsonl', row 3 (2 ids are repeated)"),
        ([*ROWS, {"prompt": None}], {}, PoolError, "row 7: a prompt must be text"),
        ([{"prompt": "cut \ud83d"}], {}, PoolError, r"row 1: the prompt holds half a character ('\ud83d')"),
        ([{"prompt": [{"role": "user", "content": "\udc00"}]}], {}, PoolError, "holds half a character"),
        ([{"prompt": ["x"]}], {}, PoolError, "row 1: a prompt must be text"),
        ([{"prompt": "x", "id": [1]}], {}, PoolError, "an id must be text or a whole number, got [1]"),
        ([*ROWS, {"prompt": "x"}], {"category": "kind"}, PoolError, "row 7: column 'kind' must hold text"),
        ([{"prompt": "x", "kind": float("nan")}], {"category": "kind"}, PoolError, "got nan; fill it, or remove"),
        ([[1]], {}, ConfigError, "line 1 holds a list"),
    ],
)
def test_faults_name_place_and_remedy(
    rows: list[Any], options: dict[str, Any], error: type[RollwiseError], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        load(jsonl(tmp_path / "a.jsonl", rows), **options)
    assert reason in str(caught.value)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    for name, content, reason in (
        ("a.jsonl", b'{"prompt": "1"}\n{"pro', "line 2 is not valid JSON"),
        ("b.jsonl", b"\xff\xfe", "not UTF-8"),
        ("c.json", b'{"prompt": 1}', "holds a dict, not a list of objects"),
        ("h.json", b"[1]", "row 1 holds a int, not an object"),
        ("d.json", b"[", "not valid JSON"),
        ("e.parquet", b"no", "can't be read as parquet"),
        ("f.csv", b"prompt,answer\n1+1,2,3\n", "line 2 has more cells than the first line has columns"),
        ("i.csv", b"prompt;answer\n1+1;2\n", "has one column, 'prompt;answer': ';' is between its cells; use commas"),
        ("j.csv", b"prompt\tanswer\n1+1\t2\n", r"'\t' is between its cells"),
        ("g.txt", b"", f"neither a task ({', '.join(TASKS)}), nor a file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load(tmp_path / name)
        assert reason in str(caught.value)
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "nowhere.jsonl")


def test_a_relative_path_is_looked_up_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resume in another folder said "give a path", which a resume can't be given."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"'my.jsonl' does not exist in '{tmp_path}', where the command runs; give"):
        load(Path("my.jsonl"))


def test_a_pool_of_what_fits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [row | {"difficulty": "easy", "note": None if i else "x"} for i, row in enumerate(ROWS)]
    pool = load(jsonl(tmp_path / "a.jsonl", rows), category="kind").pool()
    assert sorted(pool.columns) == ["answer", "category", "kind"]
    assert "column 'difficulty' must hold one finite number" in caplog.text


def test_every_beginning_of_the_order_has_every_category_in_proportion() -> None:
    ids = [f"p{i}" for i in range(1000)]
    categories = ["rare" if i % 10 == 0 else "common" for i in range(1000)]
    order = sampling_order(ids, categories, 0)
    assert sorted(order) == list(range(1000))
    for n in (10, 100, 555):
        assert Counter(categories[row] for row in order[:n])["rare"] == pytest.approx(n / 10, abs=1)
    assert sampling_order(ids, categories, 1)[:20] != order[:20]


def test_the_order_goes_by_id_not_by_row() -> None:
    ids = [f"p{i}" for i in range(50)]
    forth = [ids[row] for row in sampling_order(ids, None, 0)]
    back = [ids[::-1][row] for row in sampling_order(ids[::-1], None, 0)]
    assert forth == back
