"""A row of a shipped plan that has a paper's name runs what its paper describes; one that departs has another name."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollwise.comparing import read_plan
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.curricula.seam.rails import Rails
from rollwise.simulation.config import SimulateConfig

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = {"uniform", "ordered", "recommended", "empirical-bayes", "embedding-judge", "selector", "mixture", "nested"}
OURS |= {"oracle"}
PAPERS = set(CURRICULA) - OURS

FREE: dict[str, set[str]] = {
    "mopps": {"forgetting", "candidate_multiplier"},  # its release has them by task
    "metis": {"format"},  # a policy that follows no instruction answers in letters
    "pilot-commit": {"screen_rollouts"},  # its recipes: a quarter of a group
}
"""Options that a row of a paper's name may set: the paper leaves them to the task."""

Row = Mapping[str, Any]


def departures(name: str, row: Row, *, references: bool) -> list[str]:
    """What a plan's row is not that its name says; `references`: the plan's prompts have reference pass rates."""
    method = row.get("curriculum", "recommended")
    if method not in PAPERS:
        return []
    options, found = dict(row.get("curriculum_options") or {}), []
    if isinstance(make_curriculum(method, **row.get("made_with", options)).rails, Rails) and "rails" not in name:
        found.append(f"{method} has safety rails, which its paper has not")
    if name != method:
        return found
    if more := set(options) - FREE.get(method, set()):
        found.append(f"options of its own: {sorted(more)}")
    if method == "bots" and not (references or row.get("profile")):
        found.append("no reference pass rates, so that rho does nothing")
    gate, gate_options = CURRICULA[method].paper_gate or ("none", {})
    if row.get("gate", "none") != gate or not gate_options.items() <= dict(row.get("gate_options") or {}).items():
        found.append(f"its paper's gate is {gate} {gate_options}")
    trainer = row.get("trainer", "grpo")  # None where nothing is trained, in a simulation
    if trainer is not None and trainer != (CURRICULA[method].paper_trainer or trainer):
        found.append(f"its paper's trainer is {CURRICULA[method].paper_trainer}")
    return found


def compared(path: Path) -> Iterator[tuple[str, Row, bool]]:
    plan = read_plan(path)
    for name, row in plan.methods.items():
        config = plan.config(name, 0, Path())
        yield name, {"trainer": config.trainer, "made_with": config.method_options(), **row}, False


def simulated(path: Path) -> Iterator[tuple[str, Row, bool]]:
    plan = SimulateConfig.from_file(path)
    for name, method in plan.methods.items():
        row = {field: getattr(method, field) for field in ("curriculum", "curriculum_options", "gate", "gate_options")}
        yield name, {**row, "trainer": None}, plan.replay is None


COMPARED = [
    path
    for path in sorted((EXAMPLES / "compare").rglob("*.yaml"))
    if path.parent.name != "methods" and "starts" not in path.parts and "references" not in path.parts
]
SIMULATED = [path for path in sorted((EXAMPLES / "simulate").glob("*.yaml")) if path.stem != "methods"]


@pytest.mark.parametrize("path", [*COMPARED, *SIMULATED], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_row_is_what_it_is_named_after(path: Path) -> None:
    rows = list((compared if path in COMPARED else simulated)(path))
    assert rows
    found = {name: departures(name, row, references=references) for name, row, references in rows}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("metis", "{curriculum: metis, curriculum_options: {rails: on}}", "safety rails"),
        ("mine", "{curriculum: metis, curriculum_options: {rails: default, explore: 0.1}}", ""),
        ("mine", "{curriculum: sec, curriculum_options: {rails: {explore: 0.1}}}", "safety rails"),
        ("sec, rails", "{curriculum: sec, curriculum_options: {rails: on}}", ""),
        ("bots", "{curriculum: bots}", "no reference pass rates"),
        ("bots-explicit", "{curriculum: bots}", ""),
        ("pcl", "{curriculum: pcl, curriculum_options: {judge: frozen}}", "options of its own: \\['judge'\\]"),
        ("pcl", "{curriculum: pcl, curriculum_options: {judge_options: {learning_rate: 0.001}}}", "options of its own"),
        ("greso", "{curriculum: greso}", "its paper's gate is mixed"),
        ("greso", "{curriculum: greso, gate: mixed}", "its paper's gate is mixed {'sizing': 'ratio'}"),
        ("vcrl", "{curriculum: vcrl}", "its paper's gate is variance"),
        ("frontier", "{curriculum: frontier, trainer: grpo}", "its paper's trainer is rloo"),
        ("frontier", "{curriculum: frontier}", "its paper's trainer is rloo"),
        ("speed", "{curriculum: speed, curriculum_options: {screen: 32}}", "options of its own: \\['screen'\\]"),
        ("uniform", "{curriculum: uniform, gate: mixed}", ""),
    ],
)
def test_what_is_refused(name: str, row: str, said: str) -> None:
    found = departures(name, yaml.safe_load(row), references=False)
    assert bool(found) == bool(said)
    assert re.search(said, "; ".join(found))
