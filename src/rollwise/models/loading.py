"""Load any causal language model of transformers as a policy."""

from __future__ import annotations

import importlib
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies

from rollwise.errors import ConfigError, MissingExtraError

_ADAPTER = "adapter_config.json"
"""What a LoRA checkpoint has in place of `config.json`."""


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside, the model evaluates (no dropout); afterwards it is back in the mode in which it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def checkpoints_activations(model: Any) -> bool:
    """Whether a model computes activations again in the backward pass; while it trains, it then keeps no cache."""
    name = "is_activation_checkpointing"  # transformers 5.23 renamed it
    return bool(getattr(model, name if hasattr(model, name) else "is_gradient_checkpointing", False))


def without_adapters(model: Any) -> Any:
    """The model within a PEFT model, with its adapters in place; any other as it is."""
    return model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model


def need(module: str, purpose: str) -> ModuleType:
    """The module called `module`, imported now.

    Raises:
        MissingExtraError: it, or something it imports, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        extra = "peft" if missing.partition(".")[0] == "peft" else "train"
        raise MissingExtraError(f'{purpose} needs {missing}; pip install "rollwise[{extra}]"') from error


def default_device() -> Any:
    """The accelerator, where there is one; else the CPU."""
    import torch

    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return torch.device("cpu") if found is None else found


if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


def load_policy(
    path_or_id: str | Path, *, dtype: str | None = None, trust_remote_code: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal language model and its tokenizer, ready for generation: a pad token, padding on the left.

    The global random state of torch is left as it was.

    Args:
        path_or_id: A folder written by `save_pretrained`, or a model's id on the Hugging Face hub. Of a LoRA
            checkpoint, which holds the adapter alone, the base model with the adapter merged into its weights.
        dtype: A torch dtype's name, such as `bfloat16`; by default `float32` on a machine without an accelerator
            (bfloat16 is several times slower on most CPUs) and the checkpoint's own elsewhere.
        trust_remote_code: Let the model run code that came with it.

    Raises:
        ConfigError: nothing can be loaded from there, it is not a causal language model, or `dtype` is unknown.
        MissingExtraError: torch or transformers is not installed.
    """
    torch = need("torch", "loading a policy")
    transformers = need("transformers", "loading a policy")
    source = str(path_or_id)
    if dtype is not None and not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise ConfigError(f"dtype must be a torch dtype's name such as 'float32' or 'bfloat16', got {dtype!r}")
    if dtype is None:
        dtype = "auto" if torch.accelerator.is_available() else "float32"
    with _loading(path_or_id), torch.random.fork_rng(devices=[]):  # an adapter is drawn before it is read
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source, padding_side="left", trust_remote_code=trust_remote_code
        )
        model = transformers.AutoModelForCausalLM.from_pretrained(
            _base_of(source), dtype=dtype, trust_remote_code=trust_remote_code
        )
        if _base_of(source) != source:
            adapted = need("peft", "loading a LoRA checkpoint").PeftModel.from_pretrained(model, source)
            model = adapted.merge_and_unload().requires_grad_(True)  # peft has frozen it
    _give_pad_token(model, tokenizer, source)
    _take_off_the_file(model)
    return model, tokenizer


def load_tokenizer(path_or_id: str | Path) -> tuple[PreTrainedTokenizerBase, PretrainedConfig]:
    """A model's tokenizer and its configuration, without the weights.

    Raises:
        ConfigError: nothing can be loaded from there.
        MissingExtraError: transformers is not installed.
    """
    transformers = need("transformers", "loading a tokenizer")
    with _loading(path_or_id):
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path_or_id), padding_side="left")
        return tokenizer, transformers.AutoConfig.from_pretrained(_base_of(str(path_or_id)))


def _base_of(source: str) -> str:
    """The model that a LoRA checkpoint is an adapter of; of anything else itself."""
    adapter = Path(source, _ADAPTER)
    if Path(source, "config.json").is_file() or not adapter.is_file():
        return source
    return str(json.loads(adapter.read_text(encoding="utf-8"))["base_model_name_or_path"])


@contextmanager
def _loading(path_or_id: str | Path) -> Iterator[None]:
    """Whatever transformers and peft raise inside becomes a `ConfigError` that names the place."""
    safetensors = need("safetensors", "loading a policy")
    check_model_folder(path_or_id)
    try:
        if not Path(path_or_id).exists():
            check_reachable(str(path_or_id), "model")
        yield
    except (OSError, ValueError, KeyError, RuntimeError, safetensors.SafetensorError) as error:
        remedy = "give a folder written by save_pretrained, or a hub id that this machine can reach"
        absent = "" if Path(path_or_id).exists() else " (no such folder is here)"
        raise ConfigError(
            f"no causal language model can be loaded from {str(path_or_id)!r}{absent}: "
            f"{' '.join(str(error).split())}; {remedy}"
        ) from error


def check_reachable(name: str, kind: Literal["model", "dataset"]) -> None:
    """Raise `OSError` where a model or data set that is not in the cache must come from the hub, which isn't there."""
    hub = need("huggingface_hub", f"loading a {kind}")
    kept = [Path(hub.constants.HF_HUB_CACHE, f"{kind}s--{name.replace('/', '--')}")]
    if kind == "dataset":
        datasets = need("datasets", "loading a dataset")
        kept.append(Path(datasets.config.HF_DATASETS_CACHE, name.replace("/", "___")))
    if any(place.exists() for place in kept) or hub.is_offline_mode() or getproxies():
        return
    host = str(urlsplit(hub.constants.ENDPOINT).hostname)
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        raise OSError(f"it is not in the cache, and {host} can't be reached ({error})") from error


def save_policy(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write both into `folder`, from where `load_policy` reads them."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def check_model_folder(path_or_id: str | Path) -> None:
    """Say plainly what is wrong with a local path; transformers would take it for a hub id.

    Raises:
        ConfigError: it is a path, and no model is there.
    """
    path = Path(path_or_id)
    local = isinstance(path_or_id, Path) or str(path_or_id).startswith((".", "/", "~")) or path.is_dir()
    if local and not any((path / name).is_file() for name in ("config.json", _ADAPTER)):
        what = "has no config.json" if path.is_dir() else "does not exist"
        raise ConfigError(f"model folder {str(path)!r} {what}; give a folder written by save_pretrained")


def _take_off_the_file(model: Any) -> None:
    """Give the weights memory of their own.

    On a CPU they are the file's pages, mapped. Overwriting the file in place, as `cp` does, would set weights
    that were trained since back to what the file holds, without a word.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


def _give_pad_token(model: Any, tokenizer: Any, source: str) -> None:
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token is None:
            raise ConfigError(f"the tokenizer of {source!r} has neither a pad nor an end-of-text token; set one first")
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    if model.generation_config is not None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id
