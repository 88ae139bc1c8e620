"""What the README and the pages of results claim is what `benchmarks/results/*.csv` carry, by t intervals."""

import csv
import functools
import importlib
import json
import math
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.evaluation.bootstrap import bootstrap_interval
from rollwise.evaluation.comparison.student import holm, paired_p
from rollwise.profiling.recommendation import Facts, recommend

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}  # by degrees of freedom
PLANS = [f"{task}-{regime}" for task in ("reversal", "countdown") for regime in ("hopeless", "one-pass", "revisit")]
TUNED_ROWS = [
    *("reversal-one-pass", "reversal-hopeless", "reversal-revisit", "countdown-hopeless", "countdown-one-pass"),
    *("countdown-revisit", "reversal-smollm2"),
]
FRESH = {
    "Reversal; the category": [
        *(("reversal-one-pass", "1e-4"), ("reversal-one-pass-1m", "1e-4"), ("reversal-one-pass-3m", "1e-4")),
        ("reversal-one-pass-11m-low", "5e-5"),
    ],
    "Reversal; only trying": [
        *(("reversal", "1e-4"), ("reversal-1m", "1e-4"), ("reversal-3m-low", "5e-5"), ("reversal-11m-low", "5e-5")),
    ],
    "Countdown; only trying": [
        *(("countdown", "2e-4"), ("countdown-1m-low", "1e-4"), ("countdown-3m-low", "1e-4")),
        ("countdown-11m-low", "5e-5"),
    ],
}
"""Rows of the README -> plan and learning rate, from 0.34 to 11.5 million parameters."""
SECTIONS = [
    ("results.md", "### Hopeless: ", ["reversal-hopeless"]),
    ("results.md", "### One pass", ["reversal-one-pass"]),
    ("results.md", "### Revisit", ["reversal-revisit"]),
    ("results.md", "### Hopeless at twice", ["reversal-hopeless-2e-4"]),
    ("results.md", "## Countdown", ["countdown-hopeless", "countdown-one-pass"]),
    ("results-countdown.md", "## Hopeless", ["countdown-hopeless"]),
    ("results-countdown.md", "## One pass", ["countdown-one-pass"]),
    ("results-countdown.md", "## Revisit", ["countdown-revisit"]),
    ("results-countdown.md", "## At three times", [f"countdown-{r}-3e-4" for r in ("hopeless", "one-pass", "revisit")]),
    ("results-earlier.md", "### Hopeless", ["earlier-start/reversal-hopeless"]),
    ("results-earlier.md", "### One pass", ["earlier-start/reversal-one-pass"]),
    ("results-earlier.md", "### Revisit", ["earlier-start/reversal-revisit"]),
    ("judges.md", "## At three times", ["judges"]),
]
NUMBER = r"([+-]\d\.\d+)"
DIFFERENCE = re.compile(rf"{NUMBER} \[{NUMBER}, {NUMBER}\](°?)")
CSV_NAMES = {"frozen judge": "pcl-frozen", "pcl at ten times its learning rate": "pcl"}


@functools.cache
def runs(plan: str) -> dict[str, dict[int, dict[str, str]]]:
    """Method -> seed -> the line of its run."""
    found: dict[str, dict[int, dict[str, str]]] = {}
    with (RESULTS / f"{plan}.csv").open() as file:
        for line in csv.DictReader(file):
            found.setdefault(line["method"], {})[int(line["seed"])] = line
    return found


def differences(plan: str, method: str, other: str = "uniform") -> list[float]:
    one, two = runs(plan)[method], runs(plan)[other]
    return [float(one[s]["score/tokens"]) - float(two[s]["score/tokens"]) for s in sorted(set(one) & set(two))]


def t_interval(values: list[float]) -> tuple[float, float, float]:
    mean, n = statistics.mean(values), len(values)
    half = T95[n - 1] * statistics.stdev(values) / math.sqrt(n)
    return mean, mean - half, mean + half


