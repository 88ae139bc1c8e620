"""A comparison's files: page, tables, numbers and figures, for few and many methods, whole or under way."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import lines, write_run
from matplotlib.figure import Figure

from rollwise.errors import ConfigError
from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.figures import build_figures
from rollwise.reports.comparison.formats import format_markdown, format_table
from rollwise.reports.comparison.page_tables import runs_section, starts_text
from rollwise.reports.comparison.report import compare_set, write_comparison, write_run_comparison
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.reports.figure_files import save_figure
from rollwise.runs.by_method import group_runs
from rollwise.runs.reading import RunData
from rollwise.runs.sets import read_comparison

VOID = {"meta", "br", "img", "link", "input", "hr"}
METHODS = ("uniform", "oracle", "bots")
MANY = ("uniform", "oracle", *(f"method-{i}" for i in range(10)))


def write_method(
    folder: Path, method: str, seed: int, gain: float, *, steps: int = 40, last: int | None = None, **extra: Any
) -> Path:
    """A made-up run that climbs by `gain`, with noise; `last` is where it stopped."""
    rng = np.random.default_rng([seed, *method.encode()])
    folder.mkdir(parents=True)
    rows, tokens = [], 0.0
    for step in range((steps if last is None else last) + 1):
        row: dict[str, Any] = {"step": step, "time": 1.7e9 + step, "wall_s": 1.5 * step, "rollouts": 64 * step,
                               "tokens": int(tokens)}  # fmt: skip
        if step:
            mixed = float(np.clip(0.5 + gain - 0.01 * step + 0.05 * rng.normal(), 0, 1))
            row |= {"frac_mixed": mixed, "abs_advantage": 0.2, "ask_s": 0.01, "tell_s": 0.02, **extra}
        if step % 5 == 0:
            score = 0.1 + gain * (1 - np.exp(-3 * step / steps)) + 0.02 * seed + 0.004 * rng.normal()
            row |= {"eval/pass@1": float(score), "eval/pass@4": float(min(1, 1.5 * score))}
        rows.append(row)
        tokens += 640 + 5 * float(rng.normal())
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"task": "made-up", "curriculum": method, "steps": steps, "seed": seed}
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder


def write_plan(folder: Path, methods: Sequence[str], seeds: int, **changes: Any) -> None:
    plan = {"name": "made-up runs", "baseline": "uniform", "oracle": "oracle", "seeds": list(range(seeds)),
            "methods": {method: {"curriculum": method} for method in methods}, **changes}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.yaml").write_text(json.dumps(plan))


def write_whole(folder: Path, methods: Sequence[str] = METHODS, seeds: int = 5) -> Path:
    write_plan(folder, methods, seeds)
    gains = {"uniform": 0.2, "oracle": 0.5}
    for i, method in enumerate(methods):
        for seed in range(seeds):
            extra = (
                {"probe_rollouts": 8} if method == "bots" else {"uncharged_rollouts": 99} if method == "oracle" else {}
            )
            write_method(
                folder / "runs" / method / f"seed{seed}", method, seed, gains.get(method, 0.4 - 0.01 * i), **extra
            )
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_whole(tmp_path_factory.mktemp("made") / "comparison")
    (folder / "runs/bots/seed0/report.html").write_text("its own report")
    assert write_comparison(folder) == folder / "report.html"
    return folder


class Page(HTMLParser):
    """Checks that elements nest, and collects links, table rows and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.data: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), "an event handler"
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href"}:
                self.links.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"style", "script"}:
            self.data.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.data)


def read_page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_says_first_whether_it_helped(whole: Path) -> None:
    page = read_page(whole / "report.html")
    answer = page.data.index("Did it help?")
    assert page.data[answer + 1].startswith("It may have helped, with bots: after ")
    assert "But 5 seeds are too few for a verdict, which needs 8, and 5 seeds all" in page.data[answer + 1]
    assert "better in 5 of 5" in page.data[answer + 1]
    for text in ["the limit of the frontier idea, not of learning", "share of oracle's gain",
                 "Time to baseline (TTB) and best so far (BSF) in rollouts",
                 "about 75 % of the time with 3 seeds", "rollouts to probe", "uncharged rollouts"]:  # fmt: skip
        assert text in page.text
    assert "Problems" not in page.data


