"""The paper's structured reward states: incoherent, coherent but wrong, correct.

Source: `frontier-and-zip-rc-lite`, section 3.2, Table 7 and appendix A.3. There a language model judged whether a
failure is coherent; here any function does (`coherence`), by default the rules of appendix B.4, by which Countdown
names failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_set import BoolArray, RolloutSet
from rollwise.inference.fitting.coherence import coherent_by, solved_of
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.inference.head.hidden import Progress
from rollwise.inference.head.spec import HeadSpec, spec_for
from rollwise.options import check_number
from rollwise.tasks.countdown.failures import CATEGORIES

STATES = (0.0, 0.1, 1.0)
"""Rewards of incoherent, coherent and correct rollouts (Table 7)."""

NAMES = ("incoherent", "coherent", "correct")

LEAST_SHARE = 0.15
"""Share of the rollouts that each state must hold (the gate of appendix A.3)."""

_INCOHERENT = "repetitive"


def structured(
    rollouts: RolloutSet, *, least_share: float = LEAST_SHARE, coherent: BoolArray | None = None
) -> RolloutSet:
    """The rollouts with structured rewards in place of their own.

    Args:
        rollouts: Of Countdown, whose lines name each failure; of anything with `coherent`.
        coherent: (N,) whether each failure is; by default those that are not called repetitive.
        least_share: Refuse where a state holds a smaller share; 0 to take them as they are.

    Raises:
        ConfigError: failures are not named as Countdown names them, or a state holds too few rollouts.
    """
    check_number("least_share", least_share, low=0.0, high=1.0)
    good = _coherent(rollouts) if coherent is None else coherent
    rewards = np.where(solved_of(rollouts), STATES[2], np.where(good, STATES[1], STATES[0]))
    shares = [float((rewards == state).mean()) for state in STATES]
    if min(shares) < least_share:
        said = ", ".join(f"{name} {share:.1%}" for name, share in zip(NAMES, shares, strict=True))
        raise ConfigError(
            f"states 'structured' needs {least_share:.0%} of the rollouts in each, as the paper's gate, and has "
            f"{said}; fit without --states, or with --least_share 0"
        )
    return replace(rollouts, rewards=rewards)


def _coherent(rollouts: RolloutSet) -> BoolArray:
    """(N,) by Countdown's kinds of failure; `ConfigError` where failures have no names, or others."""
    unknown = sorted({name for name in rollouts.failures if name is not None} - set(CATEGORIES))
    if len(rollouts.failures) < len(rollouts) or unknown:
        what = f"names failures as {unknown[0]!r}" if unknown else "does not name failures"
        raise ConfigError(
            f"states 'structured' tells incoherent failures from coherent ones, as Countdown names them, and a folder "
            f"{what}; leave --states out, or give --coherent file.py:function"
        )
    return np.array([name != _INCOHERENT for name in rollouts.failures])


def read_labelled(config: FitConfig, bar: Callable[[str], Progress]) -> tuple[RolloutSet, HeadSpec]:
    """The rollouts of `rollwise head fit`, with the rewards that it tells apart, and the head's spec."""
    rollouts, rewards = RolloutSet.read(config.rollouts), config.rewards
    if config.states == "structured":
        least = LEAST_SHARE if config.least_share is None else config.least_share
        said = None
        if config.coherent is not None:
            kept = f"{config.out}.coherence.jsonl"
            said = coherent_by(rollouts, config.coherent, kept, progress=bar("failures judged"))
        rollouts, rewards = structured(rollouts, least_share=least, coherent=said), list(STATES)
    longest = int(rollouts.lengths.max())
    spec = spec_for(rollouts.rewards.tolist(), longest, states=rewards, edges=config.edges)
    return (rollouts if config.fewer is None else rollouts.of_prompts(config.fewer, config.seed)), spec
