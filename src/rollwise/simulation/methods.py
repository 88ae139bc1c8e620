"""The methods of a simulated comparison: a curriculum, and a gate where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rollwise.curricula import CURRICULA, Curriculum, check_run_options, make_curriculum
from rollwise.errors import ConfigError, MissingExtraError
from rollwise.gates import GATES, DynamicSampling, make_dynamic_sampling
from rollwise.options import check_mapping, check_text
from rollwise.simulation.running import without_tokens
from rollwise.tickets.outcome import RewardSpec

NO_GATE = "none"


@dataclass(frozen=True, kw_only=True)
class Method:
    """One of the methods to compare.

    Attributes:
        curriculum: the method; `rollwise curricula` lists them.
        curriculum_options: its own options; `rollwise curricula NAME` lists them.
        gate: which groups train, others being rolled out in place of those it rejects: none, or one that
            `rollwise gates` lists.
        gate_options: its own options.
    """

    curriculum: str
    curriculum_options: dict[str, Any] = field(default_factory=dict)
    gate: str = NO_GATE
    gate_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        CURRICULA.find(self.curriculum)
        if self.gate != NO_GATE:
            GATES.find(self.gate)
        for name in ("curriculum_options", "gate_options"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name} must be a mapping of options, got {getattr(self, name)!r}")
            for key in getattr(self, name):
                check_text(f"a name in {name}", key)
        check_run_options(self.curriculum_options)
        if self.gate == NO_GATE and self.gate_options:
            raise ConfigError(f"gate_options {self.gate_options!r} are given but no gate; add for example gate: mixed")
        with suppress(MissingExtraError):  # raised before the first run; a shadow leaves the method out
            self.make(0)
        self.sampling()

    def make(self, seed: int, reward_spec: RewardSpec | None = None) -> Curriculum:
        """The curriculum, unbound; `reward_spec` of the world's rewards, where it is not the default."""
        given = {} if reward_spec is None else {"reward_spec": reward_spec}
        return without_tokens(make_curriculum(self.curriculum, **{**self.curriculum_options, **given, "seed": seed}))

    def sampling(self) -> DynamicSampling | None:
        """The dynamic sampling with its gate; None without one."""
        return None if self.gate == NO_GATE else make_dynamic_sampling(self.gate, **self.gate_options)


def read_method(name: str, value: Any) -> Method:
    """A method of a configuration file; its errors name it."""
    try:
        return Method(**check_mapping("a method", value, Method))
    except ConfigError as error:
        raise ConfigError(f"method {name!r}: {error}") from error


DEFAULT_METHODS: dict[str, Method] = {
    "uniform": Method(curriculum="uniform"),
    "uniform, gated": Method(curriculum="uniform", gate="mixed"),
    "recommended": Method(curriculum="recommended"),
    "prioritized": Method(curriculum="prioritized"),
    "bots": Method(curriculum="bots"),
    "mopps": Method(curriculum="mopps"),
    "sec": Method(curriculum="sec"),
    "dump": Method(curriculum="dump"),
    "vcrl": Method(curriculum="vcrl", gate="variance"),
    "greso": Method(curriculum="greso", gate="mixed", gate_options={"sizing": "ratio"}),
}
