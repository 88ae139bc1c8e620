"""The files of results by prompt: written as they are read, damaged, and rolled back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rollwise.errors import StateFileError
from rollwise.evaluation.categories import categories_of, category_scores
from rollwise.runs.evaluations import (
    Evaluation,
    EvaluationSet,
    evaluation_line,
    read_evaluations,
    read_sets,
    scores_by_category,
    write_sets,
)
from rollwise.runs.folder import RunFolder
from rollwise.runs.lines import Faults

SETS = {
    "id": EvaluationSet(["a", "b", "c"], ["L1", "L1", "L2"]),
    "ood": EvaluationSet(["d", "e"], None),
}


@pytest.fixture
def folder(tmp_path):
    """A run's folder with two sets, evaluated at steps 0 and 10."""
    run = RunFolder(tmp_path / "run")
    write_sets(run.path, SETS)
    for step, solved in ((0, 0), (10, 2)):
        run.append(run.evaluations, [evaluation_line(step, "id", 4, [0.5, np.nan, 1.0], [2, 0, 4 - solved])])
        run.append(run.evaluations, [evaluation_line(step, "ood", 4, [0.25, 0.0], [solved, 1])])
    return run


def test_what_was_written_is_read(folder):
    """Steps, sets, ids, categories, rewards and successes come back, the sets as they were written."""
    found = read_evaluations(folder.path)
    assert [(one.step, one.set, one.generations) for one in found] == [
        (0, "id", 4),
        (0, "ood", 4),
        (10, "id", 4),
        (10, "ood", 4),
    ]
    assert found[0].ids == ["a", "b", "c"]
    assert found[1].categories is None
    np.testing.assert_array_equal(found[0].reward, [0.5, np.nan, 1.0])
    np.testing.assert_array_equal(found[2].successes, [2, 0, 2])
    np.testing.assert_array_equal(found[2].pass_rates, [0.5, 0.0, 0.5])
    assert read_sets(folder.path) == SETS


def test_scores_by_category(folder):
    """A category's score is the mean of its prompts' pass rates; a set without categories has none."""
    first, second, *_ = read_evaluations(folder.path)
    assert scores_by_category(first) == {"L1": 0.25, "L2": 1.0}
    assert scores_by_category(second) == {}


def test_a_category_has_as_many_prompts_as_in_the_mean_of_the_runs():
    """Which prompts are held out depends on the seed; the table named the number of the last run alone."""
    found = []
    for hard in (3, 4, 8):
        names = ["hard"] * hard + ["easy"]
        one = Evaluation(0, None, 1, names, names, np.zeros(hard + 1), np.zeros(hard + 1, dtype=np.int64))
        found += category_scores([one])
    assert [(one.category, one.prompts) for one in categories_of(found)] == [("easy", 1), ("hard", 5)]


def test_thousands_of_categories_take_one_pass_over_the_prompts():
    """300 prompts in 150 categories: no name is compared with every category (that took minutes for thousands)."""
    compared = []

    class Name(str):
        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"c{i % 150:03}") for i in range(300)]
    successes = np.arange(300) // 150 * 4
    found = category_scores([Evaluation(0, None, 4, list(names), list(names), np.zeros(300), successes)])
    assert [(one.of.category, one.of.prompts, one.final) for one in found] == [(f"c{i:03}", 2, 0.5) for i in range(150)]
    assert len(compared) <= 3 * 300


def test_a_set_without_a_name(tmp_path):
    """The only set is "" in one file and null in the other."""
    run = RunFolder(tmp_path)
    write_sets(run.path, {"": EvaluationSet(["a"], None)})
    run.append(run.evaluations, [evaluation_line(3, "", 2, [1.0], [2])])
    assert json.loads(run.evaluations.read_text())["set"] is None
    assert [(one.set, one.ids) for one in read_evaluations(tmp_path)] == [(None, ["a"])]


def test_a_run_without_evaluations_has_none(tmp_path):
    """Older runs have neither file."""
    assert read_evaluations(tmp_path) == []
    assert read_sets(tmp_path) == {}


def test_the_later_of_two_evaluations_counts(folder):
    """An evaluation after training may be of a step that has one."""
    folder.append(folder.evaluations, [evaluation_line(10, "ood", 4, [1.0, 1.0], [4, 4])])
    assert read_evaluations(folder.path)[-1].successes.tolist() == [4, 4]


def test_a_torn_line_is_left_out(folder):
    """A run that was killed while it wrote has lost no more than that line."""
    with open(folder.evaluations, "ab") as file:
        file.write(b'{"step": 20, "set": "id", "gen')
    assert len(read_evaluations(folder.path)) == 4


@pytest.mark.parametrize(
    "line",
    [
        evaluation_line(20, "other", 4, [1.0], [4]),
        evaluation_line(20, "ood", 4, [1.0], [4]),
        evaluation_line(20, "ood", 4, [1.0, 1.0], [5, 0]),
        {"step": 20},
    ],
    ids=["unknown set", "too few", "too many successes", "no set"],
)
def test_a_line_that_does_not_fit_its_set(folder, line):
    """It is named with its number, or raises."""
    folder.append(folder.evaluations, [line])
    with pytest.raises(StateFileError, match=r"evaluations\.jsonl', line 5 does not fit evaluation_sets\.json"):
        read_evaluations(folder.path)
    faults = Faults()
    assert len(read_evaluations(folder.path, faults)) == 4
    assert faults.sentences() == ["evaluations.jsonl: line 5 could not be read (it does not fit evaluation_sets.json)."]


@pytest.mark.parametrize("damaged", ["{", '{"id": {"ids": ["a", "b", "c"], "categories": ["L1", "L2"]}}'])
def test_damaged_sets_are_named(folder, damaged):
    """Without its sets no line can be read."""
    folder.evaluation_sets.write_text(damaged)
    with pytest.raises(StateFileError, match=r"evaluation_sets\.json' can't be read"):
        read_evaluations(folder.path)
    faults = Faults()
    assert read_evaluations(folder.path, faults) == []
    assert faults.sentences()[-1] == "evaluation_sets.json can't be read."


def test_a_resume_rolls_evaluations_back(folder):
    """As all logs; and what another run leaves is put aside whole."""
    folder.append(folder.metrics, [{"step": 10}])
    folder.roll_back(9)
    assert {one.step for one in read_evaluations(folder.path)} == {0}
    folder.put_aside()
    assert len(read_evaluations(folder.path / "before-1")) == 2
    assert not folder.evaluation_sets.exists()
