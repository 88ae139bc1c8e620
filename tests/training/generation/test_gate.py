"""A gate on real TRL trainers: groups with contrast train, all groups are told, and running out stops nothing."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gated import NotingGRPO, NotingRLOO, assert_probabilities_stay_with_their_tokens, half_solved
from test_resume import run
from toys import CONFIGS, GROUP, PROMPTS, flat_parameters, make_trainer, saved_model, toy_dataset
from trl import GRPOConfig, RLOOConfig

import rollwise as rw
from rollwise.gates import DynamicSampling, Everything, MixedOutcome
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer, Recorder, RunFolder

CONFIGS.update({NotingGRPO: GRPOConfig, NotingRLOO: RLOOConfig})


def gated(out: Path, *, gate: Any = None, extra: dict[str, Any] | None = None, **options: Any) -> Any:
    chosen = DynamicSampling(max_rounds=5) if gate is None else gate
    options = {"reward": half_solved, "dataset": toy_dataset(48), **options}
    if options.get("beta"):
        options["model"] = saved_model(out / "model")
    return make_trainer(out, extra={"gate": chosen, **(extra or {})}, **options)


def solved(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [1.0] * len(completion_ids)


CASES = [
    pytest.param(NotingGRPO, {}, id="grpo"),
    pytest.param(NotingGRPO, {"scale_rewards": "none"}, id="grpo-centred"),
    pytest.param(NotingGRPO, {"scale_rewards": "batch", "beta": 0.01}, id="grpo-batch-kl"),
    pytest.param(NotingGRPO, {"steps_per_generation": 2, "num_iterations": 2}, id="grpo-reused"),
    pytest.param(NotingRLOO, {"accumulate": 2}, id="rloo"),
    pytest.param(NotingRLOO, {"normalize_advantages": True}, id="rloo-std"),
]
KL = pytest.param(NotingRLOO, {"normalize_advantages": True, "beta": 0.1}, id="rloo-std-kl")


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_every_trained_group_is_mixed_and_all_are_told(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = gated(tmp_path, kind=kind, max_steps=4, extra={"group_observers": [seen.append]}, **options)
    trainer.train()
    assert sum(len(g.tickets) for g in seen) > len(seen) * PROMPTS  # there was something to refill
    for groups, output in zip(seen, trainer.trained, strict=True):
        assert groups.trained.sum() == PROMPTS
        assert (groups.trained <= groups.admitted).all()  # no filler: the pool allows it
        assert np.array_equal(groups.admitted, groups.evidence.mixed)
        assert np.array_equal(groups.admitted, groups.trained)  # and no surplus
        ids = [t.prompt_id for t in groups.tickets]
        assert len(set(ids)) == len(ids)
        counts = np.bincount(groups.round)[1:]
        assert counts[0] == PROMPTS
        missing = PROMPTS
        for n, admitted in zip(counts, np.split(groups.admitted, np.cumsum(counts)[:-1]), strict=True):
            assert n == missing  # exactly
            missing -= int(admitted.sum())
        assert_trained_on(trainer, groups, output, options)
    assert trainer.curriculum.metrics()["told"] == sum(len(g.tickets) for g in seen)
    assert trainer.curriculum.metrics()["open"] == 0


def assert_trained_on(trainer: Any, groups: Any, output: dict[str, Any], options: dict[str, Any]) -> None:
    """The merged batch is that of an ungated generation of the same groups."""
    tokenizer, rows = trainer.processing_class, np.flatnonzero(groups.trained)
    prompts = [groups.tickets[i].prompt for i in rows for _ in range(GROUP)]
    texts = [text for i in rows for text in groups.texts[i]]
    lengths, rewards = groups.lengths[rows], groups.rewards[rows]
    assert tokenizer.batch_decode(output["completion_ids"], skip_special_tokens=True) == texts
    assert [p.strip() for p in tokenizer.batch_decode(output["prompt_ids"], skip_special_tokens=True)] == [
        p.strip() for p in tokenizer.batch_decode([tokenizer(p)["input_ids"] for p in prompts])
    ]
    assert output["completion_mask"].sum(1).tolist() == lengths.ravel().tolist()
    assert output["completion_ids"].shape[1] == lengths.max()
    if "num_items_in_batch" in output:
        assert output["num_items_in_batch"] == lengths.sum()
    assert output["advantages"].numpy() == pytest.approx(expected_advantages(rewards, trainer, options), abs=1e-5)


def expected_advantages(rewards: np.ndarray, trainer: Any, options: dict[str, Any]) -> np.ndarray:
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    if isinstance(trainer, CurriculumRLOOTrainer):
        one_out = centred * GROUP / (GROUP - 1)
        scaled = one_out / (one_out.std(ddof=1) + 1e-4) if options.get("normalize_advantages") else one_out
        return scaled.ravel()
    spread = {
        "none": 1.0,
        "batch": rewards.std(ddof=1) + 1e-4,
        "group": rewards.std(axis=1, ddof=1, keepdims=True) + 1e-4,
    }
    return (centred / spread[options.get("scale_rewards", "group")]).ravel()


def test_trls_own_numbers_are_those_of_all_rollouts(tmp_path: Path) -> None:
    """Not means of rounds, of which the last are small."""
    seen: list[Any] = []
    trainer = gated(tmp_path, max_steps=3, logging_steps=3, extra={"group_observers": [seen.append]})
    trainer.train()
    assert max(groups.round.max() for groups in seen) > 1
    line = trainer.state.log_history[0]
    assert line["reward"] == pytest.approx(np.mean([groups.rewards.mean() for groups in seen]), abs=1e-4)
    lengths = [groups.lengths for groups in seen]
    assert line["completions/mean_length"] == pytest.approx(np.mean([own.mean() for own in lengths]), abs=1e-3)
    assert line["completions/min_length"] == pytest.approx(np.mean([own.min() for own in lengths]))


def test_old_and_reference_probabilities_stay_with_their_tokens(tmp_path: Path) -> None:
    """Recomputed on the merged batch, they are those that each round computed on its own padding."""
    options = {"steps_per_generation": 2, "num_iterations": 2, "beta": 0.01, "learning_rate": 0.0}
    seen: list[Any] = []
    trainer = gated(tmp_path, kind=NotingGRPO, max_steps=2, extra={"group_observers": [seen.append]}, **options)
    trainer.train()
    assert len(seen[0].tickets) > PROMPTS
    assert_probabilities_stay_with_their_tokens(trainer, trainer.trained[0])


@pytest.mark.parametrize(("kind", "options"), [*CASES, KL])
def test_a_gate_that_admits_everything_changes_nothing(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    options = options | {"kind": kind, "max_steps": 3}
    model = saved_model(tmp_path / "model") if options.get("beta") else None
    plain = make_trainer(tmp_path / "a", dataset=toy_dataset(48), reward=half_solved, model=model, **options)
    plain.train()
    open_gate = gated(tmp_path / "b", gate=Everything(), **options)
    open_gate.train()
    assert plain.curriculum.trace == open_gate.curriculum.trace
    assert torch.equal(flat_parameters(plain), flat_parameters(open_gate))


def test_a_solved_pool_trains_on_filler_and_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    with caplog.at_level(logging.WARNING, logger="rollwise.gates"):
        trainer = gated(
            tmp_path, gate=DynamicSampling(), reward=solved, max_steps=3, extra={"group_observers": [seen.append]}
        )
        before = flat_parameters(trainer).clone()
        trainer.train()
    assert caplog.text.count("filled with 4 rejected ones") == 1
    assert trainer.state.global_step == 3
    assert torch.equal(before, flat_parameters(trainer))  # there was nothing to learn
    assert [len(g.tickets) for g in seen] == [3 * PROMPTS] * 3
    assert all(g.gate["filled"] == PROMPTS and g.gate["rounds"] == 3 for g in seen)
    assert trainer.state.log_history[0]["gate/extra_rollouts"] == 2 * PROMPTS * GROUP


def test_a_pool_of_one_batch_is_not_rolled_out_twice(tmp_path: Path) -> None:
    trainer = gated(tmp_path, gate=MixedOutcome(), reward=solved, dataset=toy_dataset(PROMPTS), max_steps=2)
    trainer.train()
    assert trainer.gate.metrics()["rounds"] == 2
    assert trainer.gate.metrics()["filled"] == 2 * PROMPTS
    assert trainer.curriculum.metrics()["asked"] == 2 * PROMPTS


def test_the_run_folder_charges_every_rollout(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = gated(tmp_path / "out", max_steps=3)
    Recorder(folder).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert metrics[-1]["rollouts"] == len(lines) * GROUP > 3 * PROMPTS * GROUP
    assert metrics[-1]["tokens"] == sum(sum(line["tokens"]) for line in lines)
    spent = np.diff([0, *(m["rollouts"] for m in metrics)])
    for m, rollouts in zip(metrics, spent, strict=True):
        step = [line for line in lines if line["step"] == m["step"]]
        assert m["gate/extra_rollouts"] == rollouts - PROMPTS * GROUP == (len(step) - PROMPTS) * GROUP
        assert m["gate/rounds"] == max(line["round"] for line in step)
        assert m["gate/rejected"] == sum(not line["admitted"] for line in step)
        assert m["gate/filled"] == sum(line["trained"] and not line["admitted"] for line in step)
        assert sum(line["trained"] for line in step) == PROMPTS
        assert all(line["admitted"] == (len(set(line["rewards"])) > 1) for line in step)


def test_without_a_gate_every_line_says_that_it_trained(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = make_trainer(tmp_path / "out", max_steps=1)
    Recorder(folder).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    assert all((line["round"], line["admitted"], line["trained"]) == (1, True, True) for line in lines)
    assert not any(name.startswith("gate/") for name in json.loads(folder.metrics.read_text()))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(CurriculumGRPOTrainer, {}, id="grpo"),
        pytest.param(CurriculumGRPOTrainer, {"steps_per_generation": 2, "num_iterations": 2}, id="grpo-midway"),
        pytest.param(CurriculumRLOOTrainer, {"normalize_advantages": True}, id="rloo-std"),
    ],
)
def test_resume_is_exact(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    def train(out: Path, resume: Any = None) -> Any:
        extra = {"gate": DynamicSampling(max_rounds=3)}
        data = {"dataset": toy_dataset(48), "reward": half_solved}
        return run(out, resume, kind=kind, save_steps=3, extra=extra, **data, **options)

    straight = train(tmp_path / "straight")
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = train(tmp_path / "again", resume=True)
    later = len(resumed.curriculum.trace)
    assert later > 0
    assert resumed.curriculum.trace == straight.curriculum.trace[-later:]
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.gate.state_dict() == straight.gate.state_dict()
    assert straight.gate.metrics()["rounds"] > straight.gate.metrics()["batches"]


def test_a_checkpoint_belongs_to_its_gate(tmp_path: Path) -> None:
    gated(tmp_path, max_steps=2, save_strategy="steps", save_steps=2).train()
    for other, reason in (({}, "with a gate"), ({"gate": MixedOutcome(tolerance=0.5)}, "max_rounds|tolerance")):
        trainer = make_trainer(tmp_path, max_steps=4, dataset=toy_dataset(48), extra=other)
        with pytest.raises(rw.StateError, match=reason):
            trainer.train(resume_from_checkpoint=True)
    make_trainer(tmp_path / "plain", max_steps=2, save_strategy="steps", save_steps=2).train()
    trainer = make_trainer(tmp_path / "plain", max_steps=4, extra={"gate": MixedOutcome()})
    with pytest.raises(rw.StateError, match="without a gate"):
        trainer.train(resume_from_checkpoint=True)


def test_what_can_not_be_gated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="str"):
        gated(tmp_path, gate="mixed")
    with pytest.raises(rw.ConfigError, match="normalize_then_sum"):
        gated(tmp_path, multi_objective_aggregation="normalize_then_sum")


def test_a_tensor_that_can_not_be_merged_stops_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import trl

    original = trl.GRPOTrainer._generate_and_score_completions

    def with_images(self: Any, inputs: Any) -> Any:
        return {**original(self, inputs), "pixel_values": torch.zeros(len(inputs))}

    trainer = gated(tmp_path)
    monkeypatch.setattr(trl.GRPOTrainer, "_generate_and_score_completions", with_images)
    with pytest.raises(rw.ConfigError, match="pixel_values"):
        trainer.train()
