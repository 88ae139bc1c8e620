"""The file of `rollwise compare`: what it says is checked before anything is run."""

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from plugin_package import PLUGIN
from rich.console import Console

from rollwise.comparing import read_plan, run_comparison
from rollwise.comparing.plan import Plan, Run
from rollwise.comparing.state import delete_checkpoints_if_done, is_done
from rollwise.errors import ConfigError, StateFileError
from rollwise.evaluation import read_comparison
from rollwise.models import is_embedded
from rollwise.training.trainer.checkpoint import seal

PLAN: dict[str, Any] = {
    "name": "small",
    "baseline": "uniform",
    "seeds": [0, 2],
    "budget": {"tokens": 500},
    "base": {"task": "reversal", "steps": 3},
    "methods": {"uniform": {"curriculum": "uniform"}, "dynamic": {"curriculum": "uniform", "gate": "mixed"}},
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**PLAN, **changes}, sort_keys=False))
    return path


def test_every_method_runs_with_every_seed(tmp_path: Path) -> None:
    runs = read_plan(written(tmp_path)).runs(tmp_path / "out")
    names = [(r.method, r.seed) for r in runs]
    assert names == [("uniform", 0), ("dynamic", 0), ("uniform", 2), ("dynamic", 2)]
    last = runs[-1]
    assert last.folder == tmp_path / "out/runs/dynamic/seed2"
    assert (last.config.gate, last.config.token_budget, last.config.steps, last.config.seed) == ("mixed", 500, 3, 2)
    assert last.config.folder == last.folder


def test_the_start_varies_with_the_seed_alone(tmp_path: Path) -> None:
    """Relative to the plan's file, for every method the same; `--model` puts one in their place."""
    for name in "abc":
        (tmp_path / f"starts/{name}").mkdir(parents=True)
    starts = [f"starts/{name}" for name in "abc"]
    plan = read_plan(written(tmp_path, seeds=[0, 1, 2, 4, 9], starts=starts))
    found = {seed: {r.config.model for r in plan.runs(tmp_path) if r.seed == seed} for seed in plan.seeds}
    assert found == {s: {str(tmp_path / f"starts/{'abc'[s % 3]}")} for s in (0, 1, 2, 4, 9)}
    plan.write(tmp_path / "out")
    assert read_plan(tmp_path / "out/comparison.yaml") == plan
    assert plan.resolved()["starts"] == [str(tmp_path / start) for start in starts]
    assert {r.config.model for r in plan.changed(model="embedded").runs(tmp_path)} == {"embedded"}


def test_the_plan_is_kept_and_can_be_added_to(tmp_path: Path) -> None:
    read_plan(written(tmp_path)).write(tmp_path / "out")
    more = {**PLAN["methods"], "sec": {"curriculum": "sec"}}
    grown = read_plan(written(tmp_path, methods=more, seeds=[0, 2, 3]))
    grown.write(tmp_path / "out")
    assert read_plan(tmp_path / "out/comparison.yaml") == grown


def test_a_plan_without_a_budget_can_be_compared(tmp_path: Path) -> None:
    read_plan(written(tmp_path, budget={})).write(tmp_path / "out")
    assert read_comparison(tmp_path / "out").budget is None


APART = {"tune": [7], "report": [0, 2]}


def test_seeds_for_choosing_are_run_first_and_stay_apart(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, seeds=APART))
    assert (plan.seeds, plan.tune) == ((0, 2), (7,))
    assert [run.seed for run in plan.runs(tmp_path)] == [7, 7, 0, 0, 2, 2]
    assert plan.to_dict()["seeds"] == APART
    plan.write(tmp_path / "out")
    assert read_plan(tmp_path / "out/comparison.yaml") == plan


def test_a_seed_that_options_were_chosen_on_is_never_reported(tmp_path: Path) -> None:
    """Neither at once, nor after a plan that no longer names it; a seed that was not run is free."""
    plan = read_plan(written(tmp_path, seeds={"tune": [7, 8], "report": [0]}))
    plan.write(tmp_path / "out")
    begin(plan.runs(tmp_path / "out")[0])
    for seeds in ([7], [0], [8, 7]):
        changed = read_plan(written(tmp_path, seeds=seeds))
        if 7 not in seeds:
            changed.write(tmp_path / "out")
            assert read_plan(tmp_path / "out/comparison.yaml").tune == (7,)
            continue
        with pytest.raises(ConfigError, match="seed 7 was for choosing, and has been run .*; report on fresh seeds"):
            changed.write(tmp_path / "out")
    read_plan(written(tmp_path, seeds=[8])).write(tmp_path / "out")


