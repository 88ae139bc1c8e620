"""Several evaluation sets: their scores, what they are together, and each prompt's results."""

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from rich.console import Console
from toys import make_trainer, toy_dataset, toy_reward

import rollwise as rw
from rollwise.runs.evaluations import read_evaluations, read_sets, scores_by_category
from rollwise.sampling.eval_sets import aggregate, eval_sources
from rollwise.training import CurriculumRLOOTrainer, Recorder, RunFolder
from rollwise.training.config import TrainConfig
from rollwise.training.display import Display


def known(n: int, solved: int, kinds: tuple[str, ...] = ("x", "y", "z")) -> Dataset:
    """N prompts, the first `solved` of which every rollout solves; of three categories in turn."""
    rows = [
        {"id": f"p{i}", "prompt": f"task {i}=", "good": float(i < solved), "category": kinds[i % 3]} for i in range(n)
    ]
    return Dataset.from_list(rows)


def reward(completions: list[Any], good: list[float], **_: Any) -> list[float]:
    return [float(one) for one in good]


def trained(tmp_path: Path, eval_dataset: Any, **options: Any) -> Any:
    defaults: dict[str, Any] = {
        "reward": reward, "dataset": known(24, 12), "eval_strategy": "steps", "eval_steps": 1, "max_steps": 2,
        "num_generations_eval": 2,
    }  # fmt: skip
    trainer = make_trainer(tmp_path / "out", eval_dataset=eval_dataset, **{**defaults, **options})
    Recorder(RunFolder(tmp_path / "run"), evaluate_first=True).attach(trainer)
    trainer.train()
    return trainer


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("how", "score"), [("mean", (250 / 500 + 3 / 30) / 2), ("prompts", 253 / 530), ("ood", 3 / 30), ("id", 250 / 500)]
)
def test_the_aggregate_by_hand(how: str, score: float) -> None:
    scores = {"id": {"pass@1": 250 / 500, "reward": 0.5}, "ood": {"pass@1": 3 / 30, "pass@4": 1.0}}
    assert aggregate(scores, {"id": 500, "ood": 30}, how)["pass@1"] == pytest.approx(score)
    if how in ("mean", "prompts"):
        assert set(aggregate(scores, {"id": 500, "ood": 30}, how)) == {"pass@1"}


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_sets_of_other_sizes_in_a_run(tmp_path: Path, kind: str) -> None:
    """500 and 30 prompts: each set's score, their aggregate by prompts, and every prompt's results under its own id."""
    sets = {"id": known(500, 250), "ood": known(30, 3)}
    trainer = {} if kind == "grpo" else {"kind": CurriculumRLOOTrainer}
    extra = {"eval_aggregate": "prompts"}
    options = {"eval_steps": 2, "per_device_eval_batch_size": 206, "extra": extra, **trainer}
    found = trained(tmp_path, sets, **options).evaluate()
    run = tmp_path / "run"
    for line in (lines_of(run)[0], lines_of(run)[2]):
        assert (line["eval/id/pass@1"], line["eval/ood/pass@1"]) == (0.5, 0.1)
        assert line["eval/pass@1"] == line["eval/reward"] == line["eval/pass@2"] == pytest.approx(253 / 530)
    assert (found["eval_id_pass@1"], found["eval_ood_pass@1"]) == pytest.approx((0.5, 0.1))
    assert found["eval_pass@1"] == pytest.approx(253 / 530)
    evaluations = read_evaluations(run)
    assert [(one.step, one.set) for one in evaluations] == [(0, "id"), (0, "ood"), (2, "id"), (2, "ood")]
    for one in evaluations:
        solved = 250 if one.set == "id" else 3
        assert one.ids == [f"p{i}" for i in range(len(one.ids))]
        np.testing.assert_array_equal(one.successes, [2] * solved + [0] * (len(one.ids) - solved))
        np.testing.assert_array_equal(one.reward, one.pass_rates)
    assert scores_by_category(evaluations[1]) == pytest.approx({"x": 0.1, "y": 0.1, "z": 0.1})


