"""What is recommended, and why."""

import shlex
from dataclasses import replace
from typing import Any

import pytest

from rollwise.cli.commands import build_parsers
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.finished import train_options
from rollwise.profiling.recommendation import Facts, recommend

FACTS = Facts(
    mean_pass_rate=0.3,
    effective=0.5,
    unsolved=0.3,
    solved=0.1,
    hopeless=0.2,
    suspects=0,
    n_hopeless=30,
    truncated=0.0,
    categories={},
    visits=None,
    embedding=False,
    references=False,
)
CATEGORIES = {"easy": (0.8, 50), "hard": (0.2, 50), "tiny": (1.0, 3)}


@pytest.mark.parametrize(
    ("changed", "arguments", "reason"),
    [
        ({}, "--curriculum recommended", "say --steps"),
        ({"visits": 5.0}, "--curriculum recommended", "is visited 5.0 times"),
        ({"visits": 5.0, "hopeless": 0.6}, "--curriculum recommended", "prioritized replay"),
        ({"effective": 0.7}, "--curriculum uniform", "most prompts are learnable"),
        ({"visits": 1.0}, "--curriculum uniform --gate mixed", "nothing predicts prompts not seen yet"),
        ({"visits": 1.0, "categories": CATEGORIES}, "--curriculum recommended", "at most 0.80"),
        ({"visits": 1.0, "categories": {"a": (0.5, 50), "b": (0.55, 50)}}, "--gate mixed", "no categories that differ"),
        ({"visits": 1.0, "embedding": True}, "--curriculum_options.category embedding", "embeddings"),
        ({"visits": 1.0, "references": True, "embedding": True}, "--curriculum recommended", "two models"),
        ({"suspects": 6}, "", "6 of 30 prompts"),
        ({"suspects": 4}, "--curriculum recommended", "say --steps"),  # too few to stop for
        ({"suspects": 6, "n_hopeless": 60}, "--curriculum recommended", "say --steps"),
        ({"mean_pass_rate": 0.0, "effective": 0.0, "differing": 0.0}, "", "do supervised training first"),
        ({"mean_pass_rate": 0.0, "effective": 0.0, "differing": 0.0, "truncated": 0.9}, "", "90% were truncated"),
        ({"mean_pass_rate": 1.0, "effective": 0.0, "solved": 1.0, "differing": 0.0}, "", "take harder data"),
        (
            {"mean_pass_rate": 0.0, "effective": 0.9},
            "--curriculum uniform",
            "most prompts are learnable",
        ),  # F1
        ({"mean_pass_rate": 1.0, "solved": 1.0}, "--curriculum recommended", "say --steps"),  # rewards from 0.6 to 1
        ({"unsolved": 0.4, "solved": 0.6, "effective": 1e-9, "differing": 0.0}, "", "take harder data"),  # as fitted
        ({"mean_pass_rate": 0.0, "truncated": 0.9}, "", "90% were truncated"),  # partial rewards differ
        ({"truncated": 0.4}, "--curriculum recommended", "40% of the rollouts were truncated"),
    ],
)
def test_recommendation(changed: dict[str, Any], arguments: str, reason: str) -> None:
    advice = recommend(replace(FACTS, **changed))
    assert advice.arguments.endswith(arguments)
    assert bool(advice.arguments) == bool(arguments)
    assert reason in " ".join(advice.reasons)
    if advice.arguments:  # and the command takes it
        build_parsers(["train"])[0].parse_args(["train", *advice.arguments.split()])


def test_the_bound_is_one_over_the_effective_ratio() -> None:
    """Half of the groups have contrast: at best every one would, for half of the rollouts."""
    advice = recommend(FACTS)
    assert advice.bound == 2.0
    assert any("2.00 times fewer rollouts" in reason for reason in advice.reasons)
    assert recommend(replace(FACTS, mean_pass_rate=0.0, effective=0.0)).bound is None
    assert recommend(replace(FACTS, effective=1e-9)).bound is None  # a fit is never exactly 0


def test_what_it_rests_on_is_said_wherever_a_curriculum_is_advised() -> None:
    assert any("benchmarks/results/measurements.md" in reason for reason in recommend(FACTS).reasons)
    assert not any("benchmarks/results/measurements.md" in r for r in recommend(replace(FACTS, effective=0.9)).reasons)


@pytest.mark.parametrize(
    "options",
    [
        {"data": "countdown", "task_options": {"levels": [1, 2]}, "pool_prompts": 200, "stop": ["</a>"], "seed": 5},
        {"data": "my own.jsonl", "task": "countdown", "model": "a b", "temperature": 0.7, "max_completion_length": 99},
        {"data": "my.jsonl", "reward": "math", "steps": 30, "prompts_per_step": 8, "planned_generations": 16},
    ],
)
def test_the_command_trains_on_what_was_profiled_as_it_was_planned(options: dict[str, Any]) -> None:
    """What the recommendation rests on: the same prompts and verifier, rollouts made alike, as many visits."""
    command = shlex.split(train_options(ProfileConfig(**options)))
    train = build_parsers(["train"])[0].parse_args(["train", *command]).as_dict()["train"]
    expected = {_TRAINS.get(name, name): value for name, value in options.items()}
    if options["data"] == "countdown":
        expected |= {"data": "", "task": "countdown", "stop": "</a>"}
    assert {name: train[name] for name in expected} == expected
    assert "seed" not in train_options(ProfileConfig(data="my.jsonl", reward="math", seed=5))  # the rows are the pool
    assert "--trainer_options.top_p 0.9" in train_options(ProfileConfig(data="my.jsonl", reward="math", top_p=0.9))


def test_the_command_asks_for_no_more_prompts_a_step_than_there_are_to_train_on() -> None:
    """`rollwise train` refuses 64 of 40."""
    config = ProfileConfig(data="countdown", pool_prompts=40)
    assert train_options(config, 40).endswith("--num_prompts 40 --prompts_per_step 40")
    assert "prompts_per_step" not in train_options(config, 64)


def test_a_pretrained_model_gets_a_learning_rate_in_the_command() -> None:
    """The default of `train`, 3e-4, ruins one."""
    assert "--learning_rate 1e-6" in train_options(ProfileConfig(data="my.jsonl", reward="math", model="M"))
    assert "learning_rate" not in train_options(ProfileConfig(data="countdown"))


_TRAINS = {"pool_prompts": "num_prompts", "planned_generations": "num_generations"}
