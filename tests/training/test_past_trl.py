"""What a real TRL run logs with `log_completions=True` is read."""

from pathlib import Path

import pytest
from toys import toy_dataset, toy_model, toy_reward, toy_tokenizer
from trl import GRPOConfig, GRPOTrainer

from rollwise.errors import ConfigError
from rollwise.runs.past import read_past
from rollwise.runs.past_columns import Columns


def length(completion_ids: list[list[int]], **_: object) -> list[float]:
    return [float(len(ids)) for ids in completion_ids]


def test_the_completions_of_a_trl_run_are_read(tmp_path: Path) -> None:
    """Two generations, each trained on in two steps, so that TRL writes each batch twice."""
    args = GRPOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=8, gradient_accumulation_steps=1, steps_per_generation=2,
        num_generations=4, max_completion_length=8, max_steps=4, use_cpu=True, bf16=False, report_to="none",
        disable_tqdm=True, logging_steps=1, save_strategy="no", log_completions=True, num_completions_to_print=0,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=toy_model(), reward_funcs=[toy_reward, length], args=args, train_dataset=toy_dataset(8),
        processing_class=toy_tokenizer(),
    )  # fmt: skip
    trainer.train()
    with pytest.raises(ConfigError, match=r"toy_reward, length\); name one: --reward_column"):
        read_past(tmp_path)
    past = read_past(tmp_path, Columns(reward_column="toy_reward"))
    assert (past.kind, past.unit, past.steps) == ("trl", "characters", [1, 3])
    assert [len(group.rewards) for group in past.groups] == [4] * 8
    assert set(past.prompts.values()) == {f"task {i}=" for i in range(8)}
    assert "counted once" in past.notes[0]
