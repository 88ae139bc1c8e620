"""Outputs of several calls, put together, are what one call would have given."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rollwise as rw
from rollwise.training.generation.advantages import AdvantageKind, group_advantages, scale_advantages
from rollwise.training.generation.merging import check_mergeable, gather_rows, merge

PAD = 9


def padded(rows: list[list[float]], *, left: bool, value: float, multiple: int | None = None) -> torch.Tensor:
    width = max(map(len, rows))
    width += -width % (multiple or 1)
    return torch.tensor([[value] * (width - len(r)) * left + r + [value] * (width - len(r)) * (not left) for r in rows])


def output_of(rollouts: list[tuple[int, int, int]], multiple: int | None = None) -> dict[str, Any]:
    """What TRL returns of rollouts (number, prompt length, completion length), padded by hand."""
    prompts = [[n] * p for n, p, _ in rollouts]
    completions = [[n] * c for n, _, c in rollouts]
    tools = [[i % 2 for i in range(c)] for _, _, c in rollouts]
    logps = [[-n - i / 8 for i in range(c)] for n, _, c in rollouts]
    ones = [[1] * len(r) for r in completions]
    right = {"left": False, "multiple": multiple}
    return {
        "prompt_ids": padded(prompts, left=True, value=PAD, multiple=multiple),
        "prompt_mask": padded([[1] * len(r) for r in prompts], left=True, value=0, multiple=multiple),
        "completion_ids": padded(completions, value=PAD, **right),
        "completion_mask": padded(ones, value=0, **right),
        "tool_mask": padded(tools, value=1, **right),
        "old_per_token_logps": padded(logps, value=0.0, **right),
        "importance_sampling_ratio": torch.tensor([[float(n)] for n, _, _ in rollouts]),  # one a sequence
        "advantages": torch.tensor([float(n) for n, _, _ in rollouts]),
        "num_items_in_batch": torch.tensor([sum(map(sum, tools))]).sum(),
    }


class OneRank:
    def pad_across_processes(self, tensor: torch.Tensor, **_: Any) -> torch.Tensor:
        return tensor

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor


lengths = st.tuples(st.integers(1, 5), st.integers(1, 6))


@settings(deadline=None, max_examples=100)
@given(
    rounds=st.lists(st.lists(lengths, min_size=2, max_size=4), min_size=1, max_size=3),
    multiple=st.sampled_from([None, 4]),
    data=st.data(),
)
def test_merged_rows_are_what_one_call_would_have_padded(
    rounds: list[list[tuple[int, int]]], multiple: int | None, data: Any
) -> None:
    flat = [length for r in rounds for length in r]
    numbers = iter(range(10, 10 + len(flat)))
    named = [[(next(numbers), p, c) for p, c in r] for r in rounds]
    everyone = [rollout for r in named for rollout in r]
    rows = data.draw(st.lists(st.integers(0, len(flat) - 1), min_size=2, max_size=len(flat), unique=True))
    rows = rows[: len(rows) // 2 * 2]
    outputs = [gather_rows(output_of(r, multiple), OneRank(), PAD) for r in named]
    half = len(rows) // 2
    for share in (slice(0, half), slice(half, None)):
        merged = merge(outputs, rows, pad_token=PAD, share=share, counted=True, multiple_of=multiple)
        expected = output_of([everyone[i] for i in rows[share]], multiple)
        expected["num_items_in_batch"] = output_of([everyone[i] for i in rows])["num_items_in_batch"]  # of all ranks
        assert set(merged) == set(expected)
        for name, tensor in expected.items():
            assert torch.equal(merged[name], tensor), name
            assert merged[name].dtype == tensor.dtype


def test_an_unknown_tensor_is_not_dropped_in_silence() -> None:
    with pytest.raises(rw.ConfigError, match=r"'pixel_values'.*without a gate"):
        check_mergeable({**output_of([(1, 1, 1)]), "pixel_values": torch.zeros(1)})


def test_a_batch_of_masked_completions_keeps_a_column() -> None:
    output = output_of([(1, 2, 3), (2, 1, 2)])
    output["completion_mask"] = torch.zeros_like(output["completion_mask"])  # truncated, so masked by TRL
    merged = merge([gather_rows(output, OneRank(), PAD)], [1, 0], pad_token=PAD, share=slice(None), counted=True)
    assert merged["completion_ids"].tolist() == [[2], [1]]
    assert merged["num_items_in_batch"] == 0


def test_scaling_by_the_batch_worked_out() -> None:
    """Rewards 1, 0 | 1, 1: mean 0.75, squares 3 * 0.0625 + 0.5625 = 0.75, over n - 1 = 3: variance 0.25, std 0.5.

    Centred by group: 0.5, -0.5, 0, 0. Divided by 0.5001: 0.9998.
    Leave-one-out: 1, -1, 0, 0: mean 0, squares 2, over 3: std 0.81650; 1 / 0.81660 = 1.22459.
    """
    rewards = torch.tensor([1.0, 0.0, 1.0, 1.0])
    centred = scale_advantages("batch-std", torch.tensor([0.5, -0.5, 0.0, 0.0]), rewards, 2)
    assert centred.tolist() == pytest.approx([0.9998, -0.9998, 0, 0], abs=1e-4)
    one_out = scale_advantages("batch-normalised", torch.tensor([1.0, -1.0, 0.0, 0.0]), rewards, 2)
    assert one_out.tolist() == pytest.approx([1.22459, -1.22459, 0, 0], abs=1e-4)
    unscored = torch.tensor([1.0, 0.0, torch.nan, 1.0])  # a lone scored rollout has no baseline
    one_out = scale_advantages("batch-normalised", torch.tensor([1.0, -1.0, 0.0, 0.0]), unscored, 2)
    assert one_out.tolist() == pytest.approx([0.70706, -0.70706, 0, 0], abs=1e-4)  # std of 1, -1: 1.41421
    assert scale_advantages("", rewards, rewards, 2) is rewards


def test_advantages_of_a_group_worked_out() -> None:
    """Rewards 1, 0, 1, 0: mean 1/2, squares 4 * 0.25 = 1, over n - 1 = 3: std 0.57735; 0.5 / 0.57745 = 0.86588.

    Leave-one-out: 1 - (0 + 1 + 0) / 3 = 2/3 and 0 - (1 + 1 + 0) / 3 = -2/3.
    """
    rewards = torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert group_advantages("centred", rewards, 4).tolist() == [0.5, -0.5, 0.5, -0.5]
    assert group_advantages("std", rewards, 4).tolist() == pytest.approx([0.86588, -0.86588] * 2, abs=1e-5)
    assert group_advantages("leave-one-out", rewards, 4).tolist() == pytest.approx([2 / 3, -2 / 3] * 2)


@pytest.mark.parametrize("kind", ["centred", "std", "leave-one-out"])
def test_what_has_no_reward_has_no_advantage(kind: AdvantageKind) -> None:
    """Of 1, 0 and one unscored the mean is 1/2; a lone 1 has nothing to be compared with."""
    rewards = torch.tensor([1.0, 0.0, torch.nan, 1.0, torch.nan, torch.nan])
    first, second, *others = group_advantages(kind, rewards, 3).tolist()
    expected = {"centred": 0.5, "std": 0.5 / (0.5**0.5 + 1e-4), "leave-one-out": 1.0}[kind]
    assert (first, second) == pytest.approx((expected, -expected))
    assert others == [0, 0, 0, 0]