def test_the_trackers_get_each_set_by_its_name(tmp_path: Path) -> None:
    trainer = trained(tmp_path, {"id": known(4, 2), "ood": known(4, 1)})
    logged = [line for line in trainer.state.log_history if any("pass@1" in key for key in line)]
    assert all("eval_pass@1" not in line for line in logged)
    assert [line["eval_id_pass@1"] for line in logged if "eval_id_pass@1" in line] == [0.5, 0.5, 0.5]


def test_the_display_says_each_score(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, eval_dataset={"id": known(4, 2), "ood": known(4, 1)}, reward=reward)
    console = Console(file=io.StringIO(), width=200)
    Display(console).attach(trainer)
    trainer.evaluate()
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "evaluation at step 0: pass@1 0.500  pass@2 0.500" in said
    assert "on held-out prompts ood\n" in said
    assert "together (mean): pass@1 0.375\n" in said


def test_the_display_keeps_the_last_reward_that_there_was(tmp_path: Path) -> None:
    steps = iter(([1.0] * 16, [None] * 16))
    trainer = make_trainer(tmp_path, reward=lambda **_: next(steps), max_steps=2)
    display = Display(Console(file=io.StringIO()))
    display.attach(trainer)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        trainer.train()
    assert display.parts["reward"] == "reward 1.000"


def test_the_display_says_the_reward_that_is_logged_and_a_sets_name_as_it_is(tmp_path: Path) -> None:
    """Rewards from -1 to 1: 0.5 is a score of 0.75, but the reward is 0.5, as in `metrics.jsonl`."""
    options: dict[str, Any] = {"reward": lambda completions, **_: [0.5] * len(completions), "max_steps": 1}
    curriculum = rw.Uniform(seed=1, reward_spec=rw.RewardSpec(low=-1, high=1))
    trainer = make_trainer(tmp_path / "out", curriculum=curriculum, eval_dataset={"[b]ood": known(4, 1)}, **options)
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    display = Display(Console(file=io.StringIO(), width=200))
    display.attach(trainer)
    trainer.train()
    trainer.evaluate()
    assert display.parts["reward"] == "reward 0.500"
    assert lines_of(tmp_path / "run")[0]["reward"] == 0.5
    assert "on held-out prompts [b]ood\n" in display.console.file.getvalue()  # type: ignore[attr-defined]


def test_one_set_has_no_name(tmp_path: Path) -> None:
    trained(tmp_path, known(6, 3))
    run = tmp_path / "run"
    assert "eval/pass@1" in lines_of(run)[-1]
    assert not [key for key in lines_of(run)[-1] if key.count("/") > 1 and key.startswith("eval/")]
    assert list(read_sets(run)) == [""]
    assert [one.set for one in read_evaluations(run)] == [None, None, None]


def test_prompts_without_ids_or_categories(tmp_path: Path) -> None:
    """Ids are the prompts' content, as in the pool; there are no categories."""
    trained(tmp_path, toy_dataset(4), dataset=toy_dataset(), reward=lambda completions, **_: [1.0] * len(completions))
    (one,) = read_sets(tmp_path / "run").values()
    assert one.ids == rw.PromptPool.from_records([{"prompt": f"task {i}="} for i in range(4)]).ids
    assert one.categories is None


def test_the_runs_of_a_seed_are_evaluated_with_the_same_random_numbers(tmp_path: Path) -> None:
    """Whatever the method, and however many numbers training drew: the same weights give the same answers again."""
    methods = {"prioritized": rw.PrioritizedReplay(seed=3), "uniform": rw.Uniform(seed=4)}
    options = {"dataset": toy_dataset(), "reward": toy_reward, "learning_rate": 0.0, "num_generations_eval": 4}
    found = {}
    for name, curriculum in methods.items():
        trained(tmp_path / name, toy_dataset(8), curriculum=curriculum, **options)
        found[name] = [one.successes.tolist() for one in read_evaluations(tmp_path / name / "run")]
    first = found["uniform"][0]
    assert 0 < sum(first) < 32
    assert found == {"uniform": [first] * 3, "prioritized": [first] * 3}


