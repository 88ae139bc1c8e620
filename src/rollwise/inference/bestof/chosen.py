"""A setting of `bestof` taken from an evaluation, with a warning where it is used on other data or weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.policies import EarlyStop
from rollwise.runs.evaluation_file import read_evaluation
from rollwise.runs.names import EVALUATION_FILE

LEAST_GAP = 0.05
"""Pass rates that differ by less are not warned of, however sure the difference is."""


@dataclass(frozen=True)
class Chosen:
    """A setting of an evaluation.

    Attributes:
        path: The evaluation's folder.
        name: The setting's.
        options: Of `bestof`: policy, policy_options, num_generations, mean_k and select.
        headless: Whether it needs no success head.
        found: The contents of `evaluation.json`.
    """

    path: Path
    name: str
    options: Mapping[str, Any]
    headless: bool
    found: Mapping[str, Any] = field(repr=False)

    def differences(self, now: Mapping[str, Any]) -> list[str]:
        """What is not as it was in the evaluation, in sentences.

        Args:
            now: `weights_digest`, `head` (its digest, or None), `data_hash`, `source` (`bench.source_of`), `limit`,
                `temperature`, `top_p`, `stop`.
        """
        about, digests = self.found["about"], self.found.get("digests", {})
        was = {
            "weights_digest": digests.get("weights_digest"),
            "head": about.get("head"),
            "limit": self.found["config"]["limit"],
            "temperature": about.get("temperature"),
            "top_p": about.get("top_p"),
            "stop": about.get("stop"),
        }
        words = {
            "weights_digest": "model's weights (digest)",
            "limit": "limit of tokens",
            "stop": "list of stop texts",
        }
        said = [
            f"the {words.get(name, name)} was {before!r} there and is {now[name]!r} here"
            for name, before in was.items()
            if before is not None and now[name] is not None and now[name] != before
        ]
        source = about.get("data")
        if source is not None and source != now["source"] and digests.get("data_hash") != now["data_hash"]:
            name = next(one for one in source if source[one] != now["source"].get(one))
            said.append(f"the {name} was {source[name]!r} there and is {now['source'].get(name)!r} here")
        return said

    def easier_or_harder(self, solved: Sequence[bool | None], values: Sequence[float]) -> str | None:
        """A sentence if the prompts' pass rate is not that of the evaluation; None if it is, or nothing can be said.

        By the rewards of each prompt's first candidate, where all of them are known; else by the head's V(x).

        Args:
            solved: (N,) whether each prompt's first candidate succeeded; None where it was given up or not scored.
            values: (N,) V(x); NaN where nothing was read.
        """
        if solved and None not in solved:
            what, here = "pass rate", np.array(solved, dtype=np.float64)
            there = self.found["best_of"][0]["accuracy"]["mean"]
        else:
            what, here, there = "mean V(x)", np.array(values, dtype=np.float64), self.found.get("value")
        if there is None or not len(here) or not np.isfinite(here).all():
            return None
        error = math.hypot(here.std(), math.sqrt(max(there * (1 - there), 0.0))) / math.sqrt(len(here))
        if abs(here.mean() - there) <= max(LEAST_GAP, 2 * error):
            return None
        return (
            f"the {what} of these {len(here):,} prompts is {here.mean():.3f}, that of the evaluation {there:.3f}: "
            f"{self.name!r} was chosen for other prompts or another policy; choose anew with `rollwise head evaluate`"
        )


def setting_of(path: str | Path, name: str | None = None) -> Chosen:
    """A setting from `evaluation.json`, or from the folder that holds it.

    Without a name it is the cheapest in row-forwards of those that go by the head and lose no more accuracy than the
    evaluation's tolerance, on all of its prompts. What to expect of it stands among the held-out operating points.

    Raises:
        ConfigError: no such setting, or an evaluation of an earlier version, which does not hold their options.
        StateFileError: there is no evaluation.
    """
    folder = Path(path).parent if Path(path).name == EVALUATION_FILE else Path(path)
    found = read_evaluation(folder)
    policies = {policy["name"]: policy for policy in found["policies"]}
    if not all("options" in policy for policy in policies.values()):
        raise ConfigError(
            f"{str(folder)!r} was evaluated by an earlier version, which did not keep the settings' options; run its "
            "`rollwise head evaluate` again: what was decoded is kept"
        )
    if name is not None and name not in policies:
        raise ConfigError(f"setting must be one of the evaluation's, {', '.join(policies)}, got {name!r}")
    policy = _cheapest(found) if name is None else policies[name]
    options = {
        **_as_meant(policy["options"]),
        "num_generations": found["config"]["num_generations"],
        "mean_k": policy["mean_k"],
        "select": policy["rule"],
    }
    return Chosen(folder, policy["name"], options, bool(policy["headless"]), found)


def _as_meant(options: Mapping[str, Any]) -> dict[str, Any]:
    """A setting's options as its evaluation meant them: early-stop of before looked at finished candidates too."""
    if options["policy"] == EarlyStop.name and "finished" not in options["policy_options"]:
        return {**options, "policy_options": {**options["policy_options"], "finished": True}}
    return dict(options)


def _cheapest(found: Mapping[str, Any]) -> Mapping[str, Any]:
    least = -float(found["config"]["tolerance"]) - 1e-12
    good: list[Mapping[str, Any]] = [
        policy
        for policy in found["policies"]
        if not policy["headless"] and policy["accuracy_difference"]["value"] >= least
    ]
    return min(good, key=lambda policy: (policy["row_forwards"]["mean"], not policy["baseline"], policy["name"]))
