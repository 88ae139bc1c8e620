"""What a success head was fitted on, compared with what it is used on: prompts and weights."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.models.identity import weights_digest

if TYPE_CHECKING:
    from rollwise.inference.files.rollout_set import RolloutSet
    from rollwise.inference.head.head import SuccessHead

logger = logging.getLogger(__name__)

PROMPT_HASHES = "prompt_hashes"
"""In `SuccessHead.about`: the hashes of the prompts that it was fitted on."""


def prompt_hashes(prompts: Iterable[Sequence[int]]) -> list[str]:
    """The distinct hashes of prompts, sorted, each of the ids of its tokens.

    Tokens are hashed, not the prompt's name: files number their prompts from 0 each, and one prompt may have two names.
    A head belongs to one tokenizer, so equal prompts have equal tokens.

    >>> prompt_hashes([[1, 2], [3], [1, 2]]) == sorted(prompt_hashes([[1, 2]]) + prompt_hashes([[3]]))
    True
    """
    return sorted({hashlib.sha256(json.dumps(list(ids)).encode()).hexdigest()[:12] for ids in prompts})


def prompts_of(rollouts: RolloutSet) -> list[list[int]]:
    """The tokens of the prompts that the set has rollouts of."""
    return [rollouts.prompt_ids[q] for q in np.unique(rollouts.prompt).tolist()]


def fitted_among(head: SuccessHead, prompts: Iterable[Sequence[int]]) -> int | None:
    """How many distinct prompts are among those that the head was fitted on; None if it does not say.

    Args:
        head: One of an earlier version does not say.
        prompts: The tokens of each.
    """
    known = head.about.get(PROMPT_HASHES)
    return None if known is None else len(set(known) & set(prompt_hashes(prompts)))


def overlap_words(fitted: int | None, prompts: int) -> str:
    """What a count of `fitted_among` says of `prompts` prompts.

    >>> overlap_words(0, 40), overlap_words(3, 40)
    ('the head was fitted on none of the 40 prompts', 'the head was fitted on 3 of the 40 prompts')
    """
    if fitted is None:
        return (
            f"whether the head was fitted on some of the {prompts:,} prompts can't be checked: an earlier version "
            "wrote it, without their hashes"
        )
    return f"the head was fitted on {f'{fitted:,}' if fitted else 'none'} of the {prompts:,} prompts"


def check_prompts(head: SuccessHead, rollouts: RolloutSet, *, accepted: bool, of: str = "") -> int | None:
    """How many of the rollouts' prompts the head was fitted on; None if it does not say.

    Args:
        head: It looks better on these prompts than it is.
        rollouts: On which it is to be judged.
        accepted: Whether such prompts are taken.
        of: Begins the message.

    Raises:
        ConfigError: there are some, and they are not accepted.
    """
    prompts = prompts_of(rollouts)
    fitted = fitted_among(head, prompts)
    if fitted and not accepted:
        raise ConfigError(
            f"{of}{overlap_words(fitted, len(prompts))}, and there it looks better than it is: roll out others (a "
            "task's --split eval; of one file --split train and --split eval), or take these as well with --fitted"
        )
    return fitted


def check_weights(head: SuccessHead, model: Any, *, transfer: bool = True) -> None:
    """Warn of weights that the head was not fitted on, or refuse them; note that an old head does not say.

    A head transfers to other checkpoints of its model (Table 6), at a loss that is not known here.

    Args:
        head: Whose facts name the weights.
        model: That it is to be used on.
        transfer: Whether other weights are accepted.

    Raises:
        ConfigError: other weights, and no `transfer`.
    """
    fitted, given = head.model.get("weights_digest"), weights_digest(model)
    if fitted == given:
        return
    if fitted is None:
        logger.warning(
            "whether this success head was fitted on these weights (digest %s) can't be checked: an earlier version "
            "wrote it, without their digest",
            given,
        )
        return
    said = f"this success head was fitted on weights of digest {fitted}, those of the model have {given}"
    if not transfer:
        raise ConfigError(
            f"{said}; a head transfers to other checkpoints of its model, at a loss that `rollwise head evaluate` "
            "measures: add --transfer, or fit a head on rollouts of this model"
        )
    logger.warning("%s: its predictions may be worse", said)
