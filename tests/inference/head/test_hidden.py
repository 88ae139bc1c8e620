"""Hidden states at the right positions, whatever the batch, with the model left as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.hidden import gather_states, hidden_states
from rollwise.inference.head.scoring import score_rollouts
from rollwise.inference.head.spec import HeadSpec
from rollwise.inference.head.verdict import Verdict
from rollwise.models import load_policy

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def policy(toy: Path) -> Any:
    return load_policy(toy / "one")[0]


def test_positions_by_hand(policy: Any) -> None:
    """Prompt [1, 7, 8], completion [9, 2]: P = 3, N = 5, so positions P - 1 = 2 and N - 2 = 3.

    Position 2 reads the prompt's last token and draws 9, with 2 tokens to come; position 3 reads 9 and draws 2, with 1
    to come. Position 4, which reads the last token, draws nothing. Edges (0, 2, 8) put 2 in bin 1 and 1 in bin 0; with
    reward 1 and L = 2 the labels are 1 + 2 = 3 and 0 + 2 = 2.
    """
    ((index, states),) = hidden_states(policy, [[1, 7, 8, 9, 2]], [3])
    with torch.no_grad():
        every = policy.model(torch.tensor([[1, 7, 8, 9, 2]])).last_hidden_state[0]
        logits = policy(torch.tensor([[1, 7, 8]])).logits[0, -1]
    assert index == 0
    assert torch.allclose(states, every[2:4], atol=1e-6)
    assert torch.allclose(policy.lm_head(states[0]), logits, atol=1e-5)  # from which the first token is drawn
    assert HeadSpec(edges=(0, 2, 8)).rollout_labels(2, 1.0).tolist() == [3, 2]


def test_the_batch_plays_no_part_and_the_model_stays_as_it_was(policy: Any, rolled: Path) -> None:
    rollouts = RolloutSet.read(rolled)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    policy.train()
    told: list[tuple[int, int]] = []
    alone = dict(hidden_states(policy, rollouts.sequences, rollouts.prompt_lengths, batch_tokens=1))
    together = dict(
        hidden_states(policy, rollouts.sequences, rollouts.prompt_lengths, progress=lambda *done: told.append(done))
    )
    assert policy.training
    policy.eval()
    assert not policy.lm_head._forward_pre_hooks
    assert all(torch.equal(value, before[name]) for name, value in policy.state_dict().items())
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert sorted(alone) == sorted(together) == list(range(len(rollouts)))
    for i, states in alone.items():
        assert states.shape == (rollouts.lengths[i], 32)
        assert torch.allclose(states, together[i], atol=1e-5)
    assert told[-1] == (len(rollouts), len(rollouts))


def test_a_sample_of_positions_is_of_the_whole(policy: Any, rolled: Path) -> None:
    rollouts = RolloutSet.read(rolled)
    states, owner, remaining, _ = gather_states(policy, rollouts)
    assert len(states) == rollouts.lengths.sum()
    for i, length in enumerate(rollouts.lengths):
        assert remaining[owner == i].tolist() == list(range(length, 0, -1))
    some, some_owner, some_remaining, _ = gather_states(policy, rollouts, max_positions=50, seed=3)
    assert some.shape == (50, 32)
    place = {pair: at for at, pair in enumerate(zip(owner.tolist(), remaining.tolist(), strict=True))}
    rows = [place[pair] for pair in zip(some_owner.tolist(), some_remaining.tolist(), strict=True)]
    assert len(set(rows)) == 50
    assert torch.equal(some, states[rows])
    again = gather_states(policy, rollouts, max_positions=50, seed=3)
    assert np.array_equal(again[1], some_owner)
    assert not np.array_equal(gather_states(policy, rollouts, max_positions=50, seed=4)[1], some_owner)


def test_scores_are_what_the_head_reads(policy: Any, rolled: Path) -> None:
    """By the definitions: the value at each position, its mean over the last 16, and -log p of the true pair."""
    rollouts = RolloutSet.read(rolled)
    spec = HeadSpec(rewards=(0.0, 0.1, 1.0), edges=(0, 3, 9))
    head = SuccessHead(torch.randn(spec.size, 32, generator=torch.Generator().manual_seed(0)) / 5, spec)
    states, owner, _, _ = gather_states(policy, rollouts)
    scores = list(score_rollouts(policy, head, rollouts))
    assert sorted(score.index for score in scores) == list(range(len(rollouts)))
    for score in scores[:20]:
        own = states[torch.as_tensor(owner == score.index)]
        values = head.value(own).numpy()
        assert np.allclose(score.values, values, atol=2e-6)
        assert score.value_end == pytest.approx(values[-16:].mean(), abs=2e-6)
        labels = spec.rollout_labels(len(own), rollouts.rewards[score.index])
        expected = torch.nn.functional.cross_entropy(own @ head.weight.T, torch.as_tensor(labels), reduction="none")
        assert np.allclose(score.entropy, expected.numpy(), atol=1e-5)
        assert np.allclose(score.belief, head.read(own)[0][-16:].mean(dim=0).numpy(), atol=2e-6)
        assert score.belief @ spec.rewards == pytest.approx(score.value_end, abs=1e-9)
    generator = torch.Generator().manual_seed(1)
    verdict = Verdict(torch.randn(3, 3, 32, generator=generator) / 5, torch.zeros(3))
    judged = list(score_rollouts(policy, SuccessHead(head.weight, spec, verdict=verdict), rollouts))
    assert all(score.belief @ spec.rewards == pytest.approx(score.value_end, abs=1e-9) for score in judged)
    narrow = SuccessHead(torch.zeros(spec.size, 16), spec)
    with pytest.raises(ConfigError, match="reads 16 hidden units, the model has 32"):
        next(score_rollouts(policy, narrow, rollouts))


@pytest.mark.parametrize("start", [0, 3])
def test_both_parts_are_needed(policy: Any, start: int) -> None:
    with pytest.raises(ConfigError, match=f"sequence 0 has 3 tokens, {start} of its prompt"):
        next(hidden_states(policy, [[1, 2, 3]], [start]))
