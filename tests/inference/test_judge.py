"""The success head as a judge: what it reads, by hand and by plain forward passes; in a trainer; resumed; refused."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import random_head, tiny
from toys import PROMPTS, flat_parameters, make_trainer, toy_model, toy_tokenizer

import rollwise as rw
from rollwise.cli import main
from rollwise.inference import HeadSpec, SuccessHead, SuccessHeadJudge
from rollwise.inference.decoding.token_sampler import TokenSampler
from rollwise.inference.head.recalibration import Recalibration, moments, with_mean
from rollwise.inference.judge import REMEMBERED
from rollwise.models.identity import model_facts
from rollwise.models.loading import save_policy
from rollwise.models.sampler import SamplingOptions, encode, end_tokens, sample_prompts
from rollwise.testing import CurriculumConformance
from rollwise.training import CurriculumRLOOTrainer, Recorder, RunFolder

TEXTS = [f"{i},{7 * i % 23}:{'9' * (i % 5)}{3 * i % 10}" for i in range(12)]
POOL = rw.PromptPool(ids=[f"p{i}" for i in range(12)], prompts=TEXTS)


def everything(pool: rw.PromptPool = POOL) -> rw.Prompts:
    return rw.Prompts(pool, np.arange(len(pool)))


def bound(name: str = "qwen2", head: SuccessHead | None = None, **options: Any) -> SuccessHeadJudge:
    """A judge that follows a tiny model."""
    model, tokenizer = tiny(name, unnamed=0)
    judge = SuccessHeadJudge(head or random_head(model, tokenizer), **options).fresh().follow(model, tokenizer)
    judge.bind(POOL, seed=2)
    return judge


def value_of(model: Any, head: SuccessHead, tokens: list[int]) -> torch.Tensor:
    """(T,) V at every position, by one plain pass over one row, without padding."""
    with torch.no_grad():
        states = model(input_ids=torch.tensor([tokens]), output_hidden_states=True).hidden_states[-1][0]
    return head.value(states)


# ---- the numbers ----


def test_moments_by_hand() -> None:
    """Rewards 0, 0.1, 1 at 1/2, 1/4, 1/4: mean .275, variance .2525 - .275^2 = .176875. Of -1, 0, 1, mapped to 0, 1/2,
    1: mean .375, variance .25 * .25 + .25 - .375^2 = .171875. Of 0 and 4 at .2 and .8: .8, .16 = p (1 - p)."""
    for chances, states, mean, variance in (
        ([0.5, 0.25, 0.25], (0.0, 0.1, 1.0), 0.275, 0.176875),
        ([0.5, 0.25, 0.25], (-1.0, 0.0, 1.0), 0.375, 0.171875),
        ([0.2, 0.8], (0.0, 4.0), 0.8, 0.16),
    ):
        found = moments([chances, [np.nan] * len(states)], states)
        assert [part[0] for part in found] == pytest.approx([mean, variance])
        assert np.isnan([part[1] for part in found]).all()


def test_a_variance_keeps_its_share_of_the_greatest() -> None:
    """Half of .2 * .8 = .16 is .08; of the mean .6 the greatest is .24, half of which is .12."""
    assert with_mean([0.08, np.nan], [0.2, np.nan], [0.6, np.nan])[0] == pytest.approx(0.12)
    assert with_mean([0.0], [1.0], [0.5]).tolist() == [0.0]


def test_the_line_by_hand() -> None:
    """Two prompts, v = .25 and .75, told 1/2 by 4 rollouts and 1 by 4; prior 2.

    S = [[8, 0], [0, 4/16 + 4/16 = .5]], s = [4 * .25 + 4 * .25, 4 * -.25 * .25 + 4 * .25 * .25] = [2, 0]. So a = 2 / 10
    and b = 1: .25 becomes .45. A step later v = .5 is told 0 by 1 rollout; half is forgotten: S = [[5, 0], [0, .25]],
    s = [1 - .5, 0], a = .5 / 7.
    """
    line = Recalibration(forgetting=0.5, prior=2.0)
    assert line([0.3, np.nan])[0] == 0.3
    line.learn([0.25, 0.75], [0.5, 1.0], [4, 4])
    assert line.line == pytest.approx((0.2, 1.0))
    assert line([0.25, 0.9]).tolist() == pytest.approx([0.45, 1.0])
    line.learn([0.5], [0.0], [1])
    assert line.line == pytest.approx((0.5 / 7, 1.0))


def test_the_line_undoes_compression_and_a_move_of_the_policy() -> None:
    """What is told is 3 (v - .5) + .7; then the policy moves, and it is 3 (v - .5) + .4."""
    rng = np.random.default_rng(0)
    line = Recalibration(forgetting=0.02, prior=8.0)
    for shift in (0.2, -0.1):
        for _ in range(250):
            v = rng.uniform(0.4, 0.6, 32)
            line.learn(v, rng.binomial(8, 0.5 + shift + 3 * (v - 0.5)) / 8, np.full(32, 8))
        assert line.line[0] == pytest.approx(shift, abs=0.03)
        assert 2.2 < line.line[1] < 3.2  # 32 * 8 * 50 rollouts with a spread of 1/17 weigh 43, the prior 8: 2.7


@pytest.mark.parametrize("name", ["qwen2", "gpt2", "gemma2"])
def test_without_probes_it_is_the_value_at_the_prompt(name: str) -> None:
    judge = bound(name, recalibrate=0.0, batch_size=5)
    model, tokenizer = judge._source.live or (None, None)
    expected = [float(value_of(model, judge.head, encode(tokenizer, text))[-1]) for text in TEXTS]
    assert judge.predict(everything()).tolist() == pytest.approx(expected, abs=2e-6)
    assert np.std(expected) > 0.02
    costs = judge.take_costs()
    assert costs.pop("s") > 0
    read = sum(len(encode(tokenizer, text)) for text in TEXTS)
    flops = 2 * sum(weight.numel() for weight in model.parameters()) * read
    assert costs == {"questions": 12, "tokens": 0, "context_tokens": read, "flops": flops}
    assert judge.take_costs() == {}


@pytest.mark.parametrize("name", ["qwen2", "mistral"])  # in slots, and padded
@pytest.mark.parametrize("probes", [0, 2])
def test_a_policy_that_is_trained_in_mixed_precision_is_read(name: str, probes: int) -> None:
    """A trainer with bf16 wraps the policy's forward pass in autocast, in which keys and values differ in precision."""
    judge = bound(name, recalibrate=0.0, probes=probes, probe_tokens=4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = judge.predict(everything())
    assert np.isfinite(rounded).all()
    if not probes:
        assert rounded == pytest.approx(judge.predict(everything()), abs=0.02)


class Single(torch.Tensor):
    """As one of Apple's device, which has no double precision."""

    device = torch.device("mps")

    def double(self, *_: Any, **__: Any) -> Any:
        raise TypeError("the device has no float64")

    def cpu(self, *_: Any, **__: Any) -> Any:
        return self.as_subclass(torch.Tensor)


@pytest.mark.parametrize("probes", [0, 2])
def test_it_needs_no_double_precision_of_the_device(probes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, plain = (bound(probes=probes, probe_tokens=4) for _ in range(2))
    expected = plain.predict(everything())
    read, scores = SuccessHead.read, TokenSampler.scores

    def read_there(*given: Any) -> Any:
        return tuple(part.as_subclass(Single) for part in read(*given))

    monkeypatch.setattr(SuccessHead, "read", read_there)
    monkeypatch.setattr(TokenSampler, "scores", lambda *given: scores(*given).as_subclass(Single))
    assert judge.predict(everything()).tolist() == expected.tolist()


@pytest.mark.parametrize(("name", "states"), [("qwen2", (0.0, 1.0)), ("mistral", (0.0, 0.1, 1.0))])
def test_probes_are_the_beginnings_of_rollouts_and_their_last_reads(name: str, states: tuple[float, ...]) -> None:
    """Drawn anew by `generate`, and read by one plain pass each: last 4 positions, or last 16 of one that has ended."""
    model, tokenizer = tiny(name, unnamed=0)  # `generate` knows nothing of rows without a name
    head = random_head(model, tokenizer, HeadSpec(rewards=states, edges=(0, 4, 8)))
    judge = bound(name, head, probes=3, probe_tokens=20, slots=7, recalibrate=0.0, predicts="variance")
    judge.steps = 5
    options = SamplingOptions(n=3, max_new_tokens=20, seed=2)
    names = [f"5/{id_}" for id_ in POOL.ids]
    drawn = {r.id: r for batch in sample_prompts(model, tokenizer, names, TEXTS, options) for r in batch}
    ends, expected, ended = end_tokens(model, tokenizer), [], 0
    for name_, text in zip(names, TEXTS, strict=True):
        prompt, probes = encode(tokenizer, text), []
        for tokens in drawn[name_].token_ids:
            whole = tokens[-1] in ends
            ended += whole
            with torch.no_grad():
                ids = torch.tensor([prompt + tokens])
                hidden = model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
            reads = head.read(hidden[len(prompt) - 1 : -1])[0]
            probes.append(reads[-(16 if whole else 4) :].mean(0).double().numpy())
        expected.append(moments(np.mean(probes, axis=0), states)[1])
    assert judge.predict(everything()).tolist() == pytest.approx(np.array(expected).tolist(), abs=2e-6)
    assert 0 < ended < 36
    assert judge.take_costs()["tokens"] == sum(sum(r.tokens) for r in drawn.values())


def test_a_probe_depends_on_step_and_prompt_and_nothing_else() -> None:
    judge, other = (bound(probes=2, probe_tokens=6) for _ in range(2))
    whole = judge.predict(everything())
    some = other.predict(rw.Prompts(POOL, np.array([7, 2])))
    assert some.tolist() == pytest.approx(whole[[7, 2]].tolist(), abs=2e-6)
    assert judge.predict(everything()).tolist() == whole.tolist()
    judge.steps += 1
    assert (np.abs(judge.predict(everything()) - whole) > 1e-4).sum() > 6


def test_a_model_is_left_as_it_was() -> None:
    """Its flag, its gradients and torch's generator."""
    judge = bound(probes=2)
    model, _ = judge._source.live or (None, None)
    state = torch.get_rng_state()
    for training in (True, False):
        model.train(training)
        for probes in (0, 2):
            judge.probes = probes
            judge.predict(everything())
            assert all(module.training == training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


# ---- learning, saving ----


def taught(judge: SuccessHeadJudge, steps: int) -> list[list[float]]:
    said = []
    for _ in range(steps):
        said.append(judge.predict(everything()).tolist())
        slots = np.array([judge.steps % 12, (judge.steps + 5) % 12])
        judge.learn(rw.Prompts(POOL, slots), np.array([0.9, 0.7]), np.array([0.1, 0.2]), np.array([8, 8]))
    return said


def test_it_learns_a_line_from_what_it_had_predicted() -> None:
    judge = bound()
    first, *_, last = taught(judge, 30)
    assert np.mean(last) > np.mean(first) + 0.1  # it is told .9 and .7, whatever it says
    assert judge.metrics()["judge_shift"] > 0.1
    before = judge.line.state_dict()
    judge.predicted.clear()  # told of prompts that others chose
    judge.learn(everything(), np.full(12, 0.5), np.full(12, 0.25), np.full(12, 8))
    assert judge.line.state_dict() == before
    off = bound(recalibrate=0.0)
    said = taught(off, 3)
    assert said[0] == said[2]
    assert set(off.metrics()) == {"judge_error", "too_long"}


def test_the_error_is_of_what_was_said() -> None:
    """Predicted v, told .9 and .7 by 8 rollouts each: the mean of the squared differences."""
    judge = bound()
    (said,) = taught(judge, 1)
    assert judge.error == pytest.approx(((said[0] - 0.9) ** 2 + (said[5] - 0.7) ** 2) / 2)


def test_only_the_newest_predictions_are_kept() -> None:
    judge = bound()
    ids = [str(i) for i in range(REMEMBERED + 3)]
    judge._remember(ids, np.full(len(ids), 0.5))
    judge._remember(["4", "x"], np.array([0.25, np.nan]))
    assert len(judge.predicted) == REMEMBERED
    assert next(iter(judge.predicted)) == "3"
    assert list(judge.predicted.items())[-1] == ("4", 0.25)


@pytest.mark.parametrize("probes", [0, 2])
def test_a_saved_judge_goes_on_to_the_bit(probes: int) -> None:
    straight, resumed = (bound(probes=probes, probe_tokens=5, predicts="variance") for _ in range(2))
    taught(straight, 3)
    state = json.loads(json.dumps(straight.state_dict(), allow_nan=False))
    resumed.bind(POOL, seed=99)
    resumed.load_state_dict(state)
    assert taught(resumed, 3) == taught(straight, 3)
    assert resumed.state_dict() == straight.state_dict()
    for damaged in (
        {},
        {**state, "line": {}},
        {**state, "predicted": {"ids": ["a"], "values": 3}},
        {**state, "seed": -1},
    ):
        with pytest.raises(rw.StateError, match="damaged|array"):
            resumed.load_state_dict(damaged)


class TestPCLWithASuccessHead(CurriculumConformance):
    """The whole contract of the seam."""

    @pytest.fixture(autouse=True, scope="class")
    def begin(self, request: pytest.FixtureRequest) -> None:
        model, tokenizer = tiny(unnamed=0)
        request.cls.judge = SuccessHeadJudge(random_head(model, tokenizer)).follow(model, tokenizer)

    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        judge: SuccessHeadJudge = self.judge  # type: ignore[attr-defined]
        return rw.PCL(pool, judge=judge, candidate_multiplier=2, **core)


# ---- which model ----


def test_it_reads_the_live_weights_whatever_becomes_of_the_pool() -> None:
    model, tokenizer = tiny(unnamed=0)
    given = SuccessHeadJudge(random_head(model, tokenizer), recalibrate=0.0)
    lanes = {"a/b": (0.5, rw.PCL(judge=given)), "u": (0.5, rw.Uniform())}
    mixture = rw.Mixture(lanes=lanes, rails="off")
    mixture.follow(model, tokenizer)
    mixture.bind(POOL)
    judge = mixture.child("a/b").judge  # type: ignore[attr-defined]
    before = judge.predict(everything())
    assert mixture.take_costs()["questions"] == 12
    assert mixture.take_costs() == {}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    after = judge.predict(everything())
    assert (np.abs(after - before) > 1e-4).all()
    smaller = POOL.minus(["p0"])
    mixture.rebind(smaller)
    again = mixture.child("a/b").judge  # type: ignore[attr-defined]
    assert again is not judge
    assert again.predict(everything(smaller)).tolist() == pytest.approx(after[1:].tolist(), abs=2e-6)
    assert given._source.live is None  # what was handed over is never changed
    bound_already = rw.PCL(POOL, judge=given.follow(model, tokenizer))
    other, _ = tiny(unnamed=0)
    bound_already.follow(other, tokenizer)
    assert bound_already.judge.predict(everything()).tolist() == pytest.approx(before.tolist(), abs=2e-6)


def test_it_loads_a_model_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By name; or the policy's, where the live one can't be read."""
    model, tokenizer = tiny(unnamed=0)
    save_policy(model, tokenizer, tmp_path / "policy")
    head = random_head(model, tokenizer)
    head.save(tmp_path / "head.safetensors")
    live = bound(head=head).predict(everything())
    other, _ = tiny(unnamed=0)
    with torch.no_grad():
        other.get_input_embeddings().weight.mul_(0.5)
    named = rw.PCL(judge="success-head", judge_options={"head": str(tmp_path / "head.safetensors")})
    fixed = rw.PCL(judge=SuccessHeadJudge(head, model=tmp_path / "policy", device="cpu"))
    for curriculum, sharded in ((named, True), (fixed, False)):
        curriculum.start_from(str(tmp_path / "policy"))
        with caplog.at_level(logging.WARNING):
            curriculum.follow(other, tokenizer, sharded=sharded)
        curriculum.bind(POOL)
        assert curriculum.judge.predict(everything()).tolist() == pytest.approx(live.tolist(), abs=2e-6)
    assert [r.message for r in caplog.records if "sharded" in r.message] == [caplog.records[0].message]


def test_adapters_are_read_with_their_model() -> None:
    peft = pytest.importorskip("peft")
    model, tokenizer = tiny(unnamed=0)
    judge = SuccessHeadJudge(random_head(model, tokenizer))
    plain = bound(head=judge.head).predict(everything())
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=True))
    judge = judge.follow(adapted, tokenizer)
    judge.bind(POOL, 0)
    assert judge.predict(everything()).tolist() == pytest.approx(plain.tolist(), abs=2e-6)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.add_(1.0)
    assert (np.abs(judge.predict(everything()) - plain) > 1e-4).all()


# ---- bad input ----


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    model, tokenizer = tiny(unnamed=0)
    head = random_head(model, tokenizer)
    judge = SuccessHeadJudge(head)
    with pytest.raises(rw.ConfigError, match="no model to read"):
        rw.PCL(POOL, judge=judge)
    with pytest.raises(rw.ConfigError, match="fitted on a model whose architecture"):
        judge.follow(*tiny("llama", unnamed=0))
    with pytest.raises(rw.ConfigError, match="tokenizer"):
        judge.follow(model, toy_tokenizer())
    with pytest.raises(rw.StateFileError, match="does not exist"):
        rw.PCL(judge="success-head", judge_options={"head": str(tmp_path / "none.safetensors")})
    (tmp_path / "torn").write_bytes(b"abc")
    with pytest.raises(rw.StateFileError, match="holds no success head"):
        SuccessHeadJudge(tmp_path / "torn")
    with pytest.raises(rw.ConfigError, match="rollwise head fit"):
        rw.PCL(judge="success-head")
    wrong: list[dict[str, Any]] = [
        *({"probes": -1}, {"probe_tokens": 0}, {"temperature": 0.0}, {"recalibrate": 2.0}, {"prior": 0.0}),
        *({"batch_size": 0}, {"slots": 3, "probes": 4}, {"predicts": "x"}, {"model": 3}),
    ]
    for options in wrong:
        with pytest.raises(rw.ConfigError, match=next(iter(options))):
            SuccessHeadJudge(head, **options)
    one = rw.PCL(POOL, judge=judge.follow(model, tokenizer))
    two = rw.PCL(POOL, judge=SuccessHeadJudge(random_head(model, tokenizer, seed=7)).follow(model, tokenizer))
    with pytest.raises(rw.StateError, match="options"):
        two.load_state_dict(one.state_dict())


@pytest.mark.parametrize(("probes", "fits"), [(0, [True, True, False, False]), (2, [True, False, False, False])])
def test_what_the_window_does_not_hold_has_no_prediction(probes: int, fits: list[bool]) -> None:
    """A window of 256; a probe takes 16; the tokenizer begins each prompt with one token of its own."""
    judge = bound(probes=probes)
    _, tokenizer = judge._source.live or (None, None)
    extra = len(encode(tokenizer, "1")) - 1
    lengths = [256 - 16 - extra, 256 - 15 - extra, 257 - extra, 400]
    pool = rw.PromptPool(ids=list("abcd"), prompts=["1" * n for n in lengths])
    assert (~np.isnan(judge.predict(everything(pool)))).tolist() == fits
    assert judge.metrics()["too_long"] == fits.count(False)
    assert judge.take_costs()["questions"] == fits.count(True)
    curriculum = rw.PCL(pool, judge=judge, rails="off", candidate_multiplier=4)
    assert {t.lane for t in curriculum.ask(4)} == {"judged", "unjudged"}


# ---- in a trainer ----


def toy_head() -> SuccessHead:
    return random_head(toy_model(), toy_tokenizer(), HeadSpec(edges=(0, 2, 4, 8)))


def trained(out: Path, **options: Any) -> Any:
    head = options.pop("head", None) or toy_head()
    judge = SuccessHeadJudge(head, probes=options.pop("probes", 2), probe_tokens=3)
    curriculum = rw.PCL(judge=judge, seed=3, candidate_multiplier=3)
    return make_trainer(out, curriculum=curriculum, **options)


def test_a_trainers_judge_reads_what_is_trained_and_its_probes_are_charged(tmp_path: Path) -> None:
    groups: list[Any] = []
    trainer = trained(tmp_path / "t", max_steps=4, learning_rate=1e-2, extra={"group_observers": [groups.append]})
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    judge = trainer.curriculum.judge
    everyone = everything(trainer.curriculum.pool)
    judge.steps, before = 0, judge.predict(everyone)
    judge.take_costs()
    trainer.train()
    model = trainer.accelerator.unwrap_model(trainer.model)
    assert judge is trainer.curriculum.judge
    assert judge._source.live[0] is model
    judge.line = Recalibration(forgetting=0.0, prior=1.0)
    judge.steps = 0
    assert np.abs(judge.predict(everyone) - before).max() > 1e-3
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    lines = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    assert all(m["judge_questions"] == 3 * PROMPTS and m["judge_s"] > 0 and m["ask_s"] >= 0 for m in metrics)
    assert all(2 * 3 * PROMPTS <= m["judge_tokens"] <= 2 * 3 * 3 * PROMPTS for m in metrics)
    probed = sum(m["judge_tokens"] for m in metrics)
    assert metrics[-1]["tokens"] == sum(sum(line["tokens"]) for line in lines) + probed
    assert all("curriculum/judge_slope" in m for m in metrics)
    assert any(line.get("predicted") is not None for line in lines)


@pytest.mark.parametrize("options", [{}, {"kind": CurriculumRLOOTrainer, "accumulate": 2}], ids=["grpo", "rloo"])
def test_resume_is_exact(options: dict[str, Any], tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": 3, **options}
    straight = trained(tmp_path / "straight", **options)
    straight.train()
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = trained(tmp_path / "again", **options)
    resumed.train(resume_from_checkpoint=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    assert resumed.curriculum.judge.steps == 5


def test_what_it_reads_does_not_touch_what_is_rolled_out(tmp_path: Path) -> None:
    """With every prompt of the pool in each batch, a run with probes trains on the same rollouts as one without."""
    ends = []
    for probes in (0, 3):
        trainer = trained(tmp_path / str(probes), probes=probes, dataset=None, max_steps=1)
        pool = trainer.curriculum.pool
        trainer.curriculum.judge.predict = lambda prompts, pool=pool: np.linspace(0, 1, len(pool))[prompts.slots]
        trainer.train()
        ends.append(flat_parameters(trainer))
    assert torch.equal(*ends)


def test_a_head_of_another_model_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="fitted on a model whose"):
        trained(tmp_path, head=random_head(*tiny(unnamed=0)))


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A head's file by name, resumed; another file under that name is another curriculum."""
    model, tokenizer = tiny(unnamed=0)
    save_policy(model, tokenizer, tmp_path / "policy")
    spec = HeadSpec(rewards=(0.0, 0.1, 1.0), edges=(0, 4, 8, 16))
    file = random_head(model, tokenizer, spec).save(tmp_path / "head.safetensors")
    run = [
        "train", "--model", str(tmp_path / "policy"), "--task_options.style", "compact",
        "--task_options.levels", "[1]", "--save_every", "1", "--eval_prompts", "0",
        "--prompts_per_step", "4", "--num_generations", "4", "--num_prompts", "32",
        "--curriculum", "pcl", "--curriculum_options.judge", "success-head",
        "--curriculum_options.judge_options", f"{{head: {file}, probes: 2, probe_tokens: 4}}",
        "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    assert main([*run, "--steps", "2"]) == 0
    assert main(["train", "--resume", str(tmp_path / "run"), "--steps", "3"]) == 0
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [m["step"] for m in metrics] == [1, 2, 3]
    assert all(0 < m["judge_tokens"] <= 2 * 4 * m["judge_questions"] for m in metrics)
    assert SuccessHead.load(file).model == model_facts(model, tokenizer)
    random_head(model, tokenizer, spec, seed=8).save(file)
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "run"), "--steps", "4"]) == 1
    assert "options" in capsys.readouterr().err
