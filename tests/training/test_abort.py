"""Aborting doomed rollouts leaves RLOO's gradient as it is in the mean, resumes exactly, and is off by default."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from aborting import AT, RLOOTrainer, Script, abort_options, aborting, gradient_of, head_file, patterns
from toys import GROUP, PROMPTS, Traced, flat_parameters, make_trainer, toy_dataset, toy_reward

import rollwise as rw
from rollwise.errors import ConfigError, RewardError, StateError
from rollwise.inference.head import SuccessHead
from rollwise.inference.roulette_gate import measure_gate
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer, Recorder, RunFolder
from rollwise.training import aborting as aborting_module
from rollwise.training.abort import suffix_loss
from rollwise.training.abort_options import AbortOptions
from rollwise.training.aborting import ENOUGH, Aborting
from rollwise.training.calls import Drawn
from rollwise.training.config import TrainConfig

NAN = float("nan")

# 4 prompts of 4 rollouts; 1 ends a rollout; the first three tokens name it; some end before or at the abort point.
COMPLETIONS = [
    *([2, 3, 4, 25, 26, 1], [2, 3, 5, 6, 7, 8, 9, 30], [1], [2, 3, 6, 1]),
    *([30, 31, 32, 33, 34, 35, 36, 37], [30, 31, 1], [30, 32, 33, 2, 3, 4, 1], [30, 33, 2, 2, 2, 2, 2, 2]),
    *([20, 21, 22, 23, 1], [20, 22, 3, 4, 5, 1], [20, 23, 4, 5, 1], [1]),
    *([10, 11, 12, 13, 14, 15, 1], [10, 12, 1], [10, 13, 30, 31, 1], [10, 14, 15, 1]),
]
ALIVE = [len(own) > AT for own in COMPLETIONS]


def scripted(monkeypatch: pytest.MonkeyPatch, completions: list[list[int]]) -> Script:
    script = Script(completions)
    monkeypatch.setattr(
        RLOOTrainer,
        "_generate_single_turn",
        lambda self, prompt_ids, images, multimodal_fields: script(self, prompt_ids, images, multimodal_fields),
    )
    return script


def generation(trainer: Any) -> dict[str, Any]:
    """One generation of the trainer, all of it."""
    trainer.model.train()
    rows = [dict(trainer.train_dataset[0])] * (PROMPTS * GROUP)
    output: dict[str, Any] = trainer._generate_and_score_completions(rows)
    return output


# ---- the gradient ----


def graded(completion_ids: list[list[int]], **_: Any) -> list[float]:
    """A reward of all tokens, so that a suffix matters; not binary."""
    return [sum(ids) % 7 / 6 for ids in completion_ids]


def test_over_all_draws_the_mean_gradient_is_that_of_rloo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All 2^m draws of the doomed, weighted by their probability, through generation, rewards and the loss of TRL."""
    spec = rw.RewardSpec(low=0, high=1)
    scripted(monkeypatch, COMPLETIONS)
    plain = aborting(tmp_path / "plain", None, reward=graded, curriculum=rw.Uniform(seed=3, reward_spec=spec))
    full = gradient_of(plain, generation(plain))
    assert full.norm() > 0.1

    options = abort_options(tmp_path, whole=0.0, chance=0.3, threshold=0.6)

    def drawn_as(kept: np.ndarray) -> tuple[Any, dict[str, Any]]:
        script = scripted(monkeypatch, COMPLETIONS)
        monkeypatch.setattr(aborting_module, "draw_kept", lambda chance, rng: kept)
        trainer = aborting(tmp_path / "abort", options, reward=graded, curriculum=rw.Uniform(seed=3, reward_spec=spec))
        output = generation(trainer)
        assert script.asked == [len(kept), int((kept & np.array(ALIVE)).sum())]
        return trainer, output

    n = len(COMPLETIONS)
    chances = drawn_as(np.ones(n, dtype=bool))[0].draws[0].chances
    doomed = np.flatnonzero(chances < 1).tolist()
    assert 4 <= len(doomed) <= 7
    assert all(ALIVE[i] for i in doomed)
    mean, weights, spread = torch.zeros_like(full), 0.0, 0.0
    for kept in patterns(doomed, n):
        trainer, output = drawn_as(kept)
        lengths = output["completion_mask"].sum(1).tolist()
        assert lengths == [len(own) if k else AT for own, k in zip(COMPLETIONS, kept, strict=True)]
        weight = float(np.where(kept, chances, 1 - chances)[doomed].prod())
        gradient = gradient_of(trainer, output)
        weights += weight
        mean += weight * gradient
        spread += weight * float((gradient - full).norm() ** 2)
    assert weights == pytest.approx(1.0)
    assert spread**0.5 > 0.2 * full.norm()  # a single draw is far off, so the mean is no matter of course
    assert (mean - full).norm() < 1e-5 * full.norm()


