"""IPO and Teacher-SFT, by TRL's own trainers, as rows beside the runs of a plan: Frontier's Table 1 and appendix A.2.

    rollwise compare examples/compare/frontier.yaml
    python examples/baselines/offline.py ipo examples/compare/frontier.yaml --seed 0 --out offline/ipo-seed0
    python examples/baselines/offline.py teacher-sft examples/compare/frontier.yaml --seed 0 --out offline/sft-seed0
    rollwise report comparisons/frontier/runs/*/seed0 offline/*

Both start from the policy of the plan's baseline and are evaluated by its own evaluation, on its held-out prompts. The
policy rolls out as many prompts of the baseline's pool as the baseline trains on (steps x prompts_per_step, with
num_generations each), once. The tokens of these rollouts are what the run is charged for.

- ipo: of each prompt with right and wrong rollouts, one of each is a pair. TRL's `DPOTrainer` with `loss_type="ipo"`.
  The paper gives neither its pairs nor tau; `--beta` is TRL's name for tau.
- teacher-sft: the solver's answer to each of these prompts. TRL's `SFTTrainer`, on completions. The paper says only
  that solver answers to frontier prompts were trained on; here nothing else is.

The task is Countdown, which has a solver. PPO (SEC's Table 2) is not here: TRL 1.16 has no PPO trainer.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from rollwise.comparing.plan import read_plan
from rollwise.errors import ConfigError
from rollwise.models import load_policy
from rollwise.models.loading import save_policy
from rollwise.models.sampler import SamplingOptions, sample_prompts
from rollwise.runs.folder import RunFolder
from rollwise.sampling.own_task import task_of
from rollwise.sampling.scoring import task_scorer
from rollwise.sampling.setting import stop_texts
from rollwise.tasks.countdown.items import Item
from rollwise.tasks.countdown.search import demonstrated
from rollwise.terminal import make_console
from rollwise.training.arguments import trainer_arguments
from rollwise.training.config import TrainConfig
from rollwise.training.make_trainer import make_trainer
from rollwise.training.parts import curriculum_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["ipo", "teacher-sft"])
    parser.add_argument("plan", type=Path, help="a plan of `rollwise compare`, on Countdown")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--learning_rate", type=float, help="in place of the plan's")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--beta", type=float, default=0.1, help="IPO's tau")
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"{options.out} is there already; give a new folder")
    run(options)


def run(options: argparse.Namespace) -> None:
    """Roll out, train, evaluate before and after, and write the folder of a run."""
    plan = read_plan(options.plan)
    config = plan.config(plan.baseline, options.seed, options.out)
    task = task_of(config)
    if task.name != "countdown":
        raise ConfigError(f"the plan's task is {task.name!r}; the solver of this script solves countdown")
    before, begun, started = scores(config, task, Path(config.model)), time.time(), time.monotonic()
    model, tokenizer = load_policy(config.model)
    records = task.train_records(config.num_prompts or config.steps * config.prompts_per_step, config.seed)
    random.Random(config.seed).shuffle(records)
    records = records[: config.steps * config.prompts_per_step]
    rollouts, tokens = rolled_out(config, task, model, tokenizer, records)
    rows = {"ipo": pairs, "teacher-sft": solutions}[options.kind](config, task, records, rollouts)
    if not rows:
        raise ConfigError("no prompt has right and wrong rollouts; give a plan with another start or other levels")
    steps = fit(options, config, model, tokenizer, rows)
    seconds, policy = time.monotonic() - started, options.out / "policy"
    save_policy(model, tokenizer, policy)
    after = scores(config, task, policy)
    folder = RunFolder(options.out)
    folder.write_config({**config.to_dict(), "curriculum": options.kind, "kind": "offline", "trainer": config.trainer})
    folder.write_rewards(task.rewards.spec)
    spent = {"rollouts": len(records) * config.num_generations, "tokens": tokens, "wall_s": seconds}
    lines = [
        {"step": 0, "time": begun, "rollouts": 0, "tokens": 0, "wall_s": 0.0, **before},
        {"step": steps, "time": time.time(), **spent, "rows": len(rows), **after},
    ]
    folder.append(folder.metrics, lines)
    print(f"{options.out}: {len(rows)} rows of {len(records)} prompts, {tokens} tokens; {before} -> {after}")


def rolled_out(config: TrainConfig, task: Any, model: Any, tokenizer: Any, records: list[dict[str, Any]]) -> Any:
    """The texts and rewards of each record's rollouts, by id, and the tokens of all of them."""
    options = SamplingOptions(
        n=config.num_generations,
        temperature=config.temperature,
        max_new_tokens=config.max_completion_length or task.max_completion_length,
        stop=stop_texts(config, task),
        seed=config.seed,
    )
    score, by_id, found, tokens = task_scorer(task), {record["id"]: record for record in records}, {}, 0
    for batch in sample_prompts(model, tokenizer, list(by_id), [r["prompt"] for r in by_id.values()], options):
        for one in batch:
            found[one.id] = (one.texts, score(by_id[one.id], one.texts, one.token_ids)[0])
            tokens += sum(one.tokens)
    return found, tokens


