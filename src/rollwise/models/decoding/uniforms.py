"""Random numbers of each rollout's own, and the tokens that they fall on."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.rng import stream_generator


def rollout_uniforms(seed: int, prompt_id: str, rollout: int, count: int) -> np.ndarray:
    """The random numbers of one rollout, (count,): the beginning of a stream of its own."""
    return stream_generator(seed, f"rollout/{rollout}/{prompt_id}").random(count)


class InverseTransform:
    """A logits processor that leaves each row the one token its uniform number falls on.

    Args:
        uniforms: (B, T), best on the scores' device: then no token waits for a copy.
        width: tokens of the padded prompts.
    """

    def __init__(self, uniforms: Any, width: int) -> None:
        self.uniforms, self.width = uniforms, width

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores (B, V) -> 0 for the token drawn, minus infinity for the others."""
        token = draw_tokens(scores, self.uniforms[:, input_ids.shape[1] - self.width])
        return scores.new_full(scores.shape, float("-inf")).scatter_(1, token.to(scores.device).unsqueeze(1), 0.0)


def warpers(temperature: float, top_p: float, top_k: int = 0) -> list[Any]:
    """What makes scores of logits, in transformers' own order; draw from the `top_k` likeliest tokens, 0 for all."""
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    made: list[Any] = [] if temperature == 1.0 else [TemperatureLogitsWarper(float(temperature))]
    if top_k:
        made.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        made.append(TopPLogitsWarper(float(top_p)))
    return made


def lacks_doubles(device: Any) -> bool:
    """Whether a device has no double precision, as Apple's: what needs it is then on the CPU."""
    return bool(device.type == "mps")


def draw_tokens(scores: Any, uniforms: Any) -> Any:
    """Inverse transform sampling: scores (B, V) and float64 uniforms (B,) -> the tokens (B,) that they fall on.

    In double precision: on the scores' device, or on the CPU where that `lacks_doubles`.
    """
    import torch

    chances = torch.softmax(scores.float(), dim=-1)
    cumulative = (chances.cpu() if lacks_doubles(scores.device) else chances).double().cumsum(dim=-1)
    at = uniforms.to(cumulative.device).unsqueeze(1) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, at, right=True).clamp_(max=scores.shape[1] - 1).squeeze(1)
