"""Results of evaluations by prompt: `evaluations.jsonl` and `evaluation_sets.json` of a run's folder.

`evaluation_sets.json` maps each set's name ("" for the only one, without a name) to its `ids` and `categories` (null
where it has none). A line of `evaluations.jsonl` is one evaluation of one set: `step`, `set` (null without a name),
`generations` of each prompt, and in the order of the ids each prompt's mean `reward` (null where no rollout could be
scored) and number of `successes`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import StateFileError
from rollwise.runs.lines import Faults, read_json_lines
from rollwise.runs.names import EVALUATION_SETS_FILE, EVALUATIONS_FILE
from rollwise.state import write_atomically


@dataclass(frozen=True)
class EvaluationSet:
    """The N prompts of an evaluation set.

    Attributes:
        ids: (N,) of the prompts.
        categories: (N,); None where they have none.
    """

    ids: list[str]
    categories: list[str] | None = None


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation measured of each of a set's N prompts.

    Attributes:
        step: Optimiser steps done; 0 before training.
        set: The set's name; None for the only one, without a name.
        generations: Rollouts of each prompt.
        ids: (N,) of the prompts.
        categories: (N,); None where they have none.
        reward: (N,) mean reward of each prompt; NaN where no rollout could be scored.
        successes: (N,) how many of a prompt's rollouts solved it.
    """

    step: int
    set: str | None
    generations: int
    ids: list[str]
    categories: list[str] | None
    reward: NDArray[np.float64]
    successes: NDArray[np.int64]

    @property
    def pass_rates(self) -> NDArray[np.float64]:
        """The share of each prompt's rollouts that solved it, (N,)."""
        return self.successes / self.generations


def scores_by_category(evaluation: Evaluation) -> dict[str, float]:
    """pass@1 of each category, by name; empty where the prompts have none.

    >>> of = {"ids": ["a", "b", "c"], "categories": ["x", "y", "y"], "reward": np.zeros(3)}
    >>> scores_by_category(Evaluation(step=0, set=None, generations=4, successes=np.array([4, 2, 0]), **of))
    {'x': 1.0, 'y': 0.25}
    """
    if not evaluation.categories:
        return {}
    names, place, prompts = np.unique(evaluation.categories, return_inverse=True, return_counts=True)
    scores = np.bincount(place, evaluation.successes, len(names)) / (prompts * evaluation.generations)
    return dict(zip(map(str, names), scores.tolist(), strict=True))


def read_evaluations(folder: str | Path, faults: Faults | None = None) -> list[Evaluation]:
    """All evaluations of a run by step, the sets in the order of the file; none of a run that kept none.

    Of a set that was evaluated twice at a step the later evaluation counts.

    Args:
        folder: The run's.
        faults: Where lines that can't be read are noted before reading goes on; None to raise.

    Raises:
        StateFileError: Without `faults`: a line other than the last is malformed, or does not fit its set.
    """
    path = Path(folder) / EVALUATIONS_FILE
    if not path.exists():
        return []
    sets = read_sets(folder, faults)
    found: dict[tuple[int, str | None], Evaluation] = {}
    for number, line in read_json_lines(path, faults):
        try:
            one = _evaluation(line, sets)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if faults is None:
                raise StateFileError(
                    f"{str(path)!r}, line {number} does not fit {EVALUATION_SETS_FILE} ({error!r}); delete that line"
                ) from error
            faults.add_line(EVALUATIONS_FILE, number, f"it does not fit {EVALUATION_SETS_FILE}")
            continue
        found[one.step, one.set] = one
    return sorted(found.values(), key=lambda one: one.step)


def read_sets(folder: str | Path, faults: Faults | None = None) -> dict[str, EvaluationSet]:
    """The evaluation sets of a run by name, "" for one without; none where the file is not there.

    Raises:
        StateFileError: Without `faults`: the file is damaged.
    """
    path = Path(folder) / EVALUATION_SETS_FILE
    if not path.exists():
        return {}
    try:
        sets = json.loads(path.read_text(encoding="utf-8"))
        return {name: _set(one) for name, one in sets.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if faults is None:
            raise StateFileError(f"{str(path)!r} can't be read ({error!r}); resume the run to have it again") from error
        faults.add_file(EVALUATION_SETS_FILE, "can't be read")
        return {}


def _set(facts: Mapping[str, Any]) -> EvaluationSet:
    ids, categories = list(facts["ids"]), facts["categories"]
    return EvaluationSet(ids, None if categories is None else [str(c) for _, c in zip(ids, categories, strict=True)])


def write_sets(folder: Path, sets: Mapping[str, EvaluationSet]) -> None:
    """Write `evaluation_sets.json`, atomically."""
    facts = {name: {"ids": one.ids, "categories": one.categories} for name, one in sets.items()}
    write_atomically(folder / EVALUATION_SETS_FILE, json.dumps(facts).encode())


def evaluation_line(
    step: int, name: str, generations: int, reward: Sequence[float], successes: Sequence[int]
) -> dict[str, Any]:
    """A line of `evaluations.jsonl` for the set `name` ("" for the only one), as `RunFolder.append` takes it."""
    return {
        "step": step,
        "set": name or None,
        "generations": generations,
        "reward": list(reward),
        "successes": list(successes),
    }


def _evaluation(line: Mapping[str, Any], sets: Mapping[str, EvaluationSet]) -> Evaluation:
    name = line["set"]
    prompts = sets[name or ""]
    reward = np.array(line["reward"], dtype=np.float64)
    successes = np.array(line["successes"], dtype=np.int64)
    if not reward.shape == successes.shape == (len(prompts.ids),):
        raise ValueError(f"{len(prompts.ids)} prompts, {reward.size} rewards, {successes.size} successes")
    generations = int(line["generations"])
    if generations < 1 or not ((successes >= 0) & (successes <= generations)).all():
        raise ValueError(f"successes of {generations} generations out of range")
    return Evaluation(int(line["step"]), name, generations, prompts.ids, prompts.categories, reward, successes)
