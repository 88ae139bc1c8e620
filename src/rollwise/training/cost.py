"""What a run costs at most."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.training.config import TrainConfig


@dataclass(frozen=True)
class Cost:
    """What training costs at most, without a curriculum's probes and a gate's refills.

    Attributes:
        rollouts: completions, those of evaluations included; fewer where a token budget ends the run.
        tokens: generated tokens at most.
        read: tokens of prompts.
    """

    rollouts: int = 0
    tokens: int = 0
    read: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rollouts + other.rollouts, self.tokens + other.tokens, self.read + other.read)

    def __str__(self) -> str:
        read = f", about {self.read:,} of prompts" if self.read else ""
        return f"at most {self.rollouts:,} rollouts and {self.tokens:,} generated tokens{read}"


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
        step = config.prompts_per_step * config.num_generations
        tokens = asks * step * self.limit
        if config.token_budget is not None:
            tokens = min(tokens, config.token_budget + step * self.limit)  # it ends after the step that reaches it
        evaluations = -(-config.steps // config.eval_every)  # the last step is always evaluated
        if config.eval_every_tokens is not None:
            evaluations = min(config.steps, tokens // config.eval_every_tokens + 1)
        evaluated = (evaluations + 1) * self.held_out * config.num_generations_eval
        evaluated += self.at_end * config.num_generations_end
        rollouts = asks * step + evaluated
        return Cost(rollouts, tokens + evaluated * self.limit, round(rollouts * self.prompt))
