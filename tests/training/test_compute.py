"""The FLOPs of a run, worked out again from its rollouts and judgments: 2 P a token read or generated, 6 P trained."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from judging import JudgingRLOO, judging
from probing import lilo, probing
from toys import GROUP, PROMPTS, make_trainer, toy_dataset, toy_model, toy_tokenizer

import rollwise as rw
from rollwise.models.flops import FlopsPerToken
from rollwise.runs.folder import RunFolder
from rollwise.training import CurriculumRLOOTrainer, Recorder
from rollwise.training.trainer.checkpoint import seal

# Of toys.toy_model: 41 characters in 32 dimensions, and the norm after the last layer; then its one layer, with
# attention (4 matrices and 3 biases), 3 matrices of 32 x 64 and 2 norms.
P = 41 * 32 + 32 + (4 * 32 * 32 + 3 * 32) + 3 * 32 * 64 + 2 * 32
USES = ("read", "generated", "scored", "trained")


def lines_of(run: Path, log: str = "metrics") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / f"{log}.jsonl").read_text().splitlines()]


def recorded(trainer: Any, run: Path, **options: Any) -> list[dict[str, Any]]:
    Recorder(RunFolder(run)).attach(trainer)
    trainer.train(**options)
    return lines_of(run)


def length(prompt: str) -> int:
    return len(toy_tokenizer()(prompt)["input_ids"])


def rolled_out(run: Path) -> tuple[int, int, int]:
    """Tokens of all rollouts' prompts, and of the rollouts; those of both that are trained on."""
    read = generated = trained = 0
    for line in lines_of(run, "rollouts"):
        prompts = length(line["prompt"]) * len(line["tokens"])
        read, generated = read + prompts, generated + sum(line["tokens"])
        trained += (prompts + sum(line["tokens"])) * line["trained"]
    return read, generated, trained


def in_all(lines: list[dict[str, Any]]) -> dict[str, int]:
    return {use: sum(line.get(f"compute/{use}", 0) for line in lines) for use in USES}


def test_weights_are_counted_once_and_an_adapters_backward_pass_takes_less() -> None:
    model = toy_model()
    assert FlopsPerToken.of(model) == FlopsPerToken(read=2 * P, train=6 * P)
    model.requires_grad_(False)
    model.model.norm.weight.requires_grad_(True)
    assert FlopsPerToken.of(model) == FlopsPerToken(read=2 * P, train=4 * P + 2 * 32)


@pytest.mark.parametrize("expected", [False, True])
def test_judgments_are_charged_with_their_contexts_and_exemplars(tmp_path: Path, expected: bool) -> None:
    """3 candidates for each prompt, 2 exemplars from the second step on; each judgment that is taught is trained on."""
    trainer = judging(tmp_path / "t", max_steps=2, expected=expected)
    lines = recorded(trainer, tmp_path / "run")
    read, generated, trained = rolled_out(tmp_path / "run")
    flops = 0
    for line, (lessons, judgments) in zip(lines, trainer.prepared, strict=True):
        sizes = {j.question_id: len(j.context_ids) + len(j.answer_ids) for j in judgments.values()}
        assert len(sizes) == 3 * PROMPTS
        assert {j.exemplars for j in judgments.values()} == {0 if line["step"] == 1 else 2}
        assert line["judge_flops"] == 2 * P * sum(sizes.values())
        flops += line["judge_flops"]
        trained += sum(sizes[lesson.question_id] for lesson in lessons)
    contexts = [length(context) for context in trainer.curriculum.asked_contexts]
    assert sum(line["judge_context_tokens"] for line in lines) == sum(contexts) > 0
    assert in_all(lines) == {"read": read, "generated": generated, "scored": 0, "trained": trained}
    assert lines[-1]["flops"] == flops + 2 * P * (read + generated) + 6 * P * trained