def test_the_page_asks_for_nothing(whole: Path) -> None:
    text = (whole / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    addresses = re.findall(r"https?://[^\s\"'<>)]*", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    inner = [link for link in page.links if link.startswith("#")]
    assert {link[1:] for link in inner} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert [link for link in page.links if link not in inner] == ["runs/bots/seed0/report.html"]
    assert not re.search(r"@import|url\((?!#)", text)


def test_all_files_are_written_and_agree(whole: Path) -> None:
    figures = {path.name for path in (whole / "figures").iterdir()}
    names = [
        "score",
        "difference",
        "difference_curve",
        "ttb_bsf",
        "oracle_share",
        "effective_task_ratio",
        "overhead",
        "speed",
    ]
    names += ["group_shares", "learning_signal"]
    assert figures == {f"{name}.{end}" for name in names for end in ("png", "svg")}
    results = json.loads((whole / "results.json").read_text())
    rows = list(csv.DictReader((whole / "results.csv").open()))
    assert [row["path"] for row in rows][:2] == ["runs/uniform/seed0", "runs/uniform/seed1"]
    assert [run["path"] for run in results["runs"]] == [row["path"] for row in rows]
    bots = next(method for method in results["methods"] if method["name"] == "bots")
    mean = np.mean([float(row["score/tokens"]) for row in rows if row["method"] == "bots"])
    assert bots["axes"]["tokens"]["score"]["mean"] == pytest.approx(mean, rel=1e-9)
    table = (whole / "table.md").read_text()
    assert f"| bots | 5 | {mean:.3f} ± " in table
    assert not list(whole.glob("*.part"))


@pytest.mark.usefixtures("page_alone")
def test_the_same_runs_give_the_same_files_elsewhere_too(whole: Path, tmp_path: Path) -> None:
    again = write_comparison(whole, tmp_path / "out").parent
    for name in ("report.html", "results.json", "results.csv"):
        way = f"{os.path.relpath(whole, again)}/"
        assert (again / name).read_text().replace(way, "") == (whole / name).read_text()
    assert (again / "table.md").read_bytes() == (whole / "table.md").read_bytes()


def test_every_row_of_a_table_is_as_long_as_its_head(whole: Path) -> None:
    tables = re.findall(r"<table class=\"sorted\">(.*?)</table>", (whole / "report.html").read_text(), flags=re.DOTALL)
    assert len(tables) == 12  # results, ranks, pairs, seeds needed, four axes, reached, cost, speed, runs
    for table in tables:
        head, *rows = (len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr[ >].*?</tr>", table))
        assert rows
        assert set(rows) == {head}
    for part in (whole / "table.md").read_text().split("\n\n"):
        if part.startswith("| method"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in part.splitlines()}) == 1


def test_many_methods_stay_readable(tmp_path: Path) -> None:
    """Of 12 methods the baseline, the oracle and the best three have a style of their own."""
    comparison = compare_set(read_comparison(write_whole(tmp_path, MANY, seeds=3)))
    figures = {figure.spec.name: figure for figure in build_figures(comparison)}
    assert [style.label for style in figures["score"].legend] == [
        "oracle", "method-0", "method-1", "method-2", "uniform (baseline)", "7 others",
    ]  # fmt: skip
    each = figures["score_each"]
    assert len(each.spec.panels) == 11
    assert [(spec.name, len(spec.panels)) for spec in each.files()] == [("score_each_1", 6), ("score_each_2", 5)]
    (saved,) = figures["score"].files()  # four axes and the legend: three panels and two
    save_figure(saved, tmp_path)
    size = re.search(r'viewBox="0 0 (\S+) (\S+)"', (tmp_path / "score.svg").read_text())
    assert size is not None
    assert [float(points) / 72 for points in size.groups()] == pytest.approx([12.0, 5.8])
    (saved,) = figures["difference"].files()
    save_figure(saved, tmp_path)
    tall = re.search(r'viewBox="0 0 \S+ (\S+)"', (tmp_path / "difference.svg").read_text())
    assert tall is not None
    assert float(tall.group(1)) / 72 > 11 * 0.2  # inches: a fifth for each method
    answer = verdict(comparison)[0]
    assert answer.startswith("It may have helped, with method-0")
    assert "chance in 1 of 4 cases" in answer


@pytest.mark.parametrize("probes", [False, True])
def test_the_caption_of_overhead_names_what_is_drawn(tmp_path: Path, probes: bool) -> None:
    write_plan(tmp_path, ("uniform", "bots"), 1, oracle=None)
    for method in ("uniform", "bots"):
        write_method(tmp_path / "runs" / method / "seed0", method, 0, 0.3, **({"probe_rollouts": 8} if probes else {}))
    figures = {figure.spec.name: figure.spec for figure in build_figures(compare_set(read_comparison(tmp_path)))}
    assert len(figures["overhead"].panels) == 1 + probes
    assert ("to measure prompts" in figures["overhead"].caption) == probes
    assert "judgments" not in figures["overhead"].caption


@pytest.mark.parametrize("steps", [4, 6, 9])
def test_steps_have_whole_numbers(tmp_path: Path, steps: int) -> None:
    write_plan(tmp_path, ("uniform", "bots"), 1, oracle=None)
    for method in ("uniform", "bots"):
        folder = write_method(tmp_path / "runs" / method / "seed0", method, 0, 0.3, steps=steps)
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        lines = [json.dumps({**row, "eval/pass@1": 0.1 * row["step"]}) for row in rows]
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    comparison = compare_set(read_comparison(tmp_path))
    score = next(figure.spec for figure in build_figures(comparison) if figure.spec.name == "score")
    axes = Figure().subplots(len(score.panels))
    for draw, ax in zip(score.panels, axes, strict=True):
        draw(ax)
    by_step = next(ax for ax in axes if ax.get_xlabel() == "training steps")
    assert all(tick == round(tick) for tick in by_step.get_xticks())


def test_the_page_spells_out_its_measures_where_it_first_names_them(whole: Path) -> None:
    text = read_page(whole / "report.html").text
    for short, long in (("TTB", "time to baseline"), ("BSF", "best so far")):
        assert long in text[: text.index(short)].lower()[-40:]


def said(folder: Path) -> str:
    return " ".join(verdict(compare_set(read_comparison(folder))))


@pytest.mark.usefixtures("unrendered")
def test_under_way(tmp_path: Path) -> None:
    write_plan(tmp_path, METHODS, 3)
    assert "There is nothing to compare yet: no run has two evaluations" in said(tmp_path)
    write_method(tmp_path / "runs/bots/seed2", "bots", 2, 0.4)
    assert "the baseline, uniform, has no finished run" in said(tmp_path)
    write_method(tmp_path / "runs/uniform/seed0", "uniform", 0, 0.2)
    assert "no other method has a finished run of the baseline's seeds" in said(tmp_path)
    write_method(tmp_path / "runs/bots/seed0", "bots", 0, 0.4, last=10)
    damaged = write_method(tmp_path / "runs/bots/seed1", "bots", 1, 0.4)
    with (damaged / "metrics.jsonl").open("a") as file:
        file.write("{torn\n{}\n")
    write_method(tmp_path / "runs/uniform/seed2", "uniform", 2, 0.2)
    page = read_page(write_comparison(tmp_path))
    for text in [
        "bots seed 0: it is at step 10 of 40",
        "bots seed 1: it is left out",
        "oracle: seeds 0, 1, 2: not begun",
    ]:
        assert text in page.text
    assert "It is too early to say whether it helped: 1 paired seed so far" in page.text
    assert "has no finished run yet" in page.text


def test_nothing_has_begun(tmp_path: Path) -> None:
    write_plan(tmp_path, METHODS, 2)
    page = read_page(write_comparison(tmp_path))
    assert "There is nothing to compare yet" in page.text
    assert (tmp_path / "results.csv").read_text().count("\n") == 1


@pytest.mark.usefixtures("unrendered")
def test_where_the_oracle_gains_nothing_it_is_said(tmp_path: Path) -> None:
    write_plan(tmp_path, METHODS, 3)
    for seed in range(3):
        for method, gain in (("uniform", 0.3), ("oracle", 0.3 + 0.1 * (seed - 1)), ("bots", 0.5)):
            write_method(tmp_path / "runs" / method / f"seed{seed}", method, seed, gain)
    assert "this task can't tell methods apart, and no share of it is shown" in said(tmp_path)
    page = read_page(write_comparison(tmp_path))
    assert "Share of the oracle's gain" not in page.text
    assert not (tmp_path / "figures/oracle_share.png").exists()


def test_no_oracle(tmp_path: Path) -> None:
    write_plan(tmp_path, ("uniform", "bots"), 1, oracle=None)
    for method, gain in (("uniform", 0.2), ("bots", 0.4)):
        write_method(tmp_path / "runs" / method / "seed0", method, 0, gain)
    text = format_markdown(compare_set(read_comparison(tmp_path)))
    assert "oracle's gain" not in text
    assert "| bots | 1 |" in text


@pytest.mark.usefixtures("page_alone")
def test_names_are_escaped(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script>|*`&\"'"
    paths = [write_method(tmp_path / f"run{i}", attack, i, 0.2) for i in range(2)]
    paths.append(write_method(tmp_path / "a&b<i> #%41", "_uniform", 0, 0.3))
    for path in paths:
        (path / "report.html").write_text("")
    page = read_page(write_run_comparison(paths, tmp_path / "out"))
    assert page.tags.count("script") == 1
    assert "i" not in page.tags
    assert attack in page.text
    assert "../a%26b%3Ci%3E%20%23%2541/report.html" in page.links
    table = (tmp_path / "out/table.md").read_text()
    assert "<script>" not in table
    assert (tmp_path / "out/results.json").exists()


def test_any_runs_with_a_baseline_of_choice(tmp_path: Path) -> None:
    paths = [write_method(tmp_path / f"{m}{s}", m, s, g) for m, g in (("sec", 0.2), ("bots", 0.3)) for s in range(3)]
    answer = verdict(compare_set(group_runs(paths, baseline="bots")))[0]
    assert answer.startswith("It may have hurt, even with the best, sec: after ")
    assert "But 3 seeds are too few for a verdict, which needs 8" in answer
    with pytest.raises(ConfigError, match="baseline 'x' is none"):
        write_run_comparison(paths, tmp_path / "other", baseline="x")
    assert not (tmp_path / "other").exists()


def test_the_terminals_table_fits(whole: Path) -> None:
    rich_console = pytest.importorskip("rich.console")
    comparison = compare_set(read_comparison(whole))
    console = rich_console.Console(width=80, file=io.StringIO(), record=True)
    console.print(format_table(comparison))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith("It may have helped, with bots")
    row = next(line for line in shown.splitlines() if line.strip().startswith("bots  "))
    difference = comparison.method("bots").axes["tokens"].score.difference
    assert difference is not None
    assert f"{difference.mean:+.3f}" in row
    assert verdict(comparison)[0] in format_markdown(comparison)


def test_the_terminal_names_the_first_problems(tmp_path: Path) -> None:
    """Of ten methods that have not begun, eight."""
    rich_console = pytest.importorskip("rich.console")
    write_plan(tmp_path, [*METHODS, *(f"m{i}" for i in range(10 - len(METHODS)))], 5)
    console = rich_console.Console(width=80, file=io.StringIO(), record=True)
    console.print(format_table(compare_set(read_comparison(tmp_path))))
    shown = console.export_text()
    assert shown.count("seeds 0, 1, 2, 3, 4: not begun") == 8
    assert "- and 2 other problems" in shown


def write_uneven(folder: Path, counts: dict[str, int], gains: dict[str, float]) -> Comparison:
    write_plan(folder, list(counts), max(counts.values()), oracle=None)
    for method, seeds in counts.items():
        for seed in range(seeds):
            write_method(folder / "runs" / method / f"seed{seed}", method, seed, gains[method])
    return compare_set(read_comparison(folder))


def test_the_answer_is_about_what_enough_seeds_show(tmp_path: Path) -> None:
    gains = {"uniform": 0.2, "sure": 0.3, "new": 0.4}
    said = verdict(write_uneven(tmp_path / "one", {"uniform": 8, "sure": 8, "new": 1}, gains))
    assert said[0].startswith("It helped, with sure")
    assert re.match(r"new has a higher mean than sure, \+0\.1\d\d, but is less sure \(1 paired seed\)\.", said[1])
    assert any(line.startswith("sure reaches uniform's best score") for line in said)
    three = verdict(write_uneven(tmp_path / "three", {"uniform": 8, "sure": 8, "new": 3}, gains))
    assert three[0].startswith("It helped, with sure")
    assert "less sure (3 paired seeds)" in three[1]
    few = verdict(write_uneven(tmp_path / "few", {"uniform": 3, "sure": 3, "new": 1}, gains))
    assert few[0].startswith("It may have helped, with sure")


def test_scores_of_different_things_are_no_help(tmp_path: Path) -> None:
    paths = [
        write_method(tmp_path / f"{m}{s}", m, s, g) for m, g in (("uniform", 0.2), ("bots", 0.4)) for s in range(8)
    ]
    for path in paths[8:]:
        config = json.loads((path / "config.yaml").read_text())
        (path / "config.yaml").write_text(json.dumps({**config, "task": "easier"}))
    said = verdict(compare_set(group_runs(paths)))
    assert said[0].startswith("These numbers may mean nothing: the runs differ in task")
    assert said[1].startswith("By the numbers alone it helped, with bots")


def test_a_run_with_several_problems_is_one_run(tmp_path: Path) -> None:
    """Totals that fall leave a run out on three axes; it is compared on steps, and not missing."""
    write_whole(tmp_path, ("uniform", "oracle", "bots", "sec"), seeds=3)
    path = tmp_path / "runs/bots/seed1/metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for key in ("tokens", "rollouts", "wall_s"):
        rows[20][key] = 0
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    comparison = compare_set(read_comparison(tmp_path))
    assert sum(problem.kind == "damaged" for problem in comparison.problems) == 3
    assert "missing, unfinished" not in " ".join(verdict(comparison))
    (tmp_path / "runs/sec/seed0/metrics.jsonl").write_text("torn\n" + path.read_text())
    assert "1 run missing, unfinished or unreadable" in " ".join(verdict(compare_set(read_comparison(tmp_path))))


@pytest.mark.usefixtures("unrendered")
def test_pass_at_k_has_a_figure_where_there_are_three_k(tmp_path: Path) -> None:
    folder = write_whole(tmp_path, methods=("uniform", "oracle"), seeds=2)
    for path in folder.glob("runs/*/*/metrics.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        wide = {f"eval/pass@{k}": 0.1 * i + 0.3 for i, k in enumerate((2, 4, 8))}
        path.write_text("\n".join(json.dumps({**row, **wide}) for row in rows) + "\n")
    text = write_comparison(folder).read_text()
    assert (folder / "figures/pass_at_k.svg").exists()
    assert "all k from one sample of 8 completions" in text


def test_the_page_says_which_start_each_seed_had(tmp_path: Path) -> None:
    runs: dict[str, dict[int, RunData]] = {
        method: {
            seed: write_run(tmp_path / method / str(seed), lines([0.1, 0.2]), model=f"/x/starts/{'ab'[seed % 2]}")
            for seed in (0, 1, 2)
        }
        for method in ("uniform", "bots")
    }
    found = compare_runs(runs, baseline="uniform")
    assert starts_text(found) == "a (seed 0, 2); b (seed 1)"
    assert runs_section(found, tmp_path).count('<td data-order="b">b</td>') == 2
    assert [row["start"] for row in csv.DictReader(found.to_csv().splitlines())] == ["a", "b", "a"] * 2
    one = compare_runs({m: {0: seeds[0]} for m, seeds in runs.items()}, baseline="uniform")
    assert starts_text(one) == ""
    assert ">start<" not in runs_section(one, tmp_path)


@pytest.mark.usefixtures("unrendered")
def test_methods_without_a_run_have_no_score_at_the_end(tmp_path: Path) -> None:
    """`compare --methods bots` of a plan with more, whose runs end with a larger evaluation: the page is written."""
    write_plan(tmp_path, METHODS, 2, base={"eval_prompts_end": 1024})
    for seed in range(2):
        write_method(tmp_path / f"runs/bots/seed{seed}", "bots", seed, 0.3)
        last = tmp_path / f"runs/bots/seed{seed}/metrics.jsonl"
        rows = last.read_text().splitlines()
        rows[-1] = json.dumps({**json.loads(rows[-1]), "end/pass@1": 0.4})
        last.write_text("\n".join(rows) + "\n")
    assert write_comparison(tmp_path).exists()
    rows = [line.strip("| ").split(" | ") for line in (tmp_path / "table.md").read_text().splitlines() if "|" in line]
    at = rows[0].index("pass@1 at the end")
    assert {row[0]: row[at] for row in rows[2:5]} == {
        "bots": "0.400 ± 0.000",
        "uniform<br>baseline": "-",
        "oracle": "-",
    }