def test_an_empty_oracle_is_none(tmp_path: Path) -> None:
    read_plan(written(tmp_path, oracle="")).write(tmp_path / "out")
    assert read_comparison(tmp_path / "out").oracle is None


def test_methods_named_by_numbers(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, methods={1: {"curriculum": "uniform"}, 2: {}}, baseline=1, oracle=2))
    assert (plan.baseline, plan.oracle, list(plan.methods)) == ("1", "2", ["1", "2"])
    assert read_plan(written(tmp_path, methods={1: {}, 0: {"curriculum": "uniform"}}, baseline=0)).baseline == "0"


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match=r"plan\.yaml' can't be a folder: a file is there"):
        read_plan(path := written(tmp_path)).write(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base": {"task": "revrsal", "steps": 3}}, "revrsal"),
        ({"base": {"task": "reversal", "task_options": {"colour": 1}}}, "colour"),
        (
            {"methods": {"uniform": {}, "pilot": {"curriculum": "pilot-commit"}}},
            "method 'pilot': 8 screening rollouts leave none of a group of 8 to be made",
        ),
        ({"methods": {"uniform": {}, "metis": {"curriculum": "metis"}}}, "method 'metis': .* asks the policy"),
        ({"methods": {"uniform": {}, "told": {"profile": "nowhere"}}}, "method 'told': there is no profile 'nowhere'"),
    ],
)
def test_what_no_run_could_begin_with_leaves_nothing(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    plan = read_plan(written(tmp_path, **changes))
    with pytest.raises(ConfigError, match=said):
        run_comparison(plan, tmp_path / "out", jobs=1, console=Console(quiet=True))
    assert not (tmp_path / "out").exists()


def begin(run: Run) -> None:
    run.folder.mkdir(parents=True)
    (run.folder / "config.yaml").write_text(yaml.safe_dump(run.config.to_dict()))


def test_what_no_run_was_made_with_can_be_mended(tmp_path: Path) -> None:
    read_plan(written(tmp_path)).write(tmp_path / "out")
    mended = read_plan(written(tmp_path, base={"task": "reversal", "steps": 4}))
    mended.write(tmp_path / "out")
    assert read_plan(tmp_path / "out/comparison.yaml") == mended


def test_a_method_that_was_left_out_for_a_while_is_still_the_same_or_refused(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path))
    begin(plan.runs(tmp_path / "out")[1])
    read_plan(written(tmp_path, methods={"uniform": {"curriculum": "uniform"}})).write(tmp_path / "out")
    plan.write(tmp_path / "out")
    changed = {**PLAN["methods"], "dynamic": {"curriculum": "sec", "learning_rate": 0.01}}
    with pytest.raises(ConfigError, match=r"a run of dynamic seed 0 made with .* delete '.*dynamic/seed0' to have it"):
        read_plan(written(tmp_path, methods=changed)).write(tmp_path / "out")


def test_what_is_wrong_with_a_file_of_the_comparison_names_it(tmp_path: Path) -> None:
    """An option of a newer version, say; it seemed to be the plan's, which has no such key."""
    plan = read_plan(written(tmp_path))
    plan.write(tmp_path / "out")
    begin(run := plan.runs(tmp_path / "out")[0])
    with open(run.folder / "config.yaml", "a") as file:
        file.write("newer: 1\n")
    with pytest.raises(ConfigError, match=r"uniform/seed0/config\.yaml, line \d+: train has no option 'newer'"):
        plan.write(tmp_path / "out")
    (tmp_path / "out/comparison.yaml").write_text("seeds: 3\n")
    with pytest.raises(ConfigError, match=r"comparison\.yaml, line 1: seeds must be a list of whole numbers, got 3"):
        plan.write(tmp_path / "out")


