"""Writes a run's folder while a trainer trains."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from transformers import TrainerCallback

from rollwise.errors import ConfigError
from rollwise.runs.folder import RunFolder
from rollwise.runs.log_ends import Totals, read_record
from rollwise.training.generation.groups import Groups
from rollwise.training.recording.description import Description
from rollwise.training.recording.evaluation_log import EvaluationLog
from rollwise.training.recording.group_lines import means_and_counts, write_groups
from rollwise.training.recording.prompt_log import PromptLog
from rollwise.training.recording.trackers import PromptTable, ReportArtifact, takers

_PHASES = ("generation", "reward", "logprobs", "update")
SPENT = ("wall_s", "rollouts", "tokens", "flops")
_TIMES = {"ask_s": "time/ask", "tell_s": "time/tell", "judge_s": "time/judging"}
_FROM_TRAINER = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "entropy": "entropy",
    "kl": "kl",
    "judge/loss": "judge_loss",
    "completions/clipped_ratio": "clipped_ratio",
}


RunPath = RunFolder | str | os.PathLike[str]
"""A run's folder, or where it is."""


def log_prompts(trainer: Any, *, every: int) -> None:
    """Have the trainer's trackers that take tables show the chosen prompts of every `every`-th step."""
    if trackers := takers(trainer.args.report_to):
        trainer.group_observers.append(PromptTable(trackers, every=every))


