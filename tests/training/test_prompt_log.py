"""`prompts.jsonl`: what a curriculum may know of each prompt that was asked for, once."""

import json
from pathlib import Path
from typing import Any

from toys import make_trainer, toy_dataset

import rollwise as rw
from rollwise.evaluation import read_run
from rollwise.simulation import ReplayWorld, read_log, simulate
from rollwise.training import Recorder, RunFolder
from rollwise.training.recording.prompt_log import LONGEST_TEXT, PromptLog

POOL = rw.PromptPool(
    ids=["a", "b", "c"],
    columns={
        "difficulty": [1, 2, 3],
        "embedding": [[0.0, 1.0], [1.0, 0.0], [0.6, 0.8]],
        "category": [("x", "y"), ("x",), ("z",)],
        "kind": ["short", "s" * LONGEST_TEXT, "s" * (LONGEST_TEXT + 1)],
        "steps": [[1, 2], [3], []],
        "tests": [{"in": 1}, {"in": 2}, {"in": 3}],
    },
)


def written(folder: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.prompts.read_text().splitlines()]


def test_a_line_a_prompt_with_what_can_be_written_in_few_characters(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    log = PromptLog(folder)
    log.add(1, ["b", "b", "gone"], POOL)
    log.add(2, ["c", "b"], POOL)
    first, second = written(folder)
    assert first == {
        "step": 1,
        "prompt_id": "b",
        "columns": {"difficulty": 2.0, "embedding": [1.0, 0.0], "category": ["x"], "kind": "s" * LONGEST_TEXT},
    }
    assert (second["step"], second["prompt_id"]) == (2, "c")
    assert sorted(second["columns"]) == ["category", "difficulty", "embedding", "steps"]  # no text is too long in []


def test_a_pool_without_columns_makes_no_file(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    PromptLog(folder).add(1, ["a"], rw.PromptPool(ids=["a"]))
    assert not folder.prompts.exists()
    assert folder.roll_back(3).tokens == 0


def test_after_a_roll_back_the_lost_ones_are_written_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    log = PromptLog(folder)
    log.add(1, ["a"], POOL)
    log.add(2, ["b"], POOL)
    with folder.prompts.open("a") as file:
        file.write('{"step": 3, "prom')
    folder.roll_back(1)
    again = PromptLog(folder)
    again.resume()
    again.add(2, ["a", "b"], POOL)
    assert [(line["step"], line["prompt_id"]) for line in written(folder)] == [(1, "a"), (2, "b")]


def test_a_text_with_a_line_separator_is_one_line(tmp_path: Path) -> None:
    """U+2028 stands in the file as it is, and ends no line of it."""
    pool = rw.PromptPool(ids=["a", "b"], columns={"category": ["x\u2028y", "z\u0085"]})
    folder = RunFolder(tmp_path)
    PromptLog(folder).add(1, ["a"], pool)
    folder.roll_back(1)
    again = PromptLog(folder)
    again.resume()
    again.add(2, ["a", "b"], pool)
    lines = folder.prompts.read_text().split("\n")[:-1]
    assert [json.loads(line)["columns"]["category"] for line in lines] == ["x\u2028y", "z\u0085"]


def test_a_real_run_can_be_replayed_for_methods_that_need_columns(tmp_path: Path) -> None:
    rows = [{**row, "embedding": [float(i % 6), 1.0]} for i, row in enumerate(toy_dataset(12))]
    options = {"steps_per_generation": 1, "accumulate": 1, "max_steps": 4}
    trainer = make_trainer(
        tmp_path / "out", curriculum=rw.Uniform(seed=0), dataset=type(toy_dataset()).from_list(rows), **options
    )
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    trainer.train()
    world = ReplayWorld(read_log(tmp_path / "run"))
    pool = trainer.curriculum.pool
    assert sorted(world.pool.columns) == ["category", "difficulty", "embedding", "threshold"]
    for id_ in world.pool.ids:
        ours, theirs = world.pool.slot(id_), pool.slot(id_)
        assert world.pool.columns["embedding"][ours].tolist() == pool.columns["embedding"][theirs].tolist()
    assert len(read_run(tmp_path / "run").prompt_columns()) == len(world.pool)
    for curriculum in (rw.DOTS(seed=0), rw.Ordered(seed=0), rw.AdaRFT(seed=0)):
        assert len(simulate(curriculum, world, 4, 2, 4).effective_ratio) == 4
