"""GRPO with a curriculum: a plain TRL script, in which the lines marked `# rollwise` are all that is new.

python examples/trl_script.py                           # Qwen2.5-0.5B-Instruct; wants a GPU
python examples/trl_script.py MODEL STEPS               # any model, as many steps
rollwise report runs/sums                               # what it did and why; also while it trains
"""

import random
import sys

import torch
from datasets import Dataset
from trl import GRPOConfig

from rollwise.training import CurriculumGRPOTrainer  # rollwise: in place of trl.GRPOTrainer

model = sys.argv[1] if len(sys.argv) > 1 else "Qwen/Qwen2.5-0.5B-Instruct"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100


def make_sum(digits: int) -> dict[str, str]:
    """One row: a prompt, its answer, and what kind of sum it is."""
    a, b = (random.randrange(10 ** (digits - 1), 10**digits) for _ in range(2))
    return {"prompt": f"{a}+{b}=", "answer": str(a + b), "type": f"{digits} digits"}


def correct(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 for a completion that begins with the answer."""
    return [float(text.strip().startswith(right)) for text, right in zip(completions, answer, strict=True)]


random.seed(0)
trainer = CurriculumGRPOTrainer(  # rollwise
    model=model,
    reward_funcs=correct,
    args=GRPOConfig(
        output_dir="runs/sums/checkpoints",
        max_steps=steps,
        per_device_train_batch_size=16,
        num_generations=8,
        max_completion_length=16,
        logging_steps=1,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
    ),
    train_dataset=Dataset.from_list([make_sum(1 + i % 4) for i in range(400)]),
    curriculum="recommended",  # rollwise: the method that chooses the prompts
    curriculum_options={"category": "type"},  # rollwise: the column that says which prompts are alike
    run="runs/sums",  # rollwise: where report, watch and compare find the run
)
trainer.train()