def test_the_suffix_term_by_hand() -> None:
    """Two rows, prefix 1 token. Row 0: suffix advantage 3, prefix 1, two suffix tokens, one padded: -(3 - 1)/2 = -1 on
    token 1. Row 1: aborted, no suffix. Value 0."""
    logps = torch.tensor([[-1.0, -2.0, -9.0], [-1.0, -9.0, -9.0]], requires_grad=True)
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    loss = suffix_loss(logps, mask, torch.tensor([1.0, 0.5]), torch.tensor([3.0, 0.0]), at=1)
    loss.backward()
    assert loss.item() == 0.0
    assert logps.grad is not None
    assert logps.grad.tolist() == [[0.0, -1.0, 0.0], [0.0, 0.0, 0.0]]


def test_rows_that_were_not_put_to_the_roulette_keep_trls_gradient(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Through the loss with suffixes too: with equal advantages it is TRL's, to the bit."""
    scripted(monkeypatch, COMPLETIONS)
    plain = aborting(tmp_path, None)
    output = generation(plain)
    full = gradient_of(plain, output)
    scripted(monkeypatch, COMPLETIONS)
    trainer = aborting(tmp_path, abort_options(tmp_path))
    assert torch.equal(gradient_of(trainer, {**output, "suffix_advantages": output["advantages"]}), full)


# ---- real runs ----


def run(out: Path, abort: AbortOptions | None, resume: Any = None, **options: Any) -> Any:
    trainer = aborting(out, abort, curriculum=Traced(seed=3, retest_every=2), **options)
    if not resume:
        Recorder(RunFolder(out / "run")).attach(trainer)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def lines(out: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "run" / name).read_text().splitlines()]


def test_with_chance_1_it_is_plain_rloo_to_the_bit(tmp_path: Path) -> None:
    plain, dry = (
        run(tmp_path / name, abort, accumulate=2)
        for name, abort in (("plain", None), ("dry", abort_options(tmp_path, chance=1.0)))
    )
    assert torch.equal(flat_parameters(plain), flat_parameters(dry))
    assert plain.curriculum.trace == dry.curriculum.trace
    assert plain.curriculum.state_dict() == dry.curriculum.state_dict()
    spoken = ("time", "wall_s", "ask_s", "tell_s")
    for before, after in zip(lines(tmp_path / "plain", "metrics.jsonl"), lines(tmp_path / "dry", "metrics.jsonl")):  # noqa: B905
        assert {k: v for k, v in before.items() if k not in spoken} == {
            k: v for k, v in after.items() if k not in spoken and not k.startswith("abort/")
        }
        assert after["abort/aborted"] == 0
        assert not any(name.startswith("abort") for name in before)


