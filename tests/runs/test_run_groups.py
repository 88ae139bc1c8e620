"""Grouping any runs by method and seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.by_method import group_runs
from rollwise.runs.sets import read_comparison

LINE = '{"step": 0, "eval/pass@1": 0.1}\n'


def write_run(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(LINE)
    if config:
        (folder / "config.yaml").write_text(json.dumps(config))
    return folder


def grouped(paths: list[Path]) -> dict[str, dict[int, str]]:
    return {name: {seed: run.name for seed, run in runs.items()} for name, runs in group_runs(paths).runs.items()}


def test_labels_say_what_differs(tmp_path: Path) -> None:
    base = {"task": "countdown", "steps": 60, "gate": "none", "out": "x"}
    ungated = {"task": "countdown", "steps": 60}
    options = {"ema": 0.9, "lanes": {"a": [1] * 9}}
    gate = {"gate": "mixed", "gate_options": {"max_rounds": 4}}
    paths = [
        write_run(tmp_path / "a", **base, curriculum="uniform", seed=0),
        write_run(tmp_path / "b", **base, curriculum="uniform", seed=1),
        write_run(tmp_path / "c", **base, curriculum="prioritized", curriculum_options=options, seed=0),
        write_run(tmp_path / "d", **ungated, **gate, curriculum="uniform", seed=0),
        write_run(tmp_path / "e", **ungated, curriculum="uniform", seed=0),
        write_run(tmp_path / "bare-run-seed3"),
    ]  # fmt: skip
    found = group_runs(paths)
    assert {method: list(seeds) for method, seeds in found.runs.items()} == {
        "uniform": [0, 1],
        "prioritized (ema=0.9, lanes={…})": [0],
        "uniform + mixed (max_rounds=4)": [0],
        "uniform [e]": [0],
        "bare-run": [3],
    }
    assert (found.baseline, found.oracle) == ("uniform", None)
    longer = write_run(tmp_path / "f", **{**base, "steps": 90}, curriculum="uniform", seed=0)
    assert list(group_runs([paths[0], longer]).runs) == ["uniform, steps=60", "uniform, steps=90"]


def test_the_baseline_and_the_oracle_of_grouped_runs(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, curriculum=name, seed=0) for name in ("sec", "oracle", "bots")]
    found = group_runs(paths)
    assert (found.baseline, found.oracle) == ("sec", "oracle")
    assert group_runs(paths, baseline="bots").baseline == "bots"
    with pytest.raises(ConfigError, match="baseline 'uniform' is none"):
        group_runs(paths, baseline="uniform")


def test_the_oracle_is_the_one_that_the_plan_names(tmp_path: Path) -> None:
    """Any label that begins with "oracle" was taken for it."""
    alike = [write_run(tmp_path / "alone" / name, curriculum=name, seed=0) for name in ("uniform", "oracle_like.py:It")]
    assert group_runs(alike).oracle is None
    exact = write_run(tmp_path / "exact", curriculum="oracle", curriculum_options={"candidates": 8}, seed=0)
    assert group_runs([*alike, exact]).oracle == "oracle (candidates=8)"
    planned = [
        write_run(tmp_path / f"made/runs/{method}/seed0", curriculum=name, seed=0)
        for method, name in (("base", "uniform"), ("oracle", "sec"), ("best", "bots"))
    ]
    (tmp_path / "made/comparison.yaml").write_text('{"oracle": "best", "seeds": [0]}')
    assert group_runs(planned).oracle == "bots"
    (tmp_path / "made/comparison.yaml").write_text('{"oracle": null, "seeds": [0]}')
    planned.append(write_run(tmp_path / "made/runs/None/seed0", curriculum="dots", seed=0))
    assert group_runs(planned).oracle is None


def test_grouped_runs_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    run, empty = write_run(tmp_path / "a", curriculum="sec"), tmp_path / "empty"
    empty.mkdir()
    (problem,) = group_runs([run, empty]).problems
    assert "empty' has no metrics.jsonl" in str(problem)
    with pytest.raises(ConfigError, match=r"no run to compare; .*empty"):
        group_runs([empty])
    with pytest.raises(StateFileError, match="nowhere' is not a folder"):
        group_runs([run, tmp_path / "nowhere"])
    with pytest.raises(ConfigError, match="give run folders"):
        group_runs([])


def test_runs_that_are_scored_on_different_things(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / str(n), curriculum="sec", seed=0, num_generations_eval=n) for n in (4, 8)]
    (problem,) = group_runs(paths).problems
    assert problem.kind == "unequal"
    assert str(problem) == "the runs differ in num_generations_eval (4, 8), so their scores do not measure the same"


def test_runs_that_began_with_other_weights(tmp_path: Path) -> None:
    """Such as an embedded model that two machines have made, each its own."""
    paths = [write_run(tmp_path / f"{m}-seed{s}", curriculum=m, seed=s) for m in ("sec", "bots") for s in range(8)]
    for number, path in enumerate(paths):
        (path / "model.json").write_text(json.dumps({"weights_digest": "a" if number < 7 else "b"}))
    (problem,) = group_runs(paths).problems
    assert problem.kind == "unequal"
    assert str(problem) == (
        "sec seed 0, sec seed 1, sec seed 2, sec seed 3, sec seed 4, sec seed 5 and 1 more did not begin with the "
        "weights that the others began with, so a difference may be the start's"
    )
    (paths[7] / "model.json").unlink()  # of an earlier version: nothing is known
    assert group_runs(paths[7:]).problems == ()
    assert group_runs(paths[:7]).problems == ()


def test_runs_that_were_scored_on_other_prompts(tmp_path: Path) -> None:
    """Those of another data file, or of one that was changed since; which are held out depends on the seed too."""
    methods = ("sec", "bots", "dots")
    paths = [write_run(tmp_path / f"{m}-seed{s}", curriculum=m, seed=s) for m in methods for s in (0, 1)]
    for number, path in enumerate(paths):
        ids = [f"{number % 2}-{'x' if number >= 4 else i}" for i in range(3)]
        (path / "evaluation_sets.json").write_text(json.dumps({"": {"ids": ids, "categories": None}}))
    (problem,) = group_runs(paths).problems
    assert problem.kind == "unequal"
    assert str(problem) == (
        "dots seed 0, dots seed 1 had other held-out prompts than the others of that seed, so their scores do not "
        "measure the same"
    )
    assert group_runs(paths[:4]).problems == ()
    for path in paths[4:]:
        (path / "evaluation_sets.json").write_text('{"": {"ids": null, "categories": null}}')  # damaged
    assert group_runs(paths).problems == ()


def test_other_weights_of_another_model_need_no_sentence_of_their_own(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, curriculum="sec", seed=0, model=name) for name in ("a", "b")]
    for path in paths:
        (path / "model.json").write_text(json.dumps({"weights_digest": path.name}))
    (problem,) = group_runs(paths).problems
    assert str(problem).startswith("the runs differ in model")


def test_the_same_weights_in_another_folder_are_no_difference(tmp_path: Path) -> None:
    """As where a plan's folder was moved between two of its runs; the page said that scores can't be compared."""
    paths = [write_run(tmp_path / name, curriculum="sec", seed=0, model=f"/{name}/start") for name in ("a", "b")]
    for path in paths:
        (path / "model.json").write_text(json.dumps({"weights_digest": "one"}))
    assert group_runs(paths).problems == ()
    (paths[0] / "model.json").unlink()
    (problem,) = group_runs(paths).problems
    assert str(problem).startswith("the runs differ in model")


def mixture(folder: Path, weight: int, seed: int) -> Path:
    lanes = {"a": {"weight": weight, "curriculum": "bots"}, "rest": {"weight": 1, "curriculum": "uniform"}}
    return write_run(folder, curriculum="mixture", curriculum_options={"lanes": lanes}, seed=seed)


def test_methods_whose_labels_look_the_same_stay_apart(tmp_path: Path) -> None:
    paths = [mixture(tmp_path / f"mix{w}/seed{s}", w, s) for w in (1, 3, 9) for s in (0, 1)]
    found = group_runs(paths)
    assert {name: list(seeds) for name, seeds in found.runs.items()} == {
        f"mixture (lanes={{…}}) [mix{w}]": [0, 1] for w in (1, 3, 9)
    }
    assert found.problems == ()
    single = group_runs([paths[0], paths[3], paths[4]])  # other methods, not seeds of one
    assert [list(seeds) for seeds in single.runs.values()] == [[0], [1], [0]]


def test_models_are_told_apart_by_the_end_of_their_paths(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / size, curriculum="bots", seed=seed, model=f"/data/models/Qwen2.5-{size}")
        for seed, size in enumerate(("0.5B", "1.5B"))
    ]
    assert list(group_runs(paths).runs) == ["bots, model=…dels/Qwen2.5-0.5B", "bots, model=…dels/Qwen2.5-1.5B"]


def test_runs_without_a_config_are_named_by_their_folders(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"{method}/seed{s}") for method in ("uniform", "bots", "sec") for s in (0, 1)]
    found = group_runs(paths)
    assert {name: list(seeds) for name, seeds in found.runs.items()} == {
        method: [0, 1] for method in ("uniform", "bots", "sec")
    }
    assert found.baseline == "uniform"
    again = [write_run(tmp_path / "second/uniform/seed0"), write_run(tmp_path / "uniform-seed1")]
    assert list(group_runs([paths[0], *again]).runs) == [
        f"uniform [{tmp_path.name}/uniform]",
        "uniform [second/uniform]",
    ]


def test_a_method_that_was_run_twice_with_its_seeds(tmp_path: Path) -> None:
    """Told apart by the folders of seeds, however they are given; a run that is given twice counts once."""
    first, second = ([write_run(tmp_path / n / f"seed{s}", curriculum="bots", seed=s) for s in (0, 1)] for n in "ab")
    found = group_runs([first[0], second[1], second[0], first[1], first[1]])
    assert {name: [str(run.path) for run in runs.values()] for name, runs in found.runs.items()} == {
        "bots": [str(path) for path in first],
        "bots [b]": [str(second[1]), str(second[0])],
    }


KIND = st.tuples(st.sampled_from(["", "bots", "uniform"]), st.integers(0, 2), st.integers(0, 2), st.sampled_from("abc"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(KIND, min_size=1, max_size=8))
def test_every_run_is_in_exactly_one_method(tmp_path_factory: pytest.TempPathFactory, kinds: list[Any]) -> None:
    root = tmp_path_factory.mktemp("runs")
    paths = []
    for number, (curriculum, option, seed, folder) in enumerate(kinds):
        config = {"curriculum": curriculum, "curriculum_options": {"lanes": [option] * 20}, "seed": seed}
        name = f"{folder}/seed{seed}" if not (root / f"{folder}/seed{seed}").exists() else f"{folder}/run{number}"
        paths.append(write_run(root / name, **(config if curriculum else {})))
    methods = group_runs(paths).runs.values()
    assert sorted(run.path for runs in methods for run in runs.values()) == sorted(paths)
    for runs in methods:
        assert len({json.dumps(run.config.get("curriculum_options")) for run in runs.values()}) == 1


def varied(folder: Path, **model: str) -> Path:
    """A comparison of two methods and seeds whose plan varies the start; `method_seed=start` is not as planned."""
    plan = {"baseline": "sec", "seeds": [0, 1], "starts": ["a", "b"], "methods": {"sec": {}, "bots": {}}}
    folder.mkdir()
    (folder / "comparison.yaml").write_text(json.dumps(plan))
    for method in ("sec", "bots"):
        for seed, start in ((0, "a"), (1, "b")):
            start = model.get(f"{method}_{seed}", start)
            run = write_run(folder / f"runs/{method}/seed{seed}", curriculum=method, seed=seed, model=start)
            (run / "model.json").write_text(json.dumps({"weights_digest": start}))
    return folder


def test_where_the_plan_varies_the_start_runs_of_one_seed_must_have_the_same(tmp_path: Path) -> None:
    assert read_comparison(varied(tmp_path / "right")).problems == ()
    (problem,) = read_comparison(varied(tmp_path / "wrong", bots_1="c")).problems
    assert str(problem).startswith('the runs differ in model ("b", "c"), so')


def test_what_a_plan_chooses_by_the_seed_tells_no_methods_apart(tmp_path: Path) -> None:
    """Each start, and each seed's profile, made a method of its own, of which only some had the baseline's seeds."""
    folder = varied(tmp_path / "right")
    plan = json.loads((folder / "comparison.yaml").read_text())
    plan["methods"] |= {"bots": {"profile": "references/seed{seed}"}, "plain": {}}
    (folder / "comparison.yaml").write_text(json.dumps(plan))
    for seed, start in ((0, "a"), (1, "b")):
        profile = f"/somewhere/references/seed{seed}"
        common: dict[str, Any] = {"curriculum": "bots", "seed": seed, "model": start}
        run = folder / f"runs/bots/seed{seed}/config.yaml"
        run.write_text(json.dumps({**common, "profile": profile}))
        write_run(folder / f"runs/plain/seed{seed}", **common, profile=None)
    found = group_runs(sorted(folder.glob("runs/*/seed*")))
    assert {name: list(seeds) for name, seeds in found.runs.items()} == {
        "bots, profile=…rences/seed{seed}": [0, 1], "bots, profile=null": [0, 1], "sec": [0, 1],
    }  # fmt: skip
    assert found.problems == ()
    assert found.runs["sec"][1].config["model"] == "b"
