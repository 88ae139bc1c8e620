"""Supervised warm start of a small policy by TRL's SFTTrainer."""

from __future__ import annotations

import contextlib
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.errors import TaskError
from rollwise.models.extras import need

if TYPE_CHECKING:
    from rollwise.models.embedded import EmbeddedConfig


def warm_start(
    model: Any,
    tokenizer: Any,
    demos: Sequence[dict[str, Any]],
    *,
    config: EmbeddedConfig,
    in_order: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Train `model` in place on the completions of `demos`, a prompt and a completion each, in fp32 on the CPU.

    They are shuffled, unless they are to be learnt from `in_order`, batch by batch as they stand.

    The global random states of Python, numpy and torch, which the trainer seeds, are left as they were.

    Raises:
        TaskError: a demonstration is longer than `config.max_length` tokens.
        MissingExtraError: the `train` extra is not installed.
    """
    rows = tokenized(tokenizer, demos, max_length=config.max_length)
    warm_start_rows(model, tokenizer, rows, config=config, in_order=in_order, seed=seed, progress=progress)


def warm_start_rows(
    model: Any,
    tokenizer: Any,
    rows: dict[str, list[list[int]]],
    *,
    config: EmbeddedConfig,
    in_order: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """As `warm_start`, with `input_ids` and `labels` that are made already.

    Raises:
        MissingExtraError: the `train` extra is not installed.
    """
    torch = need("torch", "the warm start")
    trl = need("trl", "the warm start")
    datasets = need("datasets", "the warm start")
    transformers = need("transformers", "the warm start")
    with tempfile.TemporaryDirectory() as scratch, torch.random.fork_rng(), _global_random_kept():
        trainer = trl.SFTTrainer(
            model=model,
            args=_arguments(trl, config, seed, scratch, in_order=in_order),
            train_dataset=datasets.Dataset.from_dict(rows),
            processing_class=tokenizer,
            callbacks=[_reporter(progress)] if progress else None,
        )
        # What disable_tqdm puts in the bar's place prints to standard output.
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    model.eval()


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


def _arguments(trl: Any, config: EmbeddedConfig, seed: int, folder: str, *, in_order: bool) -> Any:
    with warnings.catch_warnings():
        # transformers renames gradient_checkpointing; TRL's default of True still goes by the old name.
        warnings.simplefilter("ignore", FutureWarning)
        return _sft_config(trl, config, seed, folder, in_order=in_order)


def _sft_config(trl: Any, config: EmbeddedConfig, seed: int, folder: str, *, in_order: bool) -> Any:
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
        use_cpu=True,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=seed,
    )


def _reporter(progress: Callable[[int, int], None]) -> Any:
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            progress(state.global_step, state.max_steps)

    return Reporter()
