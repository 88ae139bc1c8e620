"""Every constructor option of every curriculum is in the signature of its saved state.

An option that is not there is lost in silence: a state made with one value is taken by a curriculum with another, which
then asks for other prompts.
"""

import inspect
from typing import Any

import pytest

import rollwise as rw
from rollwise.curricula import CURRICULA
from rollwise.curricula.seam.saving import header
from rollwise.judges import EmbeddingJudge
from rollwise.testing.prompt_lengths import PromptLengths

LENGTHS = "rollwise.testing.prompt_lengths:PromptLengths"

# What every instance of a method is made with: what it must be given, or what needs nothing that is not installed.
GIVEN: dict[str, dict[str, Any]] = {
    "mixture": {"lanes": {"a": (1.0, rw.SPEED()), "b": (1.0, rw.Uniform())}},
    "nested": {"categories": rw.SEC(), "prompts": rw.BOTS()},
    "pcl": {"judge": "frozen"},
    "hive": {"judge": PromptLengths()},
    "prepo": {"judge": PromptLengths(predicts="perplexity")},
}

# Another valid value of each option; of one method's, where it does not fit all that have an option of this name.
OTHER: dict[str, Any] = {
    **{"acquisition": "uncertainty", "adaptive": True, "advantage": "centred", "answers": "expected"},
    **{"bank_size": 99, "baseline_rate": 0.5, "bias": 0.01, "borrowed": 1.0, "buffer": 7, "candidate_multiplier": 3},
    **{"candidates": 9, "capability": "least-squares", "categories": rw.DUMP(), "choice": "ucb", "chunks": 3},
    **{"clusters": 4, "column": "level", "category": "topic", "default": 0.25, "desired": 0.25, "difficulty": "column"},
    **{"direction": "hard-to-easy", "discount": 0.5, "draw": "proportional", "drift": 0.5, "ema_weight": 0.5},
    **{
        "embedding": "vector",
        "estimator": "beta",
        "exemplars": 5,
        "exploration": 0.5,
        "explore": 0.25,
        "explore_from": "all",
    },
    **{"features": "given", "first_steps": 3, "first_threshold": 0.2, "floor": 0.2, "forgetting": 0.25},
    **{"format": "digit", "goldilocks_range": (0.1, 0.9), "hidden": 8, "high": 0.9},
    **{"implicit": "none", "implicit_weight": 0.25, "initial_priority": 0.1, "judge": EmbeddingJudge(hidden=8)},
    **{"judge_options": {"hidden": 8}, "judge_weight": 0.5, "kernel_temperature": 0.25, "key_column": "topic"},
    **{"lanes": {"a": (3.0, rw.SPEED()), "b": (1.0, rw.Uniform())}, "learning_rate": 0.25, "least_gap": 0.25},
    **{"least_memory": 3, "low": 0.1, "memory": 9.0, "memory_size": 99, "momentum": 0.25, "most_replays": 1},
    **{"one_category": True, "optimism": 0.5, "order": "best", "overlap": 0.25, "pass_below": 0.25},
    **{"pool_multiplier": 3, "predicts": "variance", "prior": (2.0, 3.0), "prior_sd": 0.25, "probe_rollouts": 3},
    **{"prompts": rw.MoPPS(candidate_multiplier=None), "quantiles": 3, "rank_by": "variance", "ready": 9},
    **{"refresh_every": 3, "renewal": 0.25, "replay_ratio": 0.25, "retest_every": 3, "retest_solved": 9},
    **{"retests": "extra", "explore_unit": "prompt", "exponent": 0.25, "staleness": 0.25},
    **{"retest_unsolved": 9, "reward": "continuous", "ridge": 0.5, "sampling": "mean", "screen": 9},
    **{
        "screen_limit": 9,
        "screen_rollouts": 3,
        "sensitivity": 1.0,
        "share": 0.25,
        "shares": {"a": 1.0},
        "step_size": 0.25,
        "strata": 3,
    },
    **{"target": 0.75, "taxonomy_weights": {"rule": 2.0}, "temperature": 0.25, "threshold": 0.5, "tolerance": 0.25},
    **{"ucb_scale": 0.25, "update": "told", "window": 9, "within": "exhaust"},
    **{"expire_after": 7, "rails": {"explore": 0.125}, "reward_spec": rw.RewardSpec(low=-1.0)},
}
OF_METHOD: dict[tuple[str, str], Any] = {
    ("adarft", "low"): 0.0,
    ("adarft", "high"): 9.0,
    ("dots", "draw"): "top",
    ("frontier", "belief"): "frozen",
    ("frontier", "memory"): "goldilocks",
    ("gaussian-target", "levels"): 8,
    ("hive", "history"): rw.BOTS(),
    ("hive", "judge"): PromptLengths(characters=2.0),
    ("hive", "judge_options"): {"characters": 2.0},
    ("prepo", "history"): rw.BOTS(),
    ("prepo", "judge"): PromptLengths(predicts="perplexity", characters=2.0),
    ("prepo", "judge_options"): {"characters": 2.0},
    ("selector", "sampling"): "thompson",
    ("speed", "screen_limit"): 100,
}
# Options that only some other option allows: with this one both times.
WITH: dict[tuple[str, str], dict[str, Any]] = {
    ("bots", "implicit_shares"): {"implicit": ["interpolation", "kernel"]},
    ("bots", "levels"): {"belief": "dirichlet"},
    ("bots", "prior_strength"): {"prior": "difficulty"},
    ("bots", "reward_sd"): {"belief": "gaussian"},
    ("frontier", "belief_options"): {"belief": "frozen"},
    ("frontier", "taxonomy_weights"): {"key_column": "topic"},
    ("hive", "judge_options"): {"judge": LENGTHS},
    ("metis", "answers"): {"format": "digit"},
    ("pcl", "judge_column"): {"judge": rw.Judge()},  # one that reads text
    ("prepo", "judge_options"): {"judge": LENGTHS},
    ("selector", "estimator_options"): {"estimator": "beta"},
    ("selector", "sampling"): {"estimator": "beta"},
}
OTHER |= {
    "patience": 3,
    "batches": 2,
    "evict_from": None,
    "max_age": 9,
    "rounds": 3,
    "adaptive_ratio": 0.5,
    "implicit_shares": (3.0, 1.0),
    "references": ["weak", "strong"],
    "prior_strength": 8.0,
    "capability_by": "topic",
    "exemplar_choice": "spread",
    "judge_column": "prose",
    "belief_options": {"column": "difficulty"},
    "allocator": "knapsack",
    "belief": "gaussian",
    "levels": (0.0, 0.5, 1.0),
    "reward_sd": 0.125,
    "estimator_options": {"prior": (2.0, 2.0)},
}


