"""Shadow evaluation: what estimators predict of a uniform log, step by step (BOTS, F.2)."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import rollwise as rw
from rollwise.cli import main
from rollwise.simulation import RunLog, read_log
from rollwise.simulation.replay import ReplayWorld
from rollwise.simulation.shadow import ESTIMATORS, Shadow, follow, held_bytes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small uniform run with references, embeddings and categories, by the script of the docs."""
    spec = importlib.util.spec_from_file_location("uniform_log", ROOT / "benchmarks/uniform_log.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path_factory.mktemp("logs") / "uniform"
    script.write_log(folder, num_prompts=120, steps=12, seed=0)
    return folder


def log_by_hand() -> RunLog:
    """Two prompts at three steps, 4 rollouts: a 4, 4, 4 solved; b 0, 2, 0."""
    counts = [[0, 4], [4, 0], [0, 4], [2, 2], [0, 4], [4, 0]]
    return RunLog(
        ids=["a", "b"],
        prompts=["a", "b"],
        category=["all", "all"],
        columns={},
        slot=np.array([0, 1] * 3),
        step=np.array([1, 1, 2, 2, 3, 3]),
        counts=np.array(counts),
        levels=np.array([0.0, 1.0]),
        mixed=np.array([False, False, False, True, False, False]),
        steps=3,
        batch=2,
        group_size=4,
        advantage="centred",
    )


def test_each_step_is_predicted_from_those_before_by_hand() -> None:
    """Beta(1, 1), nothing forgotten: a 1/2, 5/6, 9/10; b 1/2, 1/6, 3/10 (2 of 8). Only b's second group has contrast.

    Of the second half, steps 2 and 3: nearness to 1/2 is -1/3, -1/3, -.4, -.2 for a, b, a, b: the positive one beats
    -.4, ties with -1/3 and loses to -.2: AUC (1 + 1/2) / 3.
    """
    log = log_by_hand()
    pool = ReplayWorld(log).pool
    found = follow(rw.BOTS(implicit="none", forgetting=0.0), log, pool)
    assert found.predicted == pytest.approx([1 / 2, 1 / 2, 5 / 6, 1 / 6, 9 / 10, 3 / 10])
    assert found.mean.tolist() == [1.0, 0.0, 1.0, 0.5, 1.0, 0.0]
    assert found.mixed.tolist() == [False, False, False, True, False, False]
    late = found.measures(found.step >= 2)
    assert late[1] == pytest.approx(0.5)
    assert late[0] == pytest.approx(np.corrcoef([5 / 6, 1 / 6, 0.9, 0.3], [1, 0.5, 1, 0])[0, 1])
    first, second, third = found.by_step()
    assert np.isnan(first).all()  # the same prediction for both, and no contrast
    assert (second[0], third[0]) == (pytest.approx(1.0), pytest.approx(1.0))
    summary = found.summary()
    assert (summary["pearson_2nd_half"], summary["auc_2nd_half"]) == late


def test_held_bytes_are_of_each_array_once_and_not_of_the_pool() -> None:
    array = np.zeros(10)
    pool = rw.PromptPool(ids=["a"], columns={"embedding": [[1.0] * 50]})
    assert held_bytes({"one": array, "view": array[2:5], "more": [array, (np.zeros(2),)], "pool": pool}) == 96


def test_every_estimator_follows_a_log_that_has_all_columns(log: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    assert main(["simulate", "--replay", str(log), "--shadow", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    found = json.loads((out / "shadow.json").read_text())
    assert found["left_out"] == {}
    assert list(found["estimators"]) == list(ESTIMATORS)
    for name, one in found["estimators"].items():
        assert name in shown.out
        numbers = one["seeds"]["0"]
        assert numbers["ms"] > 0
        assert numbers["mb"] > 0
        assert 0 <= numbers["auc"] <= 1
    assert found["estimators"]["interpolation"]["seeds"]["0"]["pearson"] > 0.3
    rows = list(csv.DictReader((out / "shadow.csv").open()))
    assert len(rows) == 12 * len(ESTIMATORS)
    assert {"estimator", "seed", "step", "pearson", "auc", "ms"} == set(rows[0])
    assert (out / "shadow.png").exists()
    assert shown.err.count("shadow ") == len(ESTIMATORS)  # progress, a line an estimator


def test_a_log_without_columns_leaves_out_what_needs_them(tmp_path: Path, capsys: Any) -> None:
    run, out = str(ROOT / "tests/simulation/data/uniform-run"), tmp_path / "out"
    assert main(["simulate", "--replay", run, "--shadow", "--out", str(out)]) == 0
    found = json.loads((out / "shadow.json").read_text())
    assert {"kernel", "BOTS", "judge frozen", "references as prior"} <= set(found["left_out"])
    assert "reference_pass_rates" in found["left_out"]["BOTS"]
    assert found["estimators"]["empirical Bayes"]["seeds"]["0"]["pearson"] > 0.7
    assert "left out: kernel" in capsys.readouterr().out


def test_own_estimators_and_seeds_by_config(log: Path, tmp_path: Path) -> None:
    options = {"implicit": "judge:frozen", "forgetting": 1.0, "implicit_weight": 1.0, "sampling": "mean"}
    methods = {
        "mine": {"curriculum": "bots", "curriculum_options": {"forgetting": 0.0, "prior": "references"}},
        "judged": {"curriculum": "bots", "curriculum_options": options},
    }
    config, out = tmp_path / "my.yaml", tmp_path / "out"
    config.write_text(yaml.safe_dump({"replay": str(log), "seeds": [3, 4], "methods": methods}))
    for _ in range(2):  # the same numbers again, but for the clock
        assert main(["simulate", str(config), "--shadow", "--out", str(out)]) == 0
        found = json.loads((out / "shadow.json").read_text())["estimators"]
        for one in found.values():
            for numbers in one["seeds"].values():
                del numbers["ms"]
        again = locals().get("again", found)
        assert found == again
    assert list(found["mine"]["seeds"]) == ["3", "4"]
    assert found["mine"]["seeds"]["3"] == found["mine"]["seeds"]["4"]  # no random number
    assert found["judged"]["seeds"]["3"] != found["judged"]["seeds"]["4"]  # the judge's random layer


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        ({"by chance": {"curriculum": "uniform"}}, "method 'by chance': Uniform keeps no belief about prompts"),
        (
            {"mine": {"curriculum": "bots", "curriculum_options": {"implicit": "kernel"}}},
            "needs the column 'embedding'",
        ),
    ],
)
def test_what_can_not_follow_is_refused(methods: Any, reason: str, tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "my.yaml"
    run = str(ROOT / "tests/simulation/data/uniform-run")
    first = {"first": {"curriculum": "mopps"}}
    config.write_text(yaml.safe_dump({"replay": run, "methods": first | methods, "baseline": "first"}, sort_keys=False))
    assert main(["simulate", str(config), "--shadow", "--out", str(tmp_path / "out")]) != 0
    said = capsys.readouterr().err
    assert reason in said
    assert "shadow 1/" not in said  # not behind a method that followed all of the log
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"steps": 3}, "steps"),
        ({"replay": {"run": "{run}", "pooling": 2.0}}, "replay.pooling"),
        ({"methods": {"mine": {"curriculum": "mopps", "gate": "mixed"}}}, "methods.mine.gate"),
    ],
)
def test_what_has_no_effect_on_who_follows_is_refused(
    more: dict[str, Any], name: str, tmp_path: Path, capsys: Any
) -> None:
    run = str(ROOT / "tests/simulation/data/uniform-run")
    config = tmp_path / "my.yaml"
    given = {"replay": run, "methods": {"mine": {"curriculum": "mopps"}}, **more}
    config.write_text(yaml.safe_dump(given).replace("{run}", run))
    assert main(["simulate", str(config), "--shadow", "--out", str(tmp_path / "out")]) == 1
    assert f"{name} has no effect with --shadow: estimators follow the whole log" in capsys.readouterr().err