def test_another_set_leaves_the_results_of_the_runs_own_alone(tmp_path: Path) -> None:
    trainer = trained(tmp_path, known(6, 3))
    before = [(tmp_path / "run" / name).read_bytes() for name in ("evaluations.jsonl", "metrics.jsonl")]
    noted: list[float] = []
    trainer.curriculum.note_score = noted.append
    assert trainer.evaluate(known(6, 6))["eval_pass@1"] == 1.0
    assert trainer.evaluate(known(6, 6), metric_key_prefix="test")["test_pass@1"] == 1.0
    assert trainer.evaluate(known(6, 6), None, "third")["third_pass@1"] == 1.0
    assert [(tmp_path / "run" / name).read_bytes() for name in ("evaluations.jsonl", "metrics.jsonl")] == before
    assert not noted


def test_one_of_several_sets_has_its_own_score_and_is_not_the_runs(tmp_path: Path) -> None:
    sets = {"id": known(6, 3), "ood": known(4, 1)}
    trainer = trained(tmp_path, sets)
    noted: list[float] = []
    trainer.curriculum.note_score = noted.append
    for given in ("ood", sets["ood"]):
        assert trainer.evaluate(given)["eval_pass@1"] == 0.25
        last = lines_of(tmp_path / "run")[-1]
        assert {key: value for key, value in last.items() if key.endswith("pass@1")} == {"eval/ood/pass@1": 0.25}
    assert not noted
    assert [one.set for one in read_evaluations(tmp_path / "run")] == ["id", "ood"] * 3


def test_a_set_that_is_not_there(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, eval_dataset={"id": known(3, 1), "ood": known(3, 0)})
    with pytest.raises(rw.ConfigError, match=r"has no set 'odd' \(did you mean 'ood'\?\); it has id, ood"):
        trainer.evaluate("odd")
    trainer.eval_dataset = known(3, 1)  # transformers would take the column of that name
    with pytest.raises(rw.ConfigError, match="has no set 'prompt'; give it a mapping of names to sets"):
        trainer.evaluate("prompt")


def test_without_sets_of_its_own_a_run_is_evaluated_on_what_is_given(tmp_path: Path) -> None:
    trainer = trained(tmp_path, None, eval_strategy="no")
    trainer.evaluate(known(4, 1))
    assert lines_of(tmp_path / "run")[-1]["eval/pass@1"] == 0.25


def test_a_stream_is_measured_whole_also_after_a_set_of_ones_own(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, eval_dataset=known(2, 2), reward=reward, num_generations_eval=2)
    assert trainer.evaluate()["eval_pass@1"] == 1.0
    for name in ("one", "another"):
        scores = trainer.evaluate(known(24, 6).to_iterable_dataset(), metric_key_prefix=name)
        assert scores[f"{name}_pass@1"] == 0.25
    assert trainer.evaluate()["eval_pass@1"] == 1.0
    assert trainer.results[""].by_row() == ([1.0, 1.0], [2, 2])


def test_the_larger_evaluation_at_the_end_has_names_of_its_own(tmp_path: Path) -> None:
    """The curriculum, the run's own evaluations and those of its prompts know nothing of it."""
    trainer = trained(tmp_path, {"id": known(6, 3), "ood": known(4, 1)}, extra={"probe_batch": 24})
    run, own = tmp_path / "run", dict(trainer.together)
    before = (run / "evaluations.jsonl").read_bytes()
    noted: list[float] = []
    trainer.curriculum.note_score = noted.append
    trainer.evaluate_end({"id": known(8, 2), "ood": known(4, 2)}, 4)
    last = lines_of(run)[-1]
    scores = {key: value for key, value in last.items() if key.endswith("pass@1")}
    assert scores == {"end/id/pass@1": 0.25, "end/ood/pass@1": 0.5, "end/pass@1": 0.375}
    assert trainer.together == own
    assert not noted
    assert (run / "evaluations.jsonl").read_bytes() == before
    assert trainer.state.log_history[-1].keys() >= {"eval_end_ood_pass@1", "eval_end_ood_pass@4"}


def test_the_evaluation_at_the_end_has_prompts_of_its_own_where_loaders_stay(tmp_path: Path) -> None:
    """With `dataloader_persistent_workers` a loader is kept: it must not give the smaller set of before once more."""
    trainer = make_trainer(
        tmp_path, eval_dataset=known(4, 1), reward=reward, dataset=known(24, 12), num_generations_eval=2
    )
    trainer._eval_dataloaders = {"eval": trainer.get_eval_dataloader()}
    trainer.args.dataloader_persistent_workers = True
    assert trainer.evaluate()["eval_pass@1"] == 0.25
    seen: list[Any] = []
    trainer.after_evaluation.append(lambda: seen.append((trainer.results[""].prompts, trainer.together["pass@1"])))
    trainer.evaluate_end(known(8, 6), 4)
    assert seen == [(8, 0.75)]


