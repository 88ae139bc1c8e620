"""`rollwise head export`: loads the head and its model, and writes the folder for servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.files import RolloutSet, model_of
from rollwise.inference.head.fitted_on import check_weights
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.hidden import Progress
from rollwise.inference.head.viability_file import note_viability, read_viability
from rollwise.inference.serving.export import check_new_folder, export_head
from rollwise.inference.serving.export_config import HEAD_FILE, ExportConfig
from rollwise.inference.serving.exported_rows import Export
from rollwise.models import is_embedded
from rollwise.sampling.setting import load_model


def run_export(config: ExportConfig, bar: Callable[[str], Progress]) -> Export:
    """Write a head into its model's vocabulary; see `export_head`.

    Raises:
        ConfigError: no model is named, or what `export_head` refuses.
    """
    check_new_folder(config.out)  # before a model is loaded
    head = SuccessHead.load(config.head)
    model, tokenizer, sequences = _model(config, bar)
    head.check(model, tokenizer)
    check_weights(head, model)
    margin, out = config.margin or None, config.out
    done = export_head(model, tokenizer, head, out, sequences=sequences, margin=margin, resize=config.resize)
    if (verdict := read_viability(config.head, head.digest)) is not None:
        note_viability(done.path / HEAD_FILE, head.digest, verdict)
    return done


def _model(config: ExportConfig, bar: Callable[[str], Progress]) -> tuple[Any, Any, list[list[int]]]:
    """Model, tokenizer, and the tokens of some rollouts."""
    if config.rollouts is not None:
        rollouts = RolloutSet.read(config.rollouts)
        model, tokenizer, _ = model_of(rollouts, config.model, progress=bar("warm start"))
        return model, tokenizer, rollouts.sequences[:: -(-len(rollouts) // config.sample)]
    if config.model is None or is_embedded(config.model):
        raise ConfigError("which model? give --rollouts (their model is taken), or --model with a folder or hub id")
    return *load_model(config.model, None), []
