"""pass@k, estimated without bias from more completions than k."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError


def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """Unbiased estimate of the chance that at least one of k completions is right, from c right ones out of n.

    1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv:2107.03374, equation 1), as a product that can't overflow.

    Args:
        n: Completions drawn, whole numbers; n, c and k broadcast against one another.
        c: Right ones among them, 0 <= c <= n.
        k: 1 <= k <= n.

    Returns:
        Chances in [0, 1], of the broadcast shape; average over prompts for a data set's pass@k.

    Raises:
        ConfigError: A number is not whole, or outside its range; k > n can't be estimated without bias.

    >>> pass_at_k(4, [0, 1, 2], 2).round(3).tolist()
    [0.0, 0.5, 0.833]
    """
    drawn, right, among = np.broadcast_arrays(_whole("n", n), _whole("c", c), _whole("k", k))
    if np.any(right < 0) or np.any(right > drawn):
        raise ConfigError(f"c must be in [0, n], got c={_first(right, (right < 0) | (right > drawn))}")
    if np.any(among < 1):
        raise ConfigError(f"k must be >= 1, got {_first(among, among < 1)}")
    if np.any(among > drawn):
        least = _first(drawn, among > drawn)
        raise ConfigError(f"k={_first(among, among > drawn)} is more than n={least}; draw more completions or lower k")
    all_wrong = np.ones(drawn.shape)
    for j in range(int(among.max(initial=0))):
        factor = np.maximum(drawn - right - j, 0) / np.maximum(drawn - j, 1)
        all_wrong = np.where(j < among, all_wrong * factor, all_wrong)
    return np.asarray(1.0 - all_wrong, dtype=np.float64)


def _whole(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and np.all(np.mod(array, 1) == 0)):
        raise ConfigError(f"{name} must be whole numbers, got {values!r}")
    return array.astype(np.int64)


def _first(values: NDArray[np.int64], where: NDArray[np.bool_]) -> int:
    return int(values[where].flat[0])
