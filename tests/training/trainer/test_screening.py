"""SPEED on real TRL trainers: screened rollouts wait, and are trained on with the rest of their group."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gated import NotingGRPO, NotingRLOO, assert_probabilities_stay_with_their_tokens
from probing import assert_batch, probing, speed
from test_gate import expected_advantages, saved_model
from toys import GROUP, PROMPTS, flat_parameters
from transformers import TrainerCallback

import rollwise as rw
from rollwise.gates import MixedOutcome
from rollwise.training import Recorder, RunFolder

CASES = [
    pytest.param(NotingGRPO, {}, id="grpo"),
    pytest.param(NotingGRPO, {"scale_rewards": "none", "accumulate": 2}, id="grpo-centred"),
    pytest.param(NotingGRPO, {"scale_rewards": "batch", "beta": 0.01}, id="grpo-batch-kl"),
    pytest.param(NotingGRPO, {"steps_per_generation": 2, "num_iterations": 2}, id="grpo-reused"),
    pytest.param(NotingRLOO, {}, id="rloo"),
    pytest.param(NotingRLOO, {"normalize_advantages": True, "accumulate": 2}, id="rloo-std"),
]


def screening(out: Path, **options: Any) -> Any:
    options.setdefault("curriculum", speed())
    if options.get("beta"):
        options["model"] = saved_model(out / "model")
    return probing(out, **options)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_whole_groups_are_trained_on(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    seen: list[Any] = []
    steps = 6 * options.get("steps_per_generation", 1) * options.get("num_iterations", 1)
    trainer = screening(tmp_path, kind=kind, seen=seen, max_steps=steps, **options)
    trainer.train()
    made: dict[str, Any] = {}
    lanes: set[str] = set()
    for groups, output in zip(seen, trainer.trained, strict=True):
        made |= {p.ticket.id: p for p in groups.probes}
        assert {p.ticket.purpose for p in groups.probes} <= {"screen"}
        assert_batch(trainer, groups, output)
        assert output["advantages"].numpy() == pytest.approx(
            expected_advantages(groups.rewards, trainer, options), abs=1e-5
        )
        assert groups.advantages.ravel() == pytest.approx(output["advantages"].numpy(), abs=1e-6)
        for i, ticket in enumerate(groups.tickets):
            lanes.add(ticket.lane)
            assert (groups.screenings[i] is not None) == (ticket.lane == "continue") == (ticket.n_rollouts == 2)
            if groups.screenings[i] is not None:
                before = made.pop(groups.screenings[i].ticket)
                assert before.ticket.prompt_id == ticket.prompt_id
                assert groups.rewards[i, :2].tolist() == before.rewards.tolist()
                assert groups.texts[i][:2] == before.texts
        assert np.array_equal(groups.evidence.mixed, np.ptp(groups.rewards, axis=1) > 0)
    assert lanes == {"continue", "unscreened"}
    assert any(len({s is None for s in g.screenings}) == 2 for g in seen)  # both kinds in one batch
    assert any(s is not None and s.step < g.step for g in seen for s in g.screenings)  # and some had waited
    qualified = np.flatnonzero(trainer.curriculum.columns["qualified"] >= 0)
    assert set(trainer._screened.groups) == {trainer.curriculum.pool.ids[i] for i in qualified}


def test_the_log_probabilities_are_those_under_the_policy_that_rolled_out(tmp_path: Path) -> None:
    """Without learning they are the same whenever they are computed; TRL would not note them in such a run."""
    seen: list[Any] = []
    options = {"learning_rate": 0.0, "beta": 0.01}
    trainer = screening(tmp_path, kind=NotingGRPO, seen=seen, max_steps=4, **options)
    trainer.train()
    assert any(s is not None and s.step < g.step for g in seen for s in g.screenings)
    assert trainer.num_iterations == 1
    for batch in trainer.trained:
        assert_probabilities_stay_with_their_tokens(trainer, batch)


@pytest.mark.parametrize(("kind", "options"), [CASES[0], CASES[3], CASES[5]])
def test_resume_is_exact(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    saving = {"kind": kind, "max_steps": 7, "save_strategy": "steps", "save_steps": 3, **options}
    straight = screening(tmp_path / "straight", curriculum=speed(screen=40, screen_limit=8), **saving)
    straight.train()
    assert (tmp_path / "straight/checkpoint-3/rollwise_screened.pt").exists()
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = screening(tmp_path / "again", curriculum=speed(screen=40, screen_limit=8), **saving)
    resumed.train(resume_from_checkpoint=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    ours, theirs = resumed._screened.groups, straight._screened.groups
    assert list(ours) == list(theirs) != []
    for prompt_id, kept in ours.items():
        assert kept.call.texts == theirs[prompt_id].call.texts
        assert kept.ticket == theirs[prompt_id].ticket


def test_the_run_folder_charges_each_rollout_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = screening(tmp_path / "out", max_steps=4)
    Recorder(folder).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in folder.rollouts.read_text().splitlines()]
    metrics = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert metrics[-1]["rollouts"] == sum(len(line["rewards"]) for line in lines)
    assert metrics[-1]["tokens"] == sum(sum(line["tokens"]) for line in lines)
    by_ticket = {line["ticket"]: line for line in lines}
    continued = [line for line in lines if line["lane"] == "continue"]
    assert continued
    for line in continued:
        assert line["trained"]
        assert len(line["rewards"]) == len(line["texts"]) == len(line["advantages"]) == len(line["tokens"]) == 2
        before = by_ticket[line["screened"]["ticket"]]
        assert (before["purpose"], before["trained"]) == ("screen", False)
        assert before["rewards"] == line["screened"]["rewards"]
        assert sum(line["advantages"] + line["screened"]["advantages"]) == pytest.approx(0, abs=1e-4)
    step = [line for line in lines if line["step"] == 2 and line["purpose"] == "train"]
    rewards = [line.get("screened", {"rewards": []})["rewards"] + line["rewards"] for line in step]
    assert metrics[1]["reward"] == pytest.approx(np.mean(rewards))
    assert metrics[1]["frac_mixed"] == np.mean([len(set(own)) > 1 for own in rewards])
    assert metrics[1]["continued"] == sum("screened" in line for line in step)


class Forgetting(TrainerCallback):
    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.trainer._screened.groups.clear()


def test_where_the_screened_rollouts_are_lost_the_group_is_made_whole(tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = screening(tmp_path, kind=NotingGRPO, curriculum=speed(screen=40, screen_limit=8), seen=seen, max_steps=3)
    trainer.add_callback(Forgetting(trainer))
    trainer.train()
    tickets = [ticket for g in seen for ticket in g.tickets]
    screenings = [screening for g in seen for screening in g.screenings]
    assert any(t.n_rollouts == 2 and s is None for t, s in zip(tickets, screenings, strict=True))
    told = trainer.curriculum.metrics()["rollouts"]
    assert told == sum(t.n_rollouts for t in tickets)  # no more is told than was asked for
    for groups, output in zip(seen, trainer.trained, strict=True):
        assert groups.evidence.count.tolist() == [GROUP] * PROMPTS
        assert_batch(trainer, groups, output)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"extra": {"gate": MixedOutcome()}}, "gate"),
        ({"kind": NotingRLOO, "beta": 0.1}, "beta"),
        ({"kind": NotingRLOO, "reward_clip_range": (-1.0, 1.0)}, "reward_clip_range"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "normalize_then_sum"),
        ({"beta": 0.1, "sync_ref_model": True}, "sync_ref_model"),
    ],
)
def test_what_can_not_be_screened_is_refused(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match=f"SPEED trains on what it screened.*{reason}"):
        screening(tmp_path, **options)


def test_a_screening_as_large_as_a_group_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match=f"{GROUP} screening rollouts leave none of a group of {GROUP} to be made"):
        screening(tmp_path, curriculum=speed(screen_rollouts=GROUP))


def test_unscreened_batches_are_trls_own(tmp_path: Path) -> None:
    """With nothing qualified, advantages and rows are those of an ordinary generation."""
    nothing = speed(low=0.6, high=0.7)  # two rollouts never have such a mean
    screened = screening(tmp_path / "a", kind=NotingGRPO, curriculum=nothing, max_steps=1)
    screened.train()
    (batch,) = screened.trained
    rewards = screened.curriculum.metrics()
    assert rewards["asked"] == PROMPTS
    assert not screened._screened.groups
    assert batch["advantages"].view(-1, GROUP).sum(1).abs().max() < 1e-4
