"""Saves and restores a trainer with a curriculum: everything or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, rotate_checkpoints

from rollwise.curricula import Curriculum
from rollwise.errors import StateError, StateFileError
from rollwise.gates import DynamicSampling
from rollwise.runs.log_ends import write_record
from rollwise.state import load_state, save_state, writing
from rollwise.training.generation.messages import Screened
from rollwise.training.judging.judge_loss import ExpectedBatch, JudgeBatch, batch_of, state_of
from rollwise.training.trainer.checkpoint import (
    checkpoints,
    clear,
    fault_of,
    newest_usable,
    put_aside_after,
    seal,
    steps_done,
    warn_of_others,
    warn_of_reference,
)
from rollwise.training.trainer.keep_best import KeepBestMixin
from rollwise.training.trainer.ranks import go_on_elsewhere, on_main

_STATE = "rollwise_state.json"
_FILES = "rollwise_curriculum"
_BUFFER = "rollwise_buffer_{rank}.pt"
_SCREENED = "rollwise_screened.pt"
_JUDGMENTS = "rollwise_judgments_{rank}.pt"
_REFERENCE = "rollwise_reference.pt"
T = TypeVar("T")


class RunLog(Protocol):
    """What keeps a run's logs (`Recorder`)."""

    def record(self) -> dict[str, Any]:
        """JSON-safe facts to put into a checkpoint, as `rollwise_logs.json`."""

    def lacking(self, checkpoint: Path) -> str | None:
        """What the logs lack to go on from a checkpoint, or None."""

    def end(self) -> None:
        """Training is over, or was broken off."""


class CheckpointMixin(KeepBestMixin):
    """Saves the curriculum with the model, seals checkpoints, and resumes from whole ones only."""

    curriculum: Curriculum
    gate: DynamicSampling | None
    _screens: bool
    _screened: Screened
    _judge_batches: list[JudgeBatch | ExpectedBatch | None]
    _clock: int
    """How many steps the curriculum had seen when this training began."""
    before_save: list[Callable[[], None]]
    """Called when a checkpoint is about to be written, after the step's evaluation."""
    run_log: RunLog | None = None
    resumed_from: Path | None = None
    """The checkpoint that this training goes on from."""
    _stepping = False
    """Whether a step has begun and is not over."""
    checked: Path | None = None
    """A checkpoint that was found usable just now: `train` does not read all of it again."""

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Of tied weights a checkpoint holds one; transformers says that the other is missing."""
        tied = getattr(self.model, "all_tied_weights_keys", {})
        missing = [key for key in load_result.missing_keys if key not in tied]
        super()._issue_warnings_after_load(load_result._replace(missing_keys=missing))

    def _save_by(self, keep_best: str | None) -> None:
        """Begin with nothing to call before a checkpoint; keep the one with the best of a score, where one is named."""
        self.before_save = []
        if keep_best is not None:
            self._keep_best_by(keep_best)

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        self._stepping = True
        return super().training_step(*args, **kwargs)

    def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
        self._stepping = False
        super()._maybe_log_save_evaluate(*args, **kwargs)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self._stepping:  # as transformers' `enable_jit_checkpoint` does: what was told is not trained on yet
            self.control.should_save = True
            return
        for prepare in self.before_save:
            prepare()
        folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        limit, self.args.save_total_limit = self.args.save_total_limit, None  # rotate only once this one is whole
        self._on_main(lambda: clear(folder))
        midway = self._step % (self.args.steps_per_generation * self.num_iterations) != 0
        with writing(folder):
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self.args.save_total_limit = limit
            if midway:  # these rollouts have steps to come: without them, a resumed run would generate others
                rank = self.accelerator.process_index
                torch.save(self._buffered_inputs, folder / _BUFFER.format(rank=rank))
                if self._judge_batches:
                    states = list(map(state_of, self._judge_batches))
                    torch.save(states, folder / _JUDGMENTS.format(rank=rank))
            self.accelerator.wait_for_everyone()
            self._on_main(lambda: self._seal(folder, midway=midway))
        best = self.state.best_model_checkpoint
        if self.keep_best is not None:
            note = self.keep_best.note
            self._on_main(lambda: note(self.args, self.state))
            limit = limit and limit + (best not in [str(path) for _, path in checkpoints(folder.parent)[-limit:]])
        if self.args.should_save:
            rotate_checkpoints(
                output_dir=str(folder.parent), save_total_limit=limit, best_model_checkpoint=best, use_mtime=True
            )

    def _seal(self, folder: Path, *, midway: bool) -> None:
        trainer = {"micro_step": self._step, "midway": midway, "clock": self._clock, **self._rhythm()}
        gate = None if self.gate is None else self.gate.state_dict()
        if self._screens:
            torch.save(self._screened.state(), folder / _SCREENED)
        if (reference := self._moving_reference()) is not None:
            torch.save(reference.state_dict(), folder / _REFERENCE)
        save_state(folder / _STATE, {"curriculum": self.curriculum.state_dict(), "gate": gate, "trainer": trainer})
        self.curriculum.save_files(folder / _FILES)
        if self.run_log is not None:
            write_record(folder, self.run_log.record())
        seal(folder)

    def _rhythm(self) -> dict[str, int]:
        """What must be the same to go on between two steps on the same rollouts."""
        args = self.args
        return {
            "processes": self.accelerator.num_processes,
            "per_device_train_batch_size": args.per_device_train_batch_size,
            "steps_per_generation": args.steps_per_generation,
            "num_iterations": self.num_iterations,
        }

    def _micro_step_of(self, saved: Mapping[str, Any]) -> int:
        """The micro-step to go on from: the first of a generation again, also where one has more of them now."""
        rhythm, micro_step = self._rhythm(), int(saved["micro_step"])
        then, now = (of["steps_per_generation"] * of["num_iterations"] for of in ({**rhythm, **saved}, rhythm))
        return micro_step if saved["midway"] else micro_step // then * now

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """TRL's training; `resume_from_checkpoint=True` takes the newest checkpoint that is whole.

        Where a `Recorder` is attached, its logs must reach the checkpoint, too.

        Raises:
            StateFileError: there is no whole checkpoint, the one named is torn or damaged or the logs do not reach it,
                or it has all the steps of `max_steps`.
        """
        lacking = (lambda _: None) if self.run_log is None else self.run_log.lacking
        if resume_from_checkpoint is True:
            newest = self._on_main(lambda: newest_usable(Path(self.args.output_dir), lacking))
            if newest is None:
                raise StateFileError(f"no whole checkpoint in {self.args.output_dir!r} to resume from")
            resume_from_checkpoint = str(newest)
        elif isinstance(resume_from_checkpoint, str | Path) and Path(resume_from_checkpoint) != self.checked:
            named = Path(resume_from_checkpoint)
            wrong = self._on_main(lambda: fault_of(named, lacking))
            if wrong:
                raise StateFileError(
                    f"can't resume from {str(named)!r}: {wrong}. Put back an intact copy, or resume from another "
                    "checkpoint; to start anew from its weights, pass it as the model"
                )
        self.checked = None
        self.resumed_from = Path(str(resume_from_checkpoint)) if resume_from_checkpoint else None
        if resume_from_checkpoint:
            self._check_unfinished(Path(resume_from_checkpoint))
        else:
            self._on_main(lambda: warn_of_others(Path(self.args.output_dir)))
            self._on_main(self._free_prompts)
            self._clock, self._screened = self.curriculum.step, Screened()
            self._step, self._buffered_inputs, self._judge_batches = 0, None, []  # rollouts of before are left alone
        try:
            return super().train(resume_from_checkpoint, *args, **kwargs)
        finally:
            self._stepping = False
            if self.run_log is not None:
                self.run_log.end()

    def _free_prompts(self) -> None:
        """Nobody will tell what a training that was broken off has asked for."""
        self.curriculum.expire([ticket.id for ticket in self.curriculum.open_tickets()])

    def _check_unfinished(self, checkpoint: Path) -> None:
        """Transformers would train a step more each time."""
        if 0 < self.args.max_steps <= steps_done(checkpoint):
            raise StateFileError(
                f"{str(checkpoint)!r} has all {self.args.max_steps} steps of max_steps: there is nothing to resume. "
                "Load it as the model, or raise max_steps to go on"
            )

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        state = load_state(Path(checkpoint) / _STATE)
        trainer = state["trainer"]
        anew = "pass the checkpoint as the model, to start anew from its weights"
        if state.get("abort") is not None:
            raise StateError(f"{checkpoint!r} was trained with training-time abort, which was removed; {anew}")
        if (state["gate"] is None) != (self.gate is None):
            with_, now = ("with", "without") if self.gate is None else ("without", "with")
            raise StateError(
                f"{checkpoint!r} was trained {with_} a gate, this trainer is {now}; give it the same, or {anew}"
            )
        if self.gate is not None:
            self.gate.load_state_dict(state["gate"])
        self._on_main(lambda: self._load_curriculum(state["curriculum"], Path(checkpoint)))
        self._step, self._clock = self._micro_step_of(trainer), int(trainer.get("clock", 0))
        self._generations = 1
        go_on_elsewhere(trainer, self._rhythm(), seed=self.args.seed, step=steps_done(Path(checkpoint)))
        self._load_reference(Path(checkpoint))
        screened = Path(checkpoint) / _SCREENED
        self._screened.load(torch.load(screened, weights_only=True) if screened.exists() else [])
        if trainer["midway"]:
            for option, value in self._rhythm().items():
                if (then := trainer.get(option, value)) != value:
                    raise StateFileError(
                        f"{checkpoint!r} was saved between two steps on the same rollouts with {option}={then}, now it "
                        f"is {value}; resume with the same, or from another checkpoint"
                    )
            self._buffered_inputs = self._load_own(Path(checkpoint) / _BUFFER)
            self._judge_batches = [batch_of(one) for one in self._load_own(Path(checkpoint) / _JUDGMENTS, [])]
        self._on_main(lambda: put_aside_after(Path(checkpoint), Path(self.args.output_dir)))

    def _load_curriculum(self, state: Mapping[str, Any], checkpoint: Path) -> None:
        """On rank 0: the others' curricula have no prompts."""
        self.curriculum.load_state_dict(state, new_incarnation=False)
        self.curriculum.load_files(checkpoint / _FILES)

    def _load_reference(self, checkpoint: Path) -> None:
        if (reference := self._moving_reference()) is not None and (checkpoint / _REFERENCE).exists():
            weights = torch.load(checkpoint / _REFERENCE, map_location="cpu", weights_only=True)
            reference.load_state_dict(weights)
        elif getattr(self.args, "sync_ref_model", False):
            warn_of_reference(checkpoint)

    def _moving_reference(self) -> Any:
        """The reference policy, where it follows the policy and so is not what it was at the start; else None."""
        reference = getattr(self, "ref_model", None)
        if not getattr(self.args, "sync_ref_model", False) or reference is None or self._is_sharded():
            return None
        return self.accelerator.unwrap_model(reference)

    def _load_own(self, path: Path, default: Any = None) -> Any:
        """What this rank saved under a name with its number; `default` where there is no such file and one is given."""
        file = path.with_name(path.name.format(rank=self.accelerator.process_index))
        if default is not None and not file.exists():
            return default
        device = self.accelerator.device
        place = "cpu" if device.type == "cpu" else device  # gloo's "cpu:0" is no place that torch.load knows
        return torch.load(file, map_location=place, weights_only=True)

    def _on_main(self, action: Callable[[], T]) -> T:
        return on_main(self.accelerator, action)
