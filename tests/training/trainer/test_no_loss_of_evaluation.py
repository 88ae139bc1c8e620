"""An evaluation rolls out and scores; the loss of held-out prompts is computed only where something compares it."""

from pathlib import Path
from typing import Any

import pytest
from toys import make_trainer, toy_dataset, toy_model

from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer


def passes(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of which batches (rows each) the loss is computed."""
    seen: list[int] = []
    real = trainer.compute_loss

    def compute_loss(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(len(inputs["completion_ids"]))
        return real(model, inputs, *args, **kwargs)

    monkeypatch.setattr(trainer, "compute_loss", compute_loss)
    return seen


@pytest.mark.parametrize("kind", [CurriculumGRPOTrainer, CurriculumRLOOTrainer])
def test_it_is_computed_only_if_checkpoints_are_compared_by_it(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(tmp_path, kind=kind, eval_dataset=toy_dataset(8))
    seen = passes(trainer, monkeypatch)
    scores = trainer.evaluate()
    assert not seen
    assert 0 <= scores["eval_pass@1"] <= 1
    assert "eval_loss" not in scores

    trainer.args.metric_for_best_model = "loss"
    compared = trainer.evaluate()
    assert sum(seen) == 8 * trainer.num_generations_eval
    assert compared.pop("eval_loss") == pytest.approx(0.0, abs=1.0)
    clocks = {"eval_runtime", "eval_samples_per_second", "eval_steps_per_second"}
    assert {k: v for k, v in scores.items() if k not in clocks}.items() <= compared.items()


def test_grpo_makes_no_other_pass_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With vLLM, for the ratio of the two engines' probabilities; with `beta`, by the reference."""
    toy_model().save_pretrained(tmp_path / "model")  # the reference is read from there
    trainer = make_trainer(tmp_path, model=str(tmp_path / "model"), eval_dataset=toy_dataset(8), beta=0.1)
    generate, models = trainer._generate_single_turn, []

    def by_vllm(*args: Any, **kwargs: Any) -> Any:
        trainer.use_vllm = False
        completions, _ = generate(*args, **kwargs)
        trainer.use_vllm = True
        return completions, [[-1.0] * len(ids) for ids in completions]

    log_probabilities = trainer._get_per_token_logps_and_entropies

    def counted(model: Any, *args: Any, **kwargs: Any) -> Any:
        models.append("policy" if model is trainer.model else "reference")
        return log_probabilities(model, *args, **kwargs)

    monkeypatch.setattr(trainer, "_generate_single_turn", by_vllm)
    monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", counted)
    trainer.use_vllm = True
    scores = trainer.evaluate()
    assert not models
    assert 0 <= scores["eval_pass@1"] <= 1
    assert trainer.beta == 0.1
    assert trainer.vllm_importance_sampling_correction

    trainer.args.metric_for_best_model = "loss"
    assert "eval_loss" in trainer.evaluate()
    assert {"policy", "reference"} == set(models)
