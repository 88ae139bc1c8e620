"""Which settings of which policies an evaluation compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.pareto import FEWEST_SEEDS, RESAMPLES
from rollwise.inference.evaluation.text_check import TextCheck
from rollwise.inference.policies import (
    CHECKED,
    CONFIDENT,
    LIVE_RULES,
    AdaptiveConsistencyVote,
    BestOfN,
    DeepConfPolicy,
    EarlyStop,
    EarlyStoppingVote,
    Policy,
    Prune,
    Sequential,
    Until,
    UntilChecked,
    Utility,
    UtilityOneByOne,
    deepconf_defaults,
    rhythm,
)
from rollwise.options import Count, Share, check_fields, check_whole

Choice: Any = Literal[LIVE_RULES]

BASELINE = "none"
HEAD, CONFIDENCE, NOTHING = "head", "confidence", "nothing"
LIVE = ("front", "all", "no")


@dataclass(frozen=True)
class Setting:
    """A policy with its options, for all K candidates of a prompt, or for as many as adaptive K gives it.

    Attributes:
        name: In tables.
        family: Which settings it is one of; a colour in the figures.
        policy: What the decoder asks.
        mean_k: Candidates of a prompt on average, by adaptive K; None for all K.
        rule: How the answer is chosen; None for the evaluation's rule.
        signal: What policy and choice see: `head`; `confidence`, the tokens' own; or `nothing` but answers.
        check: Of a text, which policy and choice use; None for those that use none.
    """

    name: str
    family: str
    policy: Policy
    mean_k: int | None = None
    rule: str | None = None
    signal: str = HEAD
    check: TextCheck | None = None

    @property
    def key(self) -> str:
        """What it does, to the last option: runs of equal keys are equal."""
        own = "" if self.rule is None else f" rule={self.rule} signal={self.signal}"
        own += "" if self.check is None else f" check={self.check.digest}"
        return f"{self.policy!r} mean_k={self.mean_k}{own}"

    @property
    def headless(self) -> bool:
        """Whether it is one of the peers that need no success head."""
        return self.signal != HEAD


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What `rollwise head evaluate` compares, and how.

    Args:
        limit: Most tokens of a candidate.
        num_generations: Candidates of best-of-N.
        seeds: Seeds of the candidates, at least 3 distinct ones, for example `--seeds [0,1,2,3,4]`.
        select: How the answer is chosen: value-end, majority or weighted-majority.
        warmup: First step at which candidates may be stopped; by default an eighth of the token limit, 128 of 1024.
        interval: Steps between two decisions; by default a 32nd of the token limit.
        thresholds: Thresholds of `prune`.
        prune_keep: Running candidates that `prune` keeps.
        taus: Thresholds of `early-stop`, and of `early-stop-finished`, where a finished candidate may be the best, and
            which looks at every step.
        betas: Values of beta of `utility` (section 3.2), of `utility-at-once` (the same, with costs in units of a
            typical candidate, B.5), and of `utility-one-by-one`.
        gammas: Charges on the longest candidate, of `utility-one-by-one` with each of `betas`.
        sequential_betas: Values of beta of `sequential`, one candidate at a time and two at a time.
        untils: Thresholds of `until`, one candidate at a time.
        mean_ks: Mean numbers of candidates of adaptive K, alone and with `prune` (the blend). Numbers of K or more are
            left out.
        windows: Window sizes of `esc`, which needs no head: votes by windows, stopped once a window agrees.
        confidences: Thresholds of `adaptive-consistency`, which needs no head.
        keeps: For `deepconf`, which needs no head: the percent of most confident candidates that it keeps. K/2
            candidates, at most 16, set its threshold; a group of tokens is `warmup` long, at most 2048.
        tolerance: Accuracy that a setting may lose on the half of the prompts on which it is chosen.
        resamples: Resamples of the bootstrap over prompts.
        live: Which settings are also run live, to measure seconds: `front` for the baseline, those on a front and the
            families' operating points (none of these if the head failed the viability gate), `all`, `no`, or names of
            settings, separated by commas.
    """

    limit: Count
    num_generations: Count = 8
    seeds: tuple[int, ...] = (0, 1, 2)
    select: Choice = "value-end"  # made of the table, for the command line
    warmup: Count | None = None
    interval: Count | None = None
    thresholds: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6)
    prune_keep: Count = 2
    taus: tuple[float, ...] = (0.7, 0.8, 0.9, 0.95)
    betas: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    gammas: tuple[float, ...] = (0.0,)
    sequential_betas: tuple[float, ...] = (0.02, 0.05, 0.1, 0.15, 0.2)
    untils: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9)
    mean_ks: tuple[int, ...] = (4, 6)
    windows: tuple[int, ...] = (2, 3, 4)
    confidences: tuple[float, ...] = (0.8, 0.9, 0.95)
    keeps: tuple[float, ...] = (10.0, 50.0, 90.0)
    tolerance: Share = 0.01
    resamples: Count = RESAMPLES
    live: str = "front"

    def __post_init__(self) -> None:
        check_fields(self)
        if len(set(self.seeds)) < FEWEST_SEEDS or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"seeds must be {FEWEST_SEEDS} distinct numbers or more, got {list(self.seeds)}")
        for mean in self.mean_ks:
            check_whole("mean_ks", mean, least=1)
        if self.warmup is not None and self.warmup >= self.limit:
            raise ConfigError(f"warmup must be below the limit of {self.limit} tokens to act, got {self.warmup}")
        for name, scaled in rhythm(self.limit).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, scaled)


