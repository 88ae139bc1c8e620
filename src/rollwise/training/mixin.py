"""A curriculum on TRL's own trainers: one mixin over GRPOTrainer and RLOOTrainer.

TRL's data loader is left as a clock. Its rows are ignored; prompts are bound at the moment the trainer is about to
generate, so neither accelerate's look-ahead nor gradient accumulation can make a choice stale, and a resumed run does
not ask again for what it skips. Rank 0 asks and tells; the other ranks follow.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import trl
from accelerate.utils import gather_object

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.outcome import Outcome
from rollwise.ticket import Ticket
from rollwise.training.callbacks import NoOpAlarm
from rollwise.training.checkpointing import CheckpointMixin
from rollwise.training.dataset import rows_of_pool
from rollwise.training.groups import Groups
from rollwise.training.isolation import isolated_rng

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
        id_column: str = "id",
        group_observers: list[Callable[[Groups], None]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            raise ConfigError(f"curriculum must be a rollwise curriculum, got {type(curriculum).__name__}")
        self._check_hooks()
        super().__init__(*args, **kwargs)
        self.curriculum = curriculum
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
        accelerator, group = self.accelerator, self.num_generations
        n_prompts, rest = divmod(len(inputs) * accelerator.num_processes, group)
        if rest:
            raise ConfigError(f"{len(inputs)} rollouts a process do not make whole groups of {group}")
        tickets: list[Ticket] = []
        started = time.perf_counter()
        rows = self._on_main(lambda: self._ask(n_prompts, tickets))
        ask_seconds = time.perf_counter() - started
        mine = slice(accelerator.process_index * len(inputs), (accelerator.process_index + 1) * len(inputs))
        local = [row for row in rows for _ in range(group)][mine]
        bound = [dict(self.train_dataset[row]) for row in local]
        bound_prompts = [row.get("prompt") for row in bound]
        self._captured = None
        output: dict[str, Any] = super()._generate_and_score_completions(bound)
        captured = self._require_feedback(bound_prompts)
        shape = (n_prompts, group)
        advantages = accelerator.gather(output["advantages"].contiguous()).view(*shape).float().cpu().numpy()
        lengths = np.array(gather_object(captured["lengths"])).reshape(shape)
        texts = gather_object(captured["texts"])  # on every rank, though only rank 0 has observers
        self._on_main(
            lambda: self._tell(
                tickets, self._total_rewards(captured).reshape(shape), advantages, lengths, texts, rows, ask_seconds
            )
        )
        self._generations += 1
        return output

    def _ask(self, n_prompts: int, tickets: list[Ticket]) -> list[int]:
        asked = self.curriculum.ask(n_prompts, step=self.state.global_step + 1, n_rollouts=self.num_generations)
        if len(asked) < n_prompts:
            raise ConfigError(
                f"the curriculum gave {len(asked)} prompts where a step needs {n_prompts}: "
                f"{self.curriculum.ledger.n_open - len(asked)} of {len(self.curriculum.pool)} are in flight"
            )
        tickets += asked
        return [int(self._dataset_rows[self.curriculum.pool.slot(t.prompt_id)]) for t in asked]

    def _tell(
        self,
        tickets: list[Ticket],
        rewards: np.ndarray,
        advantages: np.ndarray,
        lengths: np.ndarray,
        texts: list[Any],
        rows: list[int],
        ask_seconds: float,
    ) -> None:
        started = time.perf_counter()
        scored = ~np.isnan(rewards)
        if self._generations == 0 and not scored.any():
            raise SilentNoOpError(
                f"none of the {scored.size} rollouts of the first step could be scored: every reward function returned "
                "None or NaN, so the curriculum would never learn"
            )
        evidence = self.curriculum.tell(
            Outcome(t.id, rewards=r[s], advantages=a[s], failed=int((~s).sum()))
            for t, r, a, s in zip(tickets, rewards, advantages, scored, strict=True)
        )
        tell_seconds = time.perf_counter() - started
        group = self.num_generations
        groups = Groups(
            step=self.state.global_step + 1,
            tickets=tickets,
            rewards=rewards,
            advantages=advantages,
            lengths=lengths,
            texts=[texts[i : i + group] for i in range(0, len(texts), group)],
            rows=[self.train_dataset[row] for row in rows] if self.group_observers else [],
            evidence=evidence,
            curriculum=self.curriculum.metrics(),
            ask_seconds=ask_seconds,
            tell_seconds=tell_seconds,
        )
        for name, value in {**groups.metrics(), **groups.curriculum}.items():
            self._metrics["train"][f"curriculum/{name}"].append(value)
        for observer in self.group_observers:
            observer(groups)

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

    def _total_rewards(self, captured: dict[str, Any]) -> np.ndarray:
        """The weighted sum over reward functions, flat; NaN only where every function gave NaN, as TRL counts it."""
        rewards = captured["rewards"]
        total = (rewards * self.reward_weights.to(rewards.device).unsqueeze(0)).nansum(dim=1)
        total[torch.isnan(rewards).all(dim=1)] = torch.nan
        return np.asarray(total.double().cpu().numpy())

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
            rewards = self._total_rewards(captured)
            solved = (rewards >= self.curriculum.reward_spec.threshold).reshape(-1, self.num_generations_eval)
            self._metrics["eval"]["pass@1"].append(float(solved.mean()))
            if self.num_generations_eval > 1:
                self._metrics["eval"][f"pass@{self.num_generations_eval}"].append(float(solved.any(axis=1).mean()))
        return output

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
