"""A made-up run's folder: the shapes and noise of a real one, from seeded numpy. No model was trained for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lighter import empty_files

CONFIG = """\
# a made-up run, for tests
task:
  name: countdown
  numbers: 4
model: rollwise/tiny-countdown
curriculum:
  name: prioritized-replay
  ema: 0.8
trainer: grpo
seed: 7
steps: {steps}
"""
CHROMIUM = Path("/usr/bin/chromium")
LANES = ["priority", "explore", "retest-solved", "retest-unsolved"]


def make_metric_rows(steps: int, seed: int) -> list[dict[str, Any]]:
    """A line a step, with an evaluation before training and every twentieth step."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [{"step": 0, "time": 1.76e9, "eval/pass@1": 0.08, "eval/reward": 0.12}]
    wall = tokens = 0.0
    for step in range(1, steps + 1):
        done = step / max(steps, 1)
        good = float(np.clip(0.03 + 0.25 * done + 0.04 * rng.normal(), 0, 1))
        mixed = float(np.clip(0.35 + 0.35 * (1 - np.exp(-6 * done)) - 0.1 * done + 0.06 * rng.normal(), 0, 1 - good))
        step_s, length = float(rng.gamma(20, 0.45)), float(90 + 60 * done + 8 * rng.normal())
        wall, tokens = wall + step_s, tokens + 256 * length
        solved, unsolved = int(420 * done**1.3), int(180 * done)
        success = float(np.clip(good + 0.45 * mixed + 0.03 * rng.normal(), 0, 1))
        row = {
            "step": step, "time": 1.76e9 + wall, "wall_s": wall, "rollouts": 256 * step, "tokens": int(tokens),
            "reward": 0.1 + 0.9 * success, "success": success, "frac_mixed": mixed, "frac_all_good": good,
            "frac_all_bad": 1 - mixed - good, "abs_advantage": 0.8 * mixed + 0.02 * float(rng.normal()),
            "loss": 0.01 * float(rng.normal()), "grad_norm": 0.4, "learning_rate": 1e-6, "entropy": 1 - 0.6 * done,
            "completion_length": length, "ask_s": 0.004, "tell_s": 0.007, "step_s": step_s,
            "curriculum/heap": 2000 - solved - unsolved, "curriculum/solved": solved, "curriculum/unsolved": unsolved,
            "curriculum/unseen": int(2000 * (1 - done) ** 1.5), "curriculum/coverage": 1 - (1 - done) ** 1.5,
        }  # fmt: skip
        if step % 20 == 0:
            row["eval/pass@1"] = float(0.08 + 0.42 * (1 - np.exp(-3 * done)) + 0.015 * rng.normal())
        rows.append(row)
    return rows


def make_rollout_rows(steps: int, groups: int, seed: int) -> list[dict[str, Any]]:
    """`groups` groups of 8 rollouts a step."""
    rng = np.random.default_rng(seed)
    rows = []
    for step in range(1, steps + 1):
        share = np.array([0.8, 0.1, 0.02 + 0.06 * step / steps, 0.04])
        for i in range(groups):
            numbers = rng.integers(1, 60, size=5)
            rewards = [float(r) for r in rng.random(8) < 0.4]
            rows.append({
                "step": step, "ticket": f"{step}-{i}", "prompt_id": f"p{rng.integers(2000)}",
                "lane": str(rng.choice(LANES, p=share / share.sum())), "category": "4 numbers",
                "predicted": round(float(rng.random()), 3), "rewards": rewards, "advantages": rewards,
                "tokens": [90] * 8,
                "prompt": f"Using the numbers {numbers[:4].tolist()}, write an equation that equals {numbers[4]}.",
                "texts": [f"<think>\nTry {numbers[0]} + {numbers[1]} first.\n</think>\n<answer>{numbers[0]} + "
                          f"{numbers[1]} * {numbers[2]} - {numbers[3]}</answer>"] * 8,
            })  # fmt: skip
    return rows


def write_run(
    folder: Path, metrics: list[dict[str, Any]], rollouts: list[dict[str, Any]] | None = None, config: str | None = None
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
    if rollouts is not None:
        (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rollouts))
    if config is not None:
        (folder / "config.yaml").write_text(config)
    return folder


RunMaker = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> RunMaker:
    """Writes rows into a run's folder: `make_run(metrics, rollouts=None, config=None, name="run")`."""

    def make(
        metrics: list[dict[str, Any]],
        rollouts: list[dict[str, Any]] | None = None,
        config: str | None = None,
        name: str = "run",
    ) -> Path:
        return write_run(tmp_path / name, metrics, rollouts, config)

    return make


@pytest.fixture
def metric_rows() -> Callable[..., list[dict[str, Any]]]:
    """`metric_rows(steps, seed)`: made-up lines of metrics.jsonl."""
    return make_metric_rows


@pytest.fixture
def rollout_rows() -> Callable[..., list[dict[str, Any]]]:
    """`rollout_rows(steps, groups, seed)`: made-up lines of rollouts.jsonl."""
    return make_rollout_rows


@pytest.fixture(scope="session")
def whole_run(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A realistic made-up run of 200 steps, with its report written."""
    from rollwise.reports import write_report

    def make(folder: Path) -> None:
        lines = make_metric_rows(200, seed=0), make_rollout_rows(200, groups=16, seed=1)
        write_report(write_run(folder / "countdown-replay-7", *lines, CONFIG.format(steps=200)))

    return once("whole-run", make) / "countdown-replay-7"


@pytest.fixture(scope="session")
def comparison_of_sets(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """Five methods on two named evaluation sets with three categories each, compared."""
    from made_runs import write_sets_comparison

    from rollwise.reports.comparison.report import write_comparison

    def make(folder: Path) -> None:
        gains = {"uniform": 0.1, "bots": 0.3, "prioritized": 0.25, "metis": 0.2, "sec": 0.05}
        with empty_files():
            write_comparison(write_sets_comparison(folder / "sets", gains, seeds=3))

    return once("comparison-of-sets", make) / "sets"


@pytest.fixture
def drawn() -> Callable[[Any], list[dict[str, list[float]]]]:
    """`drawn(spec)`: the heights of each panel's lines, by label."""
    from matplotlib.figure import Figure

    def draw(spec: Any) -> list[dict[str, list[float]]]:
        panels = []
        for panel in spec.panels:
            ax = Figure().subplots()
            panel(ax)
            panels.append({str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in ax.get_lines()})
        return panels

    return draw


@pytest.fixture(scope="module")  # its event loop runs as long as it is there, and others' asyncio.run would fail
def browser() -> Iterator[Any]:
    """A real browser; tests with it are left out where it, or playwright, is not installed."""
    playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser; it is in [dev]")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def said() -> list[str]:
    """What the pages of `open_page` log, fail with or ask for besides themselves."""
    return []


@pytest.fixture
def open_page(browser: Any, said: list[str]) -> Iterator[Callable[..., Any]]:
    """`open_page(path, width=1280, **context)`: the page, which must not have `said` anything when the test ends."""
    contexts = []

    def open_(path: Path, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert said == []
