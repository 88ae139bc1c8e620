"""Prompts on disk stay there: nothing is read before a ticket needs it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.prompt_ids import PromptRows, take_rows


class OnDisk(Sequence[str]):
    """Texts that note which of them are read."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.reads: list[int] = []

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(self.n))]
        if not -self.n <= index < self.n:
            raise IndexError(index)
        self.reads.append(index)
        return f"text {index % self.n}"


class Table:
    """A data set as `PromptPool.from_records` sees one."""

    def __init__(self, n: int, *, ids: bool = True) -> None:
        self.n, self.prompts = n, OnDisk(n)
        self.column_names = ["prompt", "difficulty", *(["id"] if ids else [])]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, name: str) -> Sequence[Any]:
        return {"prompt": self.prompts, "id": [f"p{i}" for i in range(self.n)], "difficulty": [0.5] * self.n}[name]


def test_given_ids_need_no_text() -> None:
    table = Table(50)
    pool = rw.PromptPool.from_records(table)  # type: ignore[arg-type]
    curriculum = rw.Recommended(pool, seed=0)
    assert (pool.ids[:2], sorted(pool.columns), table.prompts.reads) == (["p0", "p1"], ["difficulty"], [])
    tickets = curriculum.ask(3)
    assert [t.prompt for t in tickets] == [f"text {t.prompt_id[1:]}" for t in tickets]
    assert len(table.prompts.reads) == 3


def test_ids_of_the_content_are_those_of_records() -> None:
    table = Table(5, ids=False)
    pool = rw.PromptPool.from_records(table)  # type: ignore[arg-type]
    rows = [{"prompt": f"text {i}", "difficulty": 0.5} for i in range(5)]
    assert pool.ids == rw.PromptPool.from_records(rows).ids
    assert pool.prompts is table.prompts


def test_pools_grow_and_shrink_without_reading() -> None:
    texts = OnDisk(6)
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(6)], prompts=texts)
    more = pool.plus(rw.PromptPool(ids=["x", "y"])).minus(["p0", "p4", "x"]).plus(rw.PromptPool(ids=["z"]))
    rest = more.minus(["p1"])
    curriculum = rw.Uniform(pool, seed=0)
    curriculum.rebind(rest)
    assert not texts.reads
    assert rest.ids == ["p2", "p3", "p5", "y", "z"]
    assert list(rest.prompts) == ["text 2", "text 3", "text 5", "y", "z"]
    assert {t.prompt_id: t.prompt for t in curriculum.ask(5)} == dict(zip(rest.ids, rest.prompts, strict=True))


def test_pools_of_lists_stay_lists() -> None:
    pool = rw.PromptPool(ids=["a", "b"]).plus(rw.PromptPool(ids=["c"])).minus(["b"])
    assert pool.prompts == ["a", "c"]


@pytest.mark.parametrize("seed", range(20))
def test_rows_taken_and_joined_are_those_of_a_list(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts: Any = OnDisk(9)
    expected = list(texts)
    for _ in range(6):
        if rng.random() < 0.5:
            extra = [f"more {rng.integers(100)}" for _ in range(rng.integers(1, 4))]
            pool = rw.PromptPool(ids=[str(i) for i in range(len(texts))], prompts=texts)
            texts = pool.plus(rw.PromptPool(ids=[f"n{i}" for i in range(len(extra))], prompts=extra)).prompts
            expected = expected + extra
        else:
            kept = np.flatnonzero(rng.random(len(texts)) < 0.7)
            kept = kept if len(kept) else np.array([0])
            texts, expected = take_rows(texts, kept), [expected[row] for row in kept]
        assert (len(texts), list(texts), texts[-1], texts[1:]) == (len(expected), expected, expected[-1], expected[1:])
        with pytest.raises(IndexError):
            texts[len(texts)]


def test_a_dataset_on_disk_is_not_copied(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("trl")
    from rollwise.training.trainer.dataset import pool_from_dataset

    rows = [{"prompt": [{"role": "user", "content": f"{i}?"}], "id": f"p{i}", "difficulty": i / 9} for i in range(9)]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "data")
    data = datasets.load_from_disk(tmp_path / "data")
    for pool in (pool_from_dataset(data), rw.PromptPool.from_records(data)):
        assert not isinstance(pool.prompts, list)
        smaller = pool.minus(["p3"])
        assert isinstance(smaller.prompts, PromptRows)
        assert smaller.prompts[3] == rows[4]["prompt"]
        assert smaller.columns["difficulty"].tolist() == [i / 9 for i in range(9) if i != 3]
    bare = pool_from_dataset(data.remove_columns(["id"]))
    assert bare.ids == [rw.PromptPool.from_records([{"prompt": row["prompt"]}]).ids[0] for row in rows]
    assert [dict(row) for row in pool_from_dataset(data.remove_columns(["prompt"])).prompts][1] == {
        "id": "p1",
        "difficulty": 1 / 9,
    }