def test_a_complete_run_whose_checkpoints_were_deleted_is_complete(tmp_path: Path) -> None:
    """To save disk, or left out of a copy: the same command trained it again from the beginning, over its logs."""
    run = read_plan(written(tmp_path)).runs(tmp_path / "out")[0]
    begin(run)
    for line, done in (
        ({"step": 2, "tokens": 499}, False),
        ({"step": 2, "tokens": 500}, True),
        ({"step": 3, "tokens": 9}, True),
    ):
        (run.folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
        assert is_done(run) is done
    (run.folder / "checkpoints/checkpoint-3").mkdir(parents=True)  # the first was being written
    assert not is_done(run)


def test_a_kill_while_checkpoints_are_deleted_leaves_the_run_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = read_plan(written(tmp_path)).runs(tmp_path / "out")[0]
    begin(run)
    (run.folder / "metrics.jsonl").write_text(json.dumps({"step": 3, "tokens": 500}) + "\n")
    saved = run.folder / "checkpoints"
    (saved / "runs").mkdir(parents=True)  # of TensorBoard
    for step in (2, 3):
        (saved / f"checkpoint-{step}").mkdir()
        (saved / f"checkpoint-{step}/weights").touch()
        seal(saved / f"checkpoint-{step}")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", Mock(side_effect=KeyboardInterrupt))
        delete_checkpoints_if_done(run)
    assert len(list(saved.iterdir())) == 3
    assert is_done(run)
    delete_checkpoints_if_done(run)
    assert [path.name for path in saved.iterdir()] == ["runs"]


def test_the_best_checkpoint_is_not_deleted(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, base={**PLAN["base"], "keep_best": "pass@1", "eval_every": 1}))
    with pytest.raises(ConfigError, match="keep_best: pass@1 keeps a checkpoint of uniform seed 0, and --delete_check"):
        run_comparison(plan, tmp_path / "out", jobs=1, console=Console(), delete_checkpoints=True)


def test_a_comparison_whose_folder_was_moved_goes_on(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "start").mkdir(parents=True)
        plan = read_plan(written(tmp_path / place, base={**PLAN["base"], "model": "start"}))
        if place == "here":
            begin(plan.runs(tmp_path / "out")[0])
        plan.write(tmp_path / "out")


