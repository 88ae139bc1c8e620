"""METIS on real trainers: the joint loss by hand, the live policy's answers, exact resume."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from judging import (
    Gradients,
    JudgingGRPO,
    JudgingRLOO,
    LetterFormat,
    ToyMETIS,
    by_hand,
    dapo_scale,
    judging,
    policy_by_hand,
)
from toys import PROMPTS, flat_parameters, make_trainer, toy_model, toy_tokenizer
from transformers import Qwen2ForCausalLM

import rollwise as rw
from rollwise.gates import DynamicSampling
from rollwise.models.question_encoder import QuestionEncoder
from rollwise.models.tokenizer import character_tokenizer
from rollwise.training import Recorder, RunFolder
from rollwise.training.generation.losses import LOSS_TYPES
from rollwise.training.judging.judge_loss import (
    ExpectedBatch,
    JudgeBatch,
    choice_tokens,
    clipped_loss,
    expected_loss,
    scale_parts,
)

WEIGHT = 0.5


def gradients(out: Path, weight: float, **options: Any) -> tuple[Any, list[torch.Tensor]]:
    """A run that never moves: both weights see the same rollouts and judgments."""
    trainer = judging(out, weight=weight, learning_rate=0.0, **options)
    noted = Gradients()
    trainer.add_callback(noted)
    trainer.train()
    return trainer, noted.kept


@pytest.mark.parametrize(
    ("kind", "options", "parts"),
    [
        pytest.param(JudgingGRPO, {}, 1, id="grpo"),
        pytest.param(JudgingGRPO, {"accumulate": 2}, 1, id="grpo-accumulate"),
        pytest.param(JudgingGRPO, {"steps_per_generation": 2}, 2, id="grpo-two-steps-a-generation"),
        pytest.param(JudgingRLOO, {}, 1, id="rloo"),
        pytest.param(JudgingRLOO, {"accumulate": 2}, 1, id="rloo-accumulate"),
        pytest.param(JudgingGRPO, {"expected": True}, 1, id="expected"),
        pytest.param(
            JudgingGRPO, {"expected": True, "exemplars": 0, "temperature": 1.0}, 1, id="expected-no-exemplars"
        ),
        pytest.param(
            JudgingGRPO, {"expected": True, "steps_per_generation": 2}, 2, id="expected-two-steps-a-generation"
        ),
        pytest.param(JudgingRLOO, {"expected": True, "accumulate": 2}, 1, id="expected-rloo-accumulate"),
    ],
)
def test_the_joint_gradient_is_the_policys_plus_lambda_times_reinforce(
    kind: type, options: dict[str, Any], parts: int, tmp_path: Path
) -> None:
    """Equation 10: total - policy = lambda * the gradient of equation 9, worked out answer by answer.

    Times what the trainer's policy loss is of equation 2: 1 over the mean length under TRL's default loss, 1 in RLOO.
    """
    joint, with_judge = gradients(tmp_path / "joint", WEIGHT, kind=kind, max_steps=4, **options)
    policy, without = gradients(tmp_path / "policy", 0.0, kind=kind, max_steps=4, **options)
    assert repr(joint.curriculum.taught) == repr(policy.curriculum.taught)  # by repr, as an unread prediction is NaN
    model = joint.accelerator.unwrap_model(joint.model).eval()
    checked = 0
    for number, (lessons, judgments) in enumerate(joint.prepared):
        assert len(lessons) == PROMPTS
        size = len(lessons) // parts
        for part in range(parts):
            ours = by_hand(model, lessons[part * size : (part + 1) * size], judgments)
            expected = WEIGHT * dapo_scale(joint, number) * ours
            step = number * parts + part
            assert torch.allclose(with_judge[step] - without[step], expected, atol=2e-6)
            checked += float(expected.abs().max()) > 1e-4
    assert checked == 4


ONE_LENGTH = {"generation_kwargs": {"min_new_tokens": 8}}
OTHERS = {"max_completion_length": 12}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(JudgingRLOO, {}, id="rloo"),
        pytest.param(JudgingRLOO, {"accumulate": 2}, id="rloo-accumulate"),
        pytest.param(JudgingGRPO, {}, id="dapo"),
        pytest.param(JudgingGRPO, {"accumulate": 2}, id="dapo-accumulate"),
        pytest.param(JudgingGRPO, {"steps_per_generation": 2}, id="dapo-two-steps-a-generation"),
        pytest.param(JudgingGRPO, {"refill": True}, id="dapo-refilled"),
        pytest.param(JudgingGRPO, {"expected": True, "accumulate": 2}, id="dapo-expected"),
        pytest.param(JudgingGRPO, {"loss_type": "dr_grpo", **OTHERS}, id="dr_grpo"),
        pytest.param(JudgingGRPO, {"loss_type": "cispo", "epsilon_high": 5.0}, id="cispo"),
        pytest.param(JudgingGRPO, {"loss_type": "cispo"}, id="cispo-clipped"),
        pytest.param(JudgingGRPO, {"loss_type": "vespo"}, id="vespo"),
        pytest.param(JudgingGRPO, {"loss_type": "luspo", "importance_sampling_level": "sequence"}, id="luspo"),
        pytest.param(JudgingGRPO, {"loss_type": "grpo", "accumulate": 2, **ONE_LENGTH}, id="grpo"),
        pytest.param(JudgingGRPO, {"loss_type": "bnpo", "accumulate": 2, **ONE_LENGTH}, id="bnpo"),
        pytest.param(JudgingGRPO, {"loss_type": "sapo", **ONE_LENGTH}, id="sapo"),
    ],
)
def test_the_judges_share_of_the_gradient_is_that_of_equations_2_and_9(
    kind: type, options: dict[str, Any], tmp_path: Path
) -> None:
    """|judge| / |policy| is lambda |equation 9| / |equation 2| under every loss, both worked out by hand.

    Where a loss weighs rollouts by their lengths, all are of one length.
    """
    if options.pop("refill", False):
        options |= {"reward": lambda prompts, **_: [float(p[5:-1] > "2" and i % 3 > 0) for i, p in enumerate(prompts)]}
        options["extra"] = {"gate": DynamicSampling()}
    options = {"kind": kind, "max_steps": 3, **options}
    joint, with_judge = gradients(tmp_path / "joint", WEIGHT, **options)
    _, without = gradients(tmp_path / "policy", 0.0, **options)
    model = joint.accelerator.unwrap_model(joint.model).eval()
    micro, parts = joint.args.gradient_accumulation_steps, joint.args.steps_per_generation
    checked = 0
    for step, (total, policy) in enumerate(zip(with_judge, without, strict=True)):
        number, part = divmod(step * micro, parts)
        lessons, judgments = joint.prepared[number]
        first, last = (len(lessons) * cut // parts for cut in (part, part + micro))
        share = (last - first) / len(lessons) * parts / micro  # 1 but where lessons do not divide evenly
        judge = share * by_hand(model, lessons[first:last], judgments)
        equation_2 = policy_by_hand(model, joint.trained_on[step * micro : (step + 1) * micro])
        if equation_2.norm() < 1e-6:  # no group has contrast
            assert policy.norm() < 1e-6
            continue
        pairs = torch.stack([policy, total - policy]), torch.stack([equation_2, judge])
        assert torch.nn.functional.cosine_similarity(*pairs).tolist() == pytest.approx([1.0, 1.0], abs=1e-5)
        ratio = (total - policy).norm() / policy.norm() / (WEIGHT * judge.norm() / equation_2.norm())
        assert float(ratio) == pytest.approx(1.0, abs=2e-4)
        checked += 1
    assert checked
    if "extra" in options:
        assert len(joint.prepared[0][0]) > PROMPTS  # so that there was a refill


@pytest.mark.parametrize(
    ("loss_type", "scale"),
    [
        pytest.param("rloo", 1.0, id="rloo"),
        pytest.param("luspo", 1.0, id="luspo"),
        pytest.param("dr_grpo", 1 / 10, id="dr_grpo"),
        pytest.param("dapo", 6 / 24, id="dapo"),
        pytest.param("cispo", 6 / 24, id="cispo"),
        pytest.param("vespo", 6 / 24, id="vespo"),
        pytest.param("grpo", (1 / 2 + 1 / 2 + 1 / 4 + 1 / 8 + 1 / 4 + 1 / 4) / 6, id="grpo"),
        pytest.param("sapo", (1 / 2 + 1 / 2 + 1 / 4 + 1 / 8 + 1 / 4 + 1 / 4) / 6, id="sapo"),
        pytest.param("bnpo", (1 / 2 + 1 / 6 + 1 / 4) / 3, id="bnpo"),
    ],
)
def test_what_a_loss_makes_of_equation_2_by_hand(loss_type: str, scale: float) -> None:
    """Rollouts of 2, 2, 4, 8 tokens on one process, of 0 (masked), 4 and 4 on another; micro-batches of 2, 2, 1 and 2.

    The one that is masked counts for nothing.
    """
    over = LOSS_TYPES[loss_type]
    first = scale_parts(over, [torch.tensor([2, 2]), torch.tensor([4, 8])], longest=10)
    second = scale_parts(over, [torch.tensor([0]), torch.tensor([4, 4])], longest=10)
    ours, units = (first + second).tolist()
    assert ours / units == pytest.approx(scale)


def test_a_loss_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="does not know how loss_type 'of-tomorrow' is normalized"):
        judging(tmp_path, loss_type="of-tomorrow")


def test_rollouts_of_which_few_tokens_are_trained_on(tmp_path: Path) -> None:
    """Cut-off rollouts are masked: in the first step all are, in the second all but one, of 8 tokens as the others.

    The judge's loss gets neither infinite, nor NaN, nor many times as great.
    """
    trainer = judging(tmp_path, max_steps=2, mask_truncated_completions=True, **ONE_LENGTH)
    trainer.train()
    assert [int(part["completion_mask"].sum()) for part in trainer.trained_on] == [0, 8]
    scales = [line["judge/scale"] for line in trainer.state.log_history if "judge/scale" in line]
    assert scales == [1 / 8] * 2


def test_the_clipped_loss_by_hand() -> None:
    """Weights 1 and -2; ratios 1.5 (clipped to 1.2), 1.1, and for the negative one 0.5 (clipped to 0.8); pads are out.

    -(min(1.5, 1.2) * 1 + 1.1 * 1 + min(0.5 * -2, 0.8 * -2)) = -(1.2 + 1.1 - 1.6) = -0.7.
    """
    old = torch.zeros(2, 2)
    logps = torch.tensor([[math.log(1.5), math.log(1.1)], [math.log(0.5), 3.0]])
    mask = torch.tensor([[1, 1], [1, 0]])
    batch = JudgeBatch(torch.zeros(2, 4), torch.ones(2, 4), mask, torch.tensor([1.0, -2.0]), old)
    assert clipped_loss(logps, batch, low=0.8, high=1.2).item() == pytest.approx(-0.7)


def test_without_a_policy_that_moved_the_gradient_is_weight_times_that_of_log_pi() -> None:
    logps = torch.tensor([[-1.0, -2.0], [-0.5, -3.0]], requires_grad=True)
    mask = torch.tensor([[1, 1], [1, 0]])
    batch = JudgeBatch(torch.zeros(2, 4), torch.ones(2, 4), mask, torch.tensor([0.25, -0.75]))
    clipped_loss(logps, batch, low=0.8, high=1.2).backward()
    assert logps.grad is not None
    assert logps.grad.tolist() == [[-0.25, -0.25], [0.75, 0.0]]


def test_a_policy_that_moves_between_two_steps_is_weighed_by_what_it_was(tmp_path: Path) -> None:
    trainer = judging(tmp_path, steps_per_generation=2, num_iterations=2, max_steps=4, learning_rate=1e-3)
    trainer.train()
    batches = trainer._judge_batches
    assert len(batches) == 2
    for batch in batches:
        now = trainer._answer_logps(trainer.model, batch)
        assert batch.old_logps.shape == now.shape == batch.answer_mask.shape
        assert not torch.allclose(now[batch.answer_mask.bool()], batch.old_logps[batch.answer_mask.bool()])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(JudgingGRPO, {"save_steps": 3}, id="grpo"),
        pytest.param(JudgingGRPO, {"save_steps": 3, "steps_per_generation": 2}, id="grpo-saved-midway"),
        pytest.param(JudgingRLOO, {"save_steps": 3, "accumulate": 2}, id="rloo"),
        pytest.param(
            JudgingGRPO, {"save_steps": 3, "steps_per_generation": 2, "expected": True}, id="expected-saved-midway"
        ),
    ],
)
def test_resume_is_exact(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    options |= {"kind": kind, "save_strategy": "steps"}
    straight = judging(tmp_path / "straight", **options)
    straight.train()
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = judging(tmp_path / "again", **options)
    resumed.train(resume_from_checkpoint=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    later = resumed.curriculum.taught
    assert 0 < len(later) < len(straight.curriculum.taught)
    assert repr(later) == repr(straight.curriculum.taught[-len(later) :])


def test_the_run_says_what_was_judged_and_what_that_cost(tmp_path: Path) -> None:
    groups: list[Any] = []
    trainer = judging(tmp_path / "t", max_steps=4, extra={"group_observers": [groups.append]})
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    trainer.train()
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    lines = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    judged = [judgment for _, judgments in trainer.prepared for judgment in judgments.values()]
    assert sum(m["judge_questions"] for m in metrics) == len(judged) == 4 * 3 * PROMPTS
    answered = sum(len(j.answer_ids) for j in judged)
    assert sum(m["judge_tokens"] for m in metrics) == answered
    assert metrics[-1]["tokens"] == sum(sum(line["tokens"]) for line in lines) + answered
    assert all(m["judge_s"] > 0 and "judge_loss" in m and 0 <= m["curriculum/judge_failure_rate"] <= 1 for m in metrics)
    assert {line["lane"] for line in lines} <= {"judged", "unjudged", "explore", "retest-solved", "retest-unsolved"}
    assert any("predicted_variance" in line for line in lines)
    for group in groups:
        for ticket in group.tickets:
            assert ticket.predicted_variance is None or 0 <= ticket.predicted_variance <= 0.25


@pytest.mark.parametrize("accumulate", [1, 4, 8])
def test_the_logged_judge_loss_is_equation_9s_whatever_the_micro_steps(accumulate: int, tmp_path: Path) -> None:
    """Minus the mean over 4 judgments of advantage times tokens, as every ratio is 1; 8 micro-steps leave 4 without."""
    trainer = judging(tmp_path, kind=JudgingRLOO, accumulate=accumulate, learning_rate=0.0, max_steps=2)
    trainer.train()
    logged = [line["judge/loss"] for line in trainer.state.log_history if "judge/loss" in line]
    by_hand = [
        -sum(lesson.advantage * len(judgments[lesson.question_id].answer_ids) for lesson in lessons) / len(lessons)
        for lessons, judgments in trainer.prepared
    ]
    assert logged == pytest.approx(by_hand, rel=1e-6)


def test_expected_judgments_generate_nothing(tmp_path: Path) -> None:
    """Predictions are means by the live policy's probabilities, worked out again from its plain logits, unpadded."""
    trainer = judging(tmp_path / "t", expected=True, max_steps=3, learning_rate=0.0)
    Recorder(RunFolder(tmp_path / "run")).attach(trainer)
    trainer.train()
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [m["judge_tokens"] for m in metrics] == [0.0] * 3
    assert all(m["judge_context_tokens"] > 0 and m["judge_s"] > 0 for m in metrics)
    model = trainer.accelerator.unwrap_model(trainer.model).eval()
    values = torch.tensor([0.0, 0.1, 0.25])
    earned: dict[str, Any] = {}
    for _, judgments in trainer.prepared:
        readable = []
        for judgment in judgments.values():
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([judgment.context_ids])).logits[0, -1]
            chances = logits.softmax(-1)[toy_tokenizer().convert_tokens_to_ids(["x", "y", "z"])]
            mean = float((chances * values).sum() / chances.sum())
            assert judgment.prediction == pytest.approx(mean, abs=1e-5)
            assert judgment.readable == pytest.approx(float(chances.sum()), abs=1e-5)
            spread = float((chances * (values - mean) ** 2).sum() / chances.sum())
            assert judgment.spread == pytest.approx(spread, abs=1e-6)
            earned[judgment.question_id] = chances, values
            assert (judgment.text, judgment.answer_ids) == (None, [])
            readable.append(judgment.readable)
    assert metrics[-1]["curriculum/judge_failure_rate"] == pytest.approx(1 - sum(readable) / len(readable), abs=1e-5)
    for lesson in trainer.curriculum.taught:  # the mean over all answers, of which those that can't be read earn 0
        chances, values = earned[lesson.question_id]
        mean = float((chances * (1 - (4 * (values - lesson.variance)) ** 2)).sum())
        assert lesson.reward == pytest.approx(mean, abs=1e-5)


