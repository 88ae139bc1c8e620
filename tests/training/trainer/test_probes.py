"""Measuring rollouts on real TRL trainers: told and charged, not trained on, and out of the trainer's own numbers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gated import NotingGRPO, NotingRLOO
from probing import CANDIDATES, MEASURING, assert_batch, lilo, probing
from toys import GROUP, PROMPTS, flat_parameters, make_trainer, toy_dataset, toy_model
from transformers import Qwen2ForCausalLM

import rollwise as rw
from rollwise.gates import DynamicSampling
from rollwise.training import Recorder, RunFolder
from rollwise.training.generation.generation import Generation
from rollwise.training.generation.messages import Order


@pytest.mark.parametrize("kind", [NotingGRPO, NotingRLOO])
def test_the_measured_are_told_and_the_best_are_trained_on(kind: type, tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = probing(tmp_path, kind=kind, seen=seen, max_steps=3)
    trainer.train()
    assert trainer.num_generations == GROUP
    for step, (groups, output) in enumerate(zip(seen, trainer.trained, strict=True), start=1):
        assert len(groups.probes) == CANDIDATES
        assert {(p.ticket.purpose, p.ticket.step, len(p.rewards)) for p in groups.probes} == {
            ("measure", step, MEASURING)
        }
        assert [t.purpose for t in groups.tickets] == ["train"] * PROMPTS
        variance = {p.ticket.prompt_id: p.rewards.var() for p in groups.probes}
        best = sorted(variance.values(), reverse=True)
        kept = [variance[t.prompt_id] for t in groups.tickets if t.lane == "buffer"]
        assert kept == pytest.approx(best[: len(kept)])
        assert len(kept) == min(PROMPTS, np.count_nonzero(best))
        assert groups.rewards.shape == (PROMPTS, GROUP)
        assert_batch(trainer, groups, output)
    numbers = trainer.curriculum.metrics()
    assert numbers["probed"] == 3 * CANDIDATES
    assert numbers["probe_rollouts"] == 3 * CANDIDATES * MEASURING
    assert numbers["told"] == 3 * PROMPTS
    assert numbers["open"] == 0


def test_the_trainers_own_numbers_are_of_the_trained_rollouts(tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = probing(tmp_path, seen=seen, max_steps=3, extra={"log": "all"})
    trainer.train()
    logs = [line for line in trainer.state.log_history if "reward" in line]
    for line, groups in zip(logs, seen, strict=True):
        assert line["reward"] == pytest.approx(groups.rewards.mean(), abs=1e-4)
        assert line["completions/mean_length"] == pytest.approx(groups.lengths.mean(), abs=1e-4)
        assert line["curriculum/frac_mixed"] == pytest.approx(np.mean(np.ptp(groups.rewards, axis=1) > 0))
        assert groups.metrics()["success"] == pytest.approx(groups.rewards.mean())
    generated = sum(groups.spent()[1] for groups in seen)
    assert logs[-1]["num_tokens"] > generated  # prompts too: all that was seen is counted
    assert len(trainer._logs["completion"]) == PROMPTS * GROUP


def test_the_run_folder_charges_every_probe(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = probing(
        tmp_path / "out", curriculum=rw.ADCL(column="none", chunks=4, probe_rollouts=2, seed=1), max_steps=4
    )
    Recorder(folder).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert metrics[-1]["rollouts"] == sum(len(line["rewards"]) for line in lines)
    assert metrics[-1]["tokens"] == sum(sum(line["tokens"]) for line in lines)
    assert Counter(line["purpose"] for line in lines)["train"] == 4 * PROMPTS
    assert all(line["trained"] == (line["purpose"] == "train") for line in lines)
    assert all(("advantages" in line) == line["trained"] for line in lines)
    for m in metrics:
        probes = [line for line in lines if line["step"] == m["step"] and line["purpose"] == "measure"]
        assert m["probe_rollouts"] == 2 * len(probes)
        assert m["probe_tokens"] == sum(sum(line["tokens"]) for line in probes)
    assert [m["probe_rollouts"] for m in metrics] == [48 * 2, 0, 0, 12 * 2]  # the whole pool, then the next chunk
    assert sum(m["probe_rollouts"] for m in metrics) == metrics[-1]["curriculum/probe_rollouts"]


def test_who_wants_no_probes_has_none_of_their_numbers(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = probing(tmp_path / "out", curriculum=rw.Uniform(seed=1), max_steps=1)
    Recorder(folder).attach(trainer)
    trainer.train()
    assert not {"probe_rollouts", "padding_rollouts"} & set(json.loads(folder.metrics.read_text()))


@pytest.mark.parametrize("kind", [NotingGRPO, NotingRLOO])
def test_no_reference_is_computed_for_probes(kind: type, tmp_path: Path) -> None:
    toy_model().save_pretrained(tmp_path / "model")
    model = Qwen2ForCausalLM.from_pretrained(tmp_path / "model")
    trainer = probing(tmp_path, kind=kind, model=model, beta=0.1, max_steps=2)
    forward, calls = trainer.ref_model.forward, []
    trainer.ref_model.forward = lambda *args, **kwargs: calls.append(1) or forward(*args, **kwargs)
    trainer.train()
    assert len(calls) == 2  # one for each batch that is trained on
    assert trainer.beta == 0.1
    assert trainer.num_iterations == 1


@pytest.mark.parametrize("options", [{"steps_per_generation": 4}, {"num_iterations": 2}, {}])
def test_no_log_probabilities_are_computed_for_probes(options: dict[str, int], tmp_path: Path) -> None:
    trainer = probing(tmp_path, kind=NotingGRPO, max_steps=2, **options)
    trainer.train()
    trained = sum(int(own[f"{of}_mask"].sum()) for own in trainer.trained for of in ("prompt", "completion"))
    assert trainer.compute.take()["scored"] == (trained if options else 0)


def test_after_an_error_the_trainer_is_as_it_was(tmp_path: Path) -> None:
    def failing(**_: Any) -> list[float]:
        raise OSError("the verifier is down")

    trainer = probing(tmp_path, reward=failing)
    metrics = trainer._metrics
    with pytest.raises(OSError, match="verifier"):
        trainer.train()
    assert trainer.num_generations == GROUP
    assert trainer._metrics is metrics


def test_unscorable_probes_stop_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(rw.SilentNoOpError, match="could be scored"):
        probing(tmp_path, reward=lambda completion_ids, **_: [None] * len(completion_ids)).train()


class Killed(rw.LILO):
    """Dies at the third step, after its probes were told and before it is asked.

    Named as its base, which goes on with its state.
    """

    def ask(self, n: int, **options: Any) -> list[rw.Ticket]:
        if options["step"] == 3:
            raise KeyboardInterrupt
        return super().ask(n, **options)


Killed.__name__ = "LILO"


@pytest.mark.parametrize("kind", [NotingGRPO, NotingRLOO])
def test_killed_between_probes_and_ask_then_resumed(kind: type, tmp_path: Path) -> None:
    saving = {"kind": kind, "max_steps": 5, "save_strategy": "steps", "save_steps": 1}
    straight = probing(tmp_path / "straight", **saving)
    straight.train()
    killed = probing(tmp_path / "killed", curriculum=Killed(candidates=8, probe_rollouts=3, seed=3), **saving)
    with pytest.raises(KeyboardInterrupt):
        killed.train()
    assert killed.curriculum.measuring  # the probes of the third step were told
    assert not (tmp_path / "killed/checkpoint-3").exists()
    resumed = probing(tmp_path / "killed", **saving)
    resumed.train(resume_from_checkpoint=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()


def test_a_gate_refills_what_was_measured(tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = probing(tmp_path, seen=seen, max_steps=3, extra={"gate": DynamicSampling(max_rounds=3)})
    trainer.train()
    assert all(len(g.probes) == CANDIDATES and g.trained.sum() == PROMPTS for g in seen)
    assert sum(len(g.tickets) for g in seen) > 3 * PROMPTS


def test_probes_come_in_calls_no_greater_than_a_batch(tmp_path: Path) -> None:
    sizes: list[int] = []

    def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
        sizes.append(len(completion_ids))
        return [float(sum(ids) % 2) for ids in completion_ids]

    probing(tmp_path, curriculum=lilo(candidates=20), reward=reward, max_steps=1).train()
    assert sizes == [15, 15, 15, 15, PROMPTS * GROUP]  # 5 prompts of 3 rollouts are the most that 16 hold


def test_failures_are_named_told_and_written(tmp_path: Path) -> None:
    told: list[Any] = []

    class Listening(rw.LILO):
        def tell(self, outcomes: Any) -> rw.Evidence:
            evidence = super().tell(outcomes)
            told.append(evidence)
            return evidence

    def reward(completion_ids: list[list[int]], **_: Any) -> list[float | None]:
        return [None if len(ids) < 3 else float(sum(ids) % 2) for ids in completion_ids]

    folder = RunFolder(tmp_path / "run")
    trainer = probing(
        tmp_path / "out",
        curriculum=Listening(candidates=4, probe_rollouts=2, seed=0),
        reward=reward,
        max_steps=2,
        extra={"failure_of": lambda text, row: None if row["threshold"] < 3 else f"short-{len(text)}"},
    )
    Recorder(folder).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    assert len(told) == 4  # probes and batch of two steps
    for line in lines:
        for text, failure in zip(line["texts"], line["failures"], strict=True):
            assert failure in (None, f"short-{len(text)}")
    labels = [own for evidence in told for own in evidence.labels]
    written = [
        tuple(f or "" for f, r in zip(line["failures"], line["rewards"], strict=True) if r is not None)
        for line in lines
    ]
    assert labels == written
    assert any(any(own) for own in labels)
    assert any(None in line["rewards"] for line in lines)  # some could not be scored


@pytest.mark.parametrize("kind", [NotingGRPO, NotingRLOO])
def test_an_oracles_probes_are_counted_apart_and_written_nowhere(kind: type, tmp_path: Path) -> None:
    folder, seen = RunFolder(tmp_path / "run"), []
    oracle = rw.Oracle(candidates=CANDIDATES, probe_rollouts=MEASURING, seed=3)
    trainer = probing(tmp_path / "out", kind=kind, curriculum=oracle, seen=seen, max_steps=3)
    Recorder(folder).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert {line["purpose"] for line in lines} == {"train"}
    assert [m["uncharged_rollouts"] for m in metrics] == [CANDIDATES * MEASURING] * 3
    assert all(m["uncharged_tokens"] > 0 and m["uncharged_s"] > 0 for m in metrics)
    assert metrics[-1]["rollouts"] == 3 * PROMPTS * GROUP
    assert metrics[-1]["tokens"] == sum(sum(line["tokens"]) for line in lines)
    assert all(groups.probes == [] and groups.probed() == (0, 0) for groups in seen)
    assert oracle.metrics()["probed"] == 3 * CANDIDATES


def test_an_oracles_seconds_are_not_the_runs(tmp_path: Path) -> None:
    """Said to have taken 1000 s a step, they are taken off: the run's own time would be less than none."""
    folder = RunFolder(tmp_path / "run")
    oracle = rw.Oracle(candidates=CANDIDATES, probe_rollouts=MEASURING, seed=3)
    trainer = probing(tmp_path / "out", curriculum=oracle, max_steps=2)
    trainer.group_observers.append(lambda groups: groups.uncharged.update(s=1000.0))
    Recorder(folder).attach(trainer)
    trainer.train()
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [m["uncharged_s"] for m in metrics] == [1000.0, 1000.0]
    assert -2000 < metrics[-1]["wall_s"] < -1000


