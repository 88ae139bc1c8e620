"""The recorder in scripts of one's own: several evaluation sets, generations and trainings."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from toys import GROUP, make_trainer, toy_dataset, toy_reward

import rollwise as rw
from rollwise.evaluation import read_run
from rollwise.runs.group_table import group_table
from rollwise.training import Recorder, RunFolder


def lines_of(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def recorded(tmp_path: Path, **options: Any) -> Any:
    trainer = make_trainer(tmp_path / "out", **options)
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    return trainer


def test_a_folder_without_a_name_is_refused() -> None:
    """As of a variable that is not set: the run would land in the present folder."""
    with pytest.raises(rw.ConfigError, match="a run's folder must have a name, got ''"):
        Recorder("")


def test_of_several_evaluation_sets_each_has_its_score(tmp_path: Path) -> None:
    sets: Any = {"all": toy_dataset(6), "easy": toy_dataset(1)}
    recorded(tmp_path, eval_dataset=sets, eval_strategy="steps", eval_steps=1, max_steps=2).train()
    for line in lines_of(tmp_path / "run"):
        assert line["wall_s"] > 0
        assert line["eval/pass@1"] == pytest.approx((line["eval/all/pass@1"] + line["eval/easy/pass@1"]) / 2, abs=1e-6)
    assert lines_of(tmp_path / "run")[-1]["eval/all/pass@1"] < 1


def test_pass_at_k_for_every_power_of_two_from_one_sample(tmp_path: Path) -> None:
    """Of 6 rollouts those with an even number in their place are solved: 3 of 6, for each prompt."""
    turn = itertools.count()

    def reward(completions: list[Any], **_: Any) -> list[float]:
        return [float(next(turn) % 2 == 0) for _ in completions]

    trainer = recorded(
        tmp_path, reward=reward, eval_dataset=toy_dataset(4), num_generations_eval=6, per_device_eval_batch_size=24
    )
    found = trainer.evaluate()
    ours = {name.removeprefix("eval_pass@"): value for name, value in found.items() if "pass@" in name}
    assert ours == pytest.approx({"1": 1 / 2, "2": 1 - 1 / 5, "4": 1.0, "6": 1.0})


def test_the_folder_says_what_counts_as_solved(tmp_path: Path) -> None:
    """A script's own run: 0.6 is solved where the curriculum says so, in its metrics and for who reads the folder."""
    spec = rw.RewardSpec(low=-1, high=1, solved_at=0.5)
    curriculum = rw.Uniform(seed=3, reward_spec=spec)
    trainer = recorded(tmp_path, curriculum=curriculum, reward=lambda completions, **_: [0.6] * len(completions))
    trainer.train()
    facts = json.loads((tmp_path / "run/rewards.json").read_text())
    assert facts == {"low": -1.0, "high": 1.0, "solved_at": 0.5}
    run = read_run(tmp_path / "run")
    table = group_table(run.rollout_lines(), run.rule)
    assert len(table) > 0
    assert table.all_good.all()
    assert run.column("frac_all_good")[-1] == 1.0
    recorded(tmp_path, max_steps=1).train()  # another run: its own facts, and those of the first beside its logs
    assert json.loads((tmp_path / "run/rewards.json").read_text())["solved_at"] == 1.0
    assert json.loads((tmp_path / "run/before-1/rewards.json").read_text()) == facts


@pytest.mark.parametrize("scale", ["group", "none"])
def test_equal_rewards_have_no_advantage_whatever_the_rounding(tmp_path: Path, scale: str) -> None:
    """The mean of eight rewards of 0.1 is not 0.1 in float32: their advantages are 7e-9, and over a deviation 7e-5."""
    options = {"reward": lambda completions, **_: [0.1] * len(completions), "num_generations": 8}
    recorded(tmp_path, scale_rewards=scale, max_steps=1, **options).train()
    (line,) = lines_of(tmp_path / "run")
    assert (line["frac_mixed"], line["zero_advantage"]) == (0.0, 1.0)


def test_a_step_in_which_nothing_was_scored_has_no_shares(tmp_path: Path) -> None:
    """They were 0, so that no group had failed there; an engine's run has none either."""
    turn = itertools.count()

    def reward(completion_ids: list[list[int]], threshold: list[int], **_: Any) -> list[float] | list[None]:
        unscored = next(turn) == 1
        return [None] * len(completion_ids) if unscored else toy_reward(completion_ids, threshold)

    recorded(tmp_path, reward=reward, max_steps=3).train()
    shares = {"frac_mixed", "frac_all_good", "frac_all_bad", "success", "reward"}
    assert [len(shares & line.keys()) for line in lines_of(tmp_path / "run")] == [5, 0, 5]


