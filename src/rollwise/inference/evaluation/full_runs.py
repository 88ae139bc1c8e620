"""A full run of best-of-N in its file: every candidate whole, as the head saw it and, read along, as confidence did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.evaluation.live import Decode, Judge
from rollwise.inference.evaluation.replay import Logged, from_arrays, logged, to_arrays
from rollwise.inference.files import read_arrays, write_arrays
from rollwise.inference.policies import BestOfN, FloatArray, TokenConfidence


@dataclass(frozen=True)
class FullRun:
    """Best-of-N with one seed, every candidate whole.

    Attributes:
        prompts: (N,) as the head saw them.
        rewards: (N, K).
        confident: (N,) the same candidates as the tokens' confidence sees them; empty where it was not read.
    """

    prompts: list[Logged]
    rewards: FloatArray
    confident: list[Logged]


def decode_full(path: Path, decode: Decode, judge: Judge, seed: int, *, k: int, watch: bool) -> FullRun:
    """Decode best-of-K in full, and keep it in a file; with `watch` the tokens' confidence is read along.

    Raises:
        ConfigError: the decoder gives another number of candidates.
    """
    results, _, _ = decode(BestOfN(), seed, **({"watch": TokenConfidence()} if watch else {}))
    if any(len(result.candidates) != k for result in results):
        raise ConfigError(f"the decoder's results don't have k = {k} candidates each")
    prompts = [logged(result) for result in results]
    arrays = {"rewards": np.array([[float(r) for r in earned] for earned in judge(results)]), **to_arrays(prompts)}
    if watch:
        arrays["confidences"] = np.concatenate([one.watched[:, 0] for result in results for one in result.candidates])
    write_arrays(path, arrays, compressed=True)
    return _full_run(arrays)


def read_full(path: Path) -> FullRun:
    """Read what `decode_full` kept.

    Raises:
        StateFileError: it can't be read.
    """
    arrays = read_arrays(path)
    try:
        return _full_run(arrays)
    except (ValueError, KeyError) as error:
        raise StateFileError(f"{str(path)!r} holds no full run ({error}); delete it to decode it again") from error


def _full_run(arrays: dict[str, Any]) -> FullRun:
    prompts = from_arrays(arrays)
    if "confidences" not in arrays:
        return FullRun(prompts, arrays["rewards"], [])
    reads = iter(np.split(arrays["confidences"][:, None], np.cumsum(arrays["lengths"])[:-1]))
    confident = [_as_confidence_sees(prompt, [next(reads) for _ in range(prompt.k)]) for prompt in prompts]
    return FullRun(prompts, arrays["rewards"], confident)


def _as_confidence_sees(prompt: Logged, reads: Sequence[FloatArray]) -> Logged:
    """With (K,) of (T, 1) confidences in place of chances; it says nothing of lengths, and has no verdict."""
    unknown = tuple(np.zeros(len(own)) for own in reads)
    return replace(prompt, chances=tuple(reads), remaining=unknown, beliefs=())