def test_more_rollouts_in_a_probing_call_are_the_same_rollouts_in_fewer_calls(tmp_path: Path) -> None:
    calls: list[int] = []
    for batch, expected in ((None, [8, 8]), (24, [24]), (1, [3] * CANDIDATES)):
        calls.clear()
        trainer = probing(tmp_path / str(batch), max_steps=1, extra={"probe_batch": batch})
        roll_out = trainer._roll_out
        trainer._roll_out = lambda rows, n, purpose, roll_out=roll_out: (
            calls.append(len(rows) * n) if purpose == "measure" else None,
            roll_out(rows, n, purpose),
        )[1]
        trainer.train()
        assert sum(calls) == CANDIDATES * MEASURING
        if batch is not None:
            assert calls == expected
    with pytest.raises(rw.ConfigError, match="probe_batch"):
        probing(tmp_path / "none", extra={"probe_batch": 0})


def test_a_gaussian_target_profiles_the_data_when_the_score_stands_still(tmp_path: Path) -> None:
    """The reward is the same for all, so the second evaluation, after step 2, is no better than the first.

    Step 3 measures the 24 prompts, twice each, which are charged. The third is no better either: step 4 does so again.
    """
    curriculum = rw.GaussianTarget(patience=1, profile_rollouts=2, steps=4, seed=1)
    trainer = make_trainer(
        tmp_path / "trainer",
        curriculum=curriculum,
        reward=lambda prompts, **_: [1.0] * len(prompts),
        eval_dataset=toy_dataset(4),
        **{"eval_strategy": "steps", "eval_steps": 1, "max_steps": 4, "learning_rate": 0.0},
    )
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    trainer.train()
    groups = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    measured = Counter(group["step"] for group in groups if group["purpose"] == "measure")
    assert measured == {3: 24, 4: 24}
    assert {len(group["rewards"]) for group in groups if group["purpose"] == "measure"} == {2}
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["curriculum/profiles"] for line in metrics] == [0, 0, 1, 2]
    assert metrics[-1]["rollouts"] == 4 * PROMPTS * GROUP + 2 * 24 * 2
    assert metrics[-1]["tokens"] == sum(sum(group["tokens"]) for group in groups)


def test_as_many_are_measured_as_the_first_round_of_a_gate_needs() -> None:
    """The gate begins with 1.5 times 4 prompts, and LILO measures four candidates for each."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(60)])
    generation = Generation(
        rw.LILO(pool, probe_rollouts=2),
        DynamicSampling(sizing="ratio"),
        **{"dataset_rows": np.arange(60), "kept": {}, "n_prompts": 4, "group": 8, "processes": 1, "step": 1},
        probe_batch=200,
        advantages=lambda *_: torch.zeros(0),
    )
    order = generation.order()
    assert isinstance(order, Order)
    assert (order.purpose, sum(len(rows) for _, rows in order.parts)) == ("measure", 24)