def test_an_evaluation_by_another_prefix_has_the_score_of_the_set_that_counts(tmp_path: Path) -> None:
    trainer = make_trainer(
        tmp_path,
        eval_dataset={"id": known(8, 6), "ood": known(4, 1)},
        reward=reward,
        dataset=known(24, 12),
        extra={"eval_aggregate": "ood"},
    )
    assert trainer.evaluate(metric_key_prefix="test")["test_pass@1"] == 0.25


def test_an_evaluation_before_training_is_the_runs_first(tmp_path: Path) -> None:
    trainer = make_trainer(
        tmp_path / "out", eval_dataset=known(6, 3), reward=reward, dataset=known(24, 12), max_steps=1
    )
    Recorder(tmp_path / "run").attach(trainer)
    trainer.evaluate()
    trainer.train()
    assert [one.step for one in read_evaluations(tmp_path / "run")] == [0]


def test_rollouts_without_a_reward(tmp_path: Path) -> None:
    """A prompt of which no rollout can be scored has no reward, and no successes."""

    def some(completions: list[Any], good: list[float], **_: Any) -> list[float | None]:
        return [None if one == 0.0 else 1.0 for one in good]

    trained(tmp_path, known(4, 2), reward=some)
    last = read_evaluations(tmp_path / "run")[-1]
    np.testing.assert_array_equal(last.reward, [1.0, 1.0, np.nan, np.nan])
    assert last.successes.tolist() == [2, 2, 0, 0]


@pytest.mark.parametrize("temperature", [0.0, 0.25])
def test_the_temperature_of_evaluations(tmp_path: Path, temperature: float) -> None:
    trainer = make_trainer(
        tmp_path, eval_dataset=toy_dataset(4), num_generations_eval=4, extra={"eval_temperature": temperature}
    )
    seen = []
    generate = trainer.model.generate

    def watched(*args: Any, **kwargs: Any) -> Any:
        config = kwargs["generation_config"]
        seen.append((config.do_sample, config.temperature))
        return generate(*args, **kwargs)

    trainer.model.generate = watched
    trainer.evaluate()
    assert set(seen) == ({(False, 1.0)} if temperature == 0 else {(True, 0.25)})
    (one,) = trainer.results.values()
    _, successes = one.by_row()
    assert temperature > 0 or set(successes) <= {0, 4}  # greedy: all rollouts of a prompt are the same
    assert (trainer.generation_config.do_sample, trainer.generation_config.temperature) == (True, 1.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"eval_data": {"a/b": "x.jsonl"}}, "a set called 'a/b'"),
        ({"eval_data": {"mean": "x.jsonl"}}, "a set called 'mean'"),
        ({"eval_data": {}}, "eval_data names no set"),
        ({"eval_data": {"a": 3}}, r"eval_data\.a must be a file, or a list of files, got 3"),
        ({"eval_data": {"a": "x", "b": "y"}, "eval_aggregate": "c"}, "must be one of mean, prompts, a, b, got 'c'"),
        ({"eval_aggregate": "ood"}, "must be one of mean, prompts, got 'ood'"),
        ({"eval_temperature": -1.0}, "eval_temperature must be"),
        ({"max_hours": 0}, "max_hours must be"),
        ({"keep_best": "pass@1", "eval_prompts": 0}, "keep_best 'pass@1' needs evaluations"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(rw.ConfigError, match=said):
        TrainConfig(data="train.jsonl", reward="exact", **options)


def test_a_preset_stays_a_name() -> None:
    """What it stands for the loader says."""
    sets = eval_sources({"aime": "preset:aime24", "own": ["a.jsonl", "b.jsonl"]})
    assert sets == {"aime": "preset:aime24", "own": ["a.jsonl", "b.jsonl"]}


def test_a_script_with_a_score_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="eval_aggregate must be one of mean, prompts, id, got 'ood'"):
        make_trainer(tmp_path, eval_dataset={"id": toy_dataset(2)}, extra={"eval_aggregate": "ood"})
