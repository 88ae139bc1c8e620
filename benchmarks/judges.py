"""How well judges predict the pass rates of prompts that they have not seen, and what a step of each costs.

    python benchmarks/judges.py [--task reversal countdown] [--steps 60] [--prompts 1024] [--rollouts 16]

The policy is the embedded one and stays as it is: its pass rates are sampled once, and a group told is `--group` of a
prompt's rollouts, drawn anew each time. Each step tells `--batch` of three quarters of the prompts; the other quarter
is what is predicted. Correlation is with the pass rate that all rollouts of a prompt give, whose own noise sets a
ceiling; AUC is of p (1 - p) as a score for whether a group's rewards differ at all. A step predicts 8 * `--batch`
candidates and learns from `--batch`; milliseconds are medians. About two minutes on one core.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import torch

import rollwise as rw
from rollwise.evaluation.calibration import expected_contrast, pearson_correlation, roc_auc
from rollwise.models import ValueModelJudge, add_features, embedded_policy, load_policy
from rollwise.models.sampler import SamplingOptions, sample_prompts
from rollwise.tasks import Task, make_task

MARKS = (5, 15, 60)


def sampled_rewards(task: Task, records: list[dict[str, Any]], policy: tuple[Any, Any], rollouts: int) -> np.ndarray:
    """(N, rollouts) in [0, 1]."""
    options = SamplingOptions(n=rollouts, max_new_tokens=task.max_completion_length, batch_size=256)
    rewards = np.empty((len(records), rollouts))
    ids, prompts = [str(i) for i in range(len(records))], [record["prompt"] for record in records]
    for batch in sample_prompts(*policy, ids, prompts, options):
        for group in batch:
            record = records[int(group.id)]
            columns = {name: [value] * rollouts for name, value in record.items() if name != "prompt"}
            rewards[int(group.id)] = task.reward(
                prompts=[record["prompt"]] * rollouts, completions=group.texts, **columns
            )
    return (rewards - task.reward_low) / (task.reward_high - task.reward_low)


def ceiling(rewards: np.ndarray) -> float:
    """The correlation that the true pass rates would have with those of k rollouts: the root of their reliability."""
    observed = rewards.mean(axis=1).var()
    noise = rewards.var(axis=1, ddof=1).mean() / rewards.shape[1]
    return float(np.sqrt(max(0.0, 1.0 - noise / observed)))


def drawn_groups(rewards: np.ndarray, rows: np.ndarray, group: int, rng: np.random.Generator) -> np.ndarray:
    """(K, group) of the rewards of K rows, without replacement."""
    columns = np.argsort(rng.random((len(rows), rewards.shape[1])), axis=1)[:, :group]
    return np.take_along_axis(rewards[rows], columns, axis=1)


def measure(judge: rw.Judge, pool: rw.PromptPool, rewards: np.ndarray, options: argparse.Namespace) -> list[float]:
    """Correlation and AUC after each of `MARKS` steps, then milliseconds to predict and to learn."""
    judge = judge.fresh()
    judge.bind(pool, seed=0)
    rng = np.random.default_rng(0)
    split = len(pool) * 3 // 4
    seen, unseen = np.arange(split), np.arange(split, len(pool))
    differ = drawn_groups(rewards, unseen, options.group, rng).std(axis=1) > 0
    row: list[float] = []
    predicting, learning = [], []
    for step in range(1, options.steps + 1):
        candidates = rng.choice(seen, size=min(8 * options.batch, split), replace=False)
        start = time.perf_counter()
        judge.predict(rw.Prompts(pool, candidates))
        middle = time.perf_counter()
        told = candidates[: options.batch]
        groups = drawn_groups(rewards, told, options.group, rng)
        count = np.full(len(told), float(options.group))
        between = time.perf_counter()
        judge.learn(rw.Prompts(pool, told), groups.mean(axis=1), groups.var(axis=1), count)
        predicting.append(middle - start)
        learning.append(time.perf_counter() - between)
        if step in MARKS:
            found = np.clip(judge.predict(rw.Prompts(pool, unseen)), 0.0, 1.0)
            correlation = pearson_correlation(found, rewards[unseen].mean(axis=1))
            row += [correlation, roc_auc(expected_contrast(found), differ)]
    return [*row, 1e3 * statistics.median(predicting), 1e3 * statistics.median(learning)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", default=["reversal", "countdown"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=1024)
    parser.add_argument("--rollouts", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(1)
    marks = [f"corr. {mark} | AUC {mark}" for mark in MARKS if mark <= options.steps]
    for name in options.task:
        task = make_task(name)
        folder = embedded_policy(task)
        policy = load_policy(folder)
        records = task.train_records(options.prompts, 0)
        rewards = sampled_rewards(task, records, policy, options.rollouts)
        pool = rw.PromptPool.from_records(records)
        start = time.perf_counter()
        pool = add_features(pool, *policy, column="features")
        seconds = time.perf_counter() - start
        print(
            f"\n{name}: {len(pool)} prompts, mean pass rate {rewards.mean():.2f}, correlation at most "
            f"{ceiling(rewards):.3f}; features of all prompts in {seconds:.1f} s\n"
        )
        print(f"| judge | {' | '.join(marks)} | predict, ms | learn, ms |")
        print("|---|" + "--:|" * (2 * len(marks) + 2))
        judges = {
            "text": rw.TextJudge(),
            "frozen, the task's vectors": rw.EmbeddingJudge(),
            "frozen, the policy's states": rw.EmbeddingJudge(column="features"),
            "value model, frozen": ValueModelJudge(folder, frozen=True),
            "value model": ValueModelJudge(folder),
            "value model, rate 1e-3": ValueModelJudge(folder, learning_rate=1e-3),
        }
        for label, judge in judges.items():
            *quality, predicting, learning = measure(judge, pool, rewards, options)
            cells = " | ".join(f"{value:.3f}" for value in quality)
            print(f"| {label} | {cells} | {predicting:.1f} | {learning:.1f} |", flush=True)


if __name__ == "__main__":
    main()