def tokens_to_best(plan: str, method: str) -> list[float]:
    """Of each seed; none where uniform sampling has no best score but that of its start."""
    known = [run["ttb_100/tokens"] for run in runs(plan)[method].values() if run["ttb_100/tokens"]]
    return sorted(float(share.replace("never", "inf")) for share in known)


def percent(share: float) -> str:
    return "never" if math.isinf(share) else f"{100 * share:.0f}"


def section(page: str, heading: str) -> list[str]:
    lines = (RESULTS / page).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(heading))
    end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("## ") or lines[i][:4] == "### "), None)
    return lines[start:end]


def test_the_table_is_of_the_runs() -> None:
    text = (ROOT / "docs/results.md").read_text()
    rows = [line for line in text.splitlines() if re.search(r"\| [+]0\.\d\d \[.*\d % \(", line)]
    assert len(rows) == len(TUNED_ROWS)
    for row, plan in zip(rows, TUNED_ROWS, strict=True):
        mean, low, high = t_interval(differences(plan, "recommended"))
        ttb = tokens_to_best(plan, "recommended")
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1] == f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]", plan
        assert cells[2] == f"{percent(statistics.median(ttb))} % ({percent(ttb[0])} to {percent(ttb[-1])})", plan
        assert ("no sure gain" in row) == (low <= 0 <= high), plan


def corrected(plan: str) -> dict[str, tuple[float, float]]:
    """Method -> its mean difference, and its p after Holm's correction over the table's methods."""
    names = [name for name in runs(plan) if name not in ("uniform", "oracle")]
    gaps = [differences(plan, name) for name in names]
    means = [statistics.mean(own) for own in gaps]
    p = [float(paired_p(mean, statistics.stdev(own), len(own))) for mean, own in zip(means, gaps, strict=True)]
    return {name: (mean, float(one)) for name, mean, one in zip(names, means, holm(p, len(p)), strict=True)}


def test_what_holms_correction_leaves_of_the_tables() -> None:
    left = {plan: corrected(plan) for plan in TUNED_ROWS}
    kept = [i for i, plan in enumerate(TUNED_ROWS) if left[plan]["recommended"][1] < 0.05]
    assert kept == [0, 3, 4]
    page = " ".join((ROOT / "docs/results.md").read_text().split())
    assert "keeps p below 0.05 in three of the first six rows: the first, fourth and fifth" in page
    counts = [
        [sum(p < 0.05 and sign * mean > 0 for mean, p in left[plan].values()) for sign in (1, -1)]
        for plan in ("reversal-one-pass", "reversal-hopeless", "reversal-revisit", *TUNED_ROWS[3:6])
    ]
    assert counts == [[8, 0], [0, 3], [0, 6], [2, 2], [3, 0], [0, 0]]


def test_the_readmes_table_is_of_fresh_seeds(claim: Any) -> None:
    readme = (ROOT / "README.md").read_text()
    kept = []
    for row, plans in FRESH.items():
        cells = [cell.strip() for cell in next(x for x in readme.splitlines() if row in x).strip("|").split("|")][1:]
        for cell, (plan, rate) in zip(cells, plans, strict=True):
            of = f"'recommended at {rate}' minus='uniform at {rate}' digits=2"
            found, seeds = claim.text_of(f"evidence/{plan}/results.csv score/tokens {of}").rsplit(", ", 1)
            assert (cell, seeds) == (found, "8 seeds"), plan
            gaps = differences(f"evidence/{plan}/results", f"recommended at {rate}", f"uniform at {rate}")
            assert statistics.mean(gaps) > 0, plan
            kept.append((float(paired_p(statistics.mean(gaps), statistics.stdev(gaps), len(gaps))), "[+" in found))
    p = holm([p for p, _ in kept], len(kept))
    words = " ".join(readme.split())
    assert f"in all 12 comparisons ({sum(sure for _, sure in kept)} intervals are above 0)" in words
    assert f"After Holm's correction p is below 0.05 in {int(sum(p < 0.05))} of 12" in words


