"""Implicit evidence for a curriculum: by name, as an object, by a judge, or several at once."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rollwise.curricula.families.ranked import Believing
from rollwise.errors import ConfigError
from rollwise.estimators import (
    IMPLICIT,
    Adaptation,
    Blend,
    Conjugate,
    ImplicitEvidence,
    Interpolation,
    Kernel,
    NoEvidence,
    Priors,
)
from rollwise.estimators.references import pass_rate_columns
from rollwise.judges import Judge, Prompts, make_judge
from rollwise.judges.base import predictions_of
from rollwise.options import Declared, Schedule, as_floats
from rollwise.pool import PromptPool

logger = logging.getLogger(__name__)

Source = Literal["auto", "interpolation", "kernel", "none"] | str | ImplicitEvidence | Judge
Implicit = Source | Sequence[Source]
"""A name in `IMPLICIT`, "judge:NAME", an object of your own, a judge, or a list of these; "auto" and "none"."""

_JUDGE = "judge:"
_ROUNDING = 1e-5  # of rates in single precision
_FOLLOWS = ("starting_from", "follow", "save_files")


class JudgeEvidence(ImplicitEvidence):
    """A judge's predictions as implicit evidence. It learns from a step's outcomes when the step ends.

    So what it says of the other prompts comes from the steps before, and in the first step it says nothing. It predicts
    the whole pool once a step.

    Args:
        judge: predicts pass rates. One that reads the policy or has files of its own can't be used here.

    Raises:
        ConfigError: a judge of variances, or one that reads the policy.
    """

    def __init__(self, *, judge: Judge) -> None:
        if judge.predicts != "pass-rate":
            raise ConfigError(f"implicit evidence wants a judge of pass rates, {type(judge).__name__} has variances")
        if any(getattr(type(judge), name) is not getattr(Judge, name) for name in _FOLLOWS):
            raise ConfigError(
                f"{type(judge).__name__} reads the policy or has files of its own, which implicit evidence can't give "
                "it; use the curriculum PCL with it, or the judge 'frozen' or 'text'"
            )
        self.maker = judge

    def bind(self, pool: PromptPool, seed: int) -> None:
        self.judge = self.maker.fresh()
        self.judge.bind(pool, seed)
        self.everyone = Prompts(pool, np.arange(len(pool)))
        self.predicted: np.ndarray | None = None

    def _predictions(self) -> np.ndarray:
        """(N,) in [0, 1], NaN where there is none; made once a step."""
        if self.predicted is None:
            self.predicted = np.clip(predictions_of(self.judge, self.everyone), 0.0, 1.0)
        return self.predicted

    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        return self._predictions()

    def before(self, slots: np.ndarray) -> np.ndarray | None:
        return np.asarray(self._predictions()[slots])

    def settle(self, slots: np.ndarray, rates: np.ndarray, count: np.ndarray) -> None:
        told = Prompts(self.everyone.pool, slots)
        self.judge.learn(told, rates, rates * (1.0 - rates), count.astype(np.int64))
        self.predicted = None

    def metrics(self) -> dict[str, float]:
        return self.judge.metrics()

    def state_dict(self) -> dict[str, Any]:
        return {"judge": self.judge.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.judge.load_state_dict(state["judge"])
        self.predicted = None


def make_evidence(implicit: Implicit, shares: Sequence[float] | None, **options: Mapping[str, Any]) -> ImplicitEvidence:
    """The source of implicit evidence, unbound.

    Args:
        implicit: which.
        shares: of the sources of a list.
        **options: by name, the options that a source given by that name is made with.

    Raises:
        ConfigError: an unknown name, something that is no evidence, or wrong shares.
    """
    if isinstance(implicit, list | tuple):
        made = [make_evidence(one, None, **options) for one in implicit]
        if not made or {"auto", "none"} & {one for one in implicit if isinstance(one, str)}:
            raise ConfigError(f"implicit as a list must name sources, not 'auto' or 'none', got {implicit!r}")
        return Blend(made, shares=shares)
    if shares is not None:
        raise ConfigError(f"implicit_shares {list(shares)!r} are of a list of sources, got implicit={implicit!r}")
    if isinstance(implicit, ImplicitEvidence):
        return implicit
    if isinstance(implicit, Judge):
        return JudgeEvidence(judge=implicit)
    if not isinstance(implicit, str):
        raise ConfigError(
            f"implicit must be a name, an ImplicitEvidence, a Judge or a list of these, got {implicit!r:.80}"
        )
    if implicit == "none":
        return NoEvidence()
    if implicit.startswith(_JUDGE):
        return JudgeEvidence(judge=make_judge(implicit.removeprefix(_JUDGE)))
    name = "interpolation" if implicit == "auto" else implicit
    return IMPLICIT.find(name)(**options.get(name, {}))


def interpolates(source: ImplicitEvidence) -> bool:
    """Whether references are used, alone or with others."""
    return isinstance(source, Interpolation) or (isinstance(source, Blend) and any(map(interpolates, source.sources)))


def described(**given: Any) -> dict[str, Any]:
    """What a saved state holds of options that may be objects: names as they are, else kind and options; JSON-safe."""
    return {name: _described(value) for name, value in given.items()}


def _described(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_described(one) for one in value]
    if isinstance(value, Judge):
        return {"kind": type(value).__name__, "options": dict(value.options)}
    return {"kind": type(value).__name__, "options": value.saved_options()} if isinstance(value, Declared) else value


def bind_evidence(
    source: ImplicitEvidence, pool: PromptPool, *, auto: bool, weight: float | Schedule, seed: Callable[[], int]
) -> ImplicitEvidence:
    """A fresh source that is bound to the pool.

    Args:
        source: from `make_evidence`.
        pool: the prompts.
        auto: whether to do without, where the pool has no references.
        weight: rho; 0 leaves nothing to say of what is missing.
        seed: gives the seed of random numbers; not called for the sources of the paper.

    Raises:
        MissingColumnError: the pool lacks a column that the source needs.
    """
    if (
        auto
        and isinstance(source, Interpolation)
        and source.columns is None
        and "reference_pass_rates" not in pool.columns
    ):
        looks = pass_rate_columns(pool)
        if weight and len(looks) > 1:
            logger.warning(
                "BOTS: %s look like pass rates of reference models, and are not used; name the weak and the strong "
                "one, as in references=%r",
                *(", ".join(map(repr, looks[:4])), looks[:2]),
            )
        elif weight:
            logger.info("BOTS: no column 'reference_pass_rates', so beliefs rest on each prompt's own rollouts")
        return NoEvidence()
    bound = source.fresh()
    bound.bind(pool, 0 if type(source) in (Interpolation, Kernel, NoEvidence) else seed())
    return bound


def need_predictions(source: ImplicitEvidence) -> None:
    """Raise `ConfigError` for a source that can't be compared with outcomes."""
    if not source.predicts and not isinstance(source, NoEvidence):
        raise ConfigError(
            f"adaptive=True compares implicit predictions with outcomes, and {type(source).__name__} makes none: "
            "implement its `before` or `held_out`, or leave adaptive out"
        )