@dataclass(frozen=True, kw_only=True)
class EvaluationInputs:
    """On what `rollwise head evaluate` works.

    Args:
        rollouts: A folder of `rollwise rollouts`, of prompts that the head was not fitted on.
        head: A file of `rollwise head fit`.
        model: Folder, hub id or embedded; by default the model that made the rollouts.
        out: The folder; by default ROLLOUTS/evaluation.
        num_prompts: Decode only this many of the first prompts; by default all.
        slots: Most candidates in the batch at once, of all prompts together.
        check: `file.py:function`, text -> bool. Adds a policy without a head that draws candidates until one passes; by
            default the task's own check.
        fitted: Also use rollouts of prompts that the head was fitted on.
    """

    rollouts: str
    head: str
    model: str | None = None
    out: str | None = None
    num_prompts: Count | None = None
    slots: Count = 64
    check: str | None = None
    fitted: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def folder(self) -> Path:
        """Where the evaluation goes."""
        return Path(self.out or Path(self.rollouts) / "evaluation")


def settings_of(config: EvaluationConfig, check: TextCheck | None = None) -> list[Setting]:
    """The grid, none first: prune, early stop, utility, sequential, until, adaptive K, the blend, the peers.

    >>> [s.name for s in settings_of(EvaluationConfig(limit=64, thresholds=(0.5,), taus=(), betas=(0.02,)))][2:5]
    ['utility 0.02', 'utility-at-once 0.02', 'utility-one-by-one 0.02']
    """
    beat: dict[str, Any] = _rhythm(config)
    typical: dict[str, Any] = {**beat, "normalise_by": "typical"}
    prune = partial(Prune, keep=config.prune_keep, **beat)
    found = [Setting(BASELINE, BASELINE, BestOfN())]
    found += _each("prune", prune, "threshold", config.thresholds)
    found += _each("early-stop", partial(EarlyStop, **beat), "threshold", config.taus)
    found += _each("early-stop-finished", partial(EarlyStop, finished=True), "threshold", config.taus)
    found += _each("utility", partial(Utility, **beat), "beta", config.betas)
    found += _each("utility-at-once", partial(Utility, **typical), "beta", config.betas)
    for gamma in dict.fromkeys(config.gammas):
        charged, name = partial(UtilityOneByOne, gamma=gamma, **typical), UtilityOneByOne.name
        found += _each(name, charged, "beta", config.betas, f"{name} {{:g}}+{gamma:g}" if gamma else "")
    found += _each("sequential", Sequential, "beta", config.sequential_betas)
    found += _each("sequential-pairs", partial(Sequential, width=2), "beta", config.sequential_betas)
    found += _each("until", Until, "threshold", config.untils)
    for mean in dict.fromkeys(config.mean_ks):
        if mean < config.num_generations:  # with all K there is nothing to allocate
            found.append(Setting(f"adaptive-K {mean}", "adaptive-K", BestOfN(), mean))
            found += _each("blend", prune, "threshold", config.thresholds, f"blend {mean}/{{:g}}", mean_k=mean)
    return found + peers_of(config, check)


def _rhythm(config: EvaluationConfig) -> dict[str, int]:
    return {"warmup": int(config.warmup or 1), "interval": int(config.interval or 1)}


def _each(
    family: str, policy: Callable[..., Policy], option: str, values: Iterable[float], name: str = "", **more: Any
) -> list[Setting]:
    """A family's settings, one a value of the policy's option, which stands in its name."""
    name = name or f"{family} {{:g}}"
    return [Setting(name.format(value), family, policy(**{option: value}), **more) for value in dict.fromkeys(values)]


def peers_of(config: EvaluationConfig, check: TextCheck | None) -> list[Setting]:
    """What can be had without a head: majorities, of all K or fewer; confidence's own vote; a check of the text."""
    voting: dict[str, Any] = {"rule": "majority", "signal": NOTHING}
    found = [Setting("majority", "majority", BestOfN(), **voting)]
    found += _each("esc", EarlyStoppingVote, "window", config.windows, **voting)
    found += _each("adaptive-consistency", AdaptiveConsistencyVote, "threshold", config.confidences, **voting)
    if check is not None:
        found.append(Setting("check", "check", UntilChecked(), rule=CHECKED, signal=NOTHING, check=check))
    own = deepconf_defaults(_rhythm(config), config.num_generations)
    confident: dict[str, Any] = {"rule": CONFIDENT, "signal": CONFIDENCE}
    return found + _each("deepconf", partial(DeepConfPolicy, **own), "keep", config.keeps, **confident)


def live_names(config: EvaluationConfig, settings: Sequence[Setting]) -> set[str] | None:
    """The names that `live` gives, and the baseline; None for `front`, which is known only after the replays.

    Raises:
        ConfigError: a name is no setting's.
    """
    if config.live in ("front", "no"):
        return None if config.live == "front" else set()
    known = [setting.name for setting in settings]
    wanted = known if config.live == "all" else [name.strip() for name in config.live.split(",")]
    for name in wanted:
        if name not in known:
            raise ConfigError(f"live names no setting {name!r}; give {', '.join(LIVE)}, or some of {', '.join(known)}")
    return {BASELINE, *wanted}