def test_the_readme_says_what_is_gained_in_seconds() -> None:
    found = runs("evidence/reversal-seconds-skip/results")["recommended at 1e-4"].values()
    ttb = sorted(float(run["ttb_100/wall_s"].replace("never", "inf")) for run in found)
    words = " ".join((ROOT / "README.md").read_text().split())
    said = (
        f"best score took {percent(statistics.median(ttb))} % of its time ({percent(ttb[0])} % to {percent(ttb[-1])};"
    )
    assert (len(ttb), said in words) == (8, True), said


def test_the_readmes_headline_is_of_fresh_seeds(claim: Any) -> None:
    head = " ".join((ROOT / "README.md").read_text().split("## ")[0].split())
    plans = [one for plans in FRESH.values() for one in plans]
    ttb = [tokens_to_best(f"evidence/{plan}/results", f"recommended at {rate}") for plan, rate in plans]
    medians = [statistics.median(seeds) for seeds in ttb]
    least, most = min(s[0] for s in ttb), max(s[-1] for s in ttb)
    assert f"{percent(min(medians))} to {percent(max(medians))} % of the tokens in the median seed" in head
    assert f"(single seeds: {percent(least)} % to {percent(most)})" in head
    of = "evidence/recommended-smollm2{}/results.csv score/tokens recommended minus=uniform digits=2"
    assert f"(135 million parameters) gained {claim.text_of(of.format('')).replace('10 seeds', 'ten seeds')}" in head
    assert (
        f"in 120 steps, eight other seeds, no sure gain: {claim.text_of(of.format('-long')).split(', 8')[0]}." in head
    )


def test_what_profile_says_of_one_pass_was_measured(claim: Any) -> None:
    once = Facts(0.5, 0.2, 0.4, 0.4, 0.3, 0, 5, 0.0, {}, visits=1.0, embedding=True, references=False)
    said = " ".join(recommend(once).reasons)
    for words, plan, method in (
        ("MoPPS, which can't, {}", "methods-2026-one-pass", "mopps"),
        ("Recommended with categories {})", "methods-2026-one-pass", "recommended"),
        ("trained on Reversal in one pass: {};", "embedding-one-pass", "recommended by embedding"),
        ("`gps`, which uses them too, {}, and", "embedding-one-pass", "gps"),
    ):
        gain = f"'{method} at 1e-4' 'minus=uniform at 1e-4' digits=2"
        found = claim.text_of(f"evidence/{plan}/results.csv score/tokens {gain}").split(" [")[0]
        assert words.format(found) in said, (method, found)


@pytest.mark.parametrize(("page", "heading", "plans"), SECTIONS)
def test_differences_in_tables_are_of_the_runs_and_say_where_t_holds_0(
    page: str, heading: str, plans: list[str]
) -> None:
    seen = 0
    for line in section(page, heading):
        found = DIFFERENCE.findall(line)
        if not line.startswith("| ") or not found:
            continue
        name = line.split("|")[1].split("(")[0].strip()
        method = CSV_NAMES.get(name, name)
        for plan, (mean, low, high, mark) in zip(plans, found, strict=True):
            t = t_interval(differences(plan, method))
            assert abs(t[0] - float(mean)) < 0.00051, (plan, method)
            bootstrap_says_sure = float(low) > 0 or float(high) < 0
            assert bool(mark) == (bootstrap_says_sure and t[1] <= 0 <= t[2]), (plan, method, t)
            seen += 1
    assert seen >= 2


def test_bold_means_surely_above_uniform_sampling() -> None:
    short = (RESULTS / "results-countdown.md").read_text().split("**In short.**")[1].split("## ")[0]
    rows = [line for line in short.splitlines() if re.match(r"\| [a-z]", line)]
    assert len(rows) == 24
    for row in rows:
        name, _, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        method = CSV_NAMES.get(name.split("(")[0].strip(), name.split("(")[0].strip())
        for cell, plan in zip(cells, PLANS[3:], strict=True):
            assert cell.startswith("**") == (t_interval(differences(plan, method))[1] > 0), (plan, method)
    in_short = "\n".join(section("results.md", "## In short"))
    assert "**0." not in in_short  # no "best of a column"


