"""A pickled curriculum goes on as the original: engines send it to other processes."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rollwise as rw

READERS = {"hive", "pcl", "prepo"}
"""They need a policy to read."""
METHODS: dict[str, dict[str, Any]] = {
    **{name: {} for name in sorted(rw.CURRICULA) if name not in READERS},
    "mixture": {"lanes": {"a": {"weight": 0.5, "curriculum": "bots"}, "b": {"weight": 0.5, "curriculum": "sec"}}},
    "nested": {"categories": {"curriculum": "sec"}, "prompts": {"curriculum": "bots"}},
}


def play(curriculum: rw.Curriculum, steps: int) -> list[str]:
    """The prompts asked; half of them are told."""
    asked = []
    for _ in range(steps):
        tickets = curriculum.ask(8, n_rollouts=4)
        curriculum.tell([rw.Outcome(t.id, [1, 0, 0, int(t.prompt_id[1:]) % 2]) for t in tickets[:4]])
        asked += [ticket.prompt_id for ticket in tickets]
    return asked


@pytest.mark.parametrize("copied", [lambda c: pickle.loads(pickle.dumps(c)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.parametrize("method", METHODS)
def test_a_copy_goes_on_as_the_original(method: str, copied: Callable[[rw.Curriculum], rw.Curriculum]) -> None:
    columns = {
        "category": [f"c{i % 7}" for i in range(60)],
        "difficulty": [i / 60 for i in range(60)],
        "embedding": [[i % 5, i % 7] for i in range(60)],
    }
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(60)], columns=columns)
    curriculum = rw.make_curriculum(method, seed=0, rails="on", **METHODS[method])
    curriculum.bind(pool)
    play(curriculum, 3)
    other = copied(curriculum)
    assert play(other, 3) == play(curriculum, 3)
    loaded = copied(curriculum)
    loaded.load_state_dict(curriculum.state_dict())
    assert play(loaded, 3) == play(curriculum, 3)
