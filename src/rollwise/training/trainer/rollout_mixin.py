"""Rolls out chosen rows of the data set with a TRL trainer's own generation, and collects the rewards."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object

from rollwise.tickets.ticket import Purpose
from rollwise.training.generation.advantage_mixin import AdvantageMixin
from rollwise.training.generation.isolation import attributes_set
from rollwise.training.generation.merging import check_mergeable, gather_rows
from rollwise.training.generation.messages import Call, one_step, share_of
from rollwise.training.recording.phases import UNCHARGED, Phases
from rollwise.training.trainer.environments import generated_lengths

_SPREADS = frozenset({"reward_std", "frac_reward_zero_std"})
FailureOf = Callable[[Any, Mapping[str, Any]], str | None]


class RolloutMixin(AdvantageMixin):
    """One call to the trainer's generation for groups of any size, over all ranks."""

    failure_of: FailureOf | None
    phases: Phases
    _tool_mask: list[list[int]] | None
    """See `TimingMixin`."""

    def _roll_out(self, rows: list[int], n: int, purpose: Purpose) -> Call:
        """Roll out `n` completions for each of M rows of the data set; of some rows again, to give each rank as many.

        What is not trained on leaves the trainer's own metrics and logged completions alone.
        """
        accelerator = self.accelerator
        padding = -len(rows) % share_of(n, accelerator.num_processes)
        everyone = [row for row in [*rows, *[rows[-1]] * padding] for _ in range(n)]
        size = len(everyone) // accelerator.num_processes
        mine = everyone[accelerator.process_index * size : (accelerator.process_index + 1) * size]
        bound = [dict(self.train_dataset[row]) for row in mine]
        bound_prompts = [row.get("prompt") for row in bound]
        self._captured = {}
        phase = UNCHARGED if purpose == "oracle" else "other"
        with (
            attributes_set(self, **self._settings(n, purpose)),
            self._quiet(purpose != "train"),
            self.phases.phase(phase),
        ):
            output: dict[str, Any] = super()._generate_and_score_completions(bound)
        self._check_captured(bound_prompts)
        captured = self._captured
        if self.gate is not None or self._screens or self._allocates or self.posterior:
            check_mergeable(output)
        labels = None
        if self.failure_of is not None:
            labels = gather_object([self.failure_of(*pair) for pair in zip(captured["texts"], bound, strict=True)])
        advantages = accelerator.gather(output["advantages"].contiguous())
        return Call(
            n=n,
            output=gather_rows(output, accelerator, self._tokenizer.pad_token_id) if purpose == "screen" else output,
            rewards=captured["rewards"],
            totals=captured["totals"],
            advantages=advantages.float().cpu().numpy(),
            lengths=np.array(gather_object(captured["lengths"])),
            texts=gather_object(captured["texts"]),  # on every rank, though only rank 0 has observers
            labels=labels,
            padding=padding,
            whole=purpose == "screen",
        )

    def _settings(self, n: int, purpose: Purpose) -> dict[str, Any]:
        """The trainer's attributes to be set otherwise during one call."""
        settings: dict[str, Any] = {"num_generations": n}
        if self._batch_scale:  # it is done over what is trained on
            std = self._batch_scale == "batch-std"
            settings |= {"scale_rewards": "none"} if std else {"normalize_advantages": False}
        if purpose in ("measure", "oracle"):
            # Nobody needs the log-probabilities of what is not trained on. TRL computes none for a generation of one
            # optimiser step.
            settings |= {"beta": 0.0, "num_iterations": one_step(self.args)}
        elif self._screens or self.curriculum.wants_feedback:
            # Screened rollouts may wait for a step or more. TRL notes the log-probabilities under the policy that made
            # them, so that the loss can weigh them right, when it takes a generation to last beyond an optimiser step.
            settings["num_iterations"] = self.args.gradient_accumulation_steps + 1
        return settings

    def _quiet(self, quiet: bool) -> AbstractContextManager[None]:
        """Inside, if `quiet`, what the trainer notes for its logs goes nowhere; its count of tokens goes on."""
        if not quiet:
            return nullcontext()
        nowhere: dict[str, Any] = {mode: defaultdict(list) for mode in self._metrics}
        return attributes_set(self, _metrics=nowhere, _logs=copy.deepcopy(self._logs))

    @contextmanager
    def _as_one_call(self, weights: list[int]) -> Iterator[None]:
        """Inside, several calls note their metrics as one: means by rollouts.

        A call knows the spread of its own rollouts alone, so that is left out where it may have parts of groups.
        """
        noted = self._metrics["train"]
        before = {name: len(values) for name, values in noted.items()}
        yield
        for name, values in noted.items():
            first = before.get(name, 0)
            if name in _SPREADS and self._in_parts:
                del values[first:]
            elif len(values) - first == len(weights) > 1:
                extreme = {"min": min, "max": max}.get(name.rsplit("/", 1)[-1].split("_")[0])
                own = values[first:]
                values[first:] = [extreme(own) if extreme else float(np.average(own, weights=weights))]
        for name in [name for name, values in noted.items() if not values]:
            del noted[name]

    def _calculate_rewards(
        self, inputs: list[Any], prompts: list[Any], completions: list[Any], completion_ids_list: list[list[int]]
    ) -> Any:
        with self.phases.phase("reward"):
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # of all ranks
        # What is trained on, the weighted sum, is NaN only where every function gave NaN, as TRL counts it.
        totals: torch.Tensor = (rewards * self.reward_weights.to(rewards.device).unsqueeze(0)).nansum(dim=1)
        totals[torch.isnan(rewards).all(dim=1)] = torch.nan
        told = totals if self.success is None else rewards[:, self.success]
        self._captured = {
            "prompts": [row.get("prompt") for row in inputs],
            "rewards": told.cpu().double().numpy(),
            "totals": totals.cpu().double().numpy(),
            "texts": list(completions),
            "lengths": generated_lengths(completion_ids_list, self._tool_mask),
        }
        return rewards
