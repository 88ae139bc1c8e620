"""What a batch says about prompts outside it, as functions: BOTS, section 3.3 and appendix E.2."""

from __future__ import annotations

import numpy as np

_TEMPERATURES = 2.0 ** np.arange(3.0, -6.5, -0.5)  # 8 to 1/64 of the scores' standard deviation, the flattest first


def capability(rate: float, weak: float, strong: float, *, least_gap: float) -> float | None:
    """mu_t of BOTS, section 3.3: where the policy stands between the weak (0) and the strong (1) reference on a batch.

    The paper adds a small epsilon to a vanishing gap between the references. That turns the noise of one batch into a
    coefficient of any size (1e-6 gives 149,999 for 0.15 over no gap), which then lives on in the moving average. A
    batch on which the references do not differ says nothing of the policy's place between them: None. Where the strong
    one is the weaker on a batch, the formula holds as it is.

    >>> capability(0.5, 0.25, 0.75, least_gap=0.01), capability(0.5, 0.35, 0.35, least_gap=0.01)
    (0.5, None)
    >>> capability(0.5, 0.75, 0.25, least_gap=0.01)
    0.5
    """
    gap = strong - weak
    return (rate - weak) / gap if abs(gap) >= least_gap else None


def capability_by_least_squares(
    rates: np.ndarray, reference_pass_rates: np.ndarray, *, least_gap: float
) -> float | None:
    """Mu of the least squared error of `rates` (B,) against weak + mu (strong - weak), references (B, 2).

    mu = sum(gap (p - weak)) / sum(gap^2): prompts on which the references differ more count for more. The ratio of
    means lets them cancel. Where the policy is weaker than both references, as in the paper's own setting, a batch
    chosen for rates near one half is one whose references differ little, so the ratio's denominator shrinks, the
    coefficient runs off, and the next batch has less gap still.

    >>> references = np.array([[0.5, 0.75], [0.5, 0.25]])                      # mean gap 0: the ratio knows nothing
    >>> capability_by_least_squares(np.array([0.625, 0.375]), references, least_gap=0.01)
    0.5
    """
    weak, gap = reference_pass_rates[:, 0], reference_pass_rates[:, 1] - reference_pass_rates[:, 0]
    square = float(gap @ gap)
    return float(gap @ (rates - weak)) / square if square >= least_gap**2 * len(gap) else None


def interpolate(capability: float | np.ndarray, reference_pass_rates: np.ndarray) -> np.ndarray:
    """BOTS, equation 5: the success rates (N,) that a capability implies, from references (N, 2) weak and strong.

    The capability is one number, or one for each prompt (N,).

    >>> interpolate(0.5, np.array([[0.2, 0.6], [0.0, 1.0]])).tolist()
    [0.4, 0.5]
    """
    weak, strong = reference_pass_rates[:, 0], reference_pass_rates[:, 1]
    return np.clip(capability * strong + (1.0 - capability) * weak, 0.0, 1.0)


def kernel_rates(
    rates: np.ndarray, embedding: np.ndarray, batch: np.ndarray, *, temperature: float, chunk: int = 4096
) -> np.ndarray:
    """BOTS, equations 8 and 9: each prompt's rate (N,) as a similarity-weighted mean of those of B rolled-out prompts.

    Args:
        rates: (B,) the batch's success rates.
        embedding: (N, d) of all prompts.
        batch: (B,) slots of the batch.
        temperature: tau of the kernel exp(<e, e'> / tau).
        chunk: prompts at a time, which bounds the memory.

    >>> kernel_rates(np.array([0.0, 1.0]), np.eye(2), np.array([0, 1]), temperature=1e9).round(6).tolist()
    [0.5, 0.5]
    """
    out = np.empty(len(embedding))
    references = embedding[batch] / temperature
    weighted = np.stack([rates, np.ones(len(rates))]).astype(references.dtype)  # numerator and denominator at once
    for start in range(0, len(embedding), chunk):
        logits = references @ embedding[start : start + chunk].T
        logits -= logits.max(axis=0)
        numerator, denominator = weighted @ np.exp(logits, out=logits)
        out[start : start + chunk] = numerator / denominator
    return out


def kernel_rates_of_others(rates: np.ndarray, points: np.ndarray, *, temperature: float) -> np.ndarray:
    """The same for each of a batch (B,), embeddings (B, d), from the others' rates alone; NaN where there are none.

    >>> points = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])              # two pairs of twins
    >>> kernel_rates_of_others(np.array([1.0, 0.5, 0.0, 0.25]), points, temperature=0.01).round(9).tolist()
    [0.5, 1.0, 0.25, 0.0]
    """
    if len(rates) < 2:
        return np.full(len(rates), np.nan)
    return _by_the_others(rates, points @ points.T / temperature)


def _by_the_others(rates: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """(B,) means of the others' rates (B,), each with the weight exp(logit), (B, B)."""
    np.fill_diagonal(logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=0))
    return np.asarray(rates @ weights / weights.sum(axis=0))


def unit_norm(embedding: np.ndarray) -> np.ndarray:
    """Each vector (N, d) over its length; a zero vector stays one.

    >>> unit_norm(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    length = np.sqrt(np.einsum("nd,nd->n", embedding, embedding))[:, None]
    return np.asarray(embedding / np.where(length > 0, length, 1.0))


def layer_norm(embedding: np.ndarray) -> np.ndarray:
    """Each vector (N, d) less its own mean over d, over its own standard deviation; a constant vector becomes zero.

    >>> layer_norm(np.array([[1.0, 3.0], [7.0, 7.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred = embedding - embedding.mean(axis=1, keepdims=True)
    std = np.sqrt(np.einsum("nd,nd->n", centred, centred) / max(1, embedding.shape[1]))[:, None]
    size = np.abs(embedding).max(axis=1, keepdims=True, initial=0.0)
    spread = std > 1e-6 * size  # else the differences are rounding
    return np.asarray(np.where(spread, centred, 0.0) / np.where(spread, std, 1.0))


def fitted_temperature(rates: np.ndarray, scores: np.ndarray) -> float:
    """The tau with which the kernel best predicts each rate of a batch from the others (leave one out, least squares).

    Ours: BOTS gives no tau, and DOTS trains an adapter of the embeddings and a calibration. Those tried are 8 to
    1/64 of the standard deviation of the scores, so that it follows the embeddings' scale. The flattest of equals (to
    1e-9) is taken; where nothing can be fitted, that standard deviation (1 if it is 0).

    Args:
        rates: (B,) the batch's success rates.
        scores: (B, B) inner products of its embeddings.

    >>> scores = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    >>> round(1.0 / fitted_temperature(np.array([1.0, 1.0, 0.0, 0.0]), scores), 9)  # error (2 / (e^12 + 2))^2: none
    12.0
    """
    spread = float(scores[~np.eye(len(rates), dtype=bool)].std()) if len(rates) > 1 else 0.0
    if spread == 0.0 or len(rates) < 3 or np.ptp(rates) == 0.0:
        return spread or 1.0
    errors = np.empty(len(_TEMPERATURES))
    for i, temperature in enumerate(_TEMPERATURES):
        errors[i] = np.mean((_by_the_others(rates, scores / (spread * temperature)) - rates) ** 2)
    best = int(np.argmax(errors <= errors.min() + 1e-9))
    return spread * float(_TEMPERATURES[best])