class Recorder(TrainerCallback):
    """One line of `metrics.jsonl` a step (and one for step 0, before training), one of `rollouts.jsonl` a group.

    Add it to a trainer with `attach`. A line is written when its step is over: before the checkpoint of that step, or
    when the next step begins. `evaluations.jsonl` has a line for each evaluation and set, with each prompt's results;
    `prompts.jsonl` one for each prompt, from when it is first asked for; `judgments.jsonl` a sample of the policy's
    judgments, if it is asked for them. `rewards.json` has the curriculum's `RewardSpec`, which says what counts as
    solved, `pool.json` the data set in numbers. `config.yaml` and `model.json` say what was trained, how and on what,
    unless there is a `config.yaml` of another kind (`rollwise train` writes one). Ranks other than 0 write nothing.

    Args:
        folder: where to write: a path, or a `RunFolder`.
        evaluate_first: evaluate before the first step of a new run.
        same_run: whether the folder's logs are of this run even if the run begins anew, and the caller holds the
            folder's lock. If not, such logs are put aside, and the recorder holds the lock while it trains.
        judgments_per_step: judgments of a generation that are written to `judgments.jsonl`, at most; 0 for none.
    """

    def __init__(
        self, folder: RunPath, *, evaluate_first: bool = False, same_run: bool = False, judgments_per_step: int = 8
    ) -> None:
        if folder == "":  # as of a variable that is not set: it would be the present folder
            raise ConfigError("a run's folder must have a name, got ''; leave out run=... for none")
        self.folder = folder if isinstance(folder, RunFolder) else RunFolder(folder)
        self.evaluate_first = evaluate_first
        self.same_run = same_run
        self.judgments_per_step = judgments_per_step
        self.prompts = PromptLog(self.folder)
        self.evaluations = EvaluationLog(self.folder)
        self.totals = Totals()
        self.line: dict[str, Any] = {}
        self._groups = 0  # that the line's means are of
        self._training = False
        self._before: dict[str, Any] | None = {}  # scores from before the first training; None once it has begun
        self._trainer: Any = None
        self._description = Description(self.folder)
        self._since = 0.0
        self._evaluated = 0.0
        self._lock: IO[bytes] | None = None
        self._spared = 0.0  # seconds of this step that are not charged to the run

    def attach(self, trainer: Any) -> None:
        """Listen to a trainer with a curriculum.

        Raises:
            ConfigError: another recorder listens to it.
        """
        if trainer.run_log is not None:
            raise ConfigError("this trainer has a run folder already: give run=..., or attach a Recorder, not both")
        self._trainer = trainer
        trainer.add_callback(self)
        if trackers := takers(trainer.args.report_to):
            ReportArtifact(trackers, self).attach(trainer)
        trainer.run_log = self
        trainer.before_save.append(self._save)
        trainer.after_evaluation.append(self._evaluated_all)
        if trainer.is_world_process_zero():
            trainer.group_observers.append(self.on_groups)
            self._description.begin(trainer)

    # ---- what comes in ----

    def on_groups(self, groups: Groups) -> None:
        """Write a generation's groups, and add them to the step's line.

        Where a step has several generations, its means are over the groups of all of them, its counts are summed.
        """
        write_groups(self.prompts, groups, self._trainer.curriculum, judgments=self.judgments_per_step)
        rollouts, tokens = groups.spent()
        self.totals.rollouts += rollouts
        self.totals.tokens += tokens
        self.totals.flops += groups.judging.get("flops", 0.0)
        means, counts = means_and_counts(groups)
        self._spared += groups.uncharged.get("s", 0.0)
        line = self._open(groups.step)
        line |= {name: line.get(name, 0) + more for name, more in counts.items()}
        new, all_ = len(groups.tickets), self._groups + len(groups.tickets)
        line |= {name: line.get(name, own) + (own - line.get(name, own)) * new / all_ for name, own in means.items()}
        line |= {f"curriculum/{k}": v for k, v in groups.curriculum.items()}
        self._groups = all_
        self._description.write_rewards()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Roll the logs back to where training starts, and evaluate once before a new run.

        Raises:
            StateFileError: another process is training into the folder.
        """
        if not self.same_run:
            self._trainer._on_main(self._hold)
        self._training = True
        if state.is_world_process_zero:
            resumed = self._trainer.resumed_from
            known = {} if resumed is None else read_record(resumed)
            if not self.same_run and (state.global_step == 0 or (resumed is not None and not known)):
                self.folder.put_aside()  # a checkpoint without a record was trained without these logs
            self.totals = self.folder.roll_back(state.global_step if state.global_step else -1)
            self.totals = Totals.of(known.get("totals", asdict(self.totals)))
            self._description.write_rewards(anew=True)
            if not self.same_run and self.folder.takes_script:
                self._description.write(state)
            self.prompts.resume()
            self.evaluations.begin(self._trainer, anew=state.global_step == 0)
        self._trainer.phases.take()
        self._trainer.compute.take()
        self._since, self._evaluated = time.perf_counter(), self._trainer.evaluation_seconds
        if state.global_step == 0 and self._before:
            self._open(0).update(self._before)
        self._before = None
        if self.evaluate_first and state.global_step == 0 and self._trainer.eval_dataset is not None:
            self._trainer.evaluate()
            self.flush()

    def _hold(self) -> None:
        self._lock = self._lock or self.folder.lock("train again, or give another run=")

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The step before is over."""
        self.flush()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Book the step's time; its line is there also if no rollouts were generated for it."""
        now, evaluated = time.perf_counter(), self._trainer.evaluation_seconds
        self.totals.wall_s += (now - self._since) - (evaluated - self._evaluated) - self._spared
        self._since, self._evaluated, self._spared = now, evaluated, 0.0
        tokens = self._trainer.step_tokens()
        self.totals.flops += self._trainer.compute.flops(tokens)
        line = self._open(state.global_step)
        compute = {f"compute/{use}": n for use, n in tokens.items()}
        seconds = self._trainer.phases.take()
        times = {f"time/{phase}": seconds[phase] for phase in _PHASES if phase in seconds}
        times |= {column: line[name] for name, column in _TIMES.items() if name in line}
        line |= times | compute
        logged = self._trainer._metrics["train"]  # of which TRL logs means over `logging_steps`
        logged |= {f"spent/{name}": [float(getattr(self.totals, name))] for name in SPENT}
        for name, value in (times | compute if self._trainer._logs_all else {}).items():
            logged[name].append(float(value))

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Take the trainer's own numbers."""
        if logs and "loss" in logs:
            found = {ours: logs[theirs] for theirs, ours in _FROM_TRAINER.items() if theirs in logs}
            found |= {k: v for k, v in logs.items() if k.startswith("rewards/") and k.endswith("/mean")}
            self._open(state.global_step).update(found)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        """Take the scores of a set, by its name, and the results of its prompts.

        Those from before training belong to the run that begins next, if it begins anew. If the trainer has sets of
        its own, another set is not part of the run.
        """
        results = self._trainer.results[self._trainer.evaluated_set or ""]
        if results.own is None and not self._trainer.evaluates_run:
            return
        name = (results.own or self._trainer.evaluated_set or "").replace("/", "-")
        prefix = f"{self._kind}/{name}" if name else self._kind
        self._scores(state.global_step).update({f"{prefix}/{k}": v for k, v in results.scores.items()})
        if self._trainer.is_world_process_zero():
            self.evaluations.add(state.global_step, results)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The last step is over."""
        self.flush()
        self._training = False

    def end(self) -> None:
        """Drop what is left of a step that was broken off, and let others train into the folder."""
        self.line, self._spared, self._training = {}, 0.0, False
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The policy is updated."""
        self._trainer.updated()

    def _evaluated_all(self) -> None:
        """Take the score of all sets together, and the time that the evaluation took."""
        trainer, seconds = self._trainer, self._trainer.phases.take_evaluation()
        own = trainer.evaluates_run or any(one.own is not None for one in trainer.results.values())
        if not own and not self._training:
            return
        line = self._scores(trainer.state.global_step)
        if trainer.evaluates_run:
            line |= {f"{self._kind}/{k}": v for k, v in trainer.together.items()}
        line["time/evaluation"] = line.get("time/evaluation", 0.0) + seconds
        if not self._training:
            self.flush()

    @property
    def _kind(self) -> str:
        """What the scores' names begin with."""
        return "end" if self._trainer.evaluates_end else "eval"

    def _scores(self, step: int) -> dict[str, Any]:
        """The line that scores go to."""
        return self._open(step) if self._before is None else self._before

    # ---- what a checkpoint needs ----

    def record(self) -> dict[str, Any]:
        """What the run has spent, and where its logs end: put into each checkpoint."""
        return {"totals": asdict(self.totals), "logs": dict(self.folder.ends)}

    def lacking(self, checkpoint: Path) -> str | None:
        """What the logs lack to go on from a checkpoint, or None if they reach it."""
        return self.folder.lacking(checkpoint)

    def _save(self) -> None:
        """A sealed checkpoint's step must be in the logs, and on disk."""
        self.flush()
        if self._trainer.is_world_process_zero():
            self.folder.sync()

    # ---- what goes out ----

    def _open(self, step: int) -> dict[str, Any]:
        if self.line.get("step") != step:
            self.flush()
            self.line, self._groups = {"step": step}, 0
        self.line.update(time=time.time(), **{k: getattr(self.totals, k) for k in SPENT})
        return self.line

    def flush(self) -> None:
        """Write the line of the step that is over."""
        line, self.line = self.line, {}
        if line and self._trainer.is_world_process_zero():
            self.folder.append(self.folder.metrics, [line])
