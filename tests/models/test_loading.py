"""Loading any causal language model: pad token, padding side, clear errors."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from rollwise.errors import ConfigError, MissingExtraError
from rollwise.models import EmbeddedConfig, load_policy
from rollwise.models.embedded import build_policy
from rollwise.models.loading import _give_pad_token, load_tokenizer, need, save_policy, without_adapters

torch = pytest.importorskip("torch")
SMALL = EmbeddedConfig(hidden_size=32, num_layers=1, intermediate_size=32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = build_policy(SMALL)
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer.padding_side = "right"
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_it_is_ready_for_generation(folder: Path) -> None:
    model, tokenizer = load_policy(str(folder))
    assert tokenizer.padding_side == "left"
    assert model.config.pad_token_id == tokenizer.pad_token_id == 0
    if not torch.accelerator.is_available():
        assert model.dtype == torch.float32
    assert load_policy(folder, dtype="bfloat16")[0].dtype == torch.bfloat16


def test_the_end_of_text_stands_in_for_a_missing_pad_token(folder: Path) -> None:
    model, tokenizer = load_policy(folder)
    tokenizer.pad_token = None
    _give_pad_token(model, tokenizer, "toy")
    assert tokenizer.pad_token == tokenizer.eos_token == "</s>"
    assert model.config.pad_token_id == model.generation_config.pad_token_id == tokenizer.eos_token_id
    tokenizer.pad_token = tokenizer.eos_token = None
    with pytest.raises(ConfigError, match="neither a pad nor an end-of-text token"):
        _give_pad_token(model, tokenizer, "toy")


def test_trained_weights_survive_whatever_happens_to_their_file(tmp_path: Path) -> None:
    """Mapped pages would be read anew from a file that is overwritten in place."""
    save_policy(*build_policy(SMALL), tmp_path)
    model, _ = load_policy(tmp_path)
    for weight in model.parameters():
        weight.data.add_(1.0)
    trained = [weight.detach().clone() for weight in model.parameters()]
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes())
    assert all(bool((now == then).all()) for now, then in zip(model.parameters(), trained, strict=True))
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight  # still tied


def test_a_lora_checkpoint_is_its_base_with_the_adapter_merged(folder: Path, tmp_path: Path) -> None:
    """`--model runs/first/checkpoints/best` was refused where the run had trained an adapter."""
    peft = pytest.importorskip("peft")
    model, tokenizer = load_policy(folder)
    lora = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, lora).eval()
    save_policy(adapted, tokenizer, tmp_path / "checkpoint-1")
    before = torch.get_rng_state()
    loaded, _ = load_policy(tmp_path / "checkpoint-1")
    assert torch.equal(torch.get_rng_state(), before)  # a judge loads it in the middle of a run, resumed or not
    tokens = torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        logits, base = loaded.eval()(tokens).logits, load_policy(folder)[0].eval()(tokens).logits
        assert torch.allclose(logits, adapted(tokens).logits, atol=1e-5)
    assert not torch.allclose(logits, base, atol=1e-3)
    assert all(weight.requires_grad for weight in loaded.parameters())
    assert load_tokenizer(tmp_path / "checkpoint-1")[1].model_type == model.config.model_type


def test_weights_that_do_not_fit_are_one_line(folder: Path, tmp_path: Path) -> None:
    """An adapter with tokens of its own, which its base lacks: peft raises a RuntimeError."""
    peft = pytest.importorskip("peft")
    model, tokenizer = load_policy(folder)
    model.resize_token_embeddings(len(tokenizer) + 64, mean_resizing=False)
    lora = peft.LoraConfig(r=2, target_modules=["q_proj"], modules_to_save=["embed_tokens"], task_type="CAUSAL_LM")
    save_policy(peft.get_peft_model(model, lora), tokenizer, tmp_path / "adapter")
    with pytest.raises(ConfigError, match=r"no causal language model can be loaded from .*adapter.*size mismatch"):
        load_policy(tmp_path / "adapter")


def test_errors_say_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere' does not exist"):
        load_policy(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        load_policy(str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="dtype must be a torch dtype's name"):
        load_policy(folder, dtype="float33")
    (folder / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="no causal language model can be loaded"):
        load_policy(folder)


def test_a_hub_id_out_of_reach() -> None:
    with (
        mock.patch("socket.getaddrinfo"),
        mock.patch("transformers.AutoTokenizer.from_pretrained", side_effect=OSError("no connection")),
        pytest.raises(ConfigError, match=r"from 'some/model' \(no such folder is here\): no connection; give a folder"),
    ):
        load_policy("some/model")


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r'a test needs no_such_package; pip install "rollwise\[train\]"'):
        need("no_such_package", "a test")


def test_the_model_within_adapters(folder: Path) -> None:
    """transformers' own adapters lie in the model, which then has `peft_config` and nothing around it."""
    peft, script = pytest.importorskip("peft"), pytest.importorskip("rollwise.training.recording.script")
    model = load_policy(folder)[0]
    assert without_adapters(model) is model
    lora = peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    assert without_adapters(peft.get_peft_model(model, lora)) is model
    other = load_policy(folder)[0]
    other.add_adapter(lora)
    assert without_adapters(other) is other
    trainer = SimpleNamespace(model=other, accelerator=SimpleNamespace(unwrap_model=lambda model: model))
    assert script.model_name(trainer) == str(folder)  # `config.yaml` of a script's run; it ended in a traceback


def test_a_mistyped_id_without_a_network_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hub's client tried to reach it for a minute."""
    import huggingface_hub
    import transformers

    no_network = mock.Mock(side_effect=socket.gaierror(-2, "Name or service not known"))
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr("rollwise.models.loading.getproxies", dict)
    monkeypatch.setattr(huggingface_hub, "is_offline_mode", lambda: False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", mock.Mock(side_effect=AssertionError))
    said = r"'org/mistyped' \(no such folder.*not in the cache, and .* can't be reached .*give a folder"
    with pytest.raises(ConfigError, match=said):
        load_tokenizer("org/mistyped")
    (tmp_path / "models--org--mistyped").mkdir()
    with pytest.raises(AssertionError):
        load_tokenizer("org/mistyped")
