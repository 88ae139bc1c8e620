"""`pool.json`: a data set in numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rollwise as rw
from rollwise.evaluation import Faults, read_run
from rollwise.runs.data_file import PoolFacts, note_data, pool_facts, read_pool_facts, write_pool_facts


def test_categories_are_named_as_in_the_log(tmp_path: Path) -> None:
    columns = {"category": ["x", "y", "x"], "level": [1, 3, 3], "difficulty": [0.25, 0.5, 0.75]}
    pool = rw.PromptPool(ids=["a", "b", "c"], columns=columns)
    facts = pool_facts(pool)
    assert facts == PoolFacts(3, {"x": 2, "y": 1}, 0.5)
    assert pool_facts(pool, ["category", "level", "difficulty"]).categories == {"x | 1": 1, "x | 3": 1, "y | 3": 1}
    assert pool_facts(rw.PromptPool(ids=["a"])) == PoolFacts(1)
    write_pool_facts(tmp_path, facts)
    assert read_pool_facts(tmp_path) == facts


@pytest.mark.parametrize("text", ["{", "[]", '{"prompts": 0, "categories": {}, "difficulty": null}', '{"prompts": 1}'])
def test_a_damaged_file_is_named_and_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "pool.json").write_text(text)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "frac_mixed": 1.0}) + "\n")
    faults = Faults()
    assert read_run(tmp_path, faults).pool is None
    assert any("pool.json" in sentence for sentence in faults.sentences())
    assert read_run(tmp_path).pool is None


def test_what_has_changed_is_said_of_the_data_that_a_run_began_with(tmp_path: Path) -> None:
    """Of those of the last resume data that were put back had changed, and others had not from the second one on."""
    first, other = ({"data": data, "eval_data": "b", "reward": "c"} for data in ("a", "d"))
    assert note_data(tmp_path, first, anew=True) == []
    for _ in range(2):
        assert [said.partition(";")[0] for said in note_data(tmp_path, other)] == [
            "since the run began, the training prompts have changed"
        ]
    assert note_data(tmp_path, first) == []
    assert note_data(tmp_path, other, anew=True) == note_data(tmp_path, other) == []


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_damaged_hashes_are_written_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "data.json").write_text(text)
    now = {"data": "a", "eval_data": "b", "reward": "c"}
    assert note_data(tmp_path, now) == []
    assert json.loads((tmp_path / "data.json").read_text()) == now