def test_a_run_aborts_trains_and_logs(tmp_path: Path) -> None:
    before = flat_parameters(aborting(tmp_path, None))
    trainer = run(tmp_path, abort_options(tmp_path), max_steps=6)
    assert not torch.equal(flat_parameters(trainer), before)
    metrics = lines(tmp_path, "metrics.jsonl")
    rollouts = lines(tmp_path, "rollouts.jsonl")
    assert len(metrics) == 6
    assert len(rollouts) == 6 * PROMPTS
    every: dict[str, np.ndarray] = {
        name: np.array([own[name] for own in rollouts], dtype=float)  # null becomes NaN
        for name in ("rewards", "tokens", "values", "chances")
    }
    gone = np.isnan(every["rewards"])
    assert 5 < gone.sum() < 50
    assert (every["tokens"][gone] == AT).all()
    assert (every["chances"][gone] == 0.5).all()
    assert (every["values"][gone] < 0.5).all()
    assert (every["chances"][every["values"] >= 0.5] == 1).all()
    assert np.isnan(every["values"][every["tokens"] < AT]).all()
    for step, line in enumerate(metrics):
        own = slice(step * PROMPTS, (step + 1) * PROMPTS)
        rewards, tokens, values, chances = (every[name][own] for name in ("rewards", "tokens", "values", "chances"))
        assert line["abort/aborted"] == pytest.approx(gone[own].mean())
        assert line["abort/doomed"] == pytest.approx((values < 0.5).mean())
        saved = (tokens - AT)[(chances < 1) & ~gone[own]].sum()  # at chance 1/2 as many were not made
        assert line["abort/tokens_saved"] == saved
        assert line["abort/saved"] == pytest.approx(saved / (tokens.sum() + saved), abs=1e-6)
        estimate = np.where(chances < 1, np.where(gone[own], values, 2 * rewards - values), rewards)
        assert line["reward"] == pytest.approx(estimate.mean(), abs=1e-5)
    assert metrics[-1]["tokens"] == every["tokens"].sum()  # what was not generated is not charged
    # what the curriculum was told is what it may be told
    assert trainer.curriculum.ledger.n_open == 0


def test_the_gate_is_that_of_the_logged_whole_groups(tmp_path: Path) -> None:
    """What is logged at the last step is `measure_gate` on the lines of the last four steps whose groups were whole."""
    run(tmp_path, abort_options(tmp_path, whole=0.5, window=4), max_steps=6)
    last = lines(tmp_path, "metrics.jsonl")[-1]
    logged = [own for own in lines(tmp_path, "rollouts.jsonl") if own["step"] > 2 and own["whole"]]
    assert last["abort/groups"] == len(logged) > 4
    assert all(own["chances"] == [1] * GROUP for own in logged)
    columns = [np.array([own[name] for own in logged], dtype=float) for name in ("rewards", "tokens", "values")]
    gate = measure_gate(*columns, at=AT, threshold=0.5, chance=0.5)
    for name in ("rho", "tau", "chance", "factor", "low", "high"):
        assert last[f"abort/{name}"] == pytest.approx(getattr(gate, name), rel=1e-5), name


def test_values_are_read_by_a_plain_pass_of_the_live_policy(tmp_path: Path) -> None:
    trainer = aborting(tmp_path, abort_options(tmp_path))
    head = SuccessHead.load(head_file(tmp_path))
    sequences = [[5, 6, 7, 8], [9, 3], [4] * 9, [12, 13, 14]]
    with torch.no_grad():
        states = [
            trainer.model(torch.tensor([s]), output_hidden_states=True).hidden_states[-1][0, -1] for s in sequences
        ]
    trainer.model.train()
    assert trainer._values(sequences) == pytest.approx([float(head.value(s)) for s in states], abs=2e-6)
    assert trainer.model.training


def test_values_are_those_of_the_policy_with_its_adapters(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    lora = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    extra = {"peft_config": lora}
    trainer = aborting(tmp_path, abort_options(tmp_path, whole=0.0), extra=extra, max_steps=2, learning_rate=0.1)
    before = trainer._values([[5, 6, 7, 8]])
    trainer.train()
    assert sum((~drawn.kept).sum() for drawn in trainer.draws) > 0
    merged = trainer.accelerator.unwrap_model(trainer.model).merge_and_unload().eval()
    with torch.no_grad():
        state = merged(torch.tensor([[5, 6, 7, 8]]), output_hidden_states=True).hidden_states[-1][0, -1]
    after = float(SuccessHead.load(head_file(tmp_path)).value(state))
    assert trainer._values([[5, 6, 7, 8]]) == pytest.approx([after], abs=1e-5)
    assert abs(after - before[0]) > 1e-3


def test_resume_is_exact(tmp_path: Path) -> None:
    options = abort_options(tmp_path)
    saving = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3, "accumulate": 2}
    straight = run(tmp_path / "straight", options, **saving)
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = run(tmp_path / "again", options, resume=True, **saving)
    later = len(resumed.curriculum.trace)
    assert later > 0
    assert resumed.curriculum.trace == straight.curriculum.trace[-later:]
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    assert resumed._abort.state_dict() == straight._abort.state_dict()
    assert straight._abort.step["aborted"] + resumed._abort.step["aborted"] > 0


