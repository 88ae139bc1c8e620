"""The verdict on finished candidates."""

import math

import numpy as np
import pytest
import torch
from tiny import random_head, tiny

from rollwise.errors import ConfigError
from rollwise.inference import BestOfN, EarlyStop, HeadSpec, SuccessHead
from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.evaluation.replay import from_arrays, logged, replay, to_arrays
from rollwise.inference.fitting.fitting import fit_head
from rollwise.inference.fitting.verdict_fitting import choose_l2, fit_verdict, window_means
from rollwise.inference.head.verdict import Verdict
from rollwise.models.sampler import encode

IDS, PROMPTS = ["a", "b", "c"], ["1,2:3=", "12,3:36=", "7,3,5:22="]


def verdict(hidden: int = 32) -> Verdict:
    generator = torch.Generator().manual_seed(4)
    return Verdict(torch.randn(3, 2, hidden, generator=generator), torch.tensor([0.1, -0.1]))


def test_chances_are_the_softmax_of_the_bias_and_the_windows_means() -> None:
    """One unit, windows of 2 and of all, weights +1 and -1 for the two states. Hidden states 1, 2, 6: means 4 and 3.

    Logits (.5 + 4 + 2 * 3, -4 - 2 * 3) = (10.5, -10): chance of the second 1 / (1 + e^20.5)."""
    made = Verdict(torch.tensor([[[1.0], [-1.0]], [[2.0], [-2.0]]]), torch.tensor([0.5, 0.0]), (2, 0))
    reads = made.read(torch.tensor([[1.0], [2.0], [6.0]]))
    assert reads.shape == (3, 2, 2)
    assert made.chances(reads)[1] == pytest.approx(1 / (1 + math.exp(20.5)))


def test_reading_each_position_is_reading_the_means() -> None:
    made = verdict()
    hidden = torch.randn(9, 32, generator=torch.Generator().manual_seed(0))
    logits = made.weight.permute(1, 0, 2).flatten(1) @ window_means(hidden) + made.bias
    np.testing.assert_allclose(made.chances(made.read(hidden)), logits.softmax(-1), atol=1e-6)


def test_what_is_fitted_tells_rollouts_apart() -> None:
    """Success is a matter of the last four states; the fit finds it, and proves that it has converged."""
    generator = torch.Generator().manual_seed(0)
    rollouts = [torch.randn(10, 5, generator=generator) for _ in range(300)]
    rewards = np.array([float(r[-4:, 0].mean() > 0) for r in rollouts])
    made, fit = fit_verdict(torch.stack([window_means(r) for r in rollouts]), rewards, HeadSpec())
    assert fit.converged
    said = np.array([made.chances(made.read(r))[1] for r in rollouts])
    assert ((said > 0.5) == (rewards > 0)).mean() > 0.97


def test_live_it_is_what_it_is_offline_and_policies_go_by_it() -> None:
    model, tokenizer = tiny("llama")
    plain = random_head(model, tokenizer)
    head = SuccessHead(plain.weight, plain.spec, plain.model, verdict=verdict())
    options = DecodingOptions(max_new_tokens=20, slots=12, seed=1)
    decoder = AdaptiveDecoder(model, tokenizer, signal=head, options=options)
    results = list(decoder.decode(IDS, PROMPTS, BestOfN(), k=4))
    text = dict(zip(IDS, PROMPTS, strict=True))
    for result in results:
        prompt = encode(tokenizer, text[result.id])
        for c in result.candidates:
            with torch.inference_mode():
                hidden = model.model(input_ids=torch.tensor([prompt + c.token_ids])).last_hidden_state
            reads = head.verdict.read(hidden[0, len(prompt) - 1 : -1])  # type: ignore[union-attr]
            assert c.value_end == pytest.approx(head.verdict.chances(reads)[1], abs=2e-6)  # type: ignore[union-attr]
    policy = EarlyStop(threshold=0.6, warmup=2, finished=True)
    live = {r.id: r for r in decoder.decode(IDS, PROMPTS, policy, k=4)}
    logs = from_arrays(to_arrays([logged(r) for r in results]))
    for log in logs:
        again = replay(log, policy, limit=20, states=head.states)
        assert [c.token_ids for c in again.candidates] == [c.token_ids for c in live[log.id].candidates]
        ends = [[c.value_end for c in result.complete] for result in (again, live[log.id])]
        assert ends[0] == pytest.approx(ends[1], abs=2e-6)


def test_it_is_kept_in_the_heads_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model, tokenizer = tiny()
    plain = random_head(model, tokenizer)
    assert SuccessHead.load(plain.save(tmp_path / "plain.safetensors")).verdict is None
    kept = SuccessHead(plain.weight, plain.spec, plain.model, verdict=verdict())
    read = SuccessHead.load(kept.save(tmp_path / "kept.safetensors")).verdict
    assert read is not None
    assert torch.equal(read.weight, verdict().weight)
    assert torch.equal(read.bias, verdict().bias)
    assert read.windows == (4, 16, 0)


def test_shapes_that_dont_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\(windows, states, hidden\) = \(3, 2, H\), got \(2, 2, 5\)"):
        Verdict(torch.zeros(2, 2, 5), torch.zeros(2))


def test_the_penalty_is_chosen_by_prompts_held_out() -> None:
    """Forty rollouts of forty numbers each, of which one tells: a weak penalty learns them by heart."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(40, 3 * 40, generator=generator)
    rewards = (means[:, 0] + 0.5 * torch.randn(40, generator=generator) > 0).float().numpy()
    l2, tried = choose_l2(means, rewards, np.arange(40) // 2, HeadSpec())
    assert tried[l2] == min(tried.values())
    assert l2 > 1e-4
    _, weak = fit_verdict(means, rewards, HeadSpec(), l2=1e-5)
    assert weak.cross_entropy < 0.05 < tried[1e-5]


def test_few_rollouts_of_a_wide_model_are_solved_in_their_own_span() -> None:
    """The same minimum as in all coordinates, and weights at right angles to every rollout are none."""
    generator = torch.Generator().manual_seed(1)
    means = torch.randn(30, 3 * 40, generator=generator)
    rewards = (means[:, 0] > 0).float().numpy()
    made, fit = fit_verdict(means, rewards, HeadSpec(), l2=1e-2)
    states = torch.cat([means, torch.ones(30, 1)], dim=1)
    direct = fit_head(states, rewards.astype(int), HeadSpec(edges=(0, 1)), l2=1e-2)
    assert fit.converged
    assert direct.converged
    assert fit.cross_entropy == pytest.approx(direct.cross_entropy, abs=2e-3)
    weight = torch.cat([made.weight.transpose(0, 1).flatten(1), made.bias[:, None]], dim=1)
    torch.testing.assert_close(weight, direct.weight, atol=5e-3, rtol=0)