def cases() -> list[tuple[str, str]]:
    shared = ("expire_after", "rails", "reward_spec", "allocator")
    return [
        (name, option)
        for name, kind in sorted(CURRICULA.items())
        for option in (
            *(p.name for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY),
            *shared,
        )
    ]


def another(parameter: inspect.Parameter | None) -> Any:
    """A value that most options take besides their default; where one does not, give it another in the tables above."""
    default = None if parameter is None else parameter.default
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    return default / 2 or 0.25 if isinstance(default, float) else None


def signature(name: str, **options: Any) -> Any:
    return header(name, CURRICULA[name](**options).options)


@pytest.mark.parametrize(("name", "option"), cases())
def test_every_constructor_option_changes_the_saved_signature(name: str, option: str) -> None:
    given = {**GIVEN.get(name, {}), **WITH.get((name, option), {})}
    parameters = inspect.signature(CURRICULA[name]).parameters
    value = OF_METHOD.get((name, option), OTHER.get(option, another(parameters.get(option))))
    if option in parameters:
        assert value != given.get(option, parameters[option].default), "the table must give a value of its own"
    assert signature(name, **given) == signature(name, **given)
    assert signature(name, **{**given, option: value}) != signature(name, **given)


def test_a_state_of_bots_is_refused_by_another_acquisition() -> None:
    pool = rw.PromptPool(ids=["a", "b"])
    state = rw.BOTS(pool, acquisition="variance").state_dict()
    with pytest.raises(rw.StateError, match="acquisition"):
        rw.BOTS(pool, acquisition="uncertainty").load_state_dict(state)