def test_contexts_that_begin_alike_are_read_once_in_the_loss_too(tmp_path: Path) -> None:
    """Two exemplars and the candidate's first word are common; without exemplars too little is. The test by hand of the
    gradient has both."""
    for exemplars, much in ((2, True), (0, False)):
        trainer = judging(tmp_path / str(exemplars), exemplars=exemplars, max_steps=2)
        trainer.train()
        (batch,) = trainer._judge_batches
        assert (batch.prefix is not None) == much
        assert not much or len(batch.prefix) >= 16


def test_an_answer_that_is_no_token_is_refused() -> None:
    tokenizer = toy_tokenizer()
    assert choice_tokens(tokenizer, ["a", "b"]) == tokenizer.convert_tokens_to_ids(["a", "b"])
    with pytest.raises(rw.ConfigError, match="needs the answer '10' to be one token"):
        choice_tokens(tokenizer, ["9", "10"])


def test_expected_loss_by_hand() -> None:
    """Probabilities 0.2 and 0.5 that earn 1 and 0.64: -(0.2 + 0.5 * 0.64) = -0.52; a row without weight is out."""
    logps = torch.tensor([[0.2, 0.5], [0.9, 0.1]]).log()
    weights = torch.tensor([[1.0, 0.64], [0.0, 0.0]])
    batch = ExpectedBatch(torch.zeros(2, 4), torch.ones(2, 4), torch.tensor([5, 6]), weights)
    assert expected_loss(logps, batch).item() == pytest.approx(-0.52)


