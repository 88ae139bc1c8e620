"""The report as a file: well formed, self-contained, escaped, and there for any run."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import MissingExtraError, StateFileError
from rollwise.evaluation import read_run
from rollwise.reports import write_report
from rollwise.reports.run.digest import RolloutDigest
from rollwise.reports.run.figures import build_figures

RunMaker = Callable[..., Path]
Rows = Callable[..., list[dict[str, Any]]]
FIGURES = [
    "advantage", "belief_over_steps", "categories", "coverage", "effective_task_ratio", "lanes", "last_outcomes",
    "outcomes", "overhead", "pools", "reliability", "response_length", "score", "success_rates",
]  # fmt: skip
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that elements nest, and collects ids, elements and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.data: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), "an event handler"
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href", "action", "data", "srcset"}:
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.data.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.data)


def read_page(path: Path) -> tuple[str, Page]:
    text = path.read_text(encoding="utf-8")
    return text, Page(text)


def test_whole_report(whole_run: Path) -> None:
    text, page = read_page(whole_run / "report.html")
    assert page.tags.count("script") == 2  # the rollouts and the page's own
    assert page.tags.count("svg") == 24  # score and ratio on four axes, four pairs, eight single panels
    assert len(page.ids) == len(set(page.ids))
    for said in ["countdown-replay-7", "prioritized-replay", "grpo", "pass@1", "curriculum overhead", "51,200"]:
        assert said in page.text
    for source in ["metrics.jsonl", "rollouts.jsonl", "config.yaml", "201 steps from 0 to 200", "3,200 groups"]:
        assert source in page.text
    assert page.text.count("centred moving mean over 11 steps") == 10
    assert "Damaged or missing" not in page.text
    assert "Not drawn" not in page.text
    assert "# a made-up run, for tests" in page.text
    assert len(text) < 2_000_000


def test_page_asks_for_nothing(whole_run: Path) -> None:
    text, page = read_page(whole_run / "report.html")
    addresses = re.findall(r"https?://[^\s\"'<>)]*", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert len(addresses) == len(re.findall(r'\bxmlns(?::\w+)?="http', text))
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(page.ids)
    assert not re.search(r"@import|url\((?!#)", text)


def test_figures_are_saved_too(whole_run: Path) -> None:
    folder = whole_run / "figures"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{n}.{e}" for n in FIGURES for e in ("png", "svg"))
    for name in FIGURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        svg = (folder / f"{name}.svg").read_text()
        assert svg.startswith("<svg")
        assert "var(--" not in svg


def test_colours_follow_the_page(whole_run: Path) -> None:
    svgs = re.findall(r"<svg.*?</svg>", (whole_run / "report.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not any(re.search(r"#[0-9a-f]{6}\b", svg) for svg in svgs)
    assert not any("DejaVu" in svg for svg in svgs)


@pytest.mark.usefixtures("page_alone")
def test_texts_are_escaped(make_run: RunMaker) -> None:
    attack = '<script>alert(1)</script><img src=x onerror=alert(2)> & "quotes" \' \ud800 \x00 ]]> -->'
    rollouts = [
        {
            "step": 1,
            "lane": f"<b>$x^$ {attack}",
            "prompt": [{"role": attack, "content": attack}],
            "texts": [f"</pre></td>{attack}"],
            "rewards": [1.0, None],
            "predicted": 0.5,
        },
        {"step": 1, "lane": "_hidden", "prompt_id": attack, "category": attack, "rewards": [float("inf")]},
    ]
    config = f"task: '{attack[:24]}'\n# </pre></details>{attack[:50]}\n"
    run = make_run([{"step": 1, "frac_mixed": 0.5}], rollouts, config, name="a<i>b&c")
    text, page = read_page(write_report(run))
    assert len(re.findall("<script", text)) == 2
    assert "<img" not in text
    assert not {"i", "img"} & set(page.tags)
    assert page.text.count("<script>alert(1)</script>") >= 4
    data = re.search(r'<script type="application/json" id="rollouts-data">(.*?)</script>', text, flags=re.DOTALL)
    assert data is not None
    (first, second) = json.loads(data[1])["groups"]
    assert first[2] == f"{attack}: {attack}"  # the half surrogate too
    assert first[-1] == [[1.0, f"</pre></td>{attack}", "", 1], [None, None, "", 1]]
    assert second[1] == attack
    assert "a<i>b&c" in page.text
    assert "_hidden" in page.text


@pytest.mark.parametrize("row", [{"step": 1}, {"step": 0, "eval/pass@1": 0.2}])
def test_one_bare_step(make_run: RunMaker, row: dict[str, Any], recwarn: pytest.WarningsRecorder) -> None:
    _, page = read_page(write_report(make_run([row])))
    assert "1 step from" in page.text
    assert not recwarn.list


def test_one_whole_step(
    make_run: RunMaker, metric_rows: Rows, rollout_rows: Rows, recwarn: pytest.WarningsRecorder
) -> None:
    run = make_run(metric_rows(1, seed=0)[1:], rollout_rows(1, groups=2, seed=0))
    _, page = read_page(write_report(run))
    assert page.tags.count("svg") == 21
    assert re.findall(r"(belief[^()]*) \(needs", page.text) == ["belief against outcome", "belief over the steps"]
    assert not recwarn.list


def test_no_lines_at_all(make_run: RunMaker) -> None:
    _, page = read_page(write_report(make_run([])))
    for said in ["no line yet", "no group", "Not drawn", "frac_mixed"]:
        assert said in page.text


def test_missing_keys_and_values_that_are_not_finite(make_run: RunMaker, recwarn: pytest.WarningsRecorder) -> None:
    nan, inf = float("nan"), float("inf")
    metrics = [
        {"step": s, "success": [0.1, nan, inf, None][s % 4], "frac_mixed": [nan, 0.5][s % 2], "reward": -float(s)}
        for s in range(1, 30)
    ]
    _, page = read_page(write_report(make_run(metrics)))
    assert "generated tokens" not in page.text
    assert page.tags.count("svg") == 2
    assert not recwarn.list


def test_pass_at_k_is_drawn_where_an_evaluation_has_three_k(make_run: RunMaker, metric_rows: Rows) -> None:
    rows = metric_rows(10, seed=0)
    for row in rows:
        row |= {f"eval/pass@{k}": 0.1 * k for k in (1, 2, 4)}
    specs, _ = build_figures(read_run(make_run(rows)), RolloutDigest(), [])
    captions = {spec.name: spec.caption for spec in specs}
    assert captions["pass_at_k"].endswith(
        "of the first and the last evaluation, all k from one sample of 4 completions a prompt."
    )
    specs, _ = build_figures(read_run(make_run(rows[:1], name="begun")), RolloutDigest(), [])
    assert {spec.name: spec.caption for spec in specs}["pass_at_k"].startswith("pass@k of the only evaluation,")


def test_a_page_with_probes_says_which_groups_it_counts(make_run: RunMaker, unrendered: None) -> None:
    """One of three groups was made to measure: the file has three, and its prompt counts as not yet seen."""
    rollouts = [{"step": 1, "prompt_id": str(i), "rewards": [0, 1], "lane": "a"} for i in range(3)]
    said = "Groups to measure or screen don&#x27;t count"
    page = write_report(make_run([{"step": 1, "frac_mixed": 1.0}], rollouts)).read_text(encoding="utf-8")
    assert "(3 groups)" in page
    assert said not in page
    rollouts[0]["purpose"] = "measure"
    page = write_report(make_run([{"step": 1, "frac_mixed": 1.0}], rollouts)).read_text(encoding="utf-8")
    assert "(3 groups)" in page
    assert said in page


def test_curriculum_that_reports_nothing_has_no_pools(make_run: RunMaker, metric_rows: Rows) -> None:
    metrics = [{k: v for k, v in row.items() if not k.startswith("curriculum/")} for row in metric_rows(30, seed=0)]
    specs, lacking = build_figures(read_run(make_run(metrics)), RolloutDigest(), [])
    assert [spec.name for spec in specs] == ["score", "effective_task_ratio", "outcomes", "advantage", "overhead"]
    assert [needs.split(" (")[0] for needs in lacking] == [
        "success rates of the sampled prompts",
        "response length",
        "sizes of the pools",
        "prompts by their last outcome",
        "lanes",
        "categories",
        "belief against outcome",
        "belief over the steps",
        "coverage of the pool",
    ]


def test_out_and_the_same_page_again(make_run: RunMaker, tmp_path: Path) -> None:
    run = make_run([{"step": s, "frac_mixed": 0.1 * s} for s in range(1, 4)])
    out = tmp_path / "site" / "index.html"
    assert write_report(run, out) == out
    assert not (run / "report.html").exists()
    first = out.read_bytes()
    write_report(str(run), str(out))
    assert out.read_bytes() == first
    assert [path.name for path in out.parent.iterdir()] == ["index.html"]


def test_many_steps_make_a_small_page(make_run: RunMaker) -> None:
    metrics = [{"step": s, "frac_mixed": (s * 7919 % 1000) / 1000, "tokens": s, "wall_s": s} for s in range(1, 10_001)]
    path = write_report(make_run(metrics))
    assert path.stat().st_size < 400_000


def test_user_settings_and_pyplot_are_left_alone(make_run: RunMaker) -> None:
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    plain = write_report(make_run([{"step": 1, "frac_mixed": 0.5}])).read_bytes()
    matplotlib.rcParams["font.size"] = 40
    try:
        again = write_report(make_run([{"step": 1, "frac_mixed": 0.5}])).read_bytes()
        assert matplotlib.rcParams["font.size"] == 40
    finally:
        matplotlib.rcParams["font.size"] = before
    assert again == plain


def test_imports_stay_light(make_run: RunMaker) -> None:
    run = make_run([{"step": 1, "frac_mixed": 0.5}])
    code = (
        "import sys, rollwise.evaluation, rollwise.reports as r\n"
        "assert not {'matplotlib', 'torch', 'rollwise.training'} & set(sys.modules)\n"
        f"r.write_report({str(run)!r})\n"
        "assert not {'matplotlib.pyplot', 'torch', 'rollwise.training'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_matplotlib_the_error_names_the_extra(make_run: RunMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "rollwise\[report\]"'):
        write_report(make_run([]))


def test_a_folder_that_is_no_run_gets_no_figures(tmp_path: Path) -> None:
    with pytest.raises(StateFileError):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []
