"""Saves and restores a trainer with a curriculum: everything or nothing."""

from __future__ import annotations

import errno
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, rotate_checkpoints

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, StateError, StateFileError
from rollwise.gates import DynamicSampling
from rollwise.runs.log_ends import RECORD
from rollwise.state import load_state, naming, save_state, write_atomically
from rollwise.training.generation.messages import Screened
from rollwise.training.judging.judge_loss import ExpectedBatch, JudgeBatch, batch_of
from rollwise.training.trainer.checkpoint import (
    checkpoints,
    flaw,
    is_sealed,
    latest_complete,
    newest_usable,
    seal,
    steps_done,
    unseal,
)
from rollwise.training.trainer.keep_best import KeepBest, check_score, metric_name
from rollwise.training.trainer.ranks import go_on_elsewhere, on_main

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object

logger = logging.getLogger(__name__)

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


class CheckpointMixin(TrlTrainer):
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
    keep_best: KeepBest | None = None
    checked: Path | None = None
    """A checkpoint that was found usable just now: `train` does not read all of it again."""

    def _keep_best_by(self, score: str) -> None:
        """Keep the checkpoint with the highest `score` of an evaluation, and save it when it is reached.

        Raises:
            ConfigError: nothing is evaluated while it trains, or the evaluations have no such score.
        """
        if self.args.eval_strategy == "no" or self.args.save_strategy == "no":
            raise ConfigError(f"keep_best {score!r} needs an eval_strategy and a save_strategy other than 'no'")
        sets = self.eval_dataset if isinstance(self.eval_dataset, Mapping) else [""]
        check_score(score, sets, self.num_generations_eval)
        self.args.metric_for_best_model, self.args.greater_is_better = metric_name(score), True
        self.keep_best = KeepBest(score)
        self.add_callback(self.keep_best)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        better: bool = super()._determine_best_metric(metrics, trial)
        if better and self.keep_best is not None:
            self.control.should_save = True
        return better

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        for prepare in self.before_save:
            prepare()
        folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        limit, self.args.save_total_limit = self.args.save_total_limit, None  # rotate only once this one is whole
        self._on_main(lambda: unseal(folder))
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
                    states = [None if batch is None else batch.state() for batch in self._judge_batches]
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
            write_atomically(folder / RECORD, json.dumps(self.run_log.record()).encode())
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
            wrong = self._on_main(lambda: flaw(named) or lacking(named))
            if wrong:
                raise StateFileError(
                    f"can't resume from {str(named)!r}: {wrong}. Put back an intact copy, or resume from another "
                    "checkpoint; to start anew from its weights, pass it as the model"
                )
        self.checked = None
        self.resumed_from = Path(str(resume_from_checkpoint)) if resume_from_checkpoint else None
        if resume_from_checkpoint:
            self._check_unfinished(Path(resume_from_checkpoint))
            self._on_main(lambda: self._put_aside_after(Path(str(resume_from_checkpoint))))
        else:
            self._on_main(self._warn_of_others)
            self._clock, self._screened = self.curriculum.step, Screened()
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def _check_unfinished(self, checkpoint: Path) -> None:
        """Transformers would train a step more each time."""
        if 0 < self.args.max_steps <= steps_done(checkpoint):
            raise StateFileError(
                f"{str(checkpoint)!r} has all {self.args.max_steps} steps of max_steps: there is nothing to resume. "
                "Load it as the model, or raise max_steps to go on"
            )

    def _warn_of_others(self) -> None:
        """Training that begins anew leaves the checkpoints that are there alone, as transformers does."""
        newest = latest_complete(Path(self.args.output_dir), hashes=False)
        if newest is not None:
            logger.warning(
                "training begins anew, but %r has checkpoints already: train(resume_from_checkpoint=True) would go on "
                "with %s until this training has a later one; move them away, or give another output_dir",
                str(self.args.output_dir),
                newest.name,
            )

    def _put_aside_after(self, checkpoint: Path) -> None:
        """Later checkpoints, damaged or of a course given up, would be taken for this one's when it is resumed."""
        if checkpoint.resolve().parent != Path(self.args.output_dir).resolve():
            return
        now = steps_done(checkpoint)
        for step, folder in checkpoints(checkpoint.parent):
            if step > now and is_sealed(folder):  # one without a seal counts for nothing, and is written over
                logger.warning("%s is of a course that is given up: renamed to given-up-%s", folder, folder.name)
                aside = folder.with_name(f"given-up-{folder.name}")
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)

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
        self._step, self._clock = int(trainer["micro_step"]), int(trainer.get("clock", 0))
        self._generations = 1
        go_on_elsewhere(trainer, self._rhythm(), seed=self.args.seed, step=steps_done(Path(checkpoint)))
        if (reference := self._moving_reference()) is not None and (Path(checkpoint) / _REFERENCE).exists():
            weights = torch.load(Path(checkpoint) / _REFERENCE, map_location="cpu", weights_only=True)
            reference.load_state_dict(weights)
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
            judgments = self._load_own(Path(checkpoint) / _JUDGMENTS, []) or []
            self._judge_batches = [batch_of(state) for state in judgments]

    def _load_curriculum(self, state: Mapping[str, Any], checkpoint: Path) -> None:
        """On rank 0: the others' curricula have no prompts."""
        self.curriculum.load_state_dict(state, new_incarnation=False)
        self.curriculum.load_files(checkpoint / _FILES)

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


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise what torch and safetensors say where a file can't be written as an `OSError` that names the folder."""
    try:
        with naming(folder):
            yield
    except Exception as error:
        said = str(error)
        if known := re.search(r"\(os error (\d+)\)", said):  # safetensors, in the words of its language
            raise OSError(int(known[1]), said, str(folder)) from error
        if "inline_container" in said or "PytorchStreamWriter" in said:  # torch does not say why
            reason = "torch could not write a file whole: the disk is full, or there is a limit on the size of files"
            raise OSError(errno.EIO, reason, str(folder)) from error
        raise
