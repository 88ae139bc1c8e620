"""DeepConf's lowest group confidence as its paper has it, to hold the policy's running one against."""

from collections.abc import Sequence

import numpy as np


def lowest_group_confidence(confidences: Sequence[float], window: int) -> float:
    """The least mean over `window` token confidences in a row; of all of them, if they are fewer."""
    starts = range(max(1, len(confidences) - window + 1))
    return float(min(np.mean(confidences[start : start + window]) for start in starts))
