"""Rolls out chosen rows of the data set with a TRL trainer's own generation, and collects the rewards."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import trl
from accelerate.utils import gather_object

from rollwise.errors import SilentNoOpError
from rollwise.gates import DynamicSampling
from rollwise.tickets.ticket import Purpose
from rollwise.training.generation.advantages import AdvantageKind, AdvantageScale, group_advantages, scale_advantages
from rollwise.training.generation.isolation import attributes_set
from rollwise.training.generation.merging import check_mergeable, gather_rows
from rollwise.training.generation.messages import Call, share_of
from rollwise.training.recording.phases import UNCHARGED, Phases
from rollwise.training.trainer.environments import generated_lengths

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object

FailureOf = Callable[[Any, Mapping[str, Any]], str | None]


class RolloutMixin(TrlTrainer):
    """One call to the trainer's generation for groups of any size, over all ranks."""

    gate: DynamicSampling | None
    failure_of: FailureOf | None
    success: int | None
    """Which reward function's rewards the curriculum is told; None for the weighted sum that is trained on."""
    _screens: bool
    _captured: dict[str, Any] | None
    phases: Phases

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
        self._captured = None
        phase = UNCHARGED if purpose == "oracle" else "other"
        with (
            attributes_set(self, **self._settings(n, purpose)),
            self._quiet(purpose != "train"),
            self.phases.phase(phase),
        ):
            output: dict[str, Any] = super()._generate_and_score_completions(bound)
        captured = self._require_feedback(bound_prompts)
        if self.gate is not None or self._screens:
            check_mergeable(output)
        labels = None
        if self.failure_of is not None:
            labels = gather_object([self.failure_of(*pair) for pair in zip(captured["texts"], bound, strict=True)])
        advantages = accelerator.gather(output["advantages"].contiguous())
        return Call(
            n=n,
            output=gather_rows(output, accelerator, self._tokenizer.pad_token_id) if purpose == "screen" else output,
            rewards=self._told_rewards(captured).double().cpu().numpy(),
            totals=self._total_rewards(captured).double().cpu().numpy(),
            advantages=advantages.float().cpu().numpy(),
            lengths=np.array(gather_object(generated_lengths(captured["lengths"], output.get("tool_mask")))),
            texts=gather_object(captured["texts"]),  # on every rank, though only rank 0 has observers
            labels=labels,
            padding=padding,
            whole=purpose == "screen",
        )

    def _settings(self, n: int, purpose: Purpose) -> dict[str, Any]:
        """The trainer's attributes to be set otherwise during one call."""
        settings: dict[str, Any] = {"num_generations": n}
        if self._batch_scale:  # it is done over what is trained on
            name, off = (
                ("scale_rewards", "none") if self._batch_scale == "batch-std" else ("normalize_advantages", False)
            )
            settings[name] = off
        if purpose in ("measure", "oracle"):  # nobody needs the log-probabilities of what is not trained on
            settings |= {"beta": 0.0, "num_iterations": 1}
        elif self._screens:
            # Screened rollouts may wait for a step or more. TRL notes the log-probabilities under the policy that made
            # them, so that the loss can weigh them right, when it takes a generation to last beyond an optimiser step.
            settings["num_iterations"] = self.args.gradient_accumulation_steps + 1
        return settings

    @contextmanager
    def _quiet(self, quiet: bool) -> Iterator[None]:
        """Inside, if `quiet`, what the trainer notes for its logs goes nowhere; its count of tokens goes on."""
        if not quiet:
            yield
            return
        nowhere: dict[str, Any] = {mode: defaultdict(list) for mode in self._metrics}
        with attributes_set(self, _metrics=nowhere, _logs=copy.deepcopy(self._logs)):
            yield

    # ---- advantages ----

    @property
    def _batch_scale(self) -> AdvantageScale:
        """How advantages are scaled over the groups that are trained on, where these are not what one call gave."""
        if self.gate is None and not self._screens:
            return ""  # TRL scales them itself
        if getattr(self, "scale_rewards", None) == "batch":
            return "batch-std"
        return "batch-normalised" if getattr(self, "normalize_advantages", False) else ""

    def _advantages(self, rewards: np.ndarray, advantages: np.ndarray, group: int) -> torch.Tensor:
        """The advantages (N,) of whole groups: from what the trainer gave or, with screened ones, by rewards (N,)."""
        device = self.accelerator.device
        numbers = torch.tensor(rewards, dtype=torch.float32, device=device)
        given = torch.tensor(advantages, device=device)
        if self._screens:
            given = group_advantages(self._advantage_kind, numbers, group)
        return scale_advantages(self._batch_scale, given, numbers, group)

    @property
    def _advantage_kind(self) -> AdvantageKind:
        if not hasattr(self, "scale_rewards"):
            return "leave-one-out"
        return "std" if self.scale_rewards == "group" else "centred"

    def _told_advantages(self, rewards: np.ndarray, group: int) -> np.ndarray:
        """The advantages (N,) that the rewards (N,) would have, were they what is trained on."""
        numbers = torch.tensor(rewards, dtype=torch.float32)
        return np.asarray(group_advantages(self._advantage_kind, numbers, group).numpy())

    # ---- what came of the rollouts ----

    def _calculate_rewards(
        self, inputs: list[Any], prompts: list[Any], completions: list[Any], completion_ids_list: list[list[int]]
    ) -> torch.Tensor:
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self._captured = {
            "inputs": inputs,
            "rewards": rewards,  # gathered over ranks by TRL already
            "texts": list(completions),
            "lengths": [len(ids) for ids in completion_ids_list],
        }
        return rewards

    def _total_rewards(self, captured: dict[str, Any]) -> torch.Tensor:
        """The weighted sum over reward functions, flat; NaN only where every function gave NaN, as TRL counts it."""
        rewards = captured["rewards"]
        total: torch.Tensor = (rewards * self.reward_weights.to(rewards.device).unsqueeze(0)).nansum(dim=1)
        total[torch.isnan(rewards).all(dim=1)] = torch.nan
        return total

    def _told_rewards(self, captured: dict[str, Any]) -> torch.Tensor:
        """What says whether a rollout is solved, flat: one function's rewards, or the sum where none is named."""
        if self.success is None:
            return self._total_rewards(captured)
        told: torch.Tensor = captured["rewards"][:, self.success]
        return told

    def _take_captured(self) -> dict[str, Any] | None:
        captured, self._captured = self._captured, None
        return captured

    def _require_feedback(self, prompts: list[Any]) -> dict[str, Any]:
        captured = self._take_captured()
        if captured is None:
            raise SilentNoOpError(
                f"rollouts were generated but no rewards came by: trl {trl.__version__} or a subclass computes them "
                "without _calculate_rewards, so the curriculum would never learn"
            )
        if [row.get("prompt") for row in captured["inputs"]] != prompts:
            raise SilentNoOpError(
                "the prompts that were scored are not those that the curriculum chose: something between replaced or "
                "reordered them (a subclass's _generate_and_score_completions?)"
            )
        return captured
