"""Runs of methods x seeds, their files, and what is made of them."""

import csv
import dataclasses
import io
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import rollwise as rw
from rollwise.errors import ConfigError
from rollwise.simulation import make_world
from rollwise.simulation.config import Blocked, SimulateConfig
from rollwise.simulation.curves import draw_curves
from rollwise.simulation.log import calibration
from rollwise.simulation.methods import Method
from rollwise.simulation.one_run import REPLAYED, SIMULATED, run_one
from rollwise.simulation.replay_log import read_log
from rollwise.simulation.runs import run_all
from rollwise.simulation.table import aggregate, make_table, mean_sd, paired, write_results
from rollwise.simulation.worlds import Block, _log

RUN = str(Path(__file__).parent / "data/uniform-run")


def config_of(**values: Any) -> SimulateConfig:
    methods = {"uniform": {"curriculum": "uniform"}, "prioritized": {"curriculum": "prioritized"}}
    small = {
        "num_prompts": 60,
        "steps": 4,
        "prompts_per_step": 6,
        "num_generations": 4,
        "seeds": 2,
        "jobs": 1,
        "methods": methods,
    }
    return SimulateConfig.from_dict({**small, **values})


def numbers(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in run.items() if key != "cost"} for run in runs]


def test_the_numbers_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    one = run_all(config_of(), tmp_path / "one")
    two = run_all(config_of(jobs=2), tmp_path / "two")
    assert numbers(one) == numbers(two)
    assert [(run["method"], run["seed"]) for run in one] == [
        (method, seed) for method in ("uniform", "prioritized") for seed in (0, 1)
    ]
    assert one[0]["results"]["score"] != one[1]["results"]["score"]


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    said: list[tuple[str, int, bool]] = []
    run_all(config_of(seeds=1), tmp_path)
    before = (tmp_path / "runs/uniform-seed0.json").read_bytes()
    runs = run_all(config_of(), tmp_path, on_run=lambda *run: said.append(run))
    assert (tmp_path / "runs/uniform-seed0.json").read_bytes() == before
    kept = {(method, seed) for method, seed, was_there in said if was_there}
    assert kept == {("uniform", 0), ("prioritized", 0)}
    assert len(said) == len(runs) == 4


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"learner": {"learning_rate": 0.5}}, "learner.learning_rate = 0.3, the config has 0.5"),
        ({"lag": 2}, "lag = 0, the config has 2"),
        ({"steps": 5, "lag": 1}, "lag = 0, the config has 1, and 1 more"),
        (
            {"methods": {"uniform": {"curriculum": "sec", "curriculum_options": {"temperature": 2.0}}}},
            "method.curriculum = 'uniform', the config has 'sec'",
        ),
        (
            {"methods": {"uniform": {"curriculum": "uniform", "curriculum_options": {"expire_after": 50}}}},
            "method.curriculum_options.expire_after = None, the config has 50; give",
        ),
    ],
)
def test_changed_options_are_refused_by_name(changed: dict[str, Any], named: str, tmp_path: Path) -> None:
    run_all(config_of(seeds=1), tmp_path)
    with pytest.raises(rw.ConfigError) as error:
        run_all(config_of(**{"seeds": 1, **changed}), tmp_path)
    assert named in str(error.value)
    assert "another --out" in str(error.value)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_two_methods_of_one_file_name_are_told_apart(tmp_path: Path) -> None:
    one, two = ({name: {"curriculum": "uniform"}} for name in ("a b", "a,b"))
    run_all(config_of(methods=one, seeds=1), tmp_path)
    with pytest.raises(rw.ConfigError, match="name = 'a b', the config has 'a,b'"):
        run_all(config_of(methods=two, seeds=1), tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    run_all(config_of(seeds=1), tmp_path)
    (tmp_path / "runs/uniform-seed0.json").write_text('{"method": ')
    with pytest.raises(rw.StateFileError, match=r"uniform-seed0\.json' is damaged.*delete it"):
        run_all(config_of(seeds=1), tmp_path)


def test_options_that_json_lacks_are_kept(tmp_path: Path) -> None:
    methods = {"inf": {"curriculum": "prioritized", "curriculum_options": {"initial_priority": float("inf")}}}
    first = run_all(config_of(methods=methods, seeds=1), tmp_path)
    assert run_all(config_of(methods=methods, seeds=1), tmp_path) == first


def test_one_run_by_itself_is_the_library_s() -> None:
    """The same numbers as `simulate` gives: 4 steps of 6 x 4 rollouts are 96."""
    run = run_one(config_of(), "uniform", 1)
    world, _ = make_world(60, seed=1)
    log = rw.simulation.simulate(rw.Uniform(seed=1), world, 4, 6, 4)
    assert run["results"]["score"] == pytest.approx(log.final_score, abs=1e-9)
    assert run["curves"]["rollouts"] == [24.0, 48.0, 72.0, 96.0]
    assert run["results"]["coverage"] == len(np.unique(log.slots)) / 60
    assert run["results"]["brier"] is None
    assert run["note"] == SIMULATED


def test_lag_gate_and_learner_are_reached() -> None:
    gated = {"uniform": {"curriculum": "uniform", "gate": "mixed", "gate_options": {"max_rounds": 2}}}
    run = run_one(config_of(methods=gated, lag=2), "uniform", 0)
    assert run["results"]["rollouts"] >= 96
    assert run["results"]["steps"] < 4
    scores = run_one(config_of(lag=2), "uniform", 0)["curves"]["score"]
    assert scores[0] == scores[1] == scores[2] != scores[3]
    learners = ({"noise": 0.3}, {"interference": 0.5}, {"overfitting": 0.5}, {"transfer": 0.5}, {"forgetting": 0.5})
    results = [run_one(config_of(steps=20, learner=learner), "uniform", 0)["results"] for learner in ({}, *learners)]
    assert len({(r["score"], r["effective_ratio"]) for r in results}) == 6


def test_a_blocked_category_opens(tmp_path: Path) -> None:
    world, _ = make_world(100, seed=0)
    block = Block(Blocked(category="level-01", steps=2), world)
    closed = world.category == 0
    rates = []
    for step in (0, 1, 2):
        block(step, world)
        rates.append(world.success_rates(np.flatnonzero(closed)).mean())
    assert rates[0] == rates[1] == 0.0 < rates[2]


def test_a_replay_reports_contrast_calibration_and_coverage_and_no_score(tmp_path: Path) -> None:
    config = SimulateConfig.from_dict({"replay": RUN, "prompts_per_step": 2, "seeds": 2, "jobs": 1})
    config = dataclasses.replace(
        config, methods={name: Method(curriculum=name) for name in ("uniform", "bots")}, baseline="uniform"
    )
    runs = run_all(config, tmp_path)
    write_results(config, runs, tmp_path)
    for run in runs:
        assert run["note"] == REPLAYED
        assert not {"score", "hardest"} & set(run["results"])
        assert "score" not in run["curves"]
        assert run["results"]["logged_effective_ratio"] == pytest.approx(0.5, abs=0.1)
    assert runs[-1]["results"]["correlation"] > 0.3
    short = dataclasses.replace(config, steps=5, seeds=(0,))
    ours = run_all(short, tmp_path / "short")[0]["results"]["logged_effective_ratio"]
    log = read_log(RUN)
    groups = log.counts[log.step <= 5]
    assert ours == pytest.approx(np.mean((groups > 0).sum(axis=1) > 1))
    assert ours != pytest.approx(log.effective_ratio)
    assert "never learning" in (tmp_path / "results.csv").read_text().splitlines()[0]
    assert "never learning" in json.loads((tmp_path / "results.json").read_text())["note"]


def test_calibration_by_hand() -> None:
    """Errors .1, .1, 0, .2: squares .01 + .01 + 0 + .04 = .06, over 4 = .015. Covariance over deviations: see below.

    p = .1, .5, .6, .8 (mean .5), r = .2, .4, .6, 1 (mean .55): products .4*.35 + 0 + .1*.05 + .3*.45 = .28; squares
    .16 + 0 + .01 + .09 = .26 and .1225 + .0225 + .0025 + .2025 = .35: .28 / sqrt(.26 * .35) = .9282.
    """
    brier, correlation = calibration(np.array([0.1, 0.5, 0.6, 0.8]), np.array([0.2, 0.4, 0.6, 1.0]))
    assert brier == pytest.approx(0.015)
    assert correlation == pytest.approx(0.9282, abs=1e-4)
    grid = calibration(np.array([[0.1, 0.5], [0.6, 0.8]]), np.array([[0.2, 0.4], [0.6, 1.0]]))
    assert grid == (brier, correlation)
    assert calibration(np.array([1.0 + 1e-15, 0.0]), np.array([1.0, 0.0])) == (0.0, pytest.approx(1.0))
    assert np.isnan(calibration(np.array([np.nan]), np.array([0.5]))).all()
    assert np.isnan(calibration(np.array([0.5, 0.5]), np.array([0.5, 1.0]))[1])


def test_differences_are_paired_by_seed() -> None:
    """.3 - .1, .5 - .2, .4 - .3 = .2, .3, .1: mean .2, deviation sqrt((0 + .01 + .01) / 2) = .1."""
    assert paired([0.3, 0.5, 0.4], [0.1, 0.2, 0.3]) == (pytest.approx(0.2), pytest.approx(0.1))
    assert mean_sd([1.0, 2.0, 6.0]) == (pytest.approx(3.0), pytest.approx(np.sqrt(7.0)))
    assert np.isnan(mean_sd([1.0, None])).all()
    mean, spread = mean_sd([1.0])
    assert mean == 1.0
    assert np.isnan(spread)


def test_the_tables_hold_the_runs(tmp_path: Path) -> None:
    config = config_of()
    runs = run_all(config, tmp_path)
    write_results(config, runs, tmp_path)
    head, *lines = (tmp_path / "results.csv").read_text().splitlines()
    assert head.startswith("# SIMULATED")
    rows = list(csv.DictReader(lines))
    assert [(row["method"], row["seed"]) for row in rows] == [(r["method"], str(r["seed"])) for r in runs]
    assert [float(row["score"]) for row in rows] == [r["results"]["score"] for r in runs]
    plain = json.loads((tmp_path / "results.json").read_text())
    score = plain["methods"]["prioritized"]["numbers"]["score"]
    a, b = ([r["results"]["score"] for r in runs if r["method"] == m] for m in ("prioritized", "uniform"))
    assert score["difference"] == pytest.approx(np.mean(a) - np.mean(b))
    assert plain["note"] == SIMULATED
    table = make_table(config, runs)
    assert str(table.title).startswith("SIMULATED")
    assert table.row_count == 2
    assert aggregate(config, runs)["uniform"]["score"]["difference"] == 0.0


@pytest.mark.parametrize("many", [2, 14])
def test_the_figure_says_what_it_is(many: int, tmp_path: Path) -> None:
    methods = {f"m{i}": {"curriculum": "uniform"} for i in range(many)}
    config = config_of(methods=methods, seeds=1)
    drawn = draw_curves(config, run_all(config, tmp_path), tmp_path)
    assert drawn.stat().st_size > 10_000
    text = (tmp_path / "curves.svg").read_text()
    assert text.count("SIMULATED") == 2
    named = sum(f">{name}<" in text for name in methods)
    assert named == (2 if many == 2 else 7)


def test_a_replayed_log_that_has_changed_is_another(tmp_path: Path) -> None:
    """What is there of the old log is not set beside runs of the new one."""
    log = tmp_path / "log"
    shutil.copytree(RUN, log)
    methods = {"uniform": {"curriculum": "uniform"}}
    config = SimulateConfig.from_dict({"replay": str(log), "methods": methods, "seeds": 1, "jobs": 1})
    run_all(config, tmp_path / "out")
    _log.cache_clear()
    assert run_all(config, tmp_path / "out")  # the same log: nothing stands in the way
    rows = (log / "rollouts.jsonl").read_text().splitlines(keepends=True)
    (log / "rollouts.jsonl").write_text("".join(rows[: len(rows) // 2]))
    _log.cache_clear()
    with pytest.raises(ConfigError, match="was run with log = "):
        run_all(config, tmp_path / "out")
    _log.cache_clear()


def test_methods_that_ask_a_model_can_not_be_simulated(tmp_path: Path) -> None:
    methods = {"uniform": {"curriculum": "uniform"}, "metis": {"curriculum": "metis"}}
    with pytest.raises(ConfigError, match="method 'metis': it asks the policy for judgments"):
        run_all(config_of(methods=methods), tmp_path)


def test_feedback_that_comes_too_late_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    options = {"dormant": 0, "warmup": 0}
    methods = {
        "uniform": {"curriculum": "uniform"},
        "ac": {"curriculum": "actor-curator", "curriculum_options": options, "gate": "mixed"},
    }
    assert len(run_all(config_of(methods=methods, lag=1, seeds=1), tmp_path / "one")) == 2
    with pytest.raises(ConfigError, match="method 'ac': it learns from what a step gained, and with lag 2"):
        run_all(config_of(methods=methods, lag=2, seeds=1), tmp_path / "two")
    assert not list((tmp_path / "two").rglob("*.json"))


def test_a_step_without_groups_leaves_the_rest_of_a_grey_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    names = ["uniform", *(f"m{i}" for i in range(20))]
    config = config_of(methods={name: {"curriculum": "uniform"} for name in names}, seeds=1)
    ratio = [0.5, None, *[0.25] * 10]  # all prompts were in flight in the second step
    curves = {"rollouts": list(range(24, 12 * 24 + 1, 24)), "effective_ratio": ratio, "score": [0.5] * 12}
    results = {"score": 0.5, "effective_ratio": 0.3}
    specs: list[Any] = []
    monkeypatch.setattr("rollwise.simulation.curves.save_figure", lambda spec, out: specs.append(spec))
    draw_curves(config, [{"method": n, "seed": 0, "curves": curves, "results": results} for n in names], tmp_path)
    ax = Figure().subplots()
    specs[0].panels[0](ax)
    grey = [line for line in ax.lines if line.get_zorder() == 0]
    assert len(grey) == 14  # six are named besides the baseline
    assert all(len(line.get_ydata()) == 11 and np.isfinite(line.get_ydata()).all() for line in grey)


def test_a_score_is_drawn_at_what_was_spent_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score of before the first step is at 0 rollouts, that of after the last one at all of them."""
    from matplotlib.figure import Figure

    config = config_of(methods={"uniform": {"curriculum": "uniform"}}, seeds=1)
    curves = {"rollouts": [24, 48, 96], "effective_ratio": [0.5, 0.4, 0.3], "score": [0.1, 0.2, 0.3]}
    run = {"method": "uniform", "seed": 0, "curves": curves, "results": {"score": 0.5, "effective_ratio": 0.4}}
    specs: list[Any] = []
    monkeypatch.setattr("rollwise.simulation.curves.save_figure", lambda spec, out: specs.append(spec))
    draw_curves(config, [run], tmp_path)
    drawn = []
    for panel in specs[0].panels:
        panel(ax := Figure().subplots())
        drawn.append([line.get_xydata().tolist() for line in ax.lines])
    assert drawn == [[[[24, 0.5], [48, 0.4], [96, 0.3]]], [[[0, 0.1], [24, 0.2], [48, 0.3], [96, 0.5]]]]


def test_a_screening_as_large_as_a_group_is_refused_as_in_training(tmp_path: Path) -> None:
    """All of it was made again, and paid for twice."""
    methods = {"uniform": {"curriculum": "uniform"}, "pilot": {"curriculum": "pilot-commit"}}
    with pytest.raises(ConfigError, match="method 'pilot': 8 screening rollouts leave none of a group of 8 to be made"):
        run_all(config_of(methods=methods, num_generations=8), tmp_path)


def test_schedules_by_tokens_can_not_be_simulated(tmp_path: Path) -> None:
    schedule = {"points": [[0, 0.5], [1000, 0.1]], "by": "tokens"}
    methods = {
        "uniform": {"curriculum": "uniform"},
        "b": {"curriculum": "bots", "curriculum_options": {"forgetting": schedule}},
    }
    with pytest.raises(ConfigError, match="method 'b': an option of BOTS has a schedule by tokens"):
        run_all(config_of(methods=methods), tmp_path)


def test_names_with_markup_are_shown_and_names_of_one_file_are_refused(tmp_path: Path) -> None:
    config = config_of(methods={"sec [/ucb]": {"curriculum": "uniform"}, "sec [b]": {"curriculum": "uniform"}}, seeds=1)
    runs = run_all(config, tmp_path)
    console = Console(file=io.StringIO(), width=200)
    console.print(make_table(config, runs))
    assert "sec [/ucb]" in console.file.getvalue()  # type: ignore[attr-defined]
    alike = config_of(methods={"ema>0.5": {"curriculum": "uniform"}, "ema<0.5": {"curriculum": "uniform"}})
    long = config_of(methods={"é" * 101: {"curriculum": "uniform"}})
    with pytest.raises(ConfigError, match="a method's name becomes a file's, of 200 bytes at most: shorten 'ééé"):
        run_all(long, tmp_path)
    with pytest.raises(ConfigError, match="'ema>0.5' and 'ema<0.5' would have the same file"):
        run_all(alike, tmp_path)


def test_a_method_that_measures_beyond_the_budget_is_named(tmp_path: Path) -> None:
    """SFL measures its candidates at once, before the first step: far more than 4 steps of 6 prompts x 4."""
    methods = {"uniform": {"curriculum": "uniform"}, "sfl": {"curriculum": "sfl"}}
    config = config_of(methods=methods, seeds=1)
    console = Console(file=io.StringIO(), width=400)
    console.print(make_table(config, run_all(config, tmp_path / "a")))
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "NOT at equal compute: sfl went beyond 96 rollouts within a step" in shown
    plain = config_of(seeds=1)
    console = Console(file=io.StringIO(), width=400)
    console.print(make_table(plain, run_all(plain, tmp_path / "b")))
    assert "equal compute" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_ratio_of_0_is_shown_and_so_is_who_refills_beyond_the_budget(tmp_path: Path) -> None:
    """Where nobody ever solves a prompt no group has contrast: a result. A gate refills, it does not measure."""
    methods = {"uniform": {"curriculum": "uniform"}, "gated": {"curriculum": "uniform", "gate": "mixed"}}
    config = config_of(methods=methods, seeds=1, steps=1, population={"hopeless": 1.0, "trivial": 0.0})
    table = make_table(config, run_all(config, tmp_path))
    heads = {str(column.header): list(column.cells) for column in table.columns}
    assert heads["effective ratio"] == ["0.000", "0.000"]
    assert "uncharged rollouts" not in heads
    assert "gated went beyond 24 rollouts within a step" in str(table.caption)
    assert "measuring" not in str(table.caption)


INTERRUPTED = """
import signal, sys, time
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.replay_log import read_log
from rollwise.simulation.runs import run_all
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that put us in the background had it ignored
    small = {"num_prompts": 2000, "steps": 100_000, "prompts_per_step": 8, "num_generations": 4, "seeds": 4, "jobs": 2}
    print("begun", flush=True)
    run_all(SimulateConfig.from_dict({**small, "methods": {"uniform": {"curriculum": "uniform"}}}), sys.argv[1])
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_interrupted_it_ends_with_its_workers(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(INTERRUPTED)
    process = subprocess.Popen([sys.executable, str(script), str(tmp_path / "out")], stderr=subprocess.DEVNULL)
    try:
        workers = wait_for(lambda: working_below(process.pid))
        process.send_signal(how)
        process.wait(timeout=60)
        assert wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    finally:
        process.kill()


def wait_for(found: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < until, "in vain"
        time.sleep(0.2)
    return value


def working_below(parent: int) -> list[int]:
    """The two workers of a process, once both have begun: they leave Ctrl-C to it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes()
            ignored = (path.parent / "status").read_text().partition("SigIgn:")[2].split()[0]
        except OSError:
            continue
        if int(fields[1]) == parent and b"spawn_main" in words and int(ignored, 16) >> (signal.SIGINT - 1) & 1:
            found.append(int(path.parent.name))
    return found if len(found) == 2 else []
