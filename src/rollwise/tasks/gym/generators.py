"""The generators of reasoning-gym, made by name, with the parameters of a level of their curricula."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from importlib import metadata
from typing import Any

from rollwise.errors import ConfigError, check_installed
from rollwise.options import check_name, check_options

PACKAGE = "reasoning-gym"
_NOT_PARAMETERS = ("seed", "size")


def package_version() -> str:
    """The version of reasoning-gym.

    Raises:
        MissingExtraError: it is not installed.
    """
    check_installed("reasoning_gym", "the task 'reasoning-gym' (or the style 'boxed')", PACKAGE)
    return metadata.version(PACKAGE)


def generator(name: str, parameters: Mapping[str, Any], seed: int) -> Any:
    """A data set of reasoning-gym with one item, that of `seed`.

    Raises:
        ConfigError: there is no such generator or parameter, the generator refuses its value, its items can't be
            repeated, or its scorer pays for wrong answers.
        MissingExtraError: reasoning-gym is not installed.
    """
    package_version()
    import reasoning_gym  # takes two seconds
    from reasoning_gym.factory import DATASETS

    check_name("data set of reasoning-gym", name, DATASETS)
    if name in _BY_HASHES and sys.flags.hash_randomization:
        raise ConfigError(
            f"the items of {name!r} change from process to process, as reasoning-gym draws from unordered sets; set "
            "PYTHONHASHSEED=0 in the environment, or take another data set"
        )
    if name in _PAYS_FOR and package_version() == _READ_VERSION:
        raise ConfigError(f"reasoning-gym's scorer of {name!r} pays for {_PAYS_FOR[name]}; take another data set")
    known = [field.name for field in fields(DATASETS[name][1]) if field.name not in _NOT_PARAMETERS]
    check_options(f"data set {name!r}", parameters, known)
    try:
        return reasoning_gym.create_dataset(name, **parameters, seed=seed, size=1)
    except (AssertionError, TypeError, ValueError) as error:
        raise ConfigError(f"reasoning-gym refuses these parameters of {name!r}: {error}; {dict(parameters)}") from error


def parameters_of(name: str, level: int | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """A generator's parameters at a level of its curriculum, or its own for None; `given` ones go before those.

    Every attribute of the curriculum stands at the level, or at its highest where that is lower.

    Raises:
        ConfigError: there is no such generator or level, or the generator refuses a parameter.
    """
    parameters = {**(_at_level(name, level) if level is not None else {}), **given}
    generator(name, parameters, 0)
    try:
        json.dumps(parameters)
    except TypeError as error:
        raise ConfigError(f"{error}, in the parameters of {name!r}: {parameters}; leave its levels out") from error
    return parameters


def _at_level(name: str, level: int) -> dict[str, Any]:
    generator(name, {}, 0)
    from reasoning_gym.factory import CURRICULA

    if name not in CURRICULA:
        raise ConfigError(f"data set {name!r} has no levels; leave them out, or give parameters")
    curriculum = CURRICULA[name]()
    highest = max((len(attribute.levels) for attribute in curriculum.attributes.values()), default=1) - 1
    if level > highest:
        raise ConfigError(f"data set {name!r} has levels 0 to {highest}, got {level}")
    curriculum.set_global_level(level)
    made = curriculum.generate_configuration()
    return {field.name: getattr(made, field.name) for field in fields(made) if field.name not in _NOT_PARAMETERS}


def scores_by_comparison(name: str) -> bool:
    """Whether a generator's scorer compares an answer with the recorded one and does nothing else with it.

    These are the scorers that nobody changed from the base class's, and those of a list that were read. True for none
    of a version of the package that was not read.
    """
    from reasoning_gym.dataset import ProceduralDataset
    from reasoning_gym.factory import DATASETS

    unchanged = DATASETS[name][0].score_answer is ProceduralDataset.score_answer
    return package_version() == _READ_VERSION and (unchanged or name in _READ)


# Found by making twelve items of each generator in two processes. The sandbox has PYTHONHASHSEED=0, too.
_BY_HASHES = frozenset({"isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"})
_READ_VERSION = "0.1.25"
_PAYS_FOR = {
    "coin_flip": "0, and for any other beginning of the right number",
    "game_of_life_halting": "any answer",
    "intermediate_integration": "the question as Integral(...), which also is the answer on record of one in seven",
    "puzzle24": "any four numbers that make 24",
}
_READ = frozenset(
    {
        "ab",
        "chain_sum",
        "circuit_logic",
        "color_cube_rotation",
        "dice",
        "emoji_mystery",
        "family_relationships",
        "products",
        "self_reference",
        "sentence_reordering",
        "spell_backward",
        "tsumego",
        "zebra_puzzles",
    }
)
