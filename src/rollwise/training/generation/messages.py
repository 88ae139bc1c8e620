"""Messages from rank 0, which decides what to roll out, to the ranks that generate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from rollwise.judges import Answer, Lesson, Question
from rollwise.tickets.ticket import Purpose


@dataclass(frozen=True, slots=True)
class Order:
    """What to roll out next, the same on every rank.

    Attributes:
        purpose: of all its tickets.
        parts: (rollouts of each, rows of the data set) for each call to the trainer's generation.
        screened: ids of the prompts whose screened rollouts are to be trained on with those of this order.
        tickets: (ticket id, prompt id) of every row of the parts, one part after another; only of a screening.
    """

    purpose: Purpose
    parts: list[tuple[int, list[int]]]
    screened: list[str]
    tickets: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is trained on.

    Attributes:
        rows: of all rollouts, counted through the kept ones and the calls of every round, those of the chosen groups.
        sizes: of these groups.
        used: for each of the rows, whether it is trained on; the others are for the baselines alone.
    """

    rows: list[int]
    sizes: list[int]
    used: list[bool]

    @property
    def trained_sizes(self) -> list[int]:
        """How many rollouts of each group are trained on."""
        used = iter(self.used)
        return [sum(itertools.islice(used, size)) for size in self.sizes]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What the policy is asked before prompts are chosen, the same on every rank."""

    questions: list[Question]


@dataclass(frozen=True, slots=True)
class Judgment:
    """An answered question, the same on every rank.

    Attributes:
        question_id: the question's.
        context_ids: the tokens that the model was given; none where the candidate is too long for it.
        answer_ids: the tokens that it answered, its end included.
        text: them decoded; None where it was not asked.
        exemplars: how many of the question's exemplars it was shown.
        prediction: of an `expected` question, as in `Answer`.
        readable: the same.
        choices: of an `expected` question, its format's answers and what each says.
        spread: of an `expected` question, as in `Answer`.
    """

    question_id: str
    context_ids: list[int]
    answer_ids: list[int]
    text: str | None
    exemplars: int
    prediction: float | None = None
    readable: float = 1.0
    choices: Mapping[str, float] = field(default_factory=dict)
    spread: float | None = None

    def answer(self) -> Answer:
        """What the curriculum is told of it."""
        return Answer(self.question_id, self.text, self.exemplars, self.prediction, self.readable, self.spread)


@dataclass(frozen=True, slots=True)
class JudgedPrompt:
    """A candidate with all that is known of its judgment once its step is over.

    Attributes:
        question: what the policy was asked.
        judgment: what it answered.
        lesson: what its rollouts say of that; None where it was not rolled out, or too little of it.
        chosen: whether it was rolled out in this step.
    """

    question: Question
    judgment: Judgment
    lesson: Lesson | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Call:
    """M groups of n rollouts of one call to the trainer's generation, the same on every rank but for `output`.

    Attributes:
        n: rollouts of each group.
        output: what the trainer returned: this rank's rows, or every rank's if `whole`.
        rewards: (M n,) what the curriculum is told; NaN where unscorable.
        totals: (M n,) what is trained on: the reward functions' weighted sum; NaN where unscorable.
        advantages: (M n,) as the trainer gave them.
        lengths: (M n,) generated tokens.
        texts: M n completions.
        labels: M n kinds of failure; None if nobody names them.
        padding: this many groups, the last ones, are of no ticket: they give every rank an equal share.
        whole: whether `output` holds every rank's rows.
    """

    n: int
    output: dict[str, Any]
    rewards: np.ndarray
    totals: np.ndarray
    advantages: np.ndarray
    lengths: np.ndarray
    texts: list[Any]
    labels: list[str | None] | None = None
    padding: int = 0
    whole: bool = False

    @property
    def spare(self) -> slice:
        """The rollouts of no ticket."""
        return slice(len(self.rewards) - self.padding * self.n, None)

    @property
    def groups(self) -> list[slice]:
        """Where the rollouts of each ticket are."""
        return [slice(i * self.n, (i + 1) * self.n) for i in range(len(self.rewards) // self.n - self.padding)]

    def part(self, own: slice) -> Call:
        """Some of its rollouts, without the trainer's output."""
        flat = {name: getattr(self, name)[own] for name in ("rewards", "totals", "advantages", "lengths", "texts")}
        labels = None if self.labels is None else self.labels[own]
        return replace(self, **flat, labels=labels, output={}, padding=0)


@dataclass(frozen=True, slots=True)
class Kept:
    """A prompt's screened rollouts: the ticket they were made for, its step, and a call of one group."""

    ticket: str
    step: int
    call: Call


class Screened:
    """Rollouts of screenings that wait for the rest of their groups, by prompt id; the same on every rank.

    They are kept in the main memory, so that those that wait take none of an accelerator's.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Kept] = {}

    def add(self, order: Order, step: int, calls: list[Call]) -> None:
        """Keep every group of an order's calls, whose outputs hold every rank's rows."""
        tickets = iter(order.tickets)
        for call in calls:
            for rows in call.groups:
                ticket, prompt_id = next(tickets)
                output = {name: tensor[rows].cpu().clone() for name, tensor in call.output.items()}
                self.groups[prompt_id] = Kept(ticket, step, replace(call.part(rows), output=output, whole=True))

    def take(self, prompt_id: str) -> Kept:
        """A prompt's rollouts, which are kept no longer."""
        return self.groups.pop(prompt_id)

    def retain(self, prompt_ids: list[str]) -> None:
        """Drop all others."""
        self.groups = {prompt_id: self.groups[prompt_id] for prompt_id in prompt_ids}

    def state(self) -> list[dict[str, Any]]:
        """For `torch.save`: tensors and plain values alone."""
        return [
            {
                "prompt_id": prompt_id,
                "ticket": kept.ticket,
                "step": kept.step,
                "output": kept.call.output,
                "numbers": torch.tensor(
                    np.stack([getattr(kept.call, name) for name in ("rewards", "advantages", "lengths", "totals")])
                ),
                "texts": kept.call.texts,
                "labels": kept.call.labels,
            }
            for prompt_id, kept in self.groups.items()
        ]

    def load(self, state: list[dict[str, Any]]) -> None:
        """Take back `state`."""
        self.groups = {}
        for one in state:
            rewards, advantages, lengths, *more = one["numbers"].numpy()
            call = Call(
                n=len(rewards),
                output=one["output"],
                rewards=rewards,
                totals=more[0] if more else rewards,  # checkpoints of before have none
                advantages=advantages,
                lengths=lengths.astype(np.int64),
                texts=one["texts"],
                labels=one["labels"],
                whole=True,
            )
            self.groups[one["prompt_id"]] = Kept(one["ticket"], one["step"], call)


def one_step(args: Any) -> Fraction:
    """The `num_iterations` that makes a generation last as long as an optimiser step, by TRL's product of the two."""
    return Fraction(args.gradient_accumulation_steps, args.steps_per_generation)


def share_of(n: int, processes: int) -> int:
    """The number of groups of `n` rollouts must be a multiple of this, so that every process has as many rollouts.

    >>> share_of(4, 2), share_of(3, 2), share_of(6, 4)
    (1, 2, 2)
    """
    return processes // math.gcd(n, processes)
