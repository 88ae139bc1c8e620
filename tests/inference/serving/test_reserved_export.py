"""Free rows found, added and written: nothing else changes, and what a server shows is what the head says."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tiny import random_head

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.reserved import (
    check_linear_read,
    reserve,
    suppress,
    unnamed_ids,
    unnamed_rows,
)
from rollwise.inference.head.spec import HeadSpec
from rollwise.inference.serving import export, export_run
from rollwise.inference.serving.export import export_head
from rollwise.inference.serving.export_config import ExportConfig
from rollwise.inference.serving.exported_rows import Export
from rollwise.models import EmbeddedConfig, load_policy
from rollwise.models.embedded import build_policy
from rollwise.models.identity import model_facts
from rollwise.models.sampler import SamplingOptions, sample_prompts

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


SMALL = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=48)
NAMED = 26
FITS = HeadSpec(edges=(0, 2, 4, 8))  # 6 rows, as many as are free of 32
WIDE = HeadSpec(edges=(0, 1, 2, 3, 4, 5, 6, 7))  # 14
SHAPE = {
    "vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 48, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def policy(tied: bool) -> tuple[Any, Any]:
    model, tokenizer = build_policy(SMALL, seed=1)
    if not tied:
        torch.manual_seed(2)
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SHAPE, tie_word_embeddings=False))
    assert (model.lm_head.weight is model.model.embed_tokens.weight) is tied
    return model.eval(), tokenizer


def head_of(model: Any, tokenizer: Any, spec: HeadSpec) -> SuccessHead:
    weight = torch.randn(spec.size, 32, generator=torch.Generator().manual_seed(5)) / 2
    return SuccessHead(weight, spec, model_facts(model, tokenizer))


def logits_of(model: Any, ids: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=ids).logits


IDS = torch.tensor([[1, 8, 9, 10, 11, 5, 2], [1, 20, 19, 18, 25, 4, 3]])


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("margin", [None, 12.0])
def test_the_slice_is_the_head_and_nothing_else_changes(tmp_path: Path, tied: bool, margin: float | None) -> None:
    model, tokenizer = policy(tied)
    head = head_of(model, tokenizer, FITS)
    before, inputs = logits_of(model, IDS), model.get_input_embeddings().weight.detach().clone()
    done = export_head(model, tokenizer, head, tmp_path / "out", sequences=IDS.tolist(), margin=margin)
    assert (done.start, done.size, done.rows, done.resized) == (NAMED, 6, 32, 0)
    loaded, loaded_tokenizer = load_policy(tmp_path / "out", dtype="float32")
    for served in (model, loaded):
        after = logits_of(served, IDS)
        assert torch.equal(after[..., :NAMED], before[..., :NAMED])
        with torch.no_grad():
            hidden = served.model(IDS).last_hidden_state
        shown, own = after[..., NAMED:], hidden @ head.weight.T
        common = (shown - own).mean(-1, keepdim=True)
        assert torch.allclose(shown - common, own, atol=1e-5)
        if margin is None:
            assert torch.allclose(shown, own, atol=1e-5)
        assert np.allclose(FITS.joint(shown.numpy()), head.joint(hidden).numpy(), atol=1e-5)
        named_inputs = served.get_input_embeddings().weight[: NAMED if tied else 32]
        assert torch.equal(named_inputs, inputs[: len(named_inputs)])
    assert unnamed_ids(loaded, loaded_tokenizer) == list(range(NAMED, 32))
    assert torch.equal(SuccessHead.load(tmp_path / "out/success_head/head.safetensors").weight, head.weight)
    assert done.check is not None
    assert done.check.value_error < 1e-5


def test_the_safety_net_holds_where_it_was_measured(tmp_path: Path) -> None:
    model, tokenizer = policy(tied=True)
    spec_head = head_of(model, tokenizer, FITS)
    loud = SuccessHead(spec_head.weight + 1.0, FITS, spec_head.model)
    plain = export_head(model, tokenizer, loud, tmp_path / "plain", sequences=IDS.tolist(), margin=None)
    safe = export_head(model, tokenizer, loud, tmp_path / "safe", sequences=IDS.tolist())
    assert plain.check is not None
    assert safe.check is not None
    chances = logits_of(load_policy(tmp_path / "safe", dtype="float32")[0], IDS)[:, :-1].softmax(-1)
    assert safe.check.greatest_mass == pytest.approx(float(chances[..., NAMED:].sum(-1).max()), rel=0.01)
    assert safe.check.greatest_mass < 1e-4 < plain.check.greatest_mass


def test_rows_are_added_and_old_logits_stay(tmp_path: Path) -> None:
    """14 rows from id 26 on need 40, which 64 rounds up to; 32 are new, and 26 ... 63 are no tokens."""
    for tied in (True, False):
        model, tokenizer = policy(tied)
        head = head_of(model, tokenizer, WIDE)
        before = logits_of(model, IDS)
        message = "needs 14 rows that no token names, this model has 6 .* ids up to 25 of 32.*--resize"
        with pytest.raises(ConfigError, match=message):
            export_head(model, tokenizer, head, tmp_path / f"{tied}")
        assert not (tmp_path / f"{tied}").exists()
        state = torch.get_rng_state()
        done = export_head(model, tokenizer, head, tmp_path / f"{tied}", sequences=IDS.tolist(), resize=True)
        assert torch.equal(torch.get_rng_state(), state)
        assert (done.start, done.size, done.rows, done.resized) == (NAMED, 14, 64, 32)
        loaded, loaded_tokenizer = load_policy(tmp_path / f"{tied}", dtype="float32")
        assert (loaded.lm_head.weight is loaded.model.embed_tokens.weight) is tied
        for served in (model, loaded):
            after = logits_of(served, IDS)
            assert float((after[..., :NAMED] - before[..., :NAMED]).abs().max()) == 0.0
            with torch.no_grad():
                hidden = served.model(IDS).last_hidden_state
            joint = WIDE.joint(after[..., NAMED : NAMED + 14].numpy())
            assert np.allclose(joint, head.joint(hidden).numpy(), atol=1e-5)
        assert unnamed_ids(loaded, loaded_tokenizer) == list(range(NAMED, 64))


def test_resizing_alone_changes_no_logit(toy: Path) -> None:
    model, tokenizer = load_policy(toy / "one")
    before = logits_of(model, IDS)
    assert reserve(model, tokenizer, 20, resize=True) == NAMED
    assert float((logits_of(model, IDS)[..., :32] - before).abs().max()) == 0.0


def test_generation_is_the_same_after_export(tmp_path: Path, toy: Path) -> None:
    """With unnamed rows masked before and after, the same random numbers draw the same tokens, none of them reserved.

    The head's rows are loud: unmasked, they would be drawn all the time.
    """
    model, tokenizer = load_policy(toy / "one")
    prompts = [f"{i}*{i + 1}=" for i in range(8)]

    def drawn(policy: Any) -> list[list[int]]:
        options = SamplingOptions(n=16, max_new_tokens=8)
        batches = sample_prompts(policy, tokenizer, [f"p{i}" for i in range(8)], prompts, options)
        return [ids for batch in batches for rollouts in batch for ids in rollouts.token_ids]

    suppress(model, unnamed_ids(model, tokenizer))
    before = drawn(model)
    quiet = head_of(model, tokenizer, FITS)
    head = SuccessHead(quiet.weight * 20, FITS, quiet.model)
    export_head(model, tokenizer, head, tmp_path / "out")
    loaded = load_policy(tmp_path / "out", dtype="float32")[0]
    assert drawn(loaded) == drawn(model) == before
    assert max(max(ids) for ids in before) < NAMED
    greedy = loaded.generate(IDS[:, :3], max_new_tokens=8, do_sample=False)
    assert int(greedy.max()) < NAMED
    loaded.generation_config.suppress_tokens = None
    assert max(max(ids) for ids in drawn(loaded)) >= NAMED  # so there was something to mask


def test_unnamed_rows_and_holes() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model, named = policy(tied=True)
    assert unnamed_rows(model, named) == (26, 32)
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0, "a": 1, "b": 29}, unk_token="<unk>"))
    holey = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    assert unnamed_rows(model, holey) == (30, 32)
    assert unnamed_ids(model, holey) == [*range(2, 29), 30, 31]
    holey.add_tokens(["<more>"])
    assert unnamed_ids(model, holey) == [2, *range(4, 29), 30, 31]  # transformers gave it id 3, the number of tokens
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0, "a": 32}, unk_token="<unk>"))
    holey = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    with pytest.raises(ConfigError, match="names ids up to 32, the model has 32 rows"):
        unnamed_rows(model, holey)


def gemma() -> Any:
    return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**SHAPE, head_dim=16, final_logit_softcapping=30.0))


def granite() -> Any:
    return transformers.GraniteForCausalLM(transformers.GraniteConfig(**SHAPE, logits_scaling=8.0))


def cohere() -> Any:
    return transformers.CohereForCausalLM(transformers.CohereConfig(**SHAPE, logit_scale=0.0625))


class Doubling(transformers.Qwen2ForCausalLM):
    """Changes its logits, and no setting says so."""

    def forward(self, *given: Any, **named: Any) -> Any:
        output = super().forward(*given, **named)
        output.logits = output.logits * 2
        return output


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (gemma, "final_logit_softcapping=30.0"),
        (granite, "logits_scaling=8.0"),
        (cohere, "logit_scale=0.0625"),
        (lambda: Doubling(transformers.Qwen2Config(**SHAPE)), "changes its logits, by 1.0e"),
    ],
)
def test_models_that_change_their_logits_are_refused(tmp_path: Path, make: Any, message: str) -> None:
    model, (_, tokenizer) = make().eval(), policy(tied=True)
    head = head_of(model, tokenizer, FITS)
    with pytest.raises(ConfigError, match=message):
        export_head(model, tokenizer, head, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["Gemma2", "Granite", "Cohere"])
def test_the_same_models_without_it_are_welcome(kind: str) -> None:
    neutral = {"Gemma2": {"final_logit_softcapping": None, "head_dim": 16}, "Granite": {"logits_scaling": 1.0}}
    config = getattr(transformers, f"{kind}Config")(**SHAPE, **neutral.get(kind, {"logit_scale": 1.0}))
    check_linear_read(getattr(transformers, f"{kind}ForCausalLM")(config).eval(), policy(tied=True)[1])


def test_a_bias_of_reserved_rows_becomes_0(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, tokenizer = transformers.PhiForCausalLM(transformers.PhiConfig(**SHAPE)).eval(), policy(tied=True)[1]
    with torch.no_grad():
        model.lm_head.bias.normal_()
    head = head_of(model, tokenizer, FITS)
    before = logits_of(model, IDS)
    export_head(model, tokenizer, head, tmp_path / "out")
    served = load_policy(tmp_path / "out", dtype="float32")[0]
    after = logits_of(served, IDS)
    assert torch.equal(after[..., :NAMED], before[..., :NAMED])
    with torch.no_grad():
        hidden = served.model(IDS).last_hidden_state
    assert torch.allclose(after[..., NAMED:], hidden @ head.weight.T, atol=1e-5)


def test_what_a_server_needs_is_written(tmp_path: Path, toy: Path, rolled: Path) -> None:
    model, tokenizer = load_policy(toy / "one")
    head = head_of(model, tokenizer, FITS)
    sequences = RolloutSet.read(rolled).sequences[:16]
    done: Export = export_head(model, tokenizer, head, tmp_path / "out", sequences=sequences)
    serving = json.loads((tmp_path / "out/serving.json").read_text())
    assert serving["vllm"]["logprob_token_ids"] == list(range(26, 32))
    assert serving["vllm"]["logit_bias"] == {str(id_): -100.0 for id_ in range(26, 32)}
    assert HeadSpec.from_dict(serving["spec"]) == FITS
    assert done.check is not None
    assert serving["check"]["value_error"] == done.check.value_error < 1e-5
    text = (tmp_path / "out/README.md").read_text()
    assert "Ids 26 to 31" in text
    assert "logprob_token_ids" in text
    with pytest.raises(ConfigError, match="not empty"):
        export_head(model, tokenizer, head, tmp_path / "out")


def test_after_a_full_disk_the_same_command_goes_on(tmp_path: Path, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written by then was taken for somebody else's folder."""
    model, tokenizer = load_policy(toy / "one")
    head = head_of(model, tokenizer, FITS)
    config = ExportConfig(
        head=str(head.save(tmp_path / "h.safetensors")), out=str(tmp_path / "out"), model=str(toy / "one")
    )

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left on device: '.*out'"):
        patch.setattr(export, "write_atomically", full)
        export_run.run_export(config, lambda _: lambda done, total: None)
    assert not (tmp_path / "out").exists()
    export_run.run_export(config, lambda _: lambda done, total: None)
    assert (tmp_path / "out/serving.json").exists()


