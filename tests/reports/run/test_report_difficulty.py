"""Mean difficulty of what was sampled, beside the data set's, by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollwise as rw
from rollwise.evaluation import RunData, read_run
from rollwise.evaluation.difficulty import difficulty_of
from rollwise.reports.run.digest import RolloutDigest
from rollwise.reports.run.figures import build_figures
from rollwise.reports.run.figures_choice import difficulty_figure
from rollwise.runs.data_file import pool_facts, write_pool_facts
from rollwise.runs.folder import RunFolder
from rollwise.runs.group_table import group_table

RunMaker = Callable[..., Path]
Drawn = Callable[..., list[dict[str, list[float]]]]


def rows(*sampled: tuple[int, str, str | None], purpose: str = "train") -> list[dict[str, Any]]:
    """A group for each (step, prompt, category)."""
    return [
        {"step": s, "prompt_id": p, "rewards": [0, 1], "purpose": purpose, **({} if c is None else {"category": c})}
        for s, p, c in sampled
    ]


def figure_of(folder: Path) -> Any:
    run = read_run(folder)
    groups = group_table(run.rollout_lines())
    found = difficulty_of(run, groups)
    assert found is not None
    return difficulty_figure(groups, found)


def test_levels_beside_the_whole_data_sets(make_run: RunMaker, drawn: Drawn) -> None:
    """Sampled 1, 3 then 3, 3; of the data 3 are of level 1, 2 of level 3, 1 of level 5, which was never sampled."""
    sampled = rows((1, "a", "Level 1"), (1, "b", "Level 3"), (2, "b", "Level 3"), (2, "c", "Level 3"))
    folder = make_run([{"step": 1, "frac_mixed": 1.0}], sampled + rows((2, "e", "Level 5"), purpose="measure"))
    levels = [1, 1, 1, 3, 3, 5]
    pool = rw.PromptPool(ids=list("abcdef"), columns={"category": [f"Level {n}" for n in levels]})
    write_pool_facts(folder, pool_facts(pool))
    spec = figure_of(folder)
    assert drawn(spec) == [{"sampled": [2, 3], "data set": [pytest.approx(14 / 6)] * 2}]
    assert "whole data set: above it the curriculum samples harder prompts" in spec.caption


def test_the_column_difficulty_where_categories_are_no_levels(make_run: RunMaker, drawn: Drawn) -> None:
    folder = make_run(
        [{"step": 1, "frac_mixed": 1.0}], rows((1, "a", "sums"), (1, "b", "x"), (2, "b", "x"), (2, "c", "x"))
    )
    lines = [{"step": 1, "prompt_id": p, "columns": {"difficulty": d}} for p, d in (("a", 0.25), ("b", 0.75))]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"step": 1}, {}]))
    spec = figure_of(folder)
    assert drawn(spec) == [{"sampled": [0.5, 0.75]}]  # c is not in the file
    assert "the folder does not say" in spec.caption
    assert "above it" not in spec.caption
    pool = rw.PromptPool(ids=["a", "b"], columns={"category": ["sums", "x"], "difficulty": [0.1, 0.3]})
    write_pool_facts(folder, pool_facts(pool))
    assert drawn(figure_of(folder)) == [{"sampled": [0.5, 0.75], "data set": [pytest.approx(0.2)] * 2}]


@pytest.mark.parametrize(("category", "times"), [("Level 1", 0), ("sums", 1)])
def test_the_prompts_file_is_read_once_and_only_where_levels_do_not_tell(
    make_run: RunMaker, monkeypatch: pytest.MonkeyPatch, category: str, times: int
) -> None:
    """The longest file of a run, besides its rollouts: it has a line for each prompt."""
    folder = make_run([{"step": 1, "frac_mixed": 1.0}], rows((1, "a", category), (1, "b", "Level 3")))
    (folder / "prompts.jsonl").write_text('{"step": 1, "prompt_id": "a", "columns": {"difficulty": 0.5}}\n')
    run, read = read_run(folder), []
    own = RunData.prompt_columns
    monkeypatch.setattr(RunData, "prompt_columns", lambda self, faults: read.append(1) or own(self, faults))
    specs, _ = build_figures(run, RolloutDigest.of(run), [])
    assert "difficulty" in [spec.name for spec in specs]
    assert len(read) == times


def test_no_figure_without_numbers(make_run: RunMaker) -> None:
    folder = make_run([{"step": 1, "frac_mixed": 1.0}], rows((1, "a", "sums"), (1, "b", None)))
    run = read_run(folder)
    assert difficulty_of(run, group_table(run.rollout_lines())) is None


def test_a_trainers_run_says_what_its_data_hold(tmp_path: Path) -> None:
    toys = pytest.importorskip("toys")
    from rollwise.training import Recorder

    trainer = toys.make_trainer(tmp_path / "out", max_steps=1)
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    trainer.train()
    facts = read_run(tmp_path / "run").pool
    assert facts is not None
    assert facts.prompts == len(trainer.curriculum.pool)
    assert sum(facts.categories.values()) in (0, facts.prompts)