def test_the_live_policy_answers(tmp_path: Path) -> None:
    """Contexts carry the newest pairs, and answers are sampled anew from the weights as they are."""
    trainer = judging(tmp_path, max_steps=3)
    trainer.train()
    contexts = trainer.curriculum.asked_contexts
    assert [c.count("task") for c in contexts] == [1] * 12 + [3] * 24
    pair = rw.judges.Exemplar("task 1=", 0.25)
    assert LetterFormat().context([pair], "task 2=") == "task 1=9 task 2="
    assert len({tuple(j.answer_ids) for _, js in trainer.prepared for j in js.values()}) > 20


def test_no_answer_can_be_read(tmp_path: Path) -> None:
    """Every judgment fails: batches are drawn uniformly, each judgment earns 0, training goes on."""

    class Unreadable(LetterFormat):
        def read(self, answer: str) -> float | None:
            return None

    curriculum = ToyMETIS(seed=3, judge_weight=0.5, candidate_multiplier=3, exemplars=2, format=Unreadable())
    trainer = judging(tmp_path, max_steps=4, curriculum=curriculum)
    trainer.train()
    assert {lesson.reward for lesson in curriculum.taught} == {0.0}
    assert curriculum.metrics()["judge_failure_rate"] == 1.0
    assert curriculum.metrics()["told"] == 4 * PROMPTS