def checked_rates(source: ImplicitEvidence, slots: np.ndarray, rates: np.ndarray, n: int) -> np.ndarray | None:
    """What a batch (B,) implies of all n prompts, (n,) or None; `ConfigError` for numbers that are no rates."""
    found = source.rates(slots, rates)
    if found is None:
        return None
    implied, low, high = as_floats(found), -_ROUNDING, 1.0 + _ROUNDING
    if implied.shape != (n,) or np.nanmin(implied, initial=0.0) < low or np.nanmax(implied, initial=1.0) > high:
        raise ConfigError(
            f"{type(source).__name__}.rates must give {n} numbers in [0, 1] (NaN: nothing is known), got {found!r:.80}"
        )
    return implied


class WithEvidence(Believing):
    """A method with implicit evidence: what it binds, reports and saves.

    A subclass sets `adaptation`, `priors` and `evidence_maker` in its `__init__`.
    """

    belief: Conjugate
    adaptation: Adaptation
    priors: Priors
    evidence_maker: ImplicitEvidence

    def build(self) -> None:
        super().build()
        self.adaptation = copy.deepcopy(self.adaptation)
        placed = [name for name in ("references", "capability_by") if self.options.get(name) is not None]
        if placed and self.priors.column != "references" and not interpolates(self.evidence_maker):
            implicit = self.options["implicit"]
            raise ConfigError(f"{placed[0]} is of the interpolation, and there is none with implicit={implicit!r}")
        self.priors = self.priors.bound(self.pool)
        self.priors.begin(self.belief, self.pool, np.arange(len(self.pool)))
        self.evidence_source = bind_evidence(
            self.evidence_maker,
            self.pool,
            auto=self.options["implicit"] == "auto",
            weight=self.adaptation.given["implicit_weight"],
            seed=lambda: int(self.rng["implicit"].integers(2**63)),
        )
        if self.adaptation.adaptive is True:
            need_predictions(self.evidence_source)

    @property
    def follows_score(self) -> bool:
        return self.adaptation.adaptive == "score"

    def note_score(self, score: float) -> None:
        self.adaptation.note_score(score)

    def own_metrics(self) -> dict[str, float]:
        return {
            "belief_mean": float(self.belief.mean().mean()),
            "belief_size": float(self.belief.effective_size().mean()),
            **self.evidence_source.metrics(),
            **self.adaptation.metrics(),
        }

    def own_state(self) -> dict[str, Any]:
        kept = dict(self.evidence_source.state_dict())
        own = {"capability": kept.pop("capability", None), "adaptation": self.adaptation.state_dict()}
        return {**super().own_state(), **own, **({"implicit": kept} if kept else {}), **self.priors.state_dict()}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        kept, source = {"capability": state["capability"], **state.get("implicit", {})}, self.evidence_source
        if source.state_dict().keys() <= kept.keys():  # else it begins anew, of other options
            source.load_state_dict(kept)
        self.priors.load(state, self.belief, self.pool, added)
        self.adaptation.load_state_dict(state["adaptation"])
        super().load_own_state(state, added)