def test_another_models_head_is_refused(tmp_path: Path, toy: Path) -> None:
    model, tokenizer = load_policy(toy / "one")
    other = head_of(*load_policy(toy / "other"), FITS)
    with pytest.raises(ConfigError, match="whose tokenizer is"):
        export_head(model, tokenizer, other, tmp_path / "out")
    narrow = SuccessHead(torch.zeros(6, 16), FITS)
    with pytest.raises(ConfigError, match="reads 16 hidden units"):
        export_head(model, tokenizer, narrow, tmp_path / "out")


def test_no_more_rollouts_are_read_than_the_option_says(
    rolled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = len(RolloutSet.read(rolled))
    read: list[int] = []
    head = random_head(*load_policy(yaml.safe_load((rolled / "config.yaml").read_text())["model"]))
    monkeypatch.setattr(export_run, "export_head", lambda *_, sequences, **__: read.append(len(sequences)))
    for sample in (there - 1, 64, 1, there + 5):
        config = ExportConfig(
            head=str(head.save(tmp_path / "h.safetensors")), out="x", rollouts=str(rolled), sample=sample
        )
        export_run.run_export(config, lambda _: lambda done, total: None)
    assert all(0 < n <= sample for n, sample in zip(read, (there - 1, 64, 1, there + 5), strict=True))
    assert read[-1] == there
    with pytest.raises(ConfigError, match="sample"):
        ExportConfig(head="h", out="x", sample=0)
    for name in ("sample", "margin"):
        with pytest.raises(ConfigError, match=f"{name} 20 needs rollouts to go by: add --rollouts"):
            ExportConfig(head="h", out="x", model="m", **{name: 20})
    assert ExportConfig(head="h", out="x", model="m", margin=0).margin == 0
