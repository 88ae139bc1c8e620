"""The adapter to slime over its data source."""

import importlib
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from engines.worlds import other_signature

from rollwise.errors import ConfigError, SilentNoOpError

ADAPTER = "rollwise.engines.slime"


@pytest.fixture
def arguments(tmp_path: Path, tokenizer_folder: str) -> Any:
    """slime's arguments, as far as its data source reads them."""
    rows = [{"input": f"{i}+{i}=", "label": str(2 * i), "metadata": {"category": f"c{i % 4}"}} for i in range(64)]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(**given: Any) -> Namespace:
        return Namespace(
            **{
                "rollout_global_dataset": True,
                "prompt_data": str(data),
                "hf_checkpoint": tokenizer_folder,
                "dump_details": None,
                "rollout_max_prompt_len": None,
                "input_key": "input",
                "multimodal_keys": None,
                "label_key": "label",
                "metadata_key": "metadata",
                "tool_key": None,
                "apply_chat_template": False,
                "apply_chat_template_kwargs": {},
                "rollout_seed": 1,
                "rollout_shuffle": True,
                "rollout_batch_size": 3,
                "n_samples_per_prompt": 4,
                "buffer_filter_path": None,
                "reward_key": None,
                "save": str(tmp_path),
                "load": None,
                "rollout_function_path": "slime.rollout.sglang_rollout.generate_rollout",
                "rollout_all_samples_process_path": f"{ADAPTER}.tell",
                "partial_rollout": True,
                "rollwise": {"curriculum": "bots", "curriculum_options": {"seed": 1}},
                **given,
            }
        )

    return make


def go(slime: Any, source: Any, n: int) -> list[str]:
    """A rollout of `n` groups, the last of which is aborted and put back."""
    groups = source.get_samples(n)
    for group in groups:
        for number, sample in enumerate(group):
            sample.reward = float((len(sample.prompt) + number) % 3 == 0)
            sample.status = slime.Sample.Status.COMPLETED
    for sample in groups[-1]:
        sample.reward, sample.status = None, slime.Sample.Status.ABORTED
    slime.tell(source.args, groups[:-1], source.get_samples)
    source.add_samples(groups[-1:])
    return [group[0].prompt for group in groups]


def test_a_hook_that_moved_is_named(slime: Any, arguments: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slime.RolloutDataSourceWithBuffer, "_get_samples_from_buffer", other_signature)
    with pytest.raises(SilentNoOpError, match="_get_samples_from_buffer takes"):
        slime.CurriculumSource(arguments())


def test_a_resumed_run_asks_as_the_straight_one_and_its_buffer_is_filled_again(
    slime: Any, arguments: Any, tmp_path: Path
) -> None:
    """slime does not save its buffer: the open tickets say which groups were in it."""
    straight = slime.CurriculumSource(arguments())
    for _ in range(3):
        go(slime, straight, 5)
    straight.save(2)
    resumed = slime.CurriculumSource(arguments(load=str(tmp_path)))
    resumed.load(2)
    assert [g[0].metadata[slime.TICKET] for g in resumed.buffer] == [
        g[0].metadata[slime.TICKET] for g in straight.buffer
    ]
    assert [go(slime, straight, 5) for _ in range(2)] == [go(slime, resumed, 5) for _ in range(2)]
    assert resumed.service.metrics()["told"] == 20


