"""The report of a run with two named evaluation sets, three categories and its steps' time by phase."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import write_sets_run
from matplotlib.figure import Figure

from rollwise.evaluation import read_run
from rollwise.evaluation.phases import REST, phase_table, step_seconds
from rollwise.reports import write_report
from rollwise.reports.drawing import PALETTE, FigureSpec
from rollwise.reports.run.digest import RolloutDigest, headlines
from rollwise.reports.run.figures import build_figures
from rollwise.runs.evaluations import read_evaluations


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets_run(tmp_path_factory.mktemp("runs") / "bots", "bots", 0, 0.3)


def built(folder: Path) -> dict[str, FigureSpec]:
    specs, _ = build_figures(read_run(folder), RolloutDigest(), read_evaluations(folder))
    return {spec.name: spec for spec in specs}


def lines_of(spec: FigureSpec, panel: int = 0) -> dict[str, list[float]]:
    ax = Figure().subplots()
    spec.panels[panel](ax)
    return {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in ax.get_lines()}


def test_each_set_has_its_curve_beside_the_named_aggregate(run_folder: Path) -> None:
    run, spec = read_run(run_folder), built(run_folder)["score_by_set"]
    drawn = lines_of(spec)
    columns = {"id": "eval/id/pass@1", "ood": "eval/ood/pass@1", "mean of sets": "eval/pass@1"}
    evaluated = np.isfinite(run.column("eval/pass@1"))
    assert drawn == {label: run.column(column)[evaluated].tolist() for label, column in columns.items()}
    assert spec.tabs == ("steps", "rollouts", "tokens", "wall-clock")
    wide = built(run_folder)["pass_at_k_by_set"]
    assert wide.title == "pass@8 on each set"
    assert lines_of(wide)["ood"] == run.column("eval/ood/pass@8")[evaluated].tolist()


def test_the_headlines_name_sets_and_aggregate(run_folder: Path) -> None:
    labels = [row.label for row in headlines(read_run(run_folder), RolloutDigest())]
    assert labels[:4] == ["pass@1 (mean of sets)", "pass@8 (mean of sets)", "id/pass@1", "ood/pass@1"]


def test_categories_of_each_set(run_folder: Path, unrendered: None) -> None:
    """A panel a set, and in the table the first, last and best pass@1 of each category, from the prompts' successes."""
    spec = built(run_folder)["score_by_category"]
    assert len(spec.panels) == 2
    hard = [
        one.pass_rates[np.array(one.categories) == "hard"].mean()
        for one in read_evaluations(run_folder)
        if one.set == "ood"
    ]
    assert lines_of(spec, panel=1)["hard"] == pytest.approx(hard)
    text = write_report(run_folder).read_text(encoding="utf-8")
    row = text[text.index('<td data-name="set">ood</td><td data-name="category">hard</td>') :]
    row = row[: row.index("</tr>")]
    for number in ("4</td>", f"{hard[0]:.3f}</td>", f"{hard[-1]:.3f}</td>", f"{max(hard):.3f} (step"):
        assert number in row


