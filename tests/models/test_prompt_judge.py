"""The judge that reads prompts with the policy: numbers by hand, the trainer's policy, and what it is charged."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.judges import make_judge
from rollwise.models.flops import FlopsPerToken

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from rollwise.models.reading.prompt_judge import PromptJudge  # noqa: E402
from rollwise.models.reading.prompts import measured, read_prompts  # noqa: E402
from rollwise.models.sampler import encode  # noqa: E402
from rollwise.models.tokenizer import character_tokenizer  # noqa: E402

PROMPTS = ["1+1=", "12+34+56=", "9*8=", "7", "123456789+1="]


@pytest.fixture(scope="module")
def policy() -> tuple[Any, Any]:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = character_tokenizer(max_length=24)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 24}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = Qwen2Config(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **shape, **heads)
    return Qwen2ForCausalLM(config), tokenizer


def pool(prompts: list[Any]) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(prompts))], prompts=prompts)


def judged(judge: rw.Judge, policy: tuple[Any, Any], prompts: list[Any]) -> tuple[np.ndarray, Any]:
    own = judge.follow(*policy).fresh()
    own.bind(pool(prompts), 0)
    return own.predict(rw.Prompts(pool(prompts), np.arange(len(prompts)))), own


def test_the_measures_by_hand() -> None:
    """Predictions (1/2, 1/2) and (1/4, 3/4): entropies ln 2 and .5623; tokens 0 and 1: exp(-(ln .5 + ln .75) / 2)."""
    logps = torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert float(measured(logps, torch.tensor([0, 1]), "entropy")) == pytest.approx((math.log(2) + quarter) / 2)
    found = float(measured(logps, torch.tensor([0, 1]), "perplexity"))
    assert found == pytest.approx(1 / math.sqrt(0.5 * 0.75))


def test_a_token_that_can_not_come_adds_nothing() -> None:
    logps = torch.tensor([[0.5, 0.5, 0.0]]).log()
    assert float(measured(logps, torch.tensor([0]), "entropy")) == pytest.approx(math.log(2))


def alone(policy: tuple[Any, Any], prompt: Any) -> tuple[float, float]:
    """Entropy and perplexity of a prompt, token by token."""
    model, tokenizer = policy
    ids = encode(tokenizer, prompt)
    with torch.no_grad():
        chances = model(torch.tensor([ids])).logits[0].double().softmax(-1).numpy()
    entropies = [-(chances[t] * np.log(chances[t])).sum() for t in range(len(ids) - 1)]
    surprises = [-math.log(chances[t][ids[t + 1]]) for t in range(len(ids) - 1)]
    return float(np.mean(entropies)), math.exp(np.mean(surprises))


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_a_batch_reads_each_prompt_as_if_alone(policy: tuple[Any, Any], batch_size: int) -> None:
    model, tokenizer = policy
    encoded = [encode(tokenizer, prompt) for prompt in PROMPTS]
    expected = np.array([alone(policy, prompt) for prompt in PROMPTS])
    for column, measure in enumerate(("entropy", "perplexity")):
        found = read_prompts(model, encoded, measure, batch_size=batch_size)  # type: ignore[arg-type]
        assert found == pytest.approx(expected[:, column], rel=1e-5)
    assert read_prompts(model, [], "entropy", batch_size=2).shape == (0,)


def test_it_reads_without_dropout_and_leaves_the_policy_as_it_was(policy: tuple[Any, Any]) -> None:
    model, _ = policy
    model.train()
    judged(make_judge("prompt", predicts="entropy"), policy, PROMPTS)
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())


def test_prompts_without_a_measure_are_not_charged(policy: tuple[Any, Any]) -> None:
    """Text begins with <s>: an empty one is one token, and 24 characters are one too many for a context of 24."""
    found, judge = judged(PromptJudge(predicts="perplexity"), policy, ["1+1=", "", "1" * 24, "1" * 23])
    assert np.isnan(found).tolist() == [False, True, True, False]
    costs = judge.take_costs()
    assert costs.pop("s") > 0.0
    assert costs == {"questions": 2, "context_tokens": 5 + 24, "flops": FlopsPerToken.of(policy[0]).read * 29}
    assert judge.take_costs() == {}


def test_chat_messages_go_through_the_template(policy: tuple[Any, Any]) -> None:
    tokenizer = policy[1]
    tokenizer.chat_template = "<s>{% for m in messages %}{{ m.content }}{% endfor %}"
    try:
        found, _ = judged(PromptJudge(), policy, [[{"role": "user", "content": "1+1="}]])
    finally:
        tokenizer.chat_template = None
    assert found[0] == pytest.approx(alone(policy, "1+1=")[0], rel=1e-5)


def test_a_model_of_its_own_stays_as_it_is(
    policy: tuple[Any, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """From a folder; and where the policy's weights are sharded, from where the policy came."""
    model, tokenizer = policy
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    live, _ = judged(PromptJudge(), policy, PROMPTS)
    other = torch.nn.Linear(1, 1)
    assert judged(PromptJudge(tmp_path, dtype="float32"), (other, None), PROMPTS)[0] == pytest.approx(live, rel=1e-5)
    judge = PromptJudge(dtype="float32").starting_from(str(tmp_path)).follow(other, None, sharded=True)
    assert "sharded: the prompt judge reads a copy of the policy" in caplog.text
    judge.bind(pool(PROMPTS), 0)
    assert judge.predict(rw.Prompts(pool(PROMPTS), np.arange(5))) == pytest.approx(live, rel=1e-5)
    (tmp_path / "model.safetensors").unlink()  # it was loaded once, for all predictions
    assert judge.fresh().predict(rw.Prompts(pool(PROMPTS), np.arange(5))) == pytest.approx(live, rel=1e-5)
    assert PromptJudge(tmp_path).options["model"] == str(tmp_path)
    needing = [rw.HIVE(judge=judge).reads_policy for judge in (PromptJudge(), PromptJudge(tmp_path))]
    assert needing == [True, False]
    assert rw.Mixture(lanes={"a": (1.0, rw.HIVE()), "b": (1.0, rw.Uniform())}).reads_policy


def test_what_it_is_made_of_is_checked() -> None:
    with pytest.raises(rw.ConfigError, match="predicts must be 'entropy' or 'perplexity', got 'pass-rate'"):
        rw.PCL(judge="prompt")
    with pytest.raises(rw.ConfigError, match="model must be a folder or a hub id"):
        PromptJudge(3)  # type: ignore[arg-type]
