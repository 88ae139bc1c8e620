"""Stop texts end the completions that are trained on."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toys import make_trainer

from rollwise.errors import ConfigError
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer

STOP = ("1", "2", "3", "4", "5")


@pytest.mark.parametrize("kind", [CurriculumGRPOTrainer, CurriculumRLOOTrainer])
def test_completions_end_at_the_first_stop_text(kind: type, tmp_path: Path) -> None:
    """Nothing comes after one, it is kept, and a completion that ends with one is not counted as cut off."""
    seen: list[str] = []
    lengths: list[int] = []

    def reward(completions: list[str], completion_ids: list[list[int]], **_: Any) -> list[float]:
        seen.extend(completions)
        lengths.extend(map(len, completion_ids))
        return [float(text[-1:] in STOP) for text in completions]

    trainer = make_trainer(tmp_path, kind=kind, reward=reward, max_steps=2, extra={"stop": STOP})
    trainer.train()
    stopped = [text for text in seen if text[-1:] in STOP]
    assert len(stopped) > 5
    assert all(not set(STOP) & set(text[:-1]) for text in seen)
    assert min(lengths) < 8
    logged = [line for line in trainer.state.log_history if "completions/clipped_ratio" in line]
    ran_on = sum(length == 8 and text[-1:] not in STOP for text, length in zip(seen, lengths, strict=True))
    shares = [line["completions/clipped_ratio"] for line in logged]
    assert sum(shares) / len(shares) <= ran_on / len(seen) + 1e-6
    assert "generate" not in vars(trainer.accelerator.unwrap_model(trainer.model))


def test_what_counts_them_as_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mask_truncated_completions"):
        make_trainer(tmp_path, extra={"stop": STOP}, mask_truncated_completions=True)


def test_vllm_is_told_while_it_generates_completions_and_not_judgments(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, extra={"stop": STOP})
    trainer.vllm_generation = SimpleNamespace(generation_kwargs={"seed": 1})
    with trainer._stopped_vllm():
        told = dict(trainer.vllm_generation.generation_kwargs)
    assert told == {"seed": 1, "stop": list(STOP), "include_stop_str_in_output": True}
    assert trainer.vllm_generation.generation_kwargs == {"seed": 1}