def test_categories_without_a_curve_are_counted(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollwise.reports.run.figures_evaluation.PALETTE", PALETTE[:2])
    assert built(run_folder)["score_by_category"].caption.endswith("; 2 smaller ones in the table alone.")


def test_time_by_phase_adds_up_to_the_training_time(run_folder: Path) -> None:
    """Of 1.5 s a step .55 + .05 + .1 + .25 + .01 + .01 are in phases, and .03 of it is left; evaluations are apart."""
    run = read_run(run_folder)
    phases, steps, seconds = phase_table(run)
    assert phases == ["ask", "generation", "reward", "logprobs", "tell", "update", REST]
    assert steps.tolist() == list(range(1, 41))
    assert seconds.sum(axis=1) == pytest.approx(step_seconds(run)[1:])
    assert seconds[:, phases.index(REST)] == pytest.approx(0.045)
    ax = Figure().subplots()
    built(run_folder)["time_by_phase"].panels[1](ax)
    widths = {label.get_text(): bar.get_width() for label, bar in zip(ax.get_yticklabels(), ax.patches, strict=True)}
    assert widths["generation"] == pytest.approx(40 * 1.5 * 0.55)
    assert widths["evaluation"] == pytest.approx(5 * 4.0)


def test_a_phase_without_an_entry_took_no_time(make_run: Callable[..., Path]) -> None:
    """Judging in the second of two steps alone; a step whose line is lost leaves no time for the one after it."""
    rows: list[dict[str, Any]] = [
        {"step": 1, "wall_s": 2.0, "time/update": 1.0},
        {"step": 2, "wall_s": 5.0, "time/update": 1.0, "time/judging": 1.5},
        {"step": 4, "wall_s": 9.0, "time/update": 1.0},
    ]
    phases, steps, seconds = phase_table(read_run(make_run(rows)))
    assert phases == ["judging", "update", REST]
    assert steps.tolist() == [1, 2]
    assert seconds.tolist() == [[0.0, 1.0, 1.0], [1.5, 1.0, 0.5]]


def test_older_runs_have_no_such_figures(
    make_run: Callable[..., Path], metric_rows: Callable[..., list[dict[str, Any]]]
) -> None:
    """Nor are they named as what could not be drawn."""
    specs, lacking = build_figures(read_run(make_run(metric_rows(30, 0))), RolloutDigest(), [])
    assert not {"score_by_set", "score_by_category", "time_by_phase"} & {spec.name for spec in specs}
    assert "overhead" in {spec.name for spec in specs}
    assert not any(word in " ".join(lacking) for word in ("set", "phase", "score by category"))


def test_damaged_evaluations_are_named_on_the_page(tmp_path: Path, unrendered: None) -> None:
    folder = write_sets_run(tmp_path / "run", "bots", 0, 0.3, steps=10)
    path = folder / "evaluations.jsonl"
    path.write_text(json.dumps({"step": 0, "set": "other"}) + "\n" + path.read_text())
    text = write_report(folder).read_text(encoding="utf-8")
    assert "evaluations.jsonl: line 1 could not be read" in text
    assert "Score by category" in text


@pytest.mark.slow
def test_a_trained_runs_sets_and_categories(tmp_path: Path, unrendered: None) -> None:
    """Two sets and three categories of a toy trained by TRL, four steps: what the recorder writes is what is shown."""
    toys = pytest.importorskip("toys")
    import rollwise as rw
    from rollwise.training import Recorder, RunFolder

    def held_out(n: int) -> Any:
        return toys.toy_dataset(n).add_column("category", [f"c{i % 3}" for i in range(n)])

    folder = RunFolder(tmp_path / "toy")
    trainer = toys.make_trainer(
        folder.checkpoints,
        max_steps=4,
        eval_dataset={"near": held_out(6), "far": held_out(3)},
        eval_strategy="steps",
        eval_steps=2,
        num_generations_eval=2,
        curriculum=rw.Uniform(seed=3),
        extra={"eval_aggregate": "prompts"},
    )
    Recorder(folder, evaluate_first=True).attach(trainer)
    trainer.train()
    found = built(folder.path)
    assert list(lines_of(found["score_by_set"])) == ["near", "far", "by prompts"]
    assert list(lines_of(found["score_by_category"], panel=1)) == ["c0", "c1", "c2"]
    assert len(lines_of(found["score_by_category"], panel=1)["c0"]) == 3
    phases, steps, _ = phase_table(read_run(folder.path))
    assert {"generation", "update", REST} <= set(phases)
    assert steps.tolist() == [1, 2, 3, 4]
    text = write_report(folder.path).read_text(encoding="utf-8")
    for part in ("pass@1 (by prompts)", "near/pass@1", "Score by category", "Time by phase"):
        assert part in text


def test_names_that_matplotlib_would_hide_and_lines_beyond_the_colours(tmp_path: Path, unrendered: None) -> None:
    """Private functions are rewards too; and papers report on seven benchmarks and more."""
    folder = write_sets_run(tmp_path / "run", "bots", 0, 0.3)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row |= {f"rewards/_{name}/mean": 0.5 for name in "ab"} if row["step"] else {}
        row |= {f"eval/set{i}/pass@1": 0.1 * i for i in range(8)} if "eval/pass@1" in row else {}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_report(folder)
    assert {" _a", " _b"} <= set(lines_of(built(folder)["rewards"]))
    ax = Figure().subplots()
    built(folder)["score_by_set"].panels[0](ax)
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}) == len(ax.get_lines()) == 11


def test_a_set_without_a_score_is_no_curve(make_run: Callable[..., Path]) -> None:
    """As of logs of one's own that have another pass@k alone: the figure of no line ended in a traceback."""
    folder = make_run([{"step": step, "eval/pass@1": 0.2, "eval/ood/pass@4": 0.5} for step in range(3)])
    assert built(folder).keys() == {"score"}