def test_a_checkpoint_belongs_to_its_abort(tmp_path: Path) -> None:
    options = abort_options(tmp_path)
    run(tmp_path, options, max_steps=2, save_strategy="steps", save_steps=2)
    with pytest.raises(StateError, match="trained with abort, this trainer is without"):
        run(tmp_path, None, resume=True, max_steps=4)
    (tmp_path / "other").mkdir()
    other = AbortOptions(head=head_file(tmp_path / "other", scale=1.0), at=AT)
    with pytest.raises(StateError, match="another success head"):
        run(tmp_path, other, resume=True, max_steps=4)


def test_evaluation_measuring_and_judging_are_left_alone(tmp_path: Path) -> None:
    """Rollouts of a measurement, and of an evaluation, are as long as ever, and none of them is in the roulette."""

    def count(out: Path, **options: Any) -> tuple[Any, list[int]]:
        seen: list[int] = []

        def reward(completion_ids: list[list[int]], **columns: Any) -> list[float]:
            seen.append(sum(len(ids) == AT and ids[-1] != 1 for ids in completion_ids))
            return toy_reward(completion_ids=completion_ids, **columns)

        return aborting(
            out, abort_options(tmp_path, chance=0.01, threshold=2.0, whole=0.0), reward=reward, **options
        ), seen

    trainer, seen = count(tmp_path, eval_dataset=toy_dataset(8))
    trainer.evaluate()
    rows = list(range(PROMPTS))
    for purpose in ("measure", "screen", "oracle"):
        trainer.model.train()
        call = trainer._roll_out(rows, GROUP, purpose)
        assert call.drawn is None
        assert not np.isnan(call.rewards).any()
    assert sum(seen) == 0
    call = trainer._roll_out(rows, GROUP, "train")
    assert seen[-1] > PROMPTS * GROUP / 2  # so it would have shown


def test_judgments_are_left_alone(tmp_path: Path) -> None:
    """METIS asks the policy for more tokens than the abort point has, and trains on them in the same step."""
    from judging import LetterFormat, ToyMETIS

    curriculum = ToyMETIS(seed=3, candidate_multiplier=3, exemplars=2, format=LetterFormat())
    trainer = aborting(tmp_path, abort_options(tmp_path, whole=0.0), curriculum=curriculum, max_steps=3)
    found: list[Any] = []
    judge = trainer._judge
    trainer._judge = lambda *asked: found.append(judge(*asked)) or found[-1]
    trainer.train()
    assert max(len(judgment.answer_ids) for own in found for judgment in own) > AT
    assert sum((~drawn.kept).sum() for drawn in trainer.draws) > 0


# ---- what the curriculum is told ----


def test_what_is_told_is_unbiased(tmp_path: Path) -> None:
    """Every rollout of a group in the roulette is told with chance c, doomed or not: so the pass rate is right.

    40,000 groups of 4 at c = 0.25, two of each doomed. Rewards: doomed .1, others .7 in the mean, .4 over all; among
    those that were kept it would be (2 * .7 + .5 * .1)/2.5 = .58. Told are a quarter: 40,000, standard error .0025.
    """
    rng = np.random.default_rng(0)
    doomed = np.tile([True, True, False, False], 40_000)
    rewards = (rng.random(len(doomed)) < np.where(doomed, 0.1, 0.7)).astype(float)
    wheel = Aborting(AbortOptions(head="h", threshold=0.5, chance=0.25, whole=0.0), head="", seed=0)
    drawn = wheel.draw(np.where(doomed, 0.3, 0.8), np.ones_like(doomed), 4)
    assert drawn.told.mean() == pytest.approx(0.25, abs=0.006)
    assert rewards[drawn.told].mean() == pytest.approx(0.4, abs=0.0125)
    assert rewards[drawn.kept].mean() == pytest.approx(0.58, abs=0.0125)
    assert not (drawn.told & ~drawn.kept).any()


