"""What the report says of prioritized replay's pools, and of prompts that stay unseen: numbers by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.evaluation import read_run
from rollwise.reports import write_report
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.run.digest import RolloutDigest
from rollwise.reports.run.figures import build_figures

RunMaker = Callable[..., Path]
Drawn = Callable[[FigureSpec], list[dict[str, list[float]]]]


def figures_of(path: Path) -> dict[str, FigureSpec]:
    run = read_run(path)
    return {spec.name: spec for spec in build_figures(run, RolloutDigest.of(run), [])[0]}


def test_deviation_priority_and_flips_are_drawn_as_the_method_had_them(make_run: RunMaker, drawn: Drawn) -> None:
    """A real curriculum over three prompts; p0: 1 then 1/2, p1: 0 then 1, p2: 0 then 0 of two rollouts."""
    replay = rw.PrioritizedReplay(rw.PromptPool(ids=["p0", "p1", "p2"]), exploration=0.0, bias=0.0)
    rates = [{"p0": [1, 1], "p1": [0, 0], "p2": [0, 0]}, {"p0": [0, 1], "p1": [1, 1], "p2": [0, 0]}]
    rows: list[dict[str, Any]] = []
    for step, rewards in enumerate(rates, start=1):
        replay.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in replay.ask(3)])
        rows.append({"step": step, "frac_mixed": 0.5, **{f"curriculum/{k}": v for k, v in replay.metrics().items()}})
    spec = figures_of(make_run(rows))["replay"]
    spread, priority, flips = drawn(spec)
    first, second = np.std([1, 0, 0]), np.std([0.8 * 0.5 + 0.2, 0.8, 0.0])
    assert list(spread.values()) == [pytest.approx([first, second])]
    assert list(priority.values()) == [pytest.approx([0.8 * 0.5 + 0.2 - 0.6**2])]  # E r^2 - (E r)^2; none at step 1
    assert flips == {"out of solved": [0, 1], "out of unsolved": [0, 1]}
    assert "standard deviation" in spec.caption


def test_no_other_method_has_the_figure(make_run: RunMaker) -> None:
    rows = [{"step": 1, "frac_mixed": 0.5, "curriculum/heap": 1, "curriculum/solved": 0, "curriculum/unsolved": 0}]
    assert "replay" not in figures_of(make_run(rows))


@pytest.mark.usefixtures("unrendered")
def test_prompts_that_stay_unseen_are_worth_a_look(make_run: RunMaker) -> None:
    """Ten of 1,000 prompts, each asked for 100 times: a pass; at random 1000 / e = 368 would be left."""
    groups = [{"step": 1 + i // 100, "prompt_id": f"p{i % 10}", "rewards": [0, 1]} for i in range(1000)]
    rows = [{"step": s, "frac_mixed": 1.0, "curriculum/coverage": 0.01} for s in range(1, 11)]
    folder = make_run([*rows[:-1], {**rows[-1], "curriculum/unseen_long": 990}], groups)
    said = (
        "990 of the pool&#x27;s 1,000 prompts were never asked for to train on, in 1,000 draws; drawing at random "
        "would have left about 368."
    )
    assert said in write_report(folder).read_text()
    over = make_run([{**rows[0], "curriculum/unseen_long": 990}, *rows[1:]], groups, name="over")
    assert "Worth a look" not in write_report(over).read_text()


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(("mixed", "said"), [(3, True), (4, False)])
def test_a_pool_with_little_left_to_teach_is_worth_a_look(make_run: RunMaker, mixed: int, said: bool) -> None:
    """A pool of 80 in twenty steps of 4, each prompt once: 3 are fewer than a step's 4, and than 5 %, which are 4."""
    rewards = [[0, 1]] * mixed + [[1, 1]] * 30 + [[0, 0]] * (50 - mixed)
    groups = [{"step": 1 + i // 4, "prompt_id": f"p{i}", "rewards": own} for i, own in enumerate(rewards)]
    rows = [{"step": s, "frac_mixed": 0.1, "curriculum/coverage": s / 20} for s in range(1, 21)]
    page = write_report(make_run(rows, groups)).read_text()
    sentence = (
        "The pool has little left to teach: of its 80 prompts 3 had rewards that differ in their latest group, fewer "
        "than a step trains on; 30 were all solved, 47 all failed."
    )
    assert (sentence in page) == said
    assert f'<td class="value">{mixed}</td>' in page


@pytest.mark.usefixtures("unrendered")
def test_a_pool_that_was_not_seen_may_still_teach(make_run: RunMaker) -> None:
    groups = [{"step": 1 + i // 4, "prompt_id": f"p{i}", "rewards": [1, 1]} for i in range(80)]
    rows = [{"step": s, "frac_mixed": 0.0, "curriculum/coverage": 0.04 * s} for s in range(1, 21)]
    assert "little left to teach" not in write_report(make_run(rows, groups)).read_text()