def test_other_data_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """As `gsm8k/train.jsonl` and `math/train.jsonl`: else the results of the one would pass for the other's."""

    def plan(folder: str) -> Plan:
        paths = {"data": f"{folder}/train.jsonl", "reward": [f"{folder}/mine.py:right", "math"], "model": f"{folder}/m"}
        base = {key: value for key, value in PLAN["base"].items() if key != "task"}
        return read_plan(written(tmp_path, base={**base, **paths}))

    for folder in ("gsm8k", "copy", "other", "reward", "model"):
        (tmp_path / folder / "m").mkdir(parents=True)
        (tmp_path / folder / "train.jsonl").write_text("{}" if folder == "other" else "")
        (tmp_path / folder / "mine.py").write_text("x = 1" if folder == "reward" else "")
        (tmp_path / folder / "m/weights").write_text("1" if folder == "model" else "0")
    begin(plan("gsm8k").runs(tmp_path / "out")[0])
    plan("copy").write(tmp_path / "out")
    for folder, option in (("other", "data"), ("reward", "reward"), ("model", "model")):
        with pytest.raises(ConfigError, match=rf"made with {option} = .*gsm8k.*, now it is .*{folder}"):
            plan(folder).write(tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base": {"task": "reversal", "steps": 4}}, "dynamic seed 2 made with steps = 3, now it is 4"),
        ({"budget": {"tokens": 501}}, "token_budget = 500, now it is 501"),
        ({"methods": {**PLAN["methods"], "dynamic": {"curriculum": "sec"}}}, "curriculum = 'uniform', now it is 'sec'"),
    ],
)
def test_what_runs_share_cannot_change(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    plan = read_plan(written(tmp_path))
    plan.write(tmp_path / "out")
    begin(plan.runs(tmp_path / "out")[-1])
    before = (tmp_path / "out/comparison.yaml").read_bytes()
    with pytest.raises(ConfigError, match=said):
        read_plan(written(tmp_path, **changes)).write(tmp_path / "out")
    assert (tmp_path / "out/comparison.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": {}}, "needs methods"),
        ({"baseline": "bots"}, "baseline: 'bots' is not one of the methods: uniform, dynamic"),
        (
            {"baseline": "unifor"},
            r"baseline: 'unifor' is not one of the methods \(did you mean 'uniform'\?\): uniform, dyn",
        ),
        ({"oracle": "oracle"}, "oracle: 'oracle' is not one of the methods"),
        ({"oracle": "uniform"}, "oracle: 'uniform' is the baseline too; name another method, or leave oracle out"),
        ({"seeds": [0, 0]}, "seeds must be different"),
        ({"starts": "a"}, "starts must be a list of policies, .*, got 'a'"),
        ({"starts": [1]}, "starts must be a text, got 1"),
        ({"starts": ["a"], "base": {"model": "b"}}, "the plan has both starts and base"),
        ({"seeds": 3}, "seeds must be a list"),
        ({"seeds": [[0]]}, r"seeds must be a whole number >= 0, got \[0\]"),
        ({"seeds": {"tune": [1], "report": [0, 1]}}, "can't be reported on: 1 in both tune and report; take fresh"),
        ({"seeds": {"tune": []}}, "seeds must be different whole numbers, at least one"),
        ({"seeds": {"choose": [1]}}, r"seeds must be a list, or \{tune: \[...\], report: \[...\]\}"),
        ({"oracle": ["bots"]}, "is not one of the methods"),
        (
            {"methods": {"uniform": {"curriculum_options": {1: 2}}}},
            "a name in curriculum_options must be a text, got 1",
        ),
        ({"methods": {"uniform": {"curriculum_options": {"seed": 3}}}}, "curriculum_options can't have 'seed'"),
        ({"seeds": [-1]}, "seeds must be"),
        ({"budget": {"rollouts": 3}}, "budget can have tokens alone"),
        ({"budget": {"tokens": 0}}, "budget: tokens must be"),
        ({"base": {"seed": 3}}, "'seed' is set by the comparison"),
        ({"base": [1]}, "'base' must be a mapping"),
        ({"base": []}, r"'base' must be a mapping, got \[\]"),
        ({"base": {"model": 5}}, "model must be a text, got 5"),
        ({"methods": {"uniform": {"curriculum": "unifrom"}}}, "method 'uniform': unknown curriculum 'unifrom'"),
        ({"methods": {"uniform": {"curiculum": "uniform"}}}, "method 'uniform': train has no option 'curiculum'"),
        ({"methods": {"uniform": {"gate": "mixd"}}}, "method 'uniform': .*mixd"),
        ({"methods": {"uniform": {}, "a/b": {}}}, "'a/b' can't be one"),
        ({"methods": {"uniform": {}, "é" * 101: {}}}, "é' can't be one; give one of at most 200 bytes"),
        ({"methods": {"uniform": {}, "a\0b": {}}}, "can't be one"),
        ({"name": "../elsewhere"}, "the plan's name becomes a folder's, and '../elsewhere' can't be one"),
        ({"metods": {}}, "unknown key 'metods' \\(did you mean 'methods'\\?\\)"),
    ],
)
def test_what_does_not_fit_is_said_at_once(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_plan(written(tmp_path, **changes))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="can't be read"):
        read_plan(tmp_path / "absent.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(ConfigError, match="must hold a mapping"):
        read_plan(tmp_path / "list.yaml")


EXAMPLES = Path(__file__).parents[2] / "examples/compare"


SHIPPED = sorted(path for part in ("", "judging/", "families/") for path in EXAMPLES.glob(f"{part}*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=str)
def test_the_shipped_plans_are_sound(path: Path) -> None:
    plan = read_plan(path)
    assert plan.name == path.stem
    assert len(plan.seeds) >= 5
    assert plan.about
    for run in plan.runs(Path("out")):
        assert is_embedded(run.config.model) or (Path(run.config.model) / "model.safetensors").is_file()


@pytest.mark.parametrize("name", ["reversal-smollm2", "gym-smollm2"])
def test_the_plan_of_a_pretrained_model_waits_for_its_policy(name: str) -> None:
    plan = read_plan(EXAMPLES / f"pretrained/{name}.yaml")
    assert {run.config.model for run in plan.runs(Path("out"))} == {"./policy"}


def test_a_model_beside_the_plan_is_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "starts/mine").mkdir(parents=True)
    base = {**PLAN["base"], "model": "starts/mine"}
    plan = read_plan(written(tmp_path, base=base))
    assert plan.runs(tmp_path / "out")[0].config.model == str((tmp_path / "starts/mine").resolve())
    assert plan.to_dict()["base"]["model"] == "starts/mine"
    hub = read_plan(written(tmp_path, base={**base, "model": "someone/model"}))
    assert hub.runs(tmp_path / "out")[0].config.model == "someone/model"


def test_a_task_in_a_file_beside_the_plan(tmp_path: Path) -> None:
    """Names of tasks, methods and gates stay, even if a folder is called like one."""
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "uniform").mkdir()
    own = {"uniform": {"curriculum": "uniform"}, "mine": {"curriculum": "mine.py:Backwards"}}
    plan = read_plan(written(tmp_path, base={"task": "mine.py:Sums"}, methods=own, oracle=None))
    runs = {run.method: run.config for run in plan.runs(tmp_path / "out")}
    assert {config.task for config in runs.values()} == {f"{tmp_path.resolve() / 'mine.py'}:Sums"}
    assert runs["mine"].curriculum == f"{tmp_path.resolve() / 'mine.py'}:Backwards"
    assert runs["uniform"].curriculum == "uniform"
    assert plan.resolved()["base"]["task"] == f"{tmp_path.resolve() / 'mine.py'}:Sums"


def test_an_allocator_in_a_file_beside_the_plan(tmp_path: Path) -> None:
    """It was looked for in the working directory alone."""
    (tmp_path / "mine.py").write_text("from rollwise.allocators.knapsack import Knapsack as Mine\n")
    own = {"uniform": {"curriculum": "uniform"}, "mine": {"curriculum": "bots", "allocator": "mine.py:Mine"}}
    plan = read_plan(written(tmp_path, methods=own, oracle=None))
    place = f"{tmp_path.resolve() / 'mine.py'}:Mine"
    assert {run.config.allocator for run in plan.runs(tmp_path / "out")} == {"none", place}
    assert plan.resolved()["methods"]["mine"]["allocator"] == place


def test_the_same_plan_for_another_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    plan = read_plan(written(tmp_path, base={**PLAN["base"], "model": "starts/other"}))
    models = [plan.changed(model=m).runs(tmp_path / "out")[0].config.model for m in ("mine", "embedded", "a/hub-id")]
    assert models == [str(tmp_path / "mine"), "embedded", "a/hub-id"]
    assert plan.changed() == plan


def test_the_same_plan_at_another_learning_rate(tmp_path: Path) -> None:
    own = {"uniform": {}, "faster": {"learning_rate": 5e-4}}
    plan = read_plan(written(tmp_path, base={**PLAN["base"], "learning_rate": 1e-4}, methods=own, oracle=None))
    rates = {run.method: run.config.learning_rate for run in plan.changed(learning_rate=2e-4).runs(tmp_path / "out")}
    assert rates == {"uniform": 2e-4, "faster": 5e-4}
    plan.write(tmp_path / "out")
    begin(plan.runs(tmp_path / "out")[0])
    with pytest.raises(ConfigError, match=r"learning_rate = 0\.0001, now it is 0\.0002; take that back, give another"):
        plan.changed(learning_rate=2e-4).write(tmp_path / "out")


def test_a_profile_of_each_seed(tmp_path: Path) -> None:
    (tmp_path / "references/small/seed2").mkdir(parents=True)
    told = {"uniform": {}, "told": {"profile": "references/{name}/seed{seed}"}}
    profiles = [
        r.config.profile for r in read_plan(written(tmp_path, methods=told)).runs(tmp_path) if r.method == "told"
    ]
    assert profiles == ["references/small/seed0", str((tmp_path / "references/small/seed2").resolve())]


def test_methods_may_stand_in_a_file_that_plans_share(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text(yaml.safe_dump(PLAN["methods"], sort_keys=False))
    assert read_plan(written(tmp_path, methods="shared.yaml")) == read_plan(written(tmp_path))
    with pytest.raises(StateFileError, match=r"absent\.yaml' can't be read"):
        read_plan(written(tmp_path, methods="absent.yaml"))
    (tmp_path / "list.yaml").write_text("- uniform\n")
    with pytest.raises(ConfigError, match="'methods' must be a mapping"):
        read_plan(written(tmp_path, methods="list.yaml"))


def test_a_folder_beside_the_plan_does_not_hide_the_embedded_policy(tmp_path: Path) -> None:
    (tmp_path / "embedded").mkdir()
    plan = read_plan(written(tmp_path, base={**PLAN["base"], "model": "embedded"}))
    assert plan.runs(tmp_path / "out")[0].config.model == "embedded"


def test_own_data_and_rewards_are_found_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "r.py").write_text("")
    (tmp_path / "math").mkdir()  # a reward's name stays one
    base = "{data: [a.jsonl, owner/name:train], reward: [r.py:f, math], model: tiny}"
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"base: {base}\nmethods: {{uniform: {{curriculum: uniform}}}}\nseeds: [0]\n")
    config = read_plan(plan).runs(tmp_path)[0].config
    assert config.data == [str(tmp_path / "a.jsonl"), "owner/name:train"]
    assert config.reward == [f"{tmp_path / 'r.py'}:f", "math"]


def test_a_timed_plan_runs_one_at_a_time(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, timing=True))
    assert plan.timing
    assert plan.to_dict()["timing"] is True
    with pytest.raises(ConfigError, match="runs go one at a time, not 2"):
        run_comparison(plan, tmp_path / "out", jobs=2, console=Console())
    with pytest.raises(ConfigError, match="timing must be true or false, got 'yes'"):
        read_plan(written(tmp_path, timing="yes"))
