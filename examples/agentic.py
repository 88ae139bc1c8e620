"""A curriculum over conversations with tools, on a CPU: a tiny policy is warm-started, then trained.

python examples/agentic.py                      # the built-in boxes, with a tiny policy: about three minutes
python examples/agentic.py --task bfcl --model Qwen/Qwen3-4B-Instruct-2507     # wants a GPU, and bfcl-eval
"""

from __future__ import annotations

import argparse

from datasets import Dataset
from trl import GRPOConfig

import rollwise as rw
from rollwise.models import load_policy
from rollwise.models.tool_policy import tool_policy
from rollwise.tasks import make_task
from rollwise.training import CurriculumGRPOTrainer
from rollwise.training.generation.groups import Groups
from rollwise.training.trainer.environments import environment_arguments, environment_options


def main() -> None:
    """Train a few steps and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=("boxes", "bfcl"), default="boxes")
    parser.add_argument("--model", help="a folder or hub id of an instruct model; by default the tiny policy")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    if options.task == "bfcl" and options.model is None:
        parser.error("the tiny policy is for boxes; give an instruct --model for bfcl")

    task = make_task("boxes", turns=(1, 2), orders=1) if options.task == "boxes" else make_task("bfcl")
    tiny = options.model is None
    model, tokenizer = load_policy(tool_policy(task) if tiny else options.model)
    trainer = CurriculumGRPOTrainer(
        model=model,
        reward_funcs=task.reward,
        args=GRPOConfig(
            output_dir="runs/agentic",
            max_steps=options.steps,
            per_device_train_batch_size=64 if tiny else 8,
            gradient_accumulation_steps=1 if tiny else 8,
            num_generations=8,
            max_completion_length=task.max_completion_length,
            learning_rate=1e-3 if tiny else 1e-6,
            scale_rewards="none",
            use_cpu=tiny,
            bf16=not tiny,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            **environment_options(task),
        ),
        train_dataset=Dataset.from_list(task.train_records(1000, seed=0)),
        processing_class=tokenizer,
        curriculum=rw.PrioritizedReplay(seed=0),
        group_observers=[show],
        **environment_arguments(task, trainer="grpo", tokenizer=tokenizer),
    )
    trainer.train()


def show(groups: Groups) -> None:
    """One line a step: trajectory rewards, and how they spread within the groups."""
    spread = groups.rewards.std(axis=1)
    print(
        f"step {groups.step:3d}  reward {groups.rewards.mean():.3f}  mixed groups {(spread > 0).mean():.2f}", flush=True
    )


if __name__ == "__main__":
    main()
