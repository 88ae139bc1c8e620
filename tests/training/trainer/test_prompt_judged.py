"""HIVE and PREPO on real trainers: they read the live policy, are charged for it, and resume exactly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import PROMPTS, flat_parameters, make_trainer, toy_model, toy_tokenizer

import rollwise as rw
from rollwise.models.flops import FlopsPerToken
from rollwise.models.reading.prompts import read_prompts
from rollwise.runs.folder import RunFolder
from rollwise.training import CurriculumRLOOTrainer, Recorder

MADE: dict[str, Any] = {"hive": lambda: rw.HIVE(seed=1), "prepo": lambda: rw.PREPO(seed=1, steps=4)}


def trained(out: Path, name: str, resume: str | None = None, **options: Any) -> Any:
    saving = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    trainer = make_trainer(out / "trainer", curriculum=MADE[name](), **{**saving, **options})
    Recorder(RunFolder(out / "run")).attach(trainer)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "run/metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("name", "candidates"), [("hive", 2 * PROMPTS), ("prepo", 5 * PROMPTS)])
def test_each_candidates_prompt_is_charged_once(name: str, candidates: int, tmp_path: Path) -> None:
    """2 P FLOPs for each token of each candidate of a step; of 24 prompts, an epoch of PREPO's is 20 and 4."""
    trainer = trained(tmp_path, name, max_steps=2, save_strategy="no", kind=CurriculumRLOOTrainer)
    flops = FlopsPerToken.of(trainer.accelerator.unwrap_model(trainer.model)).read
    for line in metrics(tmp_path):
        assert line["judge_questions"] == line["curriculum/candidates"] == candidates
        shortest, longest = (len(toy_tokenizer()(f"task {i}=")["input_ids"]) for i in (1, 11))
        assert candidates * shortest <= line["judge_context_tokens"] <= candidates * longest
        assert line["judge_flops"] == flops * line["judge_context_tokens"]
    spent = metrics(tmp_path)[-1]
    policy = {"read": flops, "generated": flops, "scored": flops, "trained": 3 * flops}
    trained_on = sum(line.get(f"compute/{use}", 0) * each for line in metrics(tmp_path) for use, each in policy.items())
    assert spent["flops"] == trained_on + sum(line["judge_flops"] for line in metrics(tmp_path))


def test_the_live_policy_is_read(tmp_path: Path) -> None:
    """What the judge says after training is what the trained policy says, not the first one."""
    trainer = trained(tmp_path, "prepo", learning_rate=1e-2)
    curriculum, model = trainer.curriculum, trainer.accelerator.unwrap_model(trainer.model)
    prompts = rw.Prompts(curriculum.pool, curriculum.pool.slots_of(curriculum.pool.ids))
    encoded = [toy_tokenizer()(text)["input_ids"] for text in prompts.texts]
    now = curriculum.judge.predict(prompts)
    assert now == pytest.approx(read_prompts(model, encoded, "perplexity", batch_size=24), rel=1e-5)
    assert not np.allclose(now, read_prompts(toy_model(), encoded, "perplexity", batch_size=24), rtol=0.01)


@pytest.mark.parametrize("name", MADE)
def test_a_resume_is_exact(name: str, tmp_path: Path) -> None:
    straight = trained(tmp_path, name)
    resumed = trained(tmp_path, name, str(tmp_path / "trainer/checkpoint-2"))
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.measured.tolist() == straight.curriculum.measured.tolist()
    asked = [[t.prompt_id for t in trainer.curriculum.ask(8)] for trainer in (straight, resumed)]
    assert asked[0] == asked[1]
