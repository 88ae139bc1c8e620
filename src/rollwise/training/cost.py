"""What a run costs at most."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.training.config import TrainConfig


@dataclass(frozen=True)
class Cost:
    """What training costs at most, without a curriculum's probes and a gate's refills.

    Attributes:
        rollouts: completions, those of evaluations included.
        tokens: generated tokens at most.
        read: tokens of prompts.
    """

    rollouts: int = 0
    tokens: int = 0
    read: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rollouts + other.rollouts, self.tokens + other.tokens, self.read + other.read)

    def __str__(self) -> str:
        return f"{self.rollouts:,} rollouts, at most {self.tokens:,} generated tokens, about {self.read:,} of prompts"


@dataclass(frozen=True)
class Estimate:
    """What a run's cost depends on besides its options: median tokens of a prompt, completion limit, held-out prompts.

    Without a tokenizer (the embedded policy before its warm start) the prompts count 0.
    """

    prompt: float
    limit: int
    held_out: int

    def of(self, config: TrainConfig) -> Cost:
        """The cost of a run with these options."""
        evaluations = config.steps // config.eval_every + 1 if self.held_out else 0
        asks = -(-config.steps // config.updates)
        rollouts = asks * config.prompts_per_step * config.num_generations
        rollouts += evaluations * self.held_out * config.num_generations_eval
        return Cost(rollouts, rollouts * self.limit, round(rollouts * self.prompt))