def test_no_other_method_is_called_worse_than_the_best_without_a_test() -> None:
    """The results say that the best other method can't be told from `recommended` in any of its pools."""
    for plan in TUNED_ROWS:
        others = set(runs(plan)) - {"recommended", "uniform", "oracle"}
        best = max(others, key=lambda method: statistics.mean(differences(plan, method)))
        _, low, high = t_interval(differences(plan, "recommended", best))
        assert low <= 0 <= high, (plan, best)


@pytest.mark.parametrize("page", ["results.md", "results-countdown.md", "results-earlier.md", "measurements.md"])
def test_pages_of_results_say_of_which_commit_their_rows_are(page: str) -> None:
    assert "0c36b91" in "\n".join((RESULTS / page).read_text().splitlines()[:15])


@pytest.mark.parametrize(
    "page",
    [
        "docs/methods.md",
        "docs/curricula.md",
        "docs/results.md",
        "benchmarks/results/results.md",
        "benchmarks/results/results-countdown.md",
    ],
)
def test_speeds_paper_is_said_to_be_withdrawn(page: str) -> None:
    assert re.search(r"withdrawn by its first\s+author", (ROOT / page).read_text())


@pytest.mark.parametrize(
    ("page", "n", "plans"), [("results.md", 18, PLANS[:2]), ("results-countdown.md", 15, PLANS[3:5])]
)
def test_the_papers_methods_are_of_their_runs(page: str, n: int, plans: list[str]) -> None:
    """Scores, differences and steps of the table at the top of the results, three seeds each."""
    rows = [line for line in section(page, "## The papers' methods, whole") if re.match(r"\| [a-z]", line)]
    assert len(rows) == n
    for row in rows:
        name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        for plan, (score, difference, _, steps) in zip(plans, (cells[:4], cells[4:]), strict=True):
            if not score:
                continue
            own = runs(f"papers/{plan}")[name]
            assert sorted(own) == [0, 1, 2]
            scores = [float(run["score/tokens"]) for run in own.values()]
            assert score == f"{statistics.mean(scores):.3f} ± {statistics.stdev(scores):.3f}", (plan, name)
            assert steps == f"{statistics.mean(float(run['steps']) for run in own.values()):.0f}", (plan, name)
            if name != "uniform":
                mean, low, high = t_interval(differences(f"papers/{plan}", name))
                assert difference == f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]", (plan, name)


def test_the_table_of_which_curriculum_is_of_the_runs() -> None:
    """Differences from uniform sampling, Reversal / Countdown; a star where the t interval leaves out 0."""

    def cell(folder: str, method: str, regime: str) -> str:
        shown = []
        for task in ("reversal", "countdown"):
            mean, low, high = t_interval(differences(f"{folder}{task}-{regime}", method))
            shown.append(f"{mean:+.2f}{'' if low <= 0 <= high else '*'}")
        return " / ".join(shown)

    table = (ROOT / "docs/choosing.md").read_text().partition("## What was measured")[2]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == 12
    for i, row in enumerate(rows):
        name, *cells = [part.strip() for part in row.strip("|").split("|")]
        method, folder = name.split("`")[1], "" if i < 4 else "papers/"
        assert cells == [cell(folder, method, regime) for regime in ("hopeless", "one-pass")], method