def test_a_context_too_long_loses_exemplars_and_never_the_candidate(tmp_path: Path) -> None:
    """The model holds 64 tokens, an answer 5; a pair takes 8 or 9 characters and a space, the candidate 7 or 8."""

    class Long(ToyMETIS):
        pass

    curriculum = Long(seed=3, judge_weight=0.5, candidate_multiplier=3, exemplars=9, format=LetterFormat())
    trainer = judging(tmp_path, max_steps=4, curriculum=curriculum)
    trainer.train()
    assert curriculum.metrics()["exemplars_cut"] > 0
    last = trainer.prepared[-1][1].values()
    assert all(0 < len(j.context_ids) <= 59 for j in last)
    assert all(j.exemplars < 9 for j in last)
    shown = {"".join(trainer.processing_class.convert_ids_to_tokens(j.context_ids)) for j in last}
    asked = {"task " + context.split("task ")[-1] for context in curriculum.asked_contexts[-12:]}
    assert {"task " + context.split("task ")[-1] for context in shown} == asked


def test_a_candidate_too_long_for_the_model_is_not_asked_about(tmp_path: Path) -> None:
    from datasets import Dataset

    rows = [{"prompt": ("x" * 57 if i % 2 else "task") + f" {i}=", "threshold": 1} for i in range(24)]
    trainer = judging(tmp_path, max_steps=2, dataset=Dataset.from_list(rows), max_completion_length=2)
    trainer.train()
    assert trainer.curriculum.metrics()["too_long"] > 0
    assert trainer.curriculum.metrics()["told"] == 2 * PROMPTS


