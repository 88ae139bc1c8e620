"""A curriculum on TRL's own trainers: one mixin over GRPOTrainer and RLOOTrainer.

TRL's data loader is left as a clock. Its rows are ignored; prompts are bound at the moment the trainer is about to
generate, so neither accelerate's look-ahead nor gradient accumulation can make a choice stale, and a resumed run does
not ask again for what it skips. Rank 0 asks and tells; the other ranks follow.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import trl
from accelerate.utils import gather_object

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.gates import DynamicSampling, Everything, Gate
from rollwise.training.callbacks import NoOpAlarm
from rollwise.training.checkpointing import CheckpointMixin
from rollwise.training.dataset import rows_of_pool
from rollwise.training.generation import Generation, Round
from rollwise.training.groups import Groups
from rollwise.training.isolation import isolated_rng
from rollwise.training.merging import AdvantageScale, check_mergeable, gather_rows, merge, scale_advantages

_HOOKS = {
    "_generate_and_score_completions": ["self", "inputs"],
    "_calculate_rewards": ["self", "inputs", "prompts", "completions", "completion_ids_list"],
    "_save_checkpoint": ["self", "model", "trial"],
    "_load_optimizer_and_scheduler": ["self", "checkpoint"],
}


class CurriculumMixin(CheckpointMixin):
    """Put before a TRL trainer in a class's bases, it lets a curriculum choose every prompt.

    Args:
        *args: the trainer's.
        curriculum: unbound (its pool is then made from `train_dataset`), or bound to a pool of the same prompts.
        gate: dynamic sampling, or a gate that is used so: groups it rejects are not trained on, further prompts are
            rolled out in their place. Every group is told to the curriculum all the same.
        id_column: the column of `train_dataset` with durable ids; the prompts' content where there is none.
        group_observers: called on rank 0 with the `Groups` of every generation.
        **kwargs: the trainer's.

    Raises:
        ConfigError: the data set or the batch can't be served by the curriculum.
        SilentNoOpError: the curriculum could not take effect (other prompts, or a TRL whose hooks have moved); also
            raised while training, at the first step at which that shows.
    """

    def __init__(
        self,
        *args: Any,
        curriculum: Curriculum,
        gate: DynamicSampling | Gate | None = None,
        id_column: str = "id",
        group_observers: list[Callable[[Groups], None]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            raise ConfigError(f"curriculum must be a rollwise curriculum, got {type(curriculum).__name__}")
        self._check_hooks()
        super().__init__(*args, **kwargs)
        self.curriculum = curriculum
        self.gate = self._check_gate(gate)
        self._sampling = self.gate or DynamicSampling(Everything(), max_rounds=1)
        self.group_observers = list(group_observers or [])
        self.before_save = []
        self.evaluation_seconds = 0.0
        """Seconds spent in `evaluate` so far."""
        self._generations = 0
        self._captured: dict[str, Any] | None = None
        self._dataset_rows = rows_of_pool(curriculum, self.train_dataset, id_column=id_column)
        batch = self.args.generation_batch_size // self.num_generations
        if batch > len(self._dataset_rows):
            raise ConfigError(
                f"a step needs {batch} distinct prompts but the pool has {len(self._dataset_rows)}; lower the "
                "batch size or raise num_generations"
            )
        self.add_callback(NoOpAlarm(self))

    # ---- choosing and learning ----

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.model.training:
            return self._evaluate_batch(inputs)
        processes, group = self.accelerator.num_processes, self.num_generations
        n_prompts, rest = divmod(len(inputs) * processes, group)
        if rest:
            raise ConfigError(f"{len(inputs)} rollouts a process do not make whole groups of {group}")
        generation = Generation(
            self.curriculum,
            self._sampling,
            n_prompts=n_prompts,
            group=group,
            share=processes // math.gcd(group, processes),
            step=self.state.global_step + 1,
        )
        rounds: list[Round] = []
        dataset_rows: list[int] = []
        while rows := self._on_main(lambda: self._dataset_rows[generation.ask()].tolist()):
            rounds.append(self._roll_out(rows))
            dataset_rows += rows
            self._on_main(lambda: generation.tell(rounds[-1], first=self._generations == 0))
            self._generations += 1
        chosen = self._on_main(generation.rows)
        self._on_main(lambda: self._observe(generation, rounds, dataset_rows))
        return self._merged(rounds, chosen)

    def _roll_out(self, rows: list[int]) -> Round:
        """Roll out a group for each of M rows of the data set, over all ranks."""
        accelerator, group = self.accelerator, self.num_generations
        everyone = [row for row in rows for _ in range(group)]
        n = len(everyone) // accelerator.num_processes
        mine = everyone[accelerator.process_index * n : (accelerator.process_index + 1) * n]
        bound = [dict(self.train_dataset[row]) for row in mine]
        bound_prompts = [row.get("prompt") for row in bound]
        self._captured = None
        with self._batch_scaling_off():
            output: dict[str, Any] = super()._generate_and_score_completions(bound)
        captured = self._require_feedback(bound_prompts)
        if self.gate is not None:
            check_mergeable(output)
        rewards = self._total_rewards(captured)
        advantages = accelerator.gather(output["advantages"].contiguous())
        told = scale_advantages(self._batch_scale, advantages, rewards, group)
        return Round(
            output=output,
            rewards=rewards,
            advantages=advantages,
            told=told.view(-1, group).float().cpu().numpy(),
            lengths=np.array(gather_object(captured["lengths"])).reshape(-1, group),
            texts=gather_object(captured["texts"]),  # on every rank, though only rank 0 has observers
        )

    def _merged(self, rounds: list[Round], rows: list[int]) -> dict[str, Any]:
        """What this rank trains on: its share of the chosen `rows` of all rounds and ranks."""
        if len(rounds) == 1 and not self._batch_scale and rows == list(range(len(rounds[0].rewards))):
            return rounds[0].output
        n = len(rows) // self.accelerator.num_processes
        share = slice(self.accelerator.process_index * n, (self.accelerator.process_index + 1) * n)
        pad_token = self._tokenizer.pad_token_id
        merged = merge(
            [gather_rows(r.output, self.accelerator, pad_token) for r in rounds],
            rows,
            pad_token=pad_token,
            share=share,
            counted="num_items_in_batch" in rounds[0].output,
            multiple_of=getattr(self, "pad_to_multiple_of", None),
        )
        rewards, advantages = (
            torch.cat([getattr(r, name) for r in rounds])[rows] for name in ("rewards", "advantages")
        )
        merged["advantages"] = scale_advantages(self._batch_scale, advantages, rewards, self.num_generations)[share]
        return merged

    def _observe(self, generation: Generation, rounds: list[Round], dataset_rows: list[int]) -> None:
        rows = [self.train_dataset[row] for row in dataset_rows] if self.group_observers else []
        groups = generation.groups(rounds, rows, gated=self.gate is not None)
        for name, value in {**groups.metrics(), **groups.curriculum}.items():
            self._metrics["train"][f"curriculum/{name}"].append(value)
        for name, value in groups.gate.items():
            self._metrics["train"][f"gate/{name}"].append(value)
        for observer in self.group_observers:
            observer(groups)

    # ---- advantages scaled over the batch: of the groups that are trained on, not of all that were rolled out ----

    @property
    def _batch_scale(self) -> AdvantageScale:
        if self.gate is None:
            return ""  # TRL scales them itself
        if getattr(self, "scale_rewards", None) == "batch":
            return "batch-std"
        return "batch-normalised" if getattr(self, "normalize_advantages", False) else ""

    @contextmanager
    def _batch_scaling_off(self) -> Iterator[None]:
        scale = self._batch_scale
        name, off = ("scale_rewards", "none") if scale == "batch-std" else ("normalize_advantages", False)
        if not scale:
            yield
            return
        before = getattr(self, name)
        setattr(self, name, off)
        try:
            yield
        finally:
            setattr(self, name, before)

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

    # ---- evaluation ----

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """TRL's evaluation, with random numbers of its own: it neither disturbs training nor differs between runs."""
        started = time.perf_counter()
        with isolated_rng(self.args.seed + self.accelerator.process_index):
            metrics: dict[str, float] = super().evaluate(*args, **kwargs)
        self.evaluation_seconds += time.perf_counter() - started
        return metrics

    def _evaluate_batch(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._captured = None
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        captured = self._take_captured()
        if captured is not None:
            rewards = self._total_rewards(captured).double().cpu().numpy()
            solved = (rewards >= self.curriculum.reward_spec.threshold).reshape(-1, self.num_generations_eval)
            self._metrics["eval"]["pass@1"].append(float(solved.mean()))
            if self.num_generations_eval > 1:
                self._metrics["eval"][f"pass@{self.num_generations_eval}"].append(float(solved.any(axis=1).mean()))
        return output

    def _check_gate(self, gate: DynamicSampling | Gate | None) -> DynamicSampling | None:
        if gate is not None and getattr(self, "multi_objective_aggregation", "") == "normalize_then_sum":
            raise ConfigError(
                'multi_objective_aggregation="normalize_then_sum" scales advantages over the batch, which can\'t be '
                'redone for the groups that a gate admits; use "sum_then_normalize", or no gate'
            )
        return gate if gate is None or isinstance(gate, DynamicSampling) else DynamicSampling(gate)

    # ---- hooks ----

    @classmethod
    def _check_hooks(cls) -> None:
        """Refuse a TRL whose hooks are not where they were, rather than train without the curriculum."""
        bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] in ("trl", "transformers")]
        for name, expected in _HOOKS.items():
            found = next((vars(base)[name] for base in bases if name in vars(base)), None)
            parameters = list(inspect.signature(found).parameters) if found else None
            if parameters != expected:
                raise SilentNoOpError(
                    f"trl {trl.__version__} has {name}({parameters}) where {expected} is expected, so the curriculum "
                    "would not take effect; use a version of trl that this rollwise names in its requirements"
                )
