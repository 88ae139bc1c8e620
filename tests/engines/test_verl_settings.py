"""Every configuration of verl under which a curriculum would not take effect is refused, with the key to change."""

import copy
from typing import Any

import pytest

import rollwise as rw
from rollwise.engines.verl.settings import (
    Settings,
    asking,
    check_allocator,
    check_config,
    check_judging,
    context_window,
    run_facts,
)

GOOD: dict[str, Any] = {
    "data": {
        "custom_cls": {"path": "pkg://rollwise.engines.verl", "name": "CurriculumDataset"},
        "train_batch_size": 4,
        "dataloader_num_workers": 0,
        "shuffle": False,
        "rollwise": {"curriculum": "bots", "curriculum_options": {"seed": 7}},
    },
    "actor_rollout_ref": {
        "model": {"path": "tiny"},
        "rollout": {"n": 4, "prompt_length": 64, "response_length": 12, "agent": {"agent_loop_manager_class": None}},
    },
    "reward": {"reward_model": {"enable": False, "enable_resource_pool": False}},
    "algorithm": {"filter_groups": {"enable": False, "metric": "reward"}},
    "trainer": {
        "use_v1": True,
        "default_local_dir": "out",
        "v1": {
            "trainer_mode": "sync",
            "colocate_async": {"num_warmup_batches": 1.5},
            "sampler": {
                "custom_sampler": {"path": "pkg://rollwise.engines.verl", "name": "replay_buffer"},
                "sampler_kwargs": {},
                "sync_refill_failed_groups": False,
            },
        },
    },
}


def config(**changes: Any) -> dict[str, Any]:
    """`GOOD` with some keys changed; `__` stands for a dot."""
    made = copy.deepcopy(GOOD)
    for key, value in changes.items():
        *parents, name = key.split("__")
        place = made
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = value
    return made


def test_a_good_configuration_passes() -> None:
    check_config(config(), has_buffer=True, n_prompts=48)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"data__dataloader_num_workers": 8}, "data.dataloader_num_workers=0"),
        ({"data__shuffle": True}, "data.shuffle=False"),
        ({"data__custom_cls__path": "/x/dataset.py"}, "data.custom_cls.path=pkg://rollwise.engines.verl"),
        ({"data__train_batch_size": 64}, "data.train_batch_size=64"),
        (
            {"trainer__v1__sampler__custom_sampler__path": "file://buffer.py"},
            "trainer.v1.sampler.custom_sampler.path=pkg://rollwise.engines.verl",
        ),
        ({"trainer__use_v1": False}, "trainer.use_v1=True"),
        ({"trainer": {"use_v1": True}}, "v1 trainer"),
        ({"reward__reward_model__enable": True}, "reward.reward_model.enable_resource_pool=True"),
        (
            {"algorithm__filter_groups__enable": True},
            "+trainer.v1.sampler.sampler_kwargs.filter_groups_metric=reward "
            "+trainer.v1.sampler.sampler_kwargs.train_batch_size=4 +trainer.v1.sampler.sampler_kwargs.gen_batch_size=1",
        ),
        (
            {"algorithm__filter_groups__enable": True, "trainer__v1__trainer_mode": "colocate_async"},
            "add +trainer.v1.sampler.sampler_kwargs.filter_groups_metric=reward",
        ),
        (
            {"trainer__v1__sampler__sampler_kwargs": {"filter_groups_metric": "acc"}},
            "algorithm.filter_groups.enable=True",
        ),
        (
            {"trainer__v1__sampler__sync_refill_failed_groups": True},
            "+trainer.v1.sampler.sampler_kwargs.sync_refill_failed_groups=True",
        ),
    ],
)
def test_refused_naming_the_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(rw.ConfigError) as caught:
        check_config(config(**changes), has_buffer=True, n_prompts=48)
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_data_set_without_the_buffer_is_refused() -> None:
    with pytest.raises(rw.ConfigError, match=r"custom_sampler.name=replay_buffer"):
        check_config(config(), has_buffer=False, n_prompts=48)


def test_filtering_with_its_arguments_passes() -> None:
    kwargs = {"filter_groups_metric": "reward", "train_batch_size": 4, "gen_batch_size": 1}
    changes = {"algorithm__filter_groups__enable": True, "trainer__v1__sampler__sampler_kwargs": kwargs}
    check_config(config(**changes), has_buffer=True, n_prompts=48)
    more = config(**changes, algorithm__filter_groups__max_inflight_gen_batches=3)
    with pytest.raises(rw.ConfigError, match=r"sampler_kwargs\.max_inflight_gen_batches=3$"):
        check_config(more, has_buffer=True, n_prompts=48)
    kwargs["max_inflight_gen_batches"] = 3
    check_config(more, has_buffer=True, n_prompts=48)