def test_a_model_that_no_question_fits_is_refused(tmp_path: Path) -> None:
    """It would train on prompts at random, under the method's name."""
    from datasets import Dataset

    rows = [{"prompt": "x" * 57 + f" {i}=", "threshold": 1} for i in range(24)]
    trainer = judging(tmp_path, max_steps=2, dataset=Dataset.from_list(rows), max_completion_length=2)
    with pytest.raises(
        rw.ConfigError, match="none of 12 questions to the policy fits its context, beside an answer of 5"
    ):
        trainer.train()


def test_a_judge_weight_of_zero_asks_and_does_not_train_the_judgments(tmp_path: Path) -> None:
    trainer = judging(tmp_path, weight=0.0, max_steps=2)
    trainer.train()
    assert trainer._judge_batches == []
    assert len(trainer.curriculum.taught) == 2 * PROMPTS
    assert all("judge/loss" not in line for line in trainer.state.log_history)


def test_a_model_with_a_chat_template_and_one_without() -> None:
    question = rw.Question("q0", "a", "1+1=", (rw.judges.Exemplar("2+2=", 0.25),), rw.judges.WordsFormat())
    tokenizer = character_tokenizer()
    encode = QuestionEncoder(tokenizer, window=None).encode
    assert len(encode(question).ids) == 1 + len(rw.judges.plain_text(question.context()))  # a token a character
    system, user = (len(message["content"]) for message in question.context())
    tokenizer.chat_template = "{% for m in messages %}+{{ m.content }}-{% endfor %}"
    assert len(encode(question).ids) == system + user + 4  # a template adds its own start
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "+{{ m.content }}-{% endfor %}"
    )
    assert len(encode(question).ids) == system + 2 + user + 2  # one message, with two line breaks between


