"""A commented config of `rollwise simulate`, made from the docstrings of what it sets: it can't be out of date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from rollwise.simulation.config import Blocked, Replay, SimulateConfig
from rollwise.simulation.making import Population
from rollwise.simulation.methods import DEFAULT_METHODS, NO_GATE
from rollwise.simulation.world import Learner


def template() -> str:
    """A YAML file of every key with its default, and what it means as a comment."""
    docs, nested = meanings(SimulateConfig), {"population", "learner", "blocked", "replay", "methods"}
    lines = [
        "# SIMULATED: a comparison of curricula on a learner without a model: rollwise simulate THIS_FILE --out OUT",
        "# Each key has the default shown here; those behind a # have none, or one that depends on the others.",
        "",
        *_section(SimulateConfig, skip=nested, shown={"seeds": 5, "baseline": next(iter(DEFAULT_METHODS))}),
    ]
    sections: dict[str, type] = {"population": Population, "learner": Learner}
    for name, kind in sections.items():
        lines += ["", f"{name}:{' ' * 20}# {docs[name]}", *("  " + line for line in _section(kind))]
    optional: dict[str, type] = {"blocked": Blocked, "replay": Replay}
    for name, kind in optional.items():
        inner = ["  " + line.removeprefix("# ") for line in _section(kind)]
        lines += ["", *(f"# {line}" for line in (f"{name}:{' ' * 20}# {docs[name]}", *inner))]
    lines += ["", f"methods:{' ' * 20}# {docs['methods']}"]
    for name, method in DEFAULT_METHODS.items():
        gate = "" if method.gate == NO_GATE else f", gate: {method.gate}"
        if method.gate_options:
            gate += f", gate_options: {{{', '.join(f'{key}: {value}' for key, value in method.gate_options.items())}}}"
        lines.append(f"  {name}: {{curriculum: {method.curriculum}{gate}}}")
    return "\n".join(lines) + "\n"


def _section(kind: type, *, skip: Iterable[str] = (), shown: Mapping[str, Any] | None = None) -> list[str]:
    """A line for each field: its default, or a # in front where there is none, and its meaning."""
    docs, lines = meanings(kind), []
    for f in fields(kind):
        if f.name in skip:
            continue
        value = (shown or {}).get(f.name, f.default)
        given = value is not MISSING and value is not None
        entry = f"{f.name}: {value}" if given else f"# {f.name}:"
        lines.append(f"{entry:<26}# {docs[f.name]}")
    return lines


def meanings(kind: type) -> dict[str, str]:
    """What a dataclass's docstring says of each attribute."""
    text = (inspect.getdoc(kind) or "").partition("Attributes:\n")[2]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}
