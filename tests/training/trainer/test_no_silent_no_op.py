"""A curriculum that takes no effect stops training at step 1 and says why."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from peft import LoraConfig
from toys import Traced, make_trainer, toy_dataset

import rollwise as rw
from rollwise.training import CurriculumGRPOTrainer
from rollwise.training.trainer.curriculum_mixin import CurriculumMixin
from rollwise.training.trainer.rollout_mixin import RolloutMixin


class Overriding(CurriculumGRPOTrainer):
    """A user's subclass that shuffles what the curriculum chose."""

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        return super()._calculate_rewards(inputs[::-1], prompts, completions, completion_ids_list)


class Bypassing(CurriculumGRPOTrainer):
    """A user's subclass that generates by itself."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        return super(CurriculumMixin, self)._generate_and_score_completions(inputs)


class Deaf(CurriculumGRPOTrainer):
    """A user's subclass whose rewards never come by."""

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Any:
        return super(RolloutMixin, self)._calculate_rewards(inputs, prompts, completions, completion_ids_list)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(Overriding, "not those that the curriculum chose"), (Bypassing, "without the curriculum"), (Deaf, "no rewards")],
)
def test_a_subclass_that_goes_past_the_curriculum(kind: type, reason: str, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    trainer.__class__ = kind
    with pytest.raises(rw.SilentNoOpError, match=reason):
        trainer.train()
    assert trainer.state.global_step <= 1


def test_a_moved_hook_is_refused_at_construction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import trl

    monkeypatch.setattr(trl.GRPOTrainer, "_calculate_rewards", lambda self, everything: None)
    with pytest.raises(rw.SilentNoOpError, match="_calculate_rewards"):
        make_trainer(tmp_path)


def test_rewards_that_never_come(tmp_path: Path) -> None:
    with pytest.raises(rw.SilentNoOpError, match="could be scored"):
        make_trainer(tmp_path, reward=lambda completion_ids, **_: [None] * len(completion_ids)).train()


def test_rewards_out_of_range_name_the_remedy(tmp_path: Path) -> None:
    curriculum = Traced(reward_spec=rw.RewardSpec())
    with pytest.raises(rw.RewardError, match="RewardSpec"):
        make_trainer(
            tmp_path, reward=lambda completion_ids, **_: [3.0] * len(completion_ids), curriculum=curriculum
        ).train()


def test_an_infinite_reward_names_the_remedy(tmp_path: Path) -> None:
    def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [float("-inf")] + [0.0] * (len(completion_ids) - 1)

    with pytest.raises(rw.RewardError, match="step 1: 1 rewards are infinite, as -inf; have the .* return None"):
        make_trainer(tmp_path, reward=reward).train()


def test_a_pool_of_other_prompts_is_refused(tmp_path: Path) -> None:
    other = rw.PrioritizedReplay(rw.PromptPool(ids=[f"x{i}" for i in range(9)]))
    with pytest.raises(rw.SilentNoOpError, match="not in train_dataset"):
        make_trainer(tmp_path, curriculum=other)


def test_a_pool_of_the_same_prompts_is_joined_by_id(tmp_path: Path) -> None:
    rows = [{"id": f"row-{i}", **row} for i, row in enumerate(toy_dataset(12))]
    pool = rw.PromptPool.from_records(rows[::-1][:8])
    trainer = make_trainer(tmp_path, curriculum=Traced(pool), dataset=Dataset.from_list(rows), max_steps=2)
    trainer.train()
    assert {i for ids in trainer.curriculum.asked for i in ids} <= {f"row-{i}" for i in range(4, 12)}


@pytest.mark.parametrize(
    ("dataset", "error"),
    [
        (toy_dataset(3), "distinct prompts"),
        (toy_dataset(8).to_iterable_dataset(), "map-style"),
        (Dataset.from_list([{"id": "same", "prompt": f"p{i}", "threshold": 1} for i in range(8)]), "duplicate id"),
    ],
)
def test_a_data_set_that_can_not_serve(dataset: Any, error: str, tmp_path: Path) -> None:
    with pytest.raises((rw.ConfigError, rw.PoolError), match=error):
        make_trainer(tmp_path, dataset=dataset)


def test_a_missing_column_names_method_column_and_remedy(tmp_path: Path) -> None:
    plain = toy_dataset(8).remove_columns("difficulty")
    with pytest.raises(rw.MissingColumnError, match=r"Ordered needs the column 'difficulty'.*column="):
        make_trainer(tmp_path, curriculum=rw.Ordered(), dataset=plain)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("difficulty", ["easy", "hard"] * 4, "must hold one finite number"),
        ("category", [*["sums"] * 7, None], "1 of 8 prompts are without one, the first in row 7"),
        ("category", [0.5] * 8, "must hold text"),
        ("embedding", [[1.0], [1.0, 2.0]] * 4, "equally many"),
    ],
)
def test_a_column_that_can_not_be_used_is_said_and_stops_only_who_needs_it(
    name: str, values: list[Any], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{**row, name: value} for row, value in zip(toy_dataset(8), values, strict=True)]
    data = Dataset.from_list(rows)
    trainer = make_trainer(tmp_path, dataset=data, curriculum=rw.Recommended())
    assert name not in trainer.curriculum.pool.columns
    assert name in trainer.train_dataset.column_names
    assert f"column {name!r} is left out" in caplog.text
    assert reason in caplog.text
    with pytest.raises(rw.MissingColumnError, match=reason):
        make_trainer(tmp_path, dataset=data, curriculum=rw.SEC(category=name))


def test_a_prompt_may_have_several_categories(tmp_path: Path) -> None:
    rows = [{**row, "category": ["sums", f"level {i % 2}"]} for i, row in enumerate(toy_dataset(8))]
    trainer = make_trainer(tmp_path, dataset=Dataset.from_list(rows), curriculum=rw.SEC())
    assert sorted(trainer.curriculum.arms) == ["sums | level 0", "sums | level 1"]


def test_an_id_column_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="no column 'uid'"):
        make_trainer(tmp_path, extra={"id_column": "uid"})


def test_repeated_prompts_are_numbered(tmp_path: Path) -> None:
    rows = [*toy_dataset(6), *toy_dataset(6)]
    trainer = make_trainer(tmp_path, dataset=Dataset.from_list(rows), max_steps=1)
    assert len(trainer.curriculum.pool) == 12
    trainer.train()


def test_not_a_curriculum(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="int"):
        make_trainer(tmp_path, curriculum=5)  # type: ignore[arg-type]


def test_peft_goes_on_working(tmp_path: Path) -> None:
    lora = LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    trainer = make_trainer(tmp_path, max_steps=2, extra={"peft_config": lora})
    trainer.train()
    assert trainer.curriculum.metrics()["told"] == 8