def test_an_evaluation_after_training_is_kept(tmp_path: Path) -> None:
    trainer = recorded(tmp_path, eval_dataset=toy_dataset(4), max_steps=1)
    trainer.train()
    score = trainer.evaluate()["eval_pass@1"]
    assert lines_of(tmp_path / "run")[-1]["eval/pass@1"] == pytest.approx(score, abs=1e-6)


def test_of_several_sets_after_training_the_mean_is_of_all(tmp_path: Path) -> None:
    trainer = recorded(tmp_path, eval_dataset={"all": toy_dataset(6), "easy": toy_dataset(1)}, max_steps=1)
    trainer.train()
    trainer.evaluate()
    (line,) = (line for line in lines_of(tmp_path / "run") if "eval/pass@1" in line)
    assert line["eval/pass@1"] == pytest.approx((line["eval/all/pass@1"] + line["eval/easy/pass@1"]) / 2, abs=1e-6)


def test_an_evaluation_before_training_is_the_runs_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = recorded(tmp_path, eval_dataset=toy_dataset(4), max_steps=2)
    score = trainer.evaluate()["eval_pass@1"]
    trainer.train()
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [0, 1, 2]
    assert lines_of(tmp_path / "run")[0]["eval/pass@1"] == pytest.approx(score, abs=1e-6)
    assert "before-1" not in caplog.text


def test_an_evaluation_before_a_resume_leaves_what_was_spent(tmp_path: Path) -> None:
    saving = {"eval_dataset": toy_dataset(4), "save_strategy": "steps", "save_steps": 2}
    recorded(tmp_path, max_steps=2, **saving).train()
    spent = lines_of(tmp_path / "run")[-1]["tokens"]
    trainer = recorded(tmp_path, max_steps=3, **saving)
    trainer.evaluate()
    trainer.train(resume_from_checkpoint=True)
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [1, 2, 3]
    assert lines_of(tmp_path / "run")[-1]["tokens"] > spent


def test_other_held_out_prompts_after_a_resume_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saving = {"save_strategy": "steps", "save_steps": 1}
    sets: list[Any] = [{"all": toy_dataset(6), "easy": toy_dataset(2)} for _ in range(3)]
    sets[2]["all"] = toy_dataset(8).select(range(1, 8))
    for steps, own in enumerate(sets, start=1):
        assert "held-out" not in caplog.text
        recorded(tmp_path, max_steps=steps, eval_dataset=own, **saving).train(resume_from_checkpoint=steps > 1)
    assert "the held-out prompts of 'all' are not those of before: 6 then, 7 now, 5 in both; scores from" in caplog.text
    assert "'easy'" not in caplog.text


def test_a_step_of_several_generations_is_recorded_whole(tmp_path: Path) -> None:
    trainer = recorded(tmp_path, accumulate=2, steps_per_generation=1, per_device_train_batch_size=2 * GROUP)
    trainer.train()
    groups = lines_of(tmp_path / "run", "rollouts.jsonl")
    for line in lines_of(tmp_path / "run"):
        own = [g["rewards"] for g in groups if g["step"] == line["step"]]
        assert len(own) == 4
        assert line["reward"] == pytest.approx(sum(map(sum, own)) / (4 * GROUP), abs=1e-6)
        assert line["frac_mixed"] == pytest.approx(sum(0 < sum(r) < GROUP for r in own) / 4, abs=1e-6)


def test_a_checkpoint_of_no_run_leaves_another_runs_logs_whole(tmp_path: Path) -> None:
    """It was saved without `run=`: going on from its step 1, the other run's logs were cut off there."""
    recorded(tmp_path, max_steps=3).train()
    saving = {"save_strategy": "steps", "save_steps": 1}
    make_trainer(tmp_path / "out", max_steps=1, **saving).train()
    recorded(tmp_path, max_steps=2, **saving).train(resume_from_checkpoint=True)
    assert [line["step"] for line in lines_of(tmp_path / "run/before-1")] == [1, 2, 3]
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [2]
    recorded(tmp_path, max_steps=3, **saving).train(resume_from_checkpoint=True)  # from a checkpoint of this run
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [2, 3]


def test_what_another_run_logged_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorded(tmp_path, max_steps=3).train()
    recorded(tmp_path, max_steps=1).train()
    assert len(lines_of(tmp_path / "run")) == 1
    assert len(lines_of(tmp_path / "run/before-1")) == 3
    assert "before-1" in caplog.text
