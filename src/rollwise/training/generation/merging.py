"""Merges the rollouts of several calls to a TRL trainer's generation into one output.

TRL pads each call's tensors to its own longest rollout, on each rank apart, and a group may straddle two ranks. So
every rank first gets every rank's rows, then takes its share of those that are trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import trl

from rollwise.errors import ConfigError

LEFT_PADDED = {"prompt_ids": None, "prompt_mask": 0}
RIGHT_PADDED = {
    "completion_ids": None,  # None: the tokenizer's pad token
    "completion_mask": 0,
    "tool_mask": 1,
    "old_per_token_logps": 0.0,
    "ref_per_token_logps": 0.0,
    "sampling_per_token_logps": 0.0,
    "importance_sampling_ratio": 1.0,  # (B, T), or (B, 1) where it is per sequence: those widths never differ
}
PER_ROLLOUT = ("advantages", "old_logps", "suffix_advantages")
COUNT = "num_items_in_batch"
Output = dict[str, Any]


def check_divisible(output: Output, *, why: str, remedy: str) -> None:
    """Raise `ConfigError` if a trainer's output holds anything of which the meaning isn't known.

    Args:
        output: of rollouts that are to be chosen from.
        why: what chooses from them, for the message.
        remedy: how to do without.
    """
    unknown = sorted(set(output) - {*LEFT_PADDED, *RIGHT_PADDED, *PER_ROLLOUT, COUNT})
    if unknown:
        raise ConfigError(
            f"{why}, but trl {trl.__version__} gives {unknown[0]!r} with them, which rollwise can't divide (images are "
            f"not supported so far); train {remedy}"
        )


def check_mergeable(output: Output) -> None:
    """`check_divisible` of one of several calls."""
    why = "a gate, or screening, puts rollouts of several calls together"
    check_divisible(output, why=why, remedy="without a gate, with a curriculum that does not screen")


def gather_rows(output: Output, accelerator: Any, pad_token: int) -> Output:
    """Every rank's rows of `output`, padded alike, in the order of the ranks; the count is left out."""
    everyone = {}
    for name, tensor in output.items():
        if name == COUNT:
            continue
        if name not in PER_ROLLOUT:
            pad = _padding(name, pad_token)
            left = name in LEFT_PADDED
            tensor = accelerator.pad_across_processes(tensor, dim=1, pad_index=pad, pad_first=left)
        everyone[name] = accelerator.gather(tensor.contiguous())
    return everyone


def merge(
    rounds: Sequence[Output],
    rows: Sequence[int],
    *,
    pad_token: int,
    share: slice,
    counted: bool,
    multiple_of: int | None = None,
) -> Output:
    """One output of chosen rows of several.

    Args:
        rounds: outputs with every rank's rows, from `gather_rows`; all with the same keys.
        rows: of all rounds' rows, one round after another, those that are trained on, on whatever rank.
        pad_token: the tokenizer's.
        share: which of `rows` this rank trains on.
        counted: whether to add `num_items_in_batch`, the tokens in the loss on all ranks.
        multiple_of: as the trainer's `pad_to_multiple_of`.

    Returns:
        This rank's share, as wide as its longest prompt and completion, as TRL would have made it.
    """
    chosen = torch.tensor(list(rows), dtype=torch.long, device=rounds[0]["completion_ids"].device)
    joined = {name: _stack([r[name] for r in rounds], name, pad_token)[chosen] for name in rounds[0]}
    count = in_loss(joined).sum() if counted else None
    merged = select(joined, share, multiple_of=multiple_of)
    return merged if count is None else {**merged, COUNT: count}


def select(output: Output, rows: slice | torch.Tensor, *, multiple_of: int | None = None) -> Output:
    """Chosen rows, as wide as their longest prompt and completion; a count stays as it is.

    Args:
        output: of a trainer.
        rows: a slice, or their numbers (R,).
        multiple_of: as the trainer's `pad_to_multiple_of`.
    """
    chosen = {name: tensor[rows] for name, tensor in output.items() if name != COUNT}
    prompt = _needed(chosen["prompt_mask"].flip(1), multiple_of)
    width, needed = chosen["completion_ids"].shape[1], _needed(chosen["completion_mask"], multiple_of)
    selected = {COUNT: output[COUNT]} if COUNT in output else {}
    for name, tensor in chosen.items():
        if name in LEFT_PADDED:
            tensor = tensor[:, tensor.shape[1] - prompt :]
        elif name in RIGHT_PADDED and tensor.shape[1] == width:
            tensor = tensor[:, :needed]
        selected[name] = tensor.contiguous()
    return selected


def _padding(name: str, pad_token: int) -> float:
    pads: Mapping[str, float | None] = {**LEFT_PADDED, **RIGHT_PADDED}
    value = pads[name]
    return pad_token if value is None else value


def _stack(parts: list[torch.Tensor], name: str, pad_token: int) -> torch.Tensor:
    """(N, ...) of the rounds' (N_r, ...), padded to the widest on the side on which TRL pads."""
    if name in PER_ROLLOUT:
        return torch.cat(parts)
    width = max(part.shape[1] for part in parts)
    padded = []
    for part in parts:
        more = width - part.shape[1]
        sides = (more, 0) if name in LEFT_PADDED else (0, more)
        padded.append(torch.nn.functional.pad(part, sides, value=_padding(name, pad_token)))
    return torch.cat(padded)


def in_loss(output: Output) -> torch.Tensor:
    """(B, T) 1 on the tokens that are trained on: those of completions, without padding and tools' results."""
    mask: torch.Tensor = output["completion_mask"] * output.get("tool_mask", 1)
    return mask


def _needed(mask: torch.Tensor, multiple_of: int | None) -> int:
    """Columns of a right-padded mask (B, T) up to the last that is used, at least one."""
    used = torch.nonzero(mask.any(dim=0))
    n = int(used[-1]) + 1 if len(used) else 1
    return n if multiple_of is None else min(mask.shape[1], -(-n // multiple_of) * multiple_of)
