"""No option of a method is taken and then does nothing: as a lane of a mixture, made by name, and inside nested."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.curricula.families.arms import ArmBandit
from rollwise.curricula.families.ranked import Ranked
from rollwise.errors import RollwiseError
from rollwise.judges import Answer
from rollwise.options import keyword_options


class Made(rw.Judge):
    """Says something of four in five prompts."""

    def __init__(self, *, predicts: Any = "pass-rate") -> None:
        self.predicts = predicts

    def predict(self, candidates: Any) -> np.ndarray:
        numbers = np.array([zlib.crc32(text.encode()) % 25 for text in candidates.texts])
        return np.where(numbers % 5, numbers / 100, np.nan)


FRONTIER = {"least_memory": 2, "candidates": 3}
BESIDE: dict[str, list[dict[str, Any]]] = {
    "actor-curator": [{"dormant": 1, "warmup": 1}],
    "adcl": [{}, {"difficulty": "column"}],
    "bots": [{}, {"implicit": "kernel"}, {"draw": "softmax"}, {"belief": "gaussian"}, {"belief": "dirichlet"}]
    + [{"prior": "difficulty"}, {"implicit": ["kernel", "interpolation"]}],
    "dots": [{"reference_set": 9}, {"reference_set": 9, "implicit": "interpolation"}],
    "empirical-bayes": [{}, {"category": "difficulty"}, {"category": "embedding"}],
    "frontier": [FRONTIER, {**FRONTIER, "memory": "failure"}, {**FRONTIER, "memory": "goldilocks"}]
    + [{**FRONTIER, "belief": "frozen", "belief_options": {"hidden": 4}}],
    "gaussian-target": [{}, {"patience": 2}],
    "embedding-judge": [{"hidden": 4}],
    "gps": [{"hidden": 4}],
    "hive": [{"judge": Made(predicts="entropy")}],
    "metis": [{}, {"format": "digit"}],
    "oracle": [{"candidates": 9}],
    "pac": [{"cold_steps": 2}],
    "pcl": [{"judge": Made()}, {"judge": "frozen", "judge_options": {"hidden": 4}}],
    "pilot-commit": [{"low": 0.4, "high": 0.6, "rounds": 1, "batches": 1}, {"screen_rollouts": 2}],
    "prepo": [{"judge": Made(predicts="perplexity")}],
    "prioritized": [{}, {"draw": "proportional"}],
    "sec": [{}, {"choice": "ucb"}, {"choice": "thompson"}],
    "selector": [{}, {"draw": "softmax"}, {"estimator": "beta"}],
    "sfl": [{"candidates": 20, "refresh_every": 4, "buffer": 6}],
    "speed": [{"screen_rollouts": 2, "screen": 4, "screen_limit": 3}],
    "vcrl": [{"first_steps": 3}],
}
BESIDE["recommended"] = BESIDE["empirical-bayes"]
"""What stands beside an option that is tried, by method: one after another, until the option does something."""

VALUES: dict[str, list[Any]] = {
    **{
        "acquisition": ["target"],
        "advantage": ["told"],
        "belief": ["gaussian", Made()],
        "belief_options": [{"hidden": 2}],
    },
    **{"capability_by": ["category"], "category": ["other"], "choice": ["ucb"], "column": ["number", "vector"]},
    **{"default": [0.2], "embedding": ["vector"], "estimator": ["beta"], "estimator_options": [{"prior": (3.0, 1.0)}]},
    **{"format": ["boxed"], "goldilocks_range": [(0.4, 0.6)], "history": [rw.Uniform(), rw.GRESO()]},
    **{"implicit": ["none", "interpolation"], "implicit_shares": [(3.0, 1.0)], "judge": ["frozen"]},
    **{
        "judge_column": ["text"],
        "judge_options": [{"hidden": 2}],
        "key_column": ["other"],
        "levels": [(0.0, 0.5, 1.0)],
    },
    **{"prior": [(3.0, 1.0)], "references": [("number", "pass_rate")], "reward": ["continuous"]},
    **{"shares": [{"c0": 5, "c1": 1}], "taxonomy_weights": [{"a": 9.0}]},
}
"""Values of options whose type does not say what they take."""

IDLE = {
    "embedding-judge": {"default"},  # it predicts all candidates or none
    "mapp": {"group_size"},  # until an `ask` says its rollouts, as here
    "hive": {"judge", "judge_options"},  # by name there is one alone, which needs torch
    "prepo": {"judge", "judge_options"},
}
REFUSED = {"candidate_multiplier", "diversity", "pass_below", "pool_multiplier", "within"}
"""By `Nested`, in which there are no candidates."""

N = 48
RNG = np.random.default_rng(0)
HARD = RNG.random(N)
POOL = rw.PromptPool(
    ids=[f"p{i}" for i in range(N)],
    columns={
        "difficulty": HARD,
        "pass_rate": np.round(8 * (1 - HARD)) / 8,
        "reference_pass_rates": np.stack([0.8 * (1 - HARD), 1 - 0.8 * HARD], axis=1),
        "category": [f"c{int(3 * x)}" for x in HARD],
        "other": [f"o{i % 3}" for i in range(N)],
        "embedding": np.stack([HARD, *RNG.random((2, N))], axis=1),
        "number": RNG.random(N),
        "vector": RNG.random((N, 3)),
        "text": [f"{i * i}" for i in range(N)],
    },
)


def values_of(kind: type, option: str, default: Any) -> Iterator[Any]:
    """Values of an option, perhaps out of its range."""
    yield from VALUES.get(option, [])
    written = get_type_hints(kind.__init__, include_extras=True)[option]  # type: ignore[misc]
    for one in (written,) if get_origin(written) is None else (written, *get_args(written)):
        base = get_args(one)[0] if hasattr(one, "__metadata__") else one
        start = default if isinstance(default, int | float) and default else 1
        if get_origin(base) is Literal:
            yield from get_args(base)
        elif base in (bool, int, float):
            yield from map(base, (not default, 3 * start + 1, start / 3, 2, min(1.0, 1.7 * start), 0.9))


def outcome(ticket: rw.Ticket, step: int) -> rw.Outcome:
    slot, n = POOL.slot(ticket.prompt_id), ticket.n_rollouts or 4
    drawn = np.random.default_rng([step, slot]).random(n)
    rewards = np.where(drawn < 1.2 - 1.3 * HARD[slot] + step / 50, 1.0, np.where(drawn < 0.9, 0.25, 0.0))
    labels = [None if reward == 1 else "ab"[slot % 2] for reward in rewards]
    return rw.Outcome(ticket.id, rewards, advantages=(rewards - 0.5) * (1 + slot), labels=labels)


def answer(question: Any) -> Answer:
    said = zlib.crc32(question.prompt_id.encode()) % 25 / 100
    if question.expected:
        return Answer(question.id, None, prediction=said, readable=0.9, spread=0.001)
    return Answer(question.id, f"\\boxed{{{said}}}" if said < 0.2 else "hm")


def seen(curriculum: rw.Curriculum) -> str:
    """All that a loop sees of a curriculum in some steps in which it gives whatever may be wanted."""
    curriculum.bind(POOL)
    found: list[Any] = []
    for step in range(1, 17):
        curriculum.note_score(min(step, 6) / 10)
        while probes := curriculum.probe(12, n_rollouts=4, wanted=6):
            found += probes
            curriculum.tell([outcome(t, step) for t in probes])
        questions = curriculum.consult(6)
        curriculum.advise(map(answer, questions))
        tickets = curriculum.ask(6, n_rollouts=4)
        curriculum.tell([outcome(t, step) for t in tickets])
        found += [[q.context() for q in questions], tickets, curriculum.lessons(), curriculum.judge_weight]
        if curriculum.wants_feedback:
            curriculum.feedback({t.id: HARD[POOL.slot(t.prompt_id)] - 0.5 for t in tickets})
    return repr([found, sorted(curriculum.metrics().items())])


def composed(name: str, options: dict[str, Any], nested: bool) -> rw.Curriculum:
    own = {"curriculum": name, "options": options}
    if not nested:
        lanes = {"own": {"weight": 3, **own}, "uniform": {"weight": 1, "curriculum": "uniform"}}
        return make_curriculum("mixture", lanes=lanes, rails="off", seed=1)
    parts = {"categories": {"curriculum": "sec"}, "prompts": {"curriculum": "bots"}}
    parts["categories" if issubclass(CURRICULA[name], ArmBandit) else "prompts"] = own
    return make_curriculum("nested", **parts, rails="off", seed=1)


def differs(name: str, options: dict[str, Any], nested: bool, usual: str) -> bool:
    try:
        return seen(composed(name, options, nested)) != usual
    except RollwiseError:  # out of its range, or refused
        return False


LANES = sorted(set(CURRICULA) - {"mixture", "nested"})
PARTS = [name for name in LANES if issubclass(CURRICULA[name], ArmBandit | Ranked) and name != "actor-curator"]


@pytest.mark.parametrize(("name", "nested"), [*((name, False) for name in LANES), *((name, True) for name in PARTS)])
def test_every_option_does_something(name: str, nested: bool) -> None:
    kind, idle = CURRICULA[name], dict(keyword_options(CURRICULA[name]))
    for beside in BESIDE.get(name, [{}]):
        beside = {**beside, **({"candidate_multiplier": None} if nested and "candidate_multiplier" in idle else {})}
        usual = seen(composed(name, beside, nested))
        for option, default in list(idle.items()):
            values = values_of(kind, option, beside.get(option, default))
            if any(differs(name, {**beside, option: value}, nested, usual) for value in values):
                del idle[option]
    assert set(idle) - (REFUSED if nested else set()) == IDLE.get(name, set())
