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
    """What a run's cost depends on besides its options.

    Median tokens of a prompt, the limit of a completion, held-out prompts, and those of the evaluation at the end.
    Without a tokenizer (the embedded policy before its warm start) the prompts count 0.
    """

    prompt: float
    limit: int
    held_out: int
    at_end: int = 0

    def of(self, config: TrainConfig) -> Cost:
        """The cost of a run with these options."""
        asks = -(-config.steps // config.updates)
        rollouts = asks * config.prompts_per_step * config.num_generations
        evaluations = -(-config.steps // config.eval_every)  # the last step is always evaluated
        if config.eval_every_tokens is not None:
            evaluations = min(config.steps, rollouts * self.limit // config.eval_every_tokens + 1)
        rollouts += (evaluations + 1) * self.held_out * config.num_generations_eval
        rollouts += self.at_end * config.num_generations_end
        return Cost(rollouts, rollouts * self.limit, round(rollouts * self.prompt))
