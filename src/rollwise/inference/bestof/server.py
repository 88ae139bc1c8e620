"""`rollwise bestof --base_url`: the server in place of the model and the decoder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.policies.confidence import DeepConfPolicy
from rollwise.inference.serving.export_config import HEAD_FILE, SERVING_FILE
from rollwise.inference.serving.server_decoder import ServerDecoder
from rollwise.inference.serving.server_stream import request_options
from rollwise.inference.serving.vllm_signals import HeadSlice, Signal, TopLogprobs
from rollwise.models.loading import need


def head_file(config: BestOfConfig) -> Path:
    """The head's own file: `head`, or with a server in the folder of `rollwise head export` that `head` is.

    Raises:
        ConfigError: it is no such folder.
    """
    given = Path(str(config.head))
    if config.base_url is None:
        return given
    path = given / HEAD_FILE
    if not path.exists() or not (given / SERVING_FILE).exists():
        raise ConfigError(
            f"{config.head!r} is no folder of `rollwise head export`, which --head must be with --base_url: the server "
            "reads the head from rows of the model that it serves"
        )
    return path


def serving_of(folder: str | Path) -> dict[str, Any]:
    """The contents of `serving.json` in such a folder; `StateFileError` if they can't be used."""
    path = Path(folder) / SERVING_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StateFileError(f"{str(path)!r} can't be read ({error}); export the head anew") from error
    if not isinstance(found, dict) or not {"spec", "start", "unnamed_ids", "model"} <= found.keys():
        raise StateFileError(f"{str(path)!r} does not say where the head's rows are; export the head anew")
    return found


def server_decoder(config: BestOfConfig, limit: int, stop: Sequence[str]) -> ServerDecoder:
    """Reads the server as `config` says.

    Raises:
        ConfigError: an option that can't be sent.
        MissingExtraError: the `serve` extra is not installed; with a head, transformers.
    """
    signal: Signal | None = TopLogprobs() if config.policy == DeepConfPolicy.name and config.head is None else None
    unnamed, tokenizer = [], None
    if config.head is not None:
        serving = serving_of(config.head)
        signal, unnamed = HeadSlice.of(serving), serving["unnamed_ids"]
        # The tokens that the head was fitted on, whatever a server makes of text.
        tokenizer = need("transformers", "a head's tokenizer").AutoTokenizer.from_pretrained(config.head)
    endpoint = EndpointConfig(
        base_url=str(config.base_url),
        model=config.model,
        rule="full",
        route=config.route or ("chat" if signal is None else "completions"),
        temperature=config.temperature,
        top_p=config.top_p,
        max_completion_length=limit,
        stop=list(stop) or None,
        concurrency=config.slots,
        timeout=config.timeout,
        retries=config.retries,
        api_key_env=config.api_key_env,
        extra=request_options(signal, unnamed, stop, config.top_k),
    )
    return ServerDecoder(endpoint, signal, unnamed, tokenizer, config.seed)


def served_facts(config: BestOfConfig) -> dict[str, Any]:
    """What is known of the model: its name, and the facts of the exported head, if there is one."""
    facts: dict[str, Any] = {"served": config.model, "weights_digest": None}
    if config.head is not None:
        facts |= serving_of(config.head)["model"]
    return facts
