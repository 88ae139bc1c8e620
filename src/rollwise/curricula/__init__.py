"""The methods behind the seam, and their names for commands and configuration files.

A new method is one file here, which is found by itself: `class Mine(rw.Curriculum, name="mine")`. The imports below are
for type checkers and for `from rollwise.curricula import BOTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from rollwise.curricula.actor_curator import ActorCurator
from rollwise.curricula.adarft import AdaRFT
from rollwise.curricula.adcl import ADCL
from rollwise.curricula.bots import BOTS
from rollwise.curricula.dots import DOTS
from rollwise.curricula.dps import DPS
from rollwise.curricula.dump import DUMP
from rollwise.curricula.embedding_judged import EmbeddingJudged
from rollwise.curricula.empirical_bayes import EmpiricalBayes, Recommended
from rollwise.curricula.families.composite import Composite
from rollwise.curricula.families.judged import Judged
from rollwise.curricula.families.presets import Presets
from rollwise.curricula.families.rotation import Ordered, Uniform
from rollwise.curricula.frontier import FrontierReplay
from rollwise.curricula.gaussian_target import GaussianTarget
from rollwise.curricula.gps import GPS
from rollwise.curricula.greso import GRESO
from rollwise.curricula.hive import HIVE
from rollwise.curricula.mapp import MaPP
from rollwise.curricula.metis import METIS
from rollwise.curricula.mixture import Mixture
from rollwise.curricula.mopps import MoPPS
from rollwise.curricula.nested import Nested
from rollwise.curricula.oracle import Oracle
from rollwise.curricula.pac import PAC
from rollwise.curricula.pcl import PCL
from rollwise.curricula.pilot_commit import PilotCommit
from rollwise.curricula.prepo import PREPO
from rollwise.curricula.prioritized import PrioritizedReplay
from rollwise.curricula.seam.base import CURRICULA, CoreOptions, Curriculum
from rollwise.curricula.seam.picks import JoinReport, Picks
from rollwise.curricula.seam.rails import Rails
from rollwise.curricula.sec import SEC
from rollwise.curricula.selector import Selector
from rollwise.curricula.sfl import LILO, SFL
from rollwise.curricula.speed import SPEED
from rollwise.curricula.vcrl import VCRL
from rollwise.errors import ConfigError
from rollwise.moved import present_names
from rollwise.options import check_given, check_mapping, check_options, keyword_options
from rollwise.plugins import reason_of

for _file in iter_modules(__path__):
    if not _file.ispkg:
        import_module(f"{__name__}.{_file.name}")  # a method's file registers it
for _name in sorted(CURRICULA):
    CURRICULA[_name] = CURRICULA.pop(_name)


def curriculum_options(name: str) -> dict[str, Any]:
    """The options of the curriculum `name` with their defaults (`inspect.Parameter.empty` where one must be given)."""
    kind = CURRICULA.find(name)
    preset = {"preset": None} if issubclass(kind, Presets) else {}
    return keyword_options(kind) | preset | {"expire_after": 100, "rails": "default", "allocator": None}


def check_run_options(options: Mapping[str, Any]) -> None:
    """Refuse the options that a run gives to its curriculum itself, as its own."""
    if given := sorted({"seed", "reward_spec"} & options.keys()):
        raise ConfigError(f"curriculum_options can't have {given[0]!r}: it is the run's own; leave it out")


def make_curriculum(name: str, **options: Any) -> Curriculum:
    """An unbound curriculum by its name: built in, installed, or `file.py:Name` or `package.module:Name`.

    For "mixture", `lanes` maps a lane's name to `{"weight": 0.8, "curriculum": "prioritized", "options": {...}}`; for
    "nested", `categories` and `prompts` are each `{"curriculum": "sec", "options": {...}}`; so is `history` for "hive"
    and "prepo".

    Raises:
        ConfigError: an unknown name, or an option that the method does not have.

    >>> type(make_curriculum("prioritized", exploration=0.25)).__name__
    'PrioritizedReplay'
    """
    kind = CURRICULA.find(name)
    defaults = curriculum_options(name)
    known = [*defaults, "seed", "reward_spec"]
    options = present_names(options, known)
    check_options(f"curriculum {name!r}", options, known)
    preset = options.pop("preset", None)
    if preset is not None and issubclass(kind, Presets):
        options = kind.with_preset(preset, options)
    check_given(f"curriculum {name!r}", defaults, options, f"; rollwise curricula {name} describes it")
    if kind is Mixture and isinstance(options.get("lanes"), dict):
        options["lanes"] = {lane: _part(f"lane {lane!r}", of, "weight") for lane, of in options["lanes"].items()}
    if issubclass(kind, Composite):
        options |= {part: _part(part, options[part]) for part in kind.parts if part in options}
    try:
        return kind(**options)
    except TypeError as error:
        raise ConfigError(f"curriculum {name!r}: {reason_of(error)}") from error


def _part(name: str, value: Any, *beside: str) -> Any:
    """A curriculum as a configuration has it, made, after what it must name `beside`; anything else as it is."""
    if not isinstance(value, dict):
        return value
    if not {*beside, "curriculum"} <= set(value) <= {*beside, "curriculum", "options"}:
        needed = ", ".join([*beside, "curriculum"])
        raise ConfigError(f"{name} must have {needed} and perhaps options, got {value!r}")
    options = check_mapping(f"options of {name}", value.get("options") or {})
    made = make_curriculum(value["curriculum"], **options)
    return (*(value[one] for one in beside), made) if beside else made


__all__ = [
    "ADCL",
    "BOTS",
    "CURRICULA",
    "DOTS",
    "DPS",
    "DUMP",
    "GPS",
    "GRESO",
    "HIVE",
    "LILO",
    "METIS",
    "PAC",
    "PCL",
    "PREPO",
    "SEC",
    "SFL",
    "SPEED",
    "VCRL",
    "ActorCurator",
    "AdaRFT",
    "CoreOptions",
    "Curriculum",
    "EmbeddingJudged",
    "EmpiricalBayes",
    "FrontierReplay",
    "GaussianTarget",
    "JoinReport",
    "Judged",
    "MaPP",
    "Mixture",
    "MoPPS",
    "Nested",
    "Oracle",
    "Ordered",
    "Picks",
    "PilotCommit",
    "PrioritizedReplay",
    "Rails",
    "Recommended",
    "Selector",
    "Uniform",
    "curriculum_options",
    "make_curriculum",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Curriculum]:
        """A method whose file is here, and whose import is not; for `rollwise` as well."""
        for kind in CURRICULA.values():
            if kind.__name__ == name:
                return kind
        raise AttributeError(f"rollwise has no attribute {name!r}")