def test_a_folder_that_can_not_be_made_is_refused_before_any_follows(tmp_path: Path, capsys: Any) -> None:
    config, out = tmp_path / "my.yaml", tmp_path / "out"
    run = str(ROOT / "tests/simulation/data/uniform-run")
    config.write_text(yaml.safe_dump({"replay": run, "methods": {"mopps": {"curriculum": "mopps"}}}))
    out.touch()
    assert main(["simulate", str(config), "--shadow", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "can't be a folder: a file is there" in said
    assert "shadow 1/" not in said


def test_shadow_needs_a_log(tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "my.yaml"
    config.write_text("steps: 3\n")
    assert main(["simulate", str(config), "--shadow"]) != 0
    assert "give it with --replay RUN" in capsys.readouterr().err


def test_the_same_prompt_twice_in_a_step_is_one_group(log: Path) -> None:
    first = read_log(log)
    doubled = RunLog(
        **{name: getattr(first, name) for name in RunLog.__dataclass_fields__}
        | {name: np.concatenate([getattr(first, name)] * 2) for name in ("slot", "step", "counts", "mixed")}
    )
    pool = ReplayWorld(first).pool
    one, two = (follow(rw.BOTS(implicit="none"), each, pool) for each in (first, doubled))
    assert isinstance(two, Shadow)
    assert len(one.mean) == len(two.mean)
    assert np.array_equal(one.mean, two.mean)
