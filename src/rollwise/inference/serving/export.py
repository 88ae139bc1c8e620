"""Write a head into free rows of a vocabulary, so that an unmodified server shows it: a model's folder and a recipe."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.reserved import check_linear_read, suppress, unnamed_ids
from rollwise.inference.serving.export_config import HEAD_FILE, MARGIN, README_FILE, SERVING_FILE
from rollwise.inference.serving.exported_rows import Export, write_head
from rollwise.inference.serving.readme import recipe
from rollwise.inference.serving.vllm_signals import MASK
from rollwise.models.identity import model_facts, weights_digest
from rollwise.state import write_atomically, writing


def export_head(
    model: Any,
    tokenizer: Any,
    head: SuccessHead,
    out: str | Path,
    *,
    sequences: Sequence[Sequence[int]] = (),
    margin: float | None = MARGIN,
    resize: bool = False,
) -> Export:
    """Write the head's rows into the model, in place, and save both with a recipe for servers.

    All other rows stay what they are, to the bit, and so do the logits of all tokens, whether embeddings are tied or
    not. Unnamed rows must be masked when serving; transformers' `generate` does, by the generation config saved here.
    As a safety net against a forgotten mask, one vector is added to all reserved rows (a gauge: the softmax over them,
    and so the head, stays the same), chosen so that their mass is small on states like those given.

    Args:
        model: Changed in place.
        tokenizer: Its own.
        head: Fitted on this model.
        out: A new or empty folder.
        sequences: Tokens of some rollouts, prompt and completion: for the gauge, and to check what was written.
        margin: Of the gauge, in nats; None for none. Without sequences there is none. In bfloat16 it costs precision
            (three times the value error, in one measurement), which `Check` shows.
        resize: Add rows if too few are free.

    Raises:
        ConfigError: another model's head, too few rows, an architecture whose logits are not hidden state times row,
            or a folder that is not empty.
    """
    folder = Path(out)
    check_new_folder(folder)
    head.check(model, tokenizer)
    check_linear_read(model, tokenizer)
    fitted_on = weights_digest(model)
    exported = write_head(model, tokenizer, head, folder, sequences, margin, resize)
    unnamed = unnamed_ids(model, tokenizer)
    suppress(model, unnamed)
    if head.model.get("weights_digest") == fitted_on:  # the rows are part of the weights now
        head = replace(head, model=head.model | {"weights_digest": weights_digest(model)})
    serving = serving_facts(exported, head, unnamed, model_facts(model, tokenizer))
    try:
        with writing(folder):
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            head.save(folder / HEAD_FILE)
            write_atomically(folder / SERVING_FILE, json.dumps(serving, indent=1).encode())
            write_atomically(folder / README_FILE, recipe(serving).encode())
    except BaseException:  # half a folder would be refused when the command is given again
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return exported


def check_new_folder(out: str | Path) -> None:
    """`ConfigError` where a head's folder is to be written and something is there already."""
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{str(folder)!r} is there already and not empty; give a new folder")


def serving_facts(exported: Export, head: SuccessHead, unnamed: list[int], facts: dict[str, Any]) -> dict[str, Any]:
    """All that a server's adapter needs, JSON-safe."""
    ids = list(range(exported.start, exported.start + exported.size))
    verdict = head.verdict
    return {
        "format": "rollwise-serving-1",
        "spec": head.spec.to_dict(),
        "model": facts,
        "start": exported.start,
        "size": exported.size,
        "verdict": verdict and {"windows": list(verdict.windows), "bias": verdict.bias.tolist()},
        "rows": exported.rows,
        "rows_added": exported.resized,
        "unnamed_ids": unnamed,
        "gauge_margin": exported.margin,
        "check": None if exported.check is None else asdict(exported.check),
        "vllm": {"logprob_token_ids": ids, "logit_bias": {str(id_): MASK for id_ in unnamed}},
    }
