"""The paper's structured reward states: incoherent, coherent but wrong, correct.

Source: `frontier-and-zip-rc-lite`, section 3.2, Table 7 and appendix A.3. There a language model judged whether a
failure is coherent, of failures alone, its answers cached; here any function does (`coherent_by`), by default the rules
of appendix B.4, by which Countdown names failures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_set import BoolArray, RolloutSet
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.inference.head.spec import HeadSpec, spec_for
from rollwise.options import check_number
from rollwise.plugins import load_object, told_true
from rollwise.runs.lines import whole_lines
from rollwise.state import make_folder
from rollwise.tasks.countdown.failures import CATEGORIES

STATES = (0.0, 0.1, 1.0)
"""Rewards of incoherent, coherent and correct rollouts (Table 7)."""

NAMES = ("incoherent", "coherent", "correct")

LEAST_SHARE = 0.15
"""Share of the rollouts that each state must hold (the gate of appendix A.3)."""

_INCOHERENT = "repetitive"

Progress = Callable[[int, int], None]


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


def solved_of(rollouts: RolloutSet) -> BoolArray:
    """(N,) whether each rollout is solved: it has no kind of failure, or its reward is that of a success."""
    if rollouts.failures:
        return np.array([name is None for name in rollouts.failures])
    config = rollouts.configs[0] if rollouts.configs else {}
    least = config.get("solved_at")
    return np.asarray(rollouts.rewards >= float(config.get("reward_high", 1.0) if least is None else least))


def coherent_by(rollouts: RolloutSet, where: str, kept: str | Path, *, progress: Progress | None = None) -> BoolArray:
    """(N,) what a function says of each failure; False for solved rollouts, of which it is not asked.

    Args:
        rollouts: N rollouts with their texts.
        where: `file.py:function`, (prompt, completion) -> bool.
        kept: A file of the answers, a JSON line each, so that no pair is asked twice, also after a kill; a function
            whose file has changed is asked anew.
        progress: Called with pairs answered, and all.

    Raises:
        ConfigError: it names no function, or the rollouts have no texts.
        RewardError: the function fails, or gives something else than true or false.
    """
    function, digest = load_object(where, what="coherent")
    if not callable(function):
        raise ConfigError(f"coherent {where!r} can't be called, it is {function!r:.80}; name a function")
    if len(rollouts.texts) != len(rollouts):
        raise ConfigError("coherent judges texts, and a folder has none; roll out with `rollwise rollouts`")
    failed = np.flatnonzero(~solved_of(rollouts)).tolist()
    path, found = Path(kept), np.zeros(len(rollouts), dtype=bool)
    make_folder(path.parent)
    lines = whole_lines(path, lambda line: {"key", "coherent"} <= line.keys(), mend=True)
    known = {line["key"]: bool(line["coherent"]) for line in lines}
    with path.open("a", encoding="utf-8") as file:
        for done, i in enumerate(failed):
            prompt, text = rollouts.prompts[rollouts.prompt[i]], rollouts.texts[i]
            key = hashlib.sha256(json.dumps([where, digest, prompt, text]).encode()).hexdigest()[:24]
            if key not in known:
                known[key] = told_true(function, f"coherent {where!r}", f"completion {text!r:.80}", prompt, text)
                file.write(json.dumps({"key": key, "coherent": known[key]}) + "\n")
                file.flush()
            found[i] = known[key]
            if progress:
                progress(done + 1, len(failed))
    return found


def read_labelled(config: FitConfig, bar: Callable[[str], Progress]) -> tuple[RolloutSet, HeadSpec]:
    """The rollouts of `rollwise head fit`, with the rewards that it tells apart, and the head's spec.

    Raises:
        ConfigError: rollouts or options that don't fit: what can be known before the model is loaded and read.
    """
    rollouts, rewards = RolloutSet.read(config.rollouts), config.rewards
    if config.fewer is not None:
        rollouts.of_prompts(config.fewer, config.seed)  # refused before a function is asked, which may cost
    if config.states == "structured":
        least = LEAST_SHARE if config.least_share is None else config.least_share
        said = None
        if config.coherent is not None:
            said = coherent_by(rollouts, config.coherent, config.judgments, progress=bar("failures judged"))
        rollouts, rewards = structured(rollouts, least_share=least, coherent=said), list(STATES)
    longest = int(rollouts.lengths.max())
    spec = spec_for(rollouts.rewards.tolist(), longest, states=rewards, edges=config.edges)
    rollouts = rollouts if config.fewer is None else rollouts.of_prompts(config.fewer, config.seed)
    spec.check_told_apart(spec.reward_states(rollouts.rewards), "rollouts")
    return rollouts, spec