@pytest.mark.parametrize("task", ["compact", "reversal", "search", "search-paper", "letters"])
def test_the_tables_of_best_of_n_are_those_of_the_csv_files(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    study = importlib.import_module("head_study")
    page = (RESULTS / "inference.md").read_text()
    assert study.known_table(task) in page
    assert study.policy_table(task) in page


def test_the_table_of_frontier_is_that_of_the_csv_file() -> None:
    found: dict[str, list[dict[str, str]]] = {}
    with (RESULTS / "frontier.csv").open() as file:
        for line in csv.DictReader(file):
            found.setdefault(line["method"], []).append(line)
    page = (RESULTS / "results.md").read_text().partition("## Frontier in its paper's regime")[2]
    for method, own in found.items():
        cells = next(row for row in page.splitlines() if row.startswith(f"| {method} |")).split(" | ")[1:]
        for column, (at, difference_at) in {"pass@1": (1, 2), "pass@16": (3, 4), "pass@128": (5, 6)}.items():
            values = [float(line[column]) for line in own]
            assert cells[at].strip() == f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}"
            if method != "uniform":
                pairs = [value - float(line[column]) for value, line in zip(values, found["uniform"], strict=True)]
                mean, low, high = t_interval(pairs)
                assert cells[difference_at].removesuffix(" |") == f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def test_the_comparison_of_exemplars_is_of_its_runs() -> None:
    text, plan = "\n".join(section("judges.md", "## Which exemplars")), "judging/exemplars"
    pairs = [(method, "uniform") for method in runs(plan) if method != "uniform"]
    for method, other in [*pairs, ("spread", "newest"), ("spread-expected", "newest-expected")]:
        mean, low, high = t_interval(differences(plan, method, other))
        assert f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]" in text, (method, other)
    for method, own in runs(plan).items():
        scores = [float(run["score/tokens"]) for run in own.values()]
        assert f"{statistics.mean(scores):.3f} ± {statistics.stdev(scores):.3f}" in text, method


def test_every_row_of_the_tables_at_the_budget_is_of_its_runs() -> None:
    """Seeds, score and deviation, bootstrap interval and effective ratio of the six pools and one more rate."""
    tables = [(page, heading, plans[0]) for page, heading, plans in SECTIONS[:8] if len(plans) == 1]
    seen = 0
    for page, heading, plan in tables:
        lines = section(page, heading)
        head = next(line for line in lines if line.startswith("| | seeds | pass@1 at the budget"))
        names = [name.strip() for name in head.split("|")[1:-1]]
        for line in [line for line in lines if re.match(r"\| [a-z].* \d\.\d{3} ± ", line)]:
            row = dict(zip(names, (cell.strip() for cell in line.split("|")[1:-1]), strict=True))
            name = row[""].split("(")[0].strip()
            method = CSV_NAMES.get(name, name)
            own = list(runs(plan)[method].values())
            scores = [float(run["score/tokens"]) for run in own]
            ratios = [float(run["effective_task_ratio/tokens"]) for run in own]
            assert row["seeds"] == str(len(own)), (plan, method)
            assert row["pass@1 at the budget"] == f"{statistics.mean(scores):.3f} ± {statistics.stdev(scores):.3f}"
            assert row["effective ratio"] == f"{statistics.mean(ratios):.3f}", (plan, method)
            if row["from uniform"]:
                pairs = differences(plan, method)
                interval = bootstrap_interval(np.array(pairs), resamples=10_000, seed=0)
                said = "" if interval is None else f" [{interval.low:+.3f}, {interval.high:+.3f}]"
                assert row["from uniform"].rstrip("°") == f"{statistics.mean(pairs):+.3f}{said}", (plan, method)
            seen += 1
    assert seen >= 150


def test_recommended_gained_in_all_twelve_pairs_on_fresh_seeds() -> None:
    gains = [gain for plan in PLANS for gain in differences(f"fresh/{plan}", "recommended")]
    assert len(gains) == 12
    assert min(gains) > 0
    assert "all twelve pairs" in " ".join((ROOT / "docs/results.md").read_text().split())


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *RESULTS.rglob("*.md")]


