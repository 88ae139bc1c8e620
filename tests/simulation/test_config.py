"""The config of `rollwise simulate`: what it takes, and what it says of what it does not."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import rollwise as rw
from rollwise.simulation import Learner, Population
from rollwise.simulation.config import Replay, SimulateConfig
from rollwise.simulation.methods import Method
from rollwise.simulation.runs import check
from rollwise.simulation.template import template
from rollwise.simulation.worlds import sizes

EXAMPLES = Path(__file__).parents[2] / "examples/simulate"
RUN = str(Path(__file__).parent / "data/uniform-run")


def test_the_template_is_the_defaults() -> None:
    text = template()
    assert text.startswith("# SIMULATED")
    assert SimulateConfig.from_dict(yaml.safe_load(text)) == SimulateConfig()
    for line in text.splitlines():
        assert not line.strip() or "#" in line or "curriculum:" in line, line  # every key has its meaning beside it
    for kind in (Population, Learner):
        for name in kind.__dataclass_fields__:
            assert f"\n  {name}: " in text


def test_values_reach_what_they_set() -> None:
    config = SimulateConfig.from_dict(
        {
            "num_prompts": 50,
            "population": {"kinds": 5},
            "learner": {"noise": 0.5, "rewards": "graded"},
            "blocked": {"category": "level-02", "steps": 3},
            "seeds": [4, 2],
            "methods": {
                "b": {"curriculum": "bots", "curriculum_options": {"rails": False}},
                "u": {"curriculum": "uniform"},
            },
        }
    )
    assert (config.population.kinds, config.learner.noise, config.learner.rewards) == (5, 0.5, "graded")
    assert (config.seeds, config.baseline) == ((4, 2), "b")
    made = config.methods["b"].make(7)
    assert isinstance(made, rw.BOTS)
    assert (made.seed, made.rails) == (7, None)
    assert SimulateConfig.from_dict({"seeds": 2}).seeds == (0, 1)
    assert SimulateConfig.from_dict({"methods": {1: {"curriculum": "uniform"}}, "baseline": 1}).baseline == "1"
    assert SimulateConfig.from_dict({"replay": "runs/u{seed}"}).replay == Replay(run="runs/u{seed}")
    assert Replay(run="runs/u{seed}").folder(3) == "runs/u3"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"num_promts": 5}, "the config has no option 'num_promts' (did you mean 'num_prompts'?)"),
        ({"learner": {"learnig_rate": 1}}, "learner has no option 'learnig_rate' (did you mean 'learning_rate'?)"),
        ({"population": {"xyz": 1}}, "population has no option 'xyz'; it has levels, easiest"),
        ({"population": 3}, "population must be a mapping, got 3"),
        ({"learner": {"noise": "1e-3"}}, "noise must be a number >= 0, got '1e-3'"),
        (
            {"methods": {"p": {"curriculum": "prioritised"}}},
            "'p': unknown curriculum 'prioritised' (did you mean 'prior",
        ),
        ({"methods": {"p": {"curriculm": "bots"}}}, "has no option 'curriculm' (did you mean 'curriculum'?)"),
        ({"methods": {"p": {}}}, "'p': a method: 'curriculum' must be given"),
        ({"methods": {"p": {"curriculum": "bots", "curriculum_options": {"lamda": 1}}}}, "has no option 'lamda'"),
        ({"methods": {"p": {"curriculum": "bots", "curriculum_options": {"seed": 3}}}}, "can't have 'seed': it is the"),
        ({"methods": {"p": {"curriculum": "bots", "gate": "mix"}}}, "unknown gate 'mix' (did you mean 'mixed'?)"),
        ({"methods": {"p": {"curriculum": "bots", "gate_options": {"max_rounds": 2}}}}, "no gate"),
        ({"methods": {}}, "methods is empty"),
        ({"baseline": "unifrom"}, "unknown baseline 'unifrom' (did you mean 'uniform'?)"),
        (
            {"blocked": {"category": "level-9", "steps": 2}},
            "unknown blocked.category 'level-9' (did you mean 'level-0",
        ),
        ({"blocked": {"category": "level-01"}}, "blocked: 'steps' must be given"),
        ({"seeds": [1, 1]}, "seeds must be distinct"),
        ({"seeds": 0}, "seeds must be a whole number >= 1"),
        ({"prompts_per_step": 0}, "prompts_per_step must be a whole number >= 1"),
        ({"replay": "runs/u", "learner": {}}, "'learner' has no effect with replay"),
        ({"replay": {"run": 3}}, "replay.run must be a run's folder, or past rollouts, got 3"),
        ({"replay": ""}, "replay.run must be a run's folder, or past rollouts, got ''"),
        ({"replay": {"run": "x", "pooling": 0}}, "replay.pooling"),
        ({"methods": "nowhere.yaml"}, "nowhere.yaml' can't be read"),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_that_is_right(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.ConfigError) as error:
        SimulateConfig.from_dict(values)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_a_config_that_can_not_be_run_says_so_before_it_runs() -> None:
    adarft = {"a": {"curriculum": "adarft"}}
    with pytest.raises(rw.ConfigError, match="method 'a': .*difficulty"):
        check(SimulateConfig.from_dict({"replay": RUN, "methods": adarft}))
    with pytest.raises(rw.ConfigError, match="has 100 steps, so there can't be 101"):
        check(SimulateConfig.from_dict({"replay": RUN, "steps": 101}))
    with pytest.raises(rw.ConfigError, match=r"population\.kinds"):
        check(SimulateConfig.from_dict({"learner": {"kinship": 0.1}}))


def test_sizes() -> None:
    """10 steps of 4 x 5 are 200 rollouts; 190 rollouts are 9.5, so at most 10 steps. A log brings its own sizes."""
    base = {"prompts_per_step": 4, "num_generations": 5}
    assert sizes(SimulateConfig.from_dict({**base, "steps": 10}), 0) == (10, 4, 5, 200)
    assert sizes(SimulateConfig.from_dict({**base, "rollout_budget": 190}), 0) == (10, 4, 5, 190)
    assert sizes(SimulateConfig.from_dict({**base, "steps": 7, "rollout_budget": 190}), 0) == (7, 4, 5, 190)
    assert sizes(SimulateConfig(), 0) == (100, 32, 8, 25_600)
    steps, batch, group, rollouts = sizes(SimulateConfig.from_dict({"replay": RUN}), 0)
    assert (steps, group, rollouts) == (100, 8, 100 * batch * 8)


def test_processes_are_the_cores_unless_said() -> None:
    assert SimulateConfig(jobs=3).processes == 3
    assert 1 <= SimulateConfig().processes <= (os.cpu_count() or 1)


def test_another_log_keeps_how_the_file_replays(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("replay: {run: runs/a, bandwidth: 30, pooling: 2.0}")
    for other in ("runs/b", {"run": "runs/b"}):
        read = SimulateConfig.from_file(tmp_path / "my.yaml", replay=other)
        assert read.replay == Replay(run="runs/b", bandwidth=30, pooling=2.0)
    (tmp_path / "my.yaml").write_text("replay: runs/a")
    assert SimulateConfig.from_file(tmp_path / "my.yaml", replay="runs/b").replay == Replay(run="runs/b")


@pytest.mark.parametrize("path", sorted(p for p in EXAMPLES.glob("*.yaml") if p.stem not in ("methods", "replay")))
def test_the_shipped_configs_can_be_run(path: Path) -> None:
    assert path.read_text().startswith("# SIMULATED")
    check(SimulateConfig.from_file(path))


def test_the_shipped_methods_are_all_there_are() -> None:
    named = {method.curriculum for method in SimulateConfig.from_file(EXAMPLES / "revisit.yaml").methods.values()}
    assert set(rw.CURRICULA) - named <= {"oracle", "metis", "pcl", "hive", "prepo"}  # need a model, or know the truth
    replayed = SimulateConfig.from_file(EXAMPLES / "replay.yaml", replay=RUN)
    check(replayed)


def test_a_method_of_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("u: {curriculum: uniform}\n")
    (tmp_path / "c.yaml").write_text("methods: m.yaml\n")
    assert SimulateConfig.from_file(tmp_path / "c.yaml").methods == {"u": Method(curriculum="uniform")}
    (tmp_path / "c.yaml").write_text("methods: [\n")
    with pytest.raises(rw.ConfigError, match="not valid YAML"):
        SimulateConfig.from_file(tmp_path / "c.yaml")