def test_whole_groups_are_told_in_full() -> None:
    wheel = Aborting(AbortOptions(head="h", threshold=0.5, chance=0.25, whole=0.5), head="", seed=0)
    drawn = wheel.draw(np.full(4000, 0.1), np.ones(4000, dtype=bool), 4)
    assert drawn.whole.reshape(-1, 4).all(axis=1).mean() == pytest.approx(drawn.whole.mean())  # groups, not rollouts
    assert drawn.whole.mean() == pytest.approx(0.5, abs=0.08)
    assert drawn.kept[drawn.whole].all()
    assert drawn.told[drawn.whole].all()
    assert (drawn.chances == np.where(drawn.whole, 1.0, 0.25)).all()


def test_a_curriculum_is_told_of_real_rewards_alone(tmp_path: Path) -> None:
    """Those that are not told count as failed; advantages, weighted as they are, are not told at all."""
    told: list[rw.Outcome] = []

    class Listening(rw.Uniform):
        def tell(self, outcomes: Any) -> rw.Evidence:
            told.extend(outcomes := list(outcomes))
            return super().tell(outcomes)

    trainer = aborting(tmp_path, abort_options(tmp_path, whole=0.0), curriculum=Listening(seed=3), max_steps=4)
    trainer.train()
    assert len(told) == 4 * PROMPTS
    assert all(len(o.rewards) + o.failed == GROUP and o.advantages is None for o in told)
    assert all(set(np.asarray(o.rewards).tolist()) <= {0.0, 1.0} for o in told)
    assert 0 < sum(o.failed for o in told) < 4 * PROMPTS * GROUP
    assert [len(o.rewards) for o in told] == [n for d in trainer.draws for n in d.told.reshape(-1, GROUP).sum(axis=1)]
    assert any((d.kept & ~d.told).any() for d in trainer.draws)


# ---- the gate's warning ----


def feed(wheel: Aborting, reward_of_doomed: float, suffix: int) -> None:
    """`ENOUGH` whole groups of four: two doomed at V = .1 and two that end early, one of which succeeds."""
    doomed = np.tile([True, True, False, False], ENOUGH)
    n = len(doomed)
    everything = np.ones(n, dtype=bool)
    drawn = Drawn(np.where(doomed, 0.1, NAN), np.ones(n), everything, everything, everything)
    rewards = np.tile([reward_of_doomed, 0.0, 1.0, 0.0], ENOUGH)
    wheel.observe(rewards, np.where(doomed, 16 + suffix, 8), drawn, 4)


def test_it_warns_once_where_it_does_not_pay(caplog: pytest.LogCaptureFixture) -> None:
    """Doomed ones that succeed half of the time carry most of the variance; hopeless long ones are worth aborting."""
    caplog.set_level(logging.WARNING)
    wheel = Aborting(AbortOptions(head="h", threshold=0.5, chance=0.5), head="", seed=0)
    feed(wheel, 1.0, 16)
    measured = wheel.metrics()
    assert measured["groups"] == ENOUGH
    assert measured["rho"] > measured["tau"]
    assert measured["low"] > 1
    wheel.metrics()
    assert [r.message.split(":")[0] for r in caplog.records] == ["abort costs more than it saves here"]
    paying = Aborting(AbortOptions(head="h", threshold=0.5, chance=0.5), head="", seed=0)
    feed(paying, 0.0, 160)
    assert paying.metrics()["high"] < 1
    assert len(caplog.records) == 1


def test_the_factor_by_hand() -> None:
    """c = .5. Group of 4: doomed r = 0, 0 at V = .1, 26 tokens each, 10 of them suffix; others r = 1 and 0, 8 tokens.

    b of the doomed: 1/3; their advantage^2 = 1/9. Noise of a doomed row: .01 (16 + (26 + 8 + 8)/9) + 10/9 = .2067 +
    1.1111 = 1.31778; two: 2.63556. Variance: 1/9 (26 + 26 + 8) + 1 * 8 = 14.6667. rho = .179697; tau = 20/68 = .294118.
    factor = (1 + rho) (1 - tau/2) = 1.179697 * .852941 = 1.006212.
    """
    wheel = Aborting(AbortOptions(head="h", threshold=0.5, chance=0.5), head="", seed=0)
    feed(wheel, 0.0, 10)
    measured = wheel.metrics()
    assert measured["rho"] == pytest.approx(0.179697, abs=1e-6)
    assert measured["tau"] == pytest.approx(0.294118, abs=1e-6)
    assert measured["factor"] == pytest.approx(1.006212, abs=1e-6)