def test_metis_s_joint_loss_is_not_trained_there_which_is_said(caplog: pytest.LogCaptureFixture) -> None:
    manager = {"actor_rollout_ref__rollout__agent__agent_loop_manager_class": "rollwise.engines.verl.JudgingManager"}
    check_judging(config(**manager), rw.METIS(judge_weight=0.0))
    check_judging(config(**manager), rw.BOTS())
    assert not caplog.records
    check_judging(config(**manager), rw.METIS(judge_weight=0.02))
    assert "judge_weight=0.02, and under verl it runs as with judge_weight=0" in caplog.text


def test_expected_answers_are_sampled_there_which_is_said(caplog: pytest.LogCaptureFixture) -> None:
    manager = {"actor_rollout_ref__rollout__agent__agent_loop_manager_class": "rollwise.engines.verl.JudgingManager"}
    expected = rw.METIS(judge_weight=0.0, format="digit", answers="expected")
    lanes = {"judged": (1, expected), "uniform": (1, rw.Uniform())}
    for curriculum in (expected, rw.Mixture(lanes=lanes)):
        check_judging(config(**manager), curriculum)
        said = f"{type(curriculum).__name__} is to read how probable each answer is (answers=expected), and under verl"
        assert f"{said} it runs as with answers=sampled" in caplog.text


def test_questions_are_put_as_rollouts_are() -> None:
    sampling = {"temperature": 0.6, "top_p": 0.95, "top_k": -1}
    changes = {f"actor_rollout_ref__rollout__{name}": value for name, value in sampling.items()}
    found = asking(config(**changes, data__apply_chat_template_kwargs={"enable_thinking": False}))
    assert found == {"window": 76, "sampling": sampling, "template_options": {"enable_thinking": False}}
    assert asking(config()) == {"window": 76, "sampling": {}, "template_options": {}}


def test_metis_needs_its_manager() -> None:
    key = "actor_rollout_ref__rollout__agent__agent_loop_manager_class"
    with pytest.raises(rw.ConfigError, match=r"agent_loop_manager_class=rollwise.engines.verl.JudgingManager"):
        check_judging(config(), rw.METIS())
    check_judging(config(**{key: "rollwise.engines.verl.JudgingManager"}), rw.METIS())
    check_judging(config(), rw.BOTS())


@pytest.mark.parametrize(
    ("allocator", "changes", "key"),
    [
        ("progressive", {}, "allocator=Progressive makes the rollouts of a step in rounds"),
        ({"name": "variance-informed", "rule": "gvm"}, {}, "allocator=VarianceInformed weighs each prompt the same"),
        ("knapsack", {"trainer__v1__trainer_mode": "colocate_async"}, "set trainer.v1.trainer_mode=sync"),
        ("knapsack", {"algorithm__filter_groups__enable": True}, "set algorithm.filter_groups.enable=False"),
        ("knapsack", {"data__rollwise__n_rollouts": 6}, "data.rollwise.n_rollouts=6 rollouts on the average"),
    ],
)
def test_an_allocator_that_verl_cannot_serve_is_refused(allocator: Any, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(rw.ConfigError) as caught:
        check_allocator(config(**changes), rw.Recommended(allocator=allocator))
    assert key in str(caught.value)
    check_allocator(config(**changes), rw.Recommended())
    check_allocator(config(), rw.Recommended(allocator="knapsack"))


def test_defaults_come_from_verls_own_keys() -> None:
    settings = Settings.read(config())
    assert (settings.n_rollouts, settings.run, settings.silent_after) == (4, "out/rollwise", 16)
    assert Settings.read(config(trainer__v1__trainer_mode="colocate_async")).silent_after == 22
    assert Settings.read(config(data__rollwise={"n_rollouts": 6})).n_rollouts == 6
    assert context_window(config()) == 76
    assert context_window(config(actor_rollout_ref__rollout__max_model_len=8000)) == 8000
    assert run_facts(config(), settings)["group_size"] == 4


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(rw.ConfigError, match="curriculum_option"):
        Settings.read(config(data__rollwise={"curriculum_option": {}}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reward_spec": {"lo": -1}}, "data.rollwise.reward_spec has no option 'lo'"),
        ({"reward_spec": [0, 1]}, "data.rollwise.reward_spec must be a mapping"),
        ({"curriculum_options": ["seed"]}, "data.rollwise.curriculum_options must be a mapping"),
        ({"columns": "level"}, "data.rollwise.columns must be a mapping"),
        ("bots", "data.rollwise must be a mapping, got 'bots'"),
    ],
)
def test_what_is_no_mapping_is_refused_by_its_name(given: Any, message: str) -> None:
    with pytest.raises(rw.ConfigError, match=message):
        Settings.read(config(data__rollwise=given))


def test_any_curriculum_with_its_options_and_rewards() -> None:
    settings = Settings.read(
        config(
            data__rollwise={
                "curriculum": "rollwise.curricula.bots:BOTS",
                "curriculum_options": {"seed": 3},
                "reward_spec": {"low": -1, "high": 1},
            }
        )
    )
    made = settings.make()
    assert isinstance(made, rw.BOTS)
    assert (made.seed, made.reward_spec) == (3, rw.RewardSpec(low=-1, high=1))
