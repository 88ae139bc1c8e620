"""What `rollwise head evaluate` found out about a head, before `rollwise bestof` decodes with it."""

from __future__ import annotations

import logging
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.server import head_file
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.viability_file import read_viability
from rollwise.inference.policies import EarlyStop, Policy
from rollwise.inference.policies.policies import Charged
from rollwise.runs.evaluation_file import FAILED, viability_words

logger = logging.getLogger(__name__)


def check_gates(config: BestOfConfig, head: SuccessHead, policy: Policy) -> None:
    """Refuse a head that failed the viability gate; warn of a policy whose lengths the head can't tell.

    Raises:
        ConfigError: the head failed, by the evaluation that is named or by the verdict beside its file, and no
            `unviable`.
    """
    known: dict[str, Any] = {}
    if config.chosen is not None and config.chosen.found["about"].get("head") in (None, head.digest):
        known = config.chosen.found.get("calibration") or {}
    viability = known.get("viability") or read_viability(head_file(config), head.digest)
    if viability is not None and viability["verdict"] == FAILED:
        if not config.unviable:
            raise ConfigError(f"{viability_words(viability)} Fit a better one, or add --unviable")
        logger.warning(viability_words(viability))
    length = known.get("length_gate")
    if isinstance(policy, EarlyStop | Charged) and length is not None and length["verdict"] != "usable":
        logger.warning(
            "policy %s: the head's expected lengths are %s in the evaluation, so what it saves in steps is not safe "
            "(appendix B.7); prune and until use values alone",
            policy.name,
            "no better than a constant" if length["verdict"] == "blind" else "not known",
        )