# ---- refusals ----


def test_unscored_rollouts_are_refused(tmp_path: Path) -> None:
    def reward(completion_ids: list[list[int]], **_: Any) -> list[float | None]:
        return [None if i % 4 == 0 else 1.0 for i in range(len(completion_ids))]

    trainer = aborting(tmp_path, abort_options(tmp_path, whole=0.0), reward=reward)
    with pytest.raises(RewardError, match="could not be scored"):
        trainer.train()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalize_advantages": True}, "biases the gradient"),
        ({"mask_truncated_completions": True}, "mask_truncated_completions"),
        ({"reward_clip_range": (0.0, 1.0)}, "reward_clip_range"),
        ({"num_iterations": 2}, "num_iterations"),
        ({"steps_per_generation": 2}, "steps_per_generation"),
        ({"generation_kwargs": {"min_new_tokens": 2}}, "generation_kwargs"),
        ({"max_completion_length": AT}, "max_completion_length"),
        ({"extra": {"gate": rw.gates.MixedOutcome()}}, "gate"),
        ({"curriculum": rw.SPEED(seed=0, screen_rollouts=2)}, "screen"),
    ],
)
def test_what_would_be_biased_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        aborting(tmp_path, abort_options(tmp_path), **options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("use_vllm", True, "vLLM generates in one piece"),
        ("use_transformers_continuous_batching", True, "continuous batching"),
        ("beta", 0.1, "beta=0.0"),
        ("aux_loss_enabled", True, "mixtures of experts"),
        ("is_fsdp_enabled", True, "sharded"),
    ],
)
def test_what_the_toy_has_not_is_refused_too(name: str, value: Any, message: str, tmp_path: Path) -> None:
    """vLLM is not installed, for one; so the check is asked alone."""
    trainer = aborting(tmp_path, abort_options(tmp_path))
    setattr(trainer, name, value)
    with pytest.raises(ConfigError, match=message):
        trainer._check_abort(abort_options(tmp_path))


def test_grpo_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CurriculumRLOOTrainer"):
        aborting(tmp_path, abort_options(tmp_path), kind=CurriculumGRPOTrainer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "rloo"),
        ({"trainer": "rloo", "advantages": "std"}, "standard deviation"),
        ({"trainer": "rloo", "gate": "mixed"}, "gate"),
    ],
)
def test_the_config_refuses_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_dict({**options, "abort": {"head": "h"}})


@pytest.mark.parametrize(
    ("abort", "message"),
    [({"at": 3}, "needs a head"), ({"head": "h", "att": 3}, "'att'"), ({"head": "h", "chance": 0}, "chance")]
    + [
        ({"head": ""}, "head"),
        ("h", "no option 'h'"),
        ({"head": "h", "whole": 2}, "whole"),
        ({"head": "h", "window": 0}, "window"),
    ],
)
def test_bad_options_are_named(abort: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_dict({"trainer": "rloo", "abort": abort})


def test_the_config_goes_through_its_file() -> None:
    config = TrainConfig(trainer="rloo", abort=AbortOptions(head="h", at=4))
    assert TrainConfig.from_dict(config.to_dict()) == config
    assert TrainConfig().to_dict()["abort"] is None


def test_a_head_of_another_model_is_refused(tmp_path: Path) -> None:
    import dataclasses

    head = SuccessHead.load(head_file(tmp_path))
    dataclasses.replace(head, model={**head.model, "hidden_size": 64}).save(tmp_path / "wrong")
    with pytest.raises(ConfigError, match="hidden_size"):
        aborting(tmp_path, AbortOptions(head=str(tmp_path / "wrong"), at=AT))


def test_without_it_nothing_of_it_is_there(tmp_path: Path) -> None:
    """Off by default: no state, no keys in the logs, and TRL's own loss and generation."""
    trainer = make_trainer(tmp_path, kind=CurriculumRLOOTrainer, max_steps=2, save_strategy="steps", save_steps=2)
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    trainer.train()
    assert "abort" not in rw.load_state(tmp_path / "checkpoint-2/rollwise_state.json")
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        for line in lines(tmp_path, name):
            assert not any("abort" in key or key in ("values", "chances", "whole") for key in line)