def test_probes_are_charged_evaluations_are_not(tmp_path: Path) -> None:
    options = {"eval_dataset": toy_dataset(4), "eval_strategy": "steps", "eval_steps": 1, "max_steps": 2}
    lines = recorded(probing(tmp_path / "t", curriculum=lilo(), **options), tmp_path / "run")
    purposes = {line["purpose"] for line in lines_of(tmp_path / "run", "rollouts")}
    read, generated, trained = rolled_out(tmp_path / "run")
    assert purposes == {"measure", "train"}
    assert in_all(lines) == {"read": read, "generated": generated, "scored": 0, "trained": trained}
    assert lines[-1]["flops"] == 2 * P * (read + generated) + 6 * P * trained
    assert all("eval/pass@1" in line for line in lines)


def test_an_oracles_rollouts_are_not_charged(tmp_path: Path) -> None:
    curriculum = rw.Oracle(candidates=8, probe_rollouts=3, seed=3)
    lines = recorded(make_trainer(tmp_path / "t", curriculum=curriculum, max_steps=1), tmp_path / "run")
    read, generated, trained = rolled_out(tmp_path / "run")
    assert lines[-1]["uncharged_tokens"] > 0
    assert in_all(lines) == {"read": read, "generated": generated, "scored": 0, "trained": trained}


@pytest.mark.parametrize(
    ("options", "scored", "trained"),
    [
        pytest.param(
            {"num_iterations": 2, "beta": 0.1, "model": True}, 2, 2, id="old policy and reference, trained on twice"
        ),
        pytest.param({"kind": CurriculumRLOOTrainer}, 1, 1, id="rloo"),
        pytest.param({"steps_per_generation": 2}, 1, 1, id="mini-batches"),
    ],
)
def test_every_pass_over_the_rollouts_counts(
    tmp_path: Path, options: dict[str, Any], scored: int, trained: int
) -> None:
    if "model" in options:  # the reference is loaded from where the policy came from
        toy_model().save_pretrained(tmp_path / "policy")
        options["model"] = str(tmp_path / "policy")
    lines = recorded(make_trainer(tmp_path / "t", max_steps=2, **options), tmp_path / "run")
    read, generated, once = rolled_out(tmp_path / "run")
    assert once == read + generated
    steps = 1 if "num_iterations" in options or "steps_per_generation" in options else 2
    assert len(lines_of(tmp_path / "run", "rollouts")) == steps * PROMPTS
    assert in_all(lines) == {"read": read, "generated": generated, "scored": scored * once, "trained": trained * once}


def test_a_resumed_run_has_spent_what_a_straight_one_has(tmp_path: Path) -> None:
    options = {"kind": JudgingRLOO, "save_strategy": "steps", "save_steps": 3, "max_steps": 4, "accumulate": 2}
    straight = recorded(judging(tmp_path / "t", **options), tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    checkpoint = str(tmp_path / "t/checkpoint-3")
    resumed = recorded(judging(tmp_path / "t", **options), tmp_path / "again", resume_from_checkpoint=checkpoint)
    names = ["flops", "judge_flops", *(f"compute/{use}" for use in USES)]
    assert [[line[name] for name in names] for line in resumed] == [[line[name] for name in names] for line in straight]
    assert len(resumed) == 4


def test_a_run_that_began_without_counting_says_nothing_of_its_flops(tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": 1, "max_steps": 1}
    recorded(make_trainer(tmp_path / "t", **options), tmp_path / "run")
    record = tmp_path / "t/checkpoint-1/rollwise_logs.json"
    logs = json.loads(record.read_text())
    del logs["totals"]["flops"]
    record.write_text(json.dumps(logs))
    seal(record.parent)
    later = make_trainer(tmp_path / "t", **{**options, "max_steps": 2})
    lines = recorded(later, tmp_path / "run", resume_from_checkpoint=True)
    assert (lines[-1]["step"], lines[-1]["flops"]) == (2, None)
    assert lines[-1]["rollouts"] == 2 * PROMPTS * GROUP