def test_an_answer_is_begun_for_the_model() -> None:
    """The same context with the beginning of a box behind it; with exemplars cut, the beginning stays."""
    exemplars = (rw.judges.Exemplar("2+2=", 0.25), rw.judges.Exemplar("3+3=", 0.0))
    forms = rw.judges.WordsFormat(), rw.judges.BoxedFormat()
    words, boxed = (rw.Question("q0", "a", "1+1=", exemplars, form) for form in forms)
    tokenizer = character_tokenizer()
    encode = QuestionEncoder(tokenizer, window=None).encode
    begun = tokenizer(r"\boxed{0.", add_special_tokens=False)["input_ids"]
    assert encode(boxed).ids == encode(words).ids + begun
    window = len(encode(boxed).ids) - 1
    narrow = QuestionEncoder(tokenizer, window=window).encode(boxed)
    assert narrow.exemplars == 1
    assert narrow.ids[-len(begun) :] == begun


def test_a_value_model_goes_on_from_its_files(tmp_path: Path) -> None:
    """PCL with the paper's kind of judge: a second model, beside the policy and from its folder, in the checkpoint."""
    policy = tmp_path / "policy"
    toy_model().save_pretrained(policy)
    toy_tokenizer().save_pretrained(policy)

    def run(out: Path, resume: bool = False) -> Any:
        pcl = rw.PCL(seed=3, judge="value-model", candidate_multiplier=3, judge_options={"learning_rate": 1e-3})
        model = Qwen2ForCausalLM.from_pretrained(policy)
        trainer = make_trainer(out, curriculum=pcl, model=model, save_strategy="steps", save_steps=3, max_steps=6)
        trainer.train(resume_from_checkpoint=resume or None)
        return trainer

    straight = run(tmp_path / "straight")
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = run(tmp_path / "again", resume=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    asked = [curriculum.ask(8) for curriculum in (straight.curriculum, resumed.curriculum)]
    assert [t.predicted for t in asked[0]] == [t.predicted for t in asked[1]]
    assert any(t.predicted is not None for t in asked[0])


class FakeEngine:
    """Answers as TRL's vLLM engine does: prompt ids, completion ids, log-probabilities of each token, and more."""

    def __init__(self, longest: int) -> None:
        self.max_completion_length = longest
        self.calls: list[tuple[int, int, int]] = []
        self.synced = 0

    def sync_weights(self) -> None:
        self.synced += 1

    def generate(self, *, prompts: Any, images: Any, num_generations: int, profiler: Any) -> Any:
        self.calls.append((len(prompts), num_generations, self.max_completion_length))
        answers = [[5, 1] for _ in prompts]
        return prompts, answers, [[[0.0]] * 2 for _ in prompts], None


@pytest.mark.parametrize("kind", [JudgingGRPO, JudgingRLOO])
def test_a_served_engine_is_asked_for_short_answers_one_a_question(kind: type, tmp_path: Path) -> None:
    """The engine is a fake: what is checked is what reaches it, and that its limits are put back."""
    trainer = judging(tmp_path, kind=kind)
    engine = FakeEngine(longest=8)
    trainer.use_vllm, trainer.vllm_generation, trainer._last_loaded_step = True, engine, -1
    questions = [rw.Question(f"q{i}", f"p{i}", f"task {i}=", (), LetterFormat()) for i in range(10)]
    judgments = trainer._judge(questions, per_call=4)
    assert engine.calls == [(4, 1, 5), (4, 1, 5), (2, 1, 5)]
    assert (engine.synced, engine.max_completion_length) == (1, 8)
    assert [(j.question_id, j.answer_ids) for j in judgments] == [(f"q{i}", [5, 1]) for i in range(10)]
    assert trainer.num_generations == 4
