"""What runs in the sandbox: the scorers of reasoning-gym, some of which execute the answer that they are given."""

from __future__ import annotations

from typing import Any

from rollwise.tasks.gym.generators import generator

# Imported with this module, once in a sandbox, instead of in each call.
generator("gcd", {}, 0)


def score(name: str, parameters: dict[str, Any], seed: int, answer: str) -> float:
    """What reasoning-gym pays for an answer to the item of this seed."""
    dataset = generator(name, parameters, seed)
    return float(dataset.score_answer(answer, dataset[0]))