def test_a_kill_between_the_model_and_the_state_loses_one_rollout_not_all(
    slime: Any, arguments: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """slime saves the model, and only then its data source: the curriculum then began anew, and nothing was said."""
    straight = slime.CurriculumSource(arguments())
    for rollout in range(3):
        go(slime, straight, 5)
        straight.save(rollout)
    (tmp_path / "rollout/rollwise_2.state").unlink()
    resumed = slime.CurriculumSource(arguments(load=str(tmp_path)))
    resumed.load(2)
    assert resumed.service.metrics()["told"] == 8
    assert "as it was after rollout 1" in caplog.text
    (tmp_path / "rollout/rollwise_0.state").unlink()
    fresh = slime.CurriculumSource(arguments(load=str(tmp_path)))
    fresh.load(0)
    assert fresh.service.metrics()["asked"] == 0


def test_groups_that_slime_aborts_and_drops_are_free_again(slime: Any, arguments: Any) -> None:
    """Of 16 over-sampled groups a rollout needs 4: after five rollouts all 64 prompts were held for 100 rollouts."""
    source = slime.CurriculumSource(arguments(partial_rollout=False))
    source.add_samples(source.get_samples(1))  # put back by the user's own code: still to be rolled out
    waiting = source.buffer[0][0].metadata[slime.TICKET]
    for rollout in range(8):
        groups = source.get_samples(16)
        assert (groups[0][0].metadata[slime.TICKET] == waiting) == (rollout == 0)
        for sample in (sample for group in groups[:4] for sample in group):
            sample.reward, sample.status = float(sample.index % 2), slime.Sample.Status.COMPLETED
        if rollout == 7:
            source.add_samples(groups[-1:])
        slime.tell(source.args, groups[:4], source.get_samples)
    metrics = source.service.metrics()
    assert (metrics["told"], metrics["open"], metrics["expired"]) == (32, 1, 95)


def test_a_rollout_function_that_never_tells_is_an_error(slime: Any, arguments: Any) -> None:
    path = "slime.rollout.fully_async_rollout.generate_rollout_fully_async"
    with pytest.raises(ConfigError, match=r"set --rollout-function-path to rollwise\.engines\.slime"):
        slime.CurriculumSource(arguments(rollout_function_path=path))
    with pytest.raises(ConfigError, match="set --rollout-all-samples-process-path to rollwise"):
        slime.CurriculumSource(arguments(rollout_all_samples_process_path=None))


def test_the_fully_asynchronous_rollout_tells_what_it_hands_over(
    slime: Any, arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{ADAPTER}.generate_rollout_fully_async"
    source = slime.CurriculumSource(arguments(rollout_function_path=path, rollout_all_samples_process_path=None))

    def handed_over(args: Any, rollout_id: int, data_buffer: Any, evaluation: bool = False) -> list[Any]:
        groups = [group for _ in range(3) for group in data_buffer.get_samples(1)]
        for sample in (sample for group in groups for sample in group):
            sample.reward, sample.status = 1.0, slime.Sample.Status.COMPLETED
        return groups

    engine = Namespace(generate_rollout_fully_async=handed_over)
    monkeypatch.setattr(slime.importlib, "import_module", lambda name: engine)
    assert len(slime.generate_rollout_fully_async(source.args, 0, source)) == 3
    assert source.service.metrics()["told"] == 3


def test_a_trajectory_that_fans_out_has_one_reward(slime: Any, arguments: Any) -> None:
    source = slime.CurriculumSource(arguments())
    group = source.get_samples(1)[0]
    for number, sample in enumerate(group):
        sample.reward, sample.status = float(number % 2), slime.Sample.Status.COMPLETED
    fanned = [[sample, sample] for sample in group]  # two samples of each of four trajectories
    slime.tell(source.args, [fanned], source.get_samples)
    metrics = source.service.metrics()
    assert (metrics["told"], metrics["mixed"], metrics["service/refused"]) == (1, 1, 0)


def test_samples_that_a_rollout_function_made_itself_are_told_by_their_group(slime: Any, arguments: Any) -> None:
    """slime's own agents make new samples, with the index of the group and none of the metadata: a KeyError."""
    source = slime.CurriculumSource(arguments())
    for known in (True, False):
        group = source.get_samples(1)[0]
        made = [slime.Sample(group_index=sample.group_index if known else None) for sample in group]
        for number, sample in enumerate(made):
            sample.reward, sample.status = float(number % 2), slime.Sample.Status.COMPLETED
        if known:
            slime.tell(source.args, [[[sample] for sample in made]], source.get_samples)
            assert source.service.metrics()["told"] == 1
        else:
            with pytest.raises(SilentNoOpError, match="copy one of the two"):
                slime.tell(source.args, [made], source.get_samples)


def test_rewards_of_minus_one_and_one_are_told(slime: Any, arguments: Any) -> None:
    source = slime.CurriculumSource(arguments())
    groups = source.get_samples(3)
    for number, sample in enumerate(sample for group in groups for sample in group):
        sample.reward, sample.status = 2.0 * (number % 8 in (1, 4, 5, 6, 7)) - 1.0, slime.Sample.Status.COMPLETED
    slime.tell(source.args, groups, source.get_samples)
    metrics = source.service.metrics()
    assert [metrics[name] for name in ("mixed", "all_good", "service/refused")] == [2, 1, 0]


def test_rewards_of_several_parts_and_rollouts_without_any(slime: Any, arguments: Any) -> None:
    source = slime.CurriculumSource(arguments(reward_key="score"))
    group = source.get_samples(1)[0]
    for sample in group[1:]:
        sample.reward, sample.status = {"score": 1.0, "format": 0.0}, slime.Sample.Status.COMPLETED
    slime.tell(source.args, [group], source.get_samples)
    metrics = source.service.metrics()
    assert (metrics["told"], metrics["failed"], metrics["all_good"]) == (1, 1, 1)


def test_a_source_that_never_hears_is_an_error(slime: Any, arguments: Any) -> None:
    source = slime.CurriculumSource(arguments(rollwise={"curriculum": "bots", "silent_after": 12}))
    with pytest.raises(SilentNoOpError):
        for _ in range(6):
            source.get_samples(4)


def test_paths_in_the_messages_are_the_adapters_own(slime: Any) -> None:
    for name in ("CurriculumSource", "tell", "generate_rollout_fully_async"):
        assert getattr(importlib.import_module(ADAPTER), name)


def test_a_group_whose_ticket_has_expired_is_told_late(slime: Any, arguments: Any) -> None:
    """Its samples are new ones, without metadata: the error said that they had lost their group_index, too."""
    source = slime.CurriculumSource(arguments())
    late, *others = source.get_samples(3)
    source.service.run(lambda: source.service.desk.expire([late[0].metadata[slime.TICKET]]))
    for group in ([*others], [late]):
        for sample in (sample for one in group for sample in one):
            sample.reward, sample.status, sample.metadata = 1.0, slime.Sample.Status.COMPLETED, {}
        slime.tell(source.args, group, source.get_samples)
    assert source.service.metrics()["late"] == 1