@pytest.fixture
def claim(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("claim")


def test_every_marked_number_of_every_page_is_of_its_runs(claim: Any) -> None:
    marks = [(page, *one) for page in PAGES for one in claim.marked(page.read_text())]
    assert marks
    for page, text, before in marks:
        assert before.endswith(claim.text_of(text)), (page, text)


def test_claims_by_hand(claim: Any, tmp_path: Path) -> None:
    """Differences .2, .2, .5: mean .3, deviation sqrt(.03), so the t interval is .3 ± 4.303 x .1."""
    rows = [("uniform", 0, 0.2, 1.0), ("uniform", 1, 0.4, 1.0), ("uniform", 2, 0.1, 1.0)]
    rows += [("new", 0, 0.4, 0.5), ("new", 1, 0.6, "never"), ("new", 2, 0.6, 0.75)]
    lines = ["method,seed,score/tokens,ttb", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    said = {
        "r.csv score/tokens uniform": "0.233 ± 0.153, 3 seeds",
        "r.csv score/tokens new minus=uniform": "+0.300 [-0.130, +0.730], 3 seeds",
        "r.csv score/tokens new over=uniform seeds=0,1 digits=3": "1.750 [-1.427, 4.927], 2 seeds",
        "r.csv ttb new median=yes": "0.75 (0.50 to never), 3 seeds",
    }
    assert {text: claim.text_of(text, tmp_path) for text in said} == said
    with pytest.raises(ConfigError, match="a run never gets there, so there is no mean; give median=yes"):
        claim.text_of("r.csv ttb new minus=uniform", tmp_path)
    with pytest.raises(ConfigError, match="1 runs have that number, and 2 are needed"):
        claim.text_of("r.csv ttb new seeds=0", tmp_path)
    with pytest.raises(ConfigError, match="r.csv has no ttb of new for seed 7"):
        claim.text_of("r.csv ttb new seeds=7", tmp_path)
    with pytest.raises(ConfigError, match="r.csv has no ttb of old"):
        claim.text_of("r.csv ttb old", tmp_path)
    (tmp_path / "s.csv").write_text("task,seed,setting,saved\na,0,prune,0.1\na,1,prune,0.3\nb,0,prune,0.9")
    assert claim.text_of("s.csv saved prune where=task:a", tmp_path) == "0.200 ± 0.141, 2 seeds"
    with pytest.raises(ConfigError, match="s.csv has several rows of prune for one seed; say which with where="):
        claim.text_of("s.csv saved prune", tmp_path)
    with pytest.raises(ConfigError, match="a claim has no 'less'"):
        claim.text_of("r.csv ttb new less=uniform", tmp_path)


def test_a_refreshed_page_has_the_numbers_of_now(
    claim: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text(
        "method,seed,score,ttb\nnew,0,0.5,0.25\nnew,1,0.7,never\nold,0,0.5,1\nold,1,0.5,1\n"
    )
    page = (
        "It has 0.1 ± 0.2, 3 seeds <!-- claim: r.csv score new -->,\n| a gain of "
        "-0.3 [-0.4, +0.1], 3 seeds <!-- claim: r.csv score new minus=old -->, 40 % of the tokens: "
        "at 4 (single: 3.5 (never to never), 3 seeds <!-- claim: r.csv ttb new median=yes -->). 1.5, 2 seeds stay.\n"
    )
    now = claim.refreshed(page, tmp_path)
    assert now == (
        "It has 0.600 ± 0.141, 2 seeds <!-- claim: r.csv score new -->,\n| a gain of "
        "+0.100 [-1.171, +1.371], 2 seeds <!-- claim: r.csv score new minus=old -->, 40 % of the tokens: "
        "at 4 (single: never (0.25 to never), 2 seeds <!-- claim: r.csv ttb new median=yes -->). 1.5, 2 seeds stay.\n"
    )
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert claim.refreshed(now, tmp_path) == now
    assert not capsys.readouterr().out
    with pytest.raises(ConfigError, match="no number stands before the mark of 'r.csv score new'"):
        claim.refreshed("Nothing <!-- claim: r.csv score new -->", tmp_path)


def test_refreshing_leaves_the_pages_as_they_are(claim: Any) -> None:
    assert all(claim.refreshed(page.read_text()) == page.read_text() for page in PAGES)


def test_the_slope_over_sizes_by_hand(claim: Any, tmp_path: Path) -> None:
    """.1 and .3 at one size, .4 and .6 at ten times that: .3, with standard error sqrt(.02), 2 degrees of freedom."""
    for name, ends in {"small": (0.1, 0.3), "large": (0.4, 0.6)}.items():
        rows = [f"new at {name},{seed},{score}" for seed, score in enumerate(ends)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["method,seed,score/tokens", *rows, "old,0,0.5"]))
    said = claim.text_of("2e5=small.csv,2e6=large.csv score/tokens 'new at *'", tmp_path)
    assert said == "+0.300 [-0.308, +0.908] for each tenfold, 4 runs"
    with pytest.raises(ConfigError, match=r"small.csv: '\*' must fit one method, and fits new at small, old"):
        claim.text_of("small.csv score/tokens *", tmp_path)


def test_a_claim_of_a_curve_is_read_between_its_evaluations(claim: Any, tmp_path: Path) -> None:
    """At 50 of 100 tokens: .2 and .3 for the method, .1 and .1 for uniform sampling; on the way there .15 and .2."""
    rows = ["plan,method,role,seed,start,budget,step,tokens,eval/pass@1"]
    ends = {("uniform", 0): 0.1, ("uniform", 1): 0.1, ("new", 0): 0.3, ("new", 1): 0.5}
    for (method, seed), end in ends.items():
        rows += [f"p,{method},,{seed},,,0,0,0.1", f"p,{method},,{seed},,,9,100,{end}"]
    (tmp_path / "curves.csv").write_text("\n".join(rows))
    assert claim.text_of("curves.csv eval/pass@1 new at=50", tmp_path) == "0.250 ± 0.071, 2 seeds"
    assert claim.text_of("curves.csv eval/pass@1 new at=9 axis=steps", tmp_path) == "0.400 ± 0.141, 2 seeds"
    assert claim.text_of("curves.csv eval/pass@1 new minus=uniform at=50", tmp_path).startswith("+0.150 [")
    assert claim.text_of("curves.csv eval/pass@1 new until=50", tmp_path) == "0.175 ± 0.035, 2 seeds"
    with pytest.raises(ConfigError, match="new seed 0 was not evaluated about 101 tokens"):
        claim.text_of("curves.csv eval/pass@1 new at=101", tmp_path)


def test_plans_of_the_evidence_are_run_one_after_another_and_their_tables_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """References first where a method needs them; a plan that fails does not stop the others."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    evidence = importlib.import_module("evidence")
    base, uniform = {"task": "reversal", "steps": 3}, {"curriculum": "uniform"}
    told = {"curriculum": "bots", "profile": "references/{name}/seed{seed}"}
    for name, methods in {"a": {"uniform": uniform, "bots": told}, "b": {"uniform": uniform}}.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"base": base, "methods": methods, "seeds": [0]}))
    commands: list[str] = []

    def run(*arguments: object) -> bool:
        commands.append(" ".join(Path(str(part)).name for part in arguments))
        if arguments[1] == "rollwise":
            (out := Path(str(arguments[-3]))).mkdir(parents=True)
            (out / "curves.csv").write_text(out.name)
        return "a.yaml" not in commands[-1] or "references" in commands[-1]

    monkeypatch.setattr(evidence, "run", run)
    out = ["--out", str(tmp_path / "out"), "--comparisons", str(tmp_path / "comparisons")]
    monkeypatch.setattr("sys.argv", ["evidence.py", str(tmp_path), *out, "--jobs", "1"])
    assert evidence.main() == 1
    compare = "-m rollwise compare {0}.yaml --out {0} --jobs 1"
    assert commands == ["references.py a.yaml", compare.format("a"), compare.format("b")]
    assert [(tmp_path / f"out/{name}/curves.csv").read_text() for name in "ab"] == ["a", "b"]
    assert f"failed: {tmp_path / 'a.yaml'}" in capsys.readouterr().out


def test_the_tables_of_unequal_groups_are_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tables = importlib.import_module("allocation").tables(RESULTS / "allocation.csv")
    assert tables in (RESULTS / "allocation.md").read_text()


def test_the_tables_of_the_methods_of_2026_are_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    assert importlib.import_module("methods_2026").tables() in (RESULTS / "methods-2026.md").read_text()


def test_the_tables_of_trained_unequal_groups_are_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tables = importlib.import_module("allocation_trained").tables()
    assert tables in (RESULTS / "allocation.md").read_text()