def pairs(config: TrainConfig, task: Any, records: list[dict[str, Any]], rollouts: Any) -> list[dict[str, str]]:
    """A right and a wrong rollout of each prompt that has both."""
    rng, rows = random.Random(config.seed), []
    for record in records:
        texts, rewards = rollouts[record["id"]]
        solved = [reward >= task.rewards.spec.threshold for reward in rewards]
        if 0 < sum(solved) < len(solved):
            right = rng.choice([text for text, good in zip(texts, solved, strict=True) if good])
            wrong = rng.choice([text for text, good in zip(texts, solved, strict=True) if not good])
            rows.append({"prompt": record["prompt"], "chosen": right, "rejected": wrong})
    return rows


def solutions(config: TrainConfig, task: Any, records: list[dict[str, Any]], rollouts: Any) -> list[dict[str, str]]:
    """The solver's answer to each prompt that has right and wrong rollouts."""
    rng, mixed = random.Random(config.seed), {row["prompt"] for row in pairs(config, task, records, rollouts)}
    return [
        {"prompt": record["prompt"], "completion": demonstrated(task.style, puzzle(record), True, rng)}
        for record in records
        if record["prompt"] in mixed
    ]


def puzzle(record: dict[str, Any]) -> Item:
    return Item(tuple(record["nums"]), record["target"], category="", difficulty=0.0)


def fit(
    options: argparse.Namespace, config: TrainConfig, model: Any, tokenizer: Any, rows: list[dict[str, str]]
) -> int:
    """Train the model on the rows by TRL; the optimiser's steps."""
    shared = {
        "output_dir": str(options.out / "trl"),
        "per_device_train_batch_size": config.prompts_per_step,
        "learning_rate": options.learning_rate or config.learning_rate,
        "num_train_epochs": options.epochs,
        "seed": config.seed,
        "use_cpu": model.device.type == "cpu",
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        **{key: value for key, value in config.trainer_options.items() if key == "weight_decay"},
    }
    data = Dataset.from_list(rows)
    if options.kind == "ipo":
        arguments = DPOConfig(loss_type="ipo", beta=options.beta, **shared)
        trainer = DPOTrainer(model=model, args=arguments, train_dataset=data, processing_class=tokenizer)
    else:
        arguments = SFTConfig(completion_only_loss=True, **shared)
        trainer = SFTTrainer(model=model, args=arguments, train_dataset=data, processing_class=tokenizer)
    return int(trainer.train().global_step)


def scores(config: TrainConfig, task: Any, policy: Path) -> dict[str, float]:
    """The evaluation of `rollwise train` with the plan's options, of a policy in a folder."""
    own = replace(config, model=str(policy))
    arguments = trainer_arguments(own, task, Path(config.out or "") / "trl", begun=False)
    trainer = make_trainer(own, task, curriculum_of(own, task), None, arguments, make_console(stderr=True))
    found = trainer.evaluate()
    return {key.replace("eval_", "eval/", 1): found[key] for key in found if "pass@" in key or key == "eval_reward"}


if __name__ == "__main__":
    main()
