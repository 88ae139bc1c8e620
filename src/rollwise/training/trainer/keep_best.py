"""The checkpoint with the best score of an evaluation: kept, and found as `best` beside the others."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from rollwise.errors import ConfigError
from rollwise.evaluation.metrics import pass_at_curve
from rollwise.options import did_you_mean
from rollwise.state import write_atomically
from rollwise.training.generation.trl_trainer import TrlTrainer

logger = logging.getLogger(__name__)

LINK, FILE = "best", "best.json"


def check_score(score: str, sets: Iterable[str], generations: int) -> None:
    """`ConfigError` unless an evaluation of these sets has the score, as "pass@1" or "eval/ood/pass@4"."""
    own = [*(f"pass@{k}" for k in pass_at_curve(generations, [0])), "reward"]
    known = [f"eval/{one}" for one in own] + [f"eval/{name}/{one}" for name in sets if name for one in own]
    wanted = f"eval/{score.removeprefix('eval/')}"
    if wanted not in known:
        raise ConfigError(
            f"keep_best must be a score of the evaluations, got {score!r}{did_you_mean(wanted, known)}; there are "
            f"{', '.join(known)}"
        )


def metric_name(score: str) -> str:
    """What transformers calls it in the metrics of an evaluation.

    >>> metric_name("eval/ood/pass@1"), metric_name("pass@4")
    ('eval_ood_pass@1', 'eval_pass@4')
    """
    return f"eval_{'_'.join(score.removeprefix('eval/').rsplit('/', 1))}"


class KeepBest(TrainerCallback):
    """Names the best checkpoint in `best.json`, and links `best` to it; both follow the trainer's state.

    Args:
        score: its name, as `check_score` takes it.
        on_main: calls a function on rank 0, and gives its result to all, so that no two ranks disagree on what is best.
    """

    def __init__(self, score: str, on_main: Callable[[Callable[[], bool]], bool]) -> None:
        self.score, self._on_main = score, on_main

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """On a resume the best is that of the checkpoint; where its folder is gone, a later one becomes it."""
        if state.best_global_step and not self._on_main(lambda: (Path(args.output_dir) / _name(state)).is_dir()):
            logger.warning(
                "%s had the best %s so far, and is gone: the best of the evaluations to come is kept",
                *(_name(state), self.score),
            )
            state.best_metric = state.best_global_step = state.best_model_checkpoint = None
        self.note(args, state)

    def note(self, args: Any, state: Any) -> None:
        """Write down which checkpoint is the best, if there is one.

        At the end transformers would delete all but the one that its own field names, where one is to be kept.
        """
        if not args.load_best_model_at_end:
            state.best_model_checkpoint = None
        folder = Path(args.output_dir)
        if not state.is_world_process_zero or not folder.is_dir():
            return
        link, file = folder / LINK, folder / FILE
        if not state.best_global_step:
            for path in (link, file):
                path.unlink(missing_ok=True)
            return
        score = f"eval/{self.score.removeprefix('eval/')}"
        facts = {"score": score, "value": float(state.best_metric), "step": state.best_global_step}
        write_atomically(file, json.dumps({**facts, "checkpoint": _name(state)}).encode())
        with suppress(OSError):  # a file system without links: best.json names the folder
            new = folder / f".{LINK}.tmp"
            new.unlink(missing_ok=True)
            new.symlink_to(_name(state), target_is_directory=True)
            os.replace(new, link)


class KeepBestMixin(TrlTrainer):
    """Keeps the checkpoint with the best score of an evaluation, where one is named."""

    keep_best: KeepBest | None = None

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
        self.keep_best = KeepBest(score, self._on_main)
        self.add_callback(self.keep_best)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        better: bool = super()._determine_best_metric(metrics, trial)
        if better and self.keep_best is not None:
            self.control.should_save = True
        return better


def _name(state: Any) -> str:
    return f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"
