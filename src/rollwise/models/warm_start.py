"""Supervised warm start of a small policy by TRL's SFTTrainer."""

from __future__ import annotations

import contextlib
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, TaskError
from rollwise.models.loading import need

FEWEST_STEPS = 50
"""Steps between two checkpoints, at least; a tenth of a longer warm start."""

_WHOLE = "whole"


@dataclass(frozen=True, kw_only=True)
class EmbeddedConfig:
    """The embedded policy's size and its warm start.

    Args:
        hidden_size: Width of the model.
        num_layers: Number of layers.
        num_heads: Number of attention heads; divides `hidden_size`.
        intermediate_size: Width of the feed-forward layers.
        max_length: Most tokens in a prompt and its completion.
        num_demos: Number of demonstrations; as many as are shown where a task wants the first of them clean.
        sft_steps: Optimiser steps of the warm start.
        sft_batch_size: Demonstrations in a step.
        learning_rate: Peak learning rate of the warm start.

    Raises:
        ConfigError: a number is not positive, or the heads do not divide the width.
    """

    hidden_size: int = 96
    num_layers: int = 3
    num_heads: int = 4
    intermediate_size: int = 256
    max_length: int = 128
    num_demos: int = 20_000
    sft_steps: int = 900
    sft_batch_size: int = 64
    learning_rate: float = 4e-3

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            whole = name != "learning_rate"
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value > 0:
                raise ConfigError(f"{name} must be a {'whole ' if whole else ''}number > 0, got {value!r}")
        if self.hidden_size % (2 * self.num_heads):
            raise ConfigError(
                f"hidden_size must be a multiple of 2*num_heads={2 * self.num_heads}, got {self.hidden_size}"
            )


def warm_start(
    model: Any,
    tokenizer: Any,
    demos: Sequence[dict[str, Any]],
    *,
    config: EmbeddedConfig,
    in_order: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    kept: Path | None = None,
) -> None:
    """Train `model` in place, on its device and in fp32, on the completions of `demos`, a prompt and a completion each.

    They are shuffled, unless they are to be learnt from `in_order`, batch by batch as they stand.

    The global random states of Python, numpy and torch, which the trainer seeds, are left as they were.

    With a folder `kept` a checkpoint is written there every tenth of the steps, and a warm start that was killed goes
    on from the last whole one: it ends in the weights, to the bit, of one that never stopped. The folder belongs to
    this warm start alone: same model, same demonstrations, same seed.

    Raises:
        TaskError: a demonstration is longer than `config.max_length` tokens.
        MissingExtraError: the `train` extra is not installed.
    """
    rows = tokenized(tokenizer, demos, max_length=config.max_length)
    warm_start_rows(model, tokenizer, rows, config=config, in_order=in_order, seed=seed, progress=progress, kept=kept)


def warm_start_rows(
    model: Any,
    tokenizer: Any,
    rows: dict[str, list[list[int]]],
    *,
    config: EmbeddedConfig,
    in_order: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    kept: Path | None = None,
) -> None:
    """As `warm_start`, with `input_ids` and `labels` that are made already.

    Raises:
        MissingExtraError: the `train` extra is not installed.
    """
    torch = need("torch", "the warm start")
    trl = need("trl", "the warm start")
    datasets = need("datasets", "the warm start")
    transformers = need("transformers", "the warm start")
    with (
        tempfile.TemporaryDirectory() as scratch,
        torch.random.fork_rng(),
        _global_random_kept(),
        _accelerate_kept(),
        _quiet(transformers),
    ):
        folder, on_cpu = str(kept or scratch), model.device.type == "cpu"
        trainer = trl.SFTTrainer(
            model=model,
            args=_arguments(trl, config, seed, folder, in_order, kept is not None, on_cpu),
            train_dataset=datasets.Dataset.from_dict(rows),
            processing_class=tokenizer,
            callbacks=[_reporter(progress)],
        )
        trainer.create_model_card = lambda *args, **kwargs: None  # which a checkpoint would get
        # What disable_tqdm puts in the bar's place prints to standard output.
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train(resume_from_checkpoint=None if kept is None else last_whole(kept))
    model.eval()


def last_whole(kept: Path) -> str | None:
    """The newest checkpoint that was written to its end; None without one."""
    found = [path.parent for path in kept.glob(f"checkpoint-*/{_WHOLE}")]
    return str(max(found, key=lambda path: int(path.name.rpartition("-")[2]))) if found else None


def tokenized(tokenizer: Any, demos: Sequence[dict[str, Any]], *, max_length: int) -> dict[str, list[list[int]]]:
    """`input_ids` and `labels`, -100 on the prompt, as SFTTrainer would make them, in one call to the tokenizer.

    SFTTrainer's own preparation walks the data set five times in Python, which costs as much as a third of the
    training; it leaves rows that have both columns alone.
    """
    prompts = tokenizer([demo["prompt"] for demo in demos])["input_ids"]
    ends = tokenizer.eos_token
    wholes = tokenizer([demo["prompt"] + demo["completion"] + ends for demo in demos])["input_ids"]
    longest = max(wholes, key=len)
    if len(longest) > max_length:
        text = tokenizer.decode(longest)
        raise TaskError(f"a demonstration has {len(longest)} tokens, more than max_length={max_length}: {text!r:.80}")
    labels = [[-100] * len(p) + whole[len(p) :] for p, whole in zip(prompts, wholes, strict=True)]
    return {"input_ids": wholes, "labels": labels}


@contextlib.contextmanager
def _global_random_kept() -> Iterator[None]:
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 (kept, not used)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


@contextlib.contextmanager
def _accelerate_kept() -> Iterator[None]:
    """Accelerate has one device and one precision a process: those of the warm start must not become the run's."""
    from accelerate.state import AcceleratorState, GradientState, PartialState

    kept = [(kind._shared_state, dict(kind._shared_state)) for kind in (AcceleratorState, PartialState, GradientState)]
    try:
        yield
    finally:
        for shared, before in kept:
            shared.clear()
            shared.update(before)


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No bar for each file of a checkpoint, and no warning that tied weights are in it once."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _arguments(
    trl: Any, config: EmbeddedConfig, seed: int, folder: str, in_order: bool, keeping: bool, on_cpu: bool
) -> Any:
    with warnings.catch_warnings():
        # transformers renames gradient_checkpointing; TRL's default of True still has the old name.
        warnings.simplefilter("ignore", FutureWarning)
        return trl.SFTConfig(
            output_dir=folder,
            max_steps=config.sft_steps,
            train_sampling_strategy="sequential" if in_order else "random",
            per_device_train_batch_size=config.sft_batch_size,
            learning_rate=config.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=min(50, config.sft_steps // 8),
            adam_beta2=0.95,
            weight_decay=0.01,
            max_grad_norm=1.0,
            max_length=None,
            packing=False,
            loss_type="nll",
            bf16=False,
            use_cpu=on_cpu,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="steps" if keeping else "no",
            save_steps=max(FEWEST_STEPS, config.sft_steps // 10),
            save_total_limit=2,  # while one is written, the one before is whole
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=seed,
        )


def _reporter(progress: Callable[[int, int], None] | None) -> Any:
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == state.max_steps:
                control.should_save = False  # the artefact itself is written now
            if progress:
                progress(state.global_step, state.max_steps)

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            (Path(args.output_dir) / f"checkpoint-{state.global_step}" / _WHOLE).touch()

    return Reporter()
