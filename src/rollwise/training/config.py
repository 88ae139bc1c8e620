"""Every option of `rollwise train`, in one dataclass: the command line and YAML files are both read into it.

Imports nothing heavy, so that `rollwise train --help` is quick.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from rollwise.curricula import check_run_options, curriculum_options, make_curriculum
from rollwise.errors import ConfigError
from rollwise.gates import make_dynamic_sampling
from rollwise.judges import CompactFormat
from rollwise.models.sources import EMBEDDED, JUDGING, made_here
from rollwise.options import (
    Count,
    CountFromTwo,
    CountOrZero,
    NonEmptyText,
    PositiveShare,
    Range,
    Temperature,
    check_fields,
    check_options,
)
from rollwise.plugins import short_name
from rollwise.renamed import with_new_names, without_removed
from rollwise.sampling.config import SELECTION, OwnData
from rollwise.sampling.eval_sets import check_aggregate, eval_sources

NO_GATE = NO_ALLOCATOR = "none"
_EMBEDDED, _IN_A_PASS, _EVALUATED = 512, 8, 64  # by default; of a pretrained model in training, and evaluated


@dataclass(kw_only=True)
class TrainConfig(OwnData):
    """Options of a training run.

    Args:
        task: A built-in task: its prompts, and the verifier that rewards answers. `rollwise tasks` lists them. With
            `data` only the verifier is used. By default countdown, if there is no `data`.
        eval_data: Your own held-out prompts, given as `data` is; by default a fifth of `data`, chosen by a hash of each
            prompt. Several sets have names: `--eval_data.id a.jsonl --eval_data.ood b.jsonl`.
        task_options: The task's own options, for example `--task_options.levels [1,2]`.
        model: "embedded" is a tiny policy, warm-started on the task (a minute, then cached); "embedded-judging" can
            write judgments too, which METIS needs. Else a folder or hub id of any causal language model of
            transformers. Its weights are trained in float32, as in TRL; with `peft` they keep their precision.
        curriculum: The method that chooses the prompts. `rollwise curricula` lists them with their options.
        curriculum_options: The method's own options, for example `--curriculum_options.optimism 2`.
        gate: The rule that decides which groups are trained on; "none" trains on all of them. Further prompts are
            rolled out in place of rejected groups. `rollwise gates` lists them with their options.
        gate_options: The gate's own options, for example `--gate_options.max_rounds 4`.
        match_uniform: Multiply all advantages by one number, so that their mean square is that of prompts drawn at
            random. This keeps a learning rate that was tuned with uniform sampling. The method must draw some prompts
            at random, as exploration does.
        allocator: The rule that gives each prompt of a step its own number of rollouts, `num_generations` on average;
            "none" for the same number each. `rollwise allocators` lists them with their options.
        allocator_options: The allocator's own options, for example `--allocator_options.max_rollouts 32`.
        trainer: TRL's trainer: "grpo" or "rloo".
        trainer_options: Any further field of TRL's GRPOConfig or RLOOConfig, for example
            `--trainer_options.num_iterations 2`. They override the options here.
        steps: Optimiser steps in all.
        max_hours: Stop after the step in which the run has trained for this many hours, evaluations not counted.
            After a resume, the hours before it count too.
        token_budget: Stop after the step in which the run has generated this many tokens; for comparisons at
            equal compute.
        prompts_per_step: Prompts that are rolled out for each optimiser step, or with `mini_batch_prompts` for several.
        mini_batch_prompts: Divide the rollouts of `prompts_per_step` prompts among several optimiser steps, each on
            those of this many prompts. It must divide prompts_per_step. `steps`, `eval_every` and so on count optimiser
            steps.
        num_generations: Rollouts of each prompt; they are compared with one another.
        advantages: "centred": reward minus the group's baseline. "std": divided by the standard deviation too.
            "posterior": the expectation of "std" under the method's belief about the prompt (MaPP); for rewards of 0
            and 1, and the methods mapp, mopps and bots.
        skip_zero_advantage: Leave rollouts whose advantage is 0 out of the update. The gradient is the same, and a step
            takes less time. `entropy` and TRL's clip ratios are then of the other rollouts.
        learning_rate: Peak learning rate; constant after the warm-up, so that a run can be extended. 1e-6 is usual for
            a pretrained model, 3e-4 for the embedded one.
        warmup_steps: Steps over which the learning rate rises from 0.
        temperature: Sampling temperature of the rollouts.
        eval_temperature: Sampling temperature in evaluations; by default that of training, 0 for greedy decoding.
        max_completion_length: Most tokens of a rollout; by default the task's own limit, 512 for your own data.
        micro_batch: Rollouts in one forward and backward pass of one process; smaller needs less memory. By default 8
            with a pretrained model, 512 with the embedded policy.
        probe_batch: Most rollouts generated at once to measure or screen prompts and for the evaluation at the end, and
            most judgments at once; by default as many as a step trains on, and at the end as in the other evaluations.
            More are faster, and need more memory.
        max_judgment_length: Most tokens of a judgment, for methods that ask the policy (METIS); by default what the
            judgment's format needs.
        judgments_per_step: Most judgments of a step that are written to `judgments.jsonl`, for methods that ask the
            policy (METIS): the best, the worst, one that can't be read, and a sample; 0 for none.
        num_prompts: Size of the pool; by default 4000 for a task, and all prompts of your own data.
        profile: Folder of a `rollwise profile` of all these prompts. Its pass rates become the columns `difficulty` and
            `reference_pass_rates`, which AdaRFT, Ordered and BOTS use, and ADCL with `difficulty: column`.
        eval_prompts: Held-out prompts to evaluate on, of each set; 0 for no evaluation.
        eval_every: Steps between evaluations. There is also one before the first step, and one after the last.
        eval_every_tokens: In place of `eval_every`, generated tokens between evaluations: there is one after the first
            step that reaches each multiple of this number. So runs can be compared at the same tokens.
        num_generations_eval: Rollouts of each held-out prompt.
        eval_prompts_end: Held-out prompts, of each set, for a larger evaluation at the end of the run (`end/pass@1`,
            ... in `metrics.jsonl`); 0 for none.
        num_generations_end: Rollouts of each prompt in the evaluation at the end.
        eval_aggregate: The score of several sets together: "mean" of the sets, "prompts" (each prompt weighs the same),
            or the name of the set that counts.
        save_every: Steps between checkpoints. A killed run loses no more steps than these.
        keep_checkpoints: Number of newest checkpoints to keep.
        keep_best: Also keep the checkpoint with the highest score, saved when it is reached: `pass@1` of all sets, or
            `eval/NAME/pass@1` of one. It is `checkpoints/best` in the run's folder. It is chosen on the evaluation
            prompts, so its score on them is too high; report its score on another set.
        seed: Seed of all random numbers. The same seed, machine and versions give the same run.
        peft: Train a LoRA adapter: options of PEFT's LoraConfig, for example `--peft.r 16`.
        out: The run's folder; by default runs/TASK-CURRICULUM-seedSEED.
        report_to: The tracker to which TRL logs as well: none, tensorboard, trackio, wandb, ...
        log: Which numbers of the curriculum go to the tracker: "main" for six of them, "all" for every one. The run's
            folder always has all of them.
    """

    task: NonEmptyText | None = None
    eval_data: list[str] | str | dict[str, list[str] | str] | None = None
    task_options: dict[str, Any] = field(default_factory=dict)
    model: NonEmptyText = EMBEDDED
    curriculum: NonEmptyText = "recommended"
    curriculum_options: dict[str, Any] = field(default_factory=dict)
    gate: NonEmptyText = NO_GATE
    gate_options: dict[str, Any] = field(default_factory=dict)
    match_uniform: bool = False
    allocator: NonEmptyText = NO_ALLOCATOR
    allocator_options: dict[str, Any] = field(default_factory=dict)
    trainer: Literal["grpo", "rloo"] = "grpo"
    trainer_options: dict[str, Any] = field(default_factory=dict)
    steps: Count = 60
    token_budget: Count | None = None
    max_hours: Annotated[float, Range(0.0, 1e6, open_low=True)] | None = None
    prompts_per_step: Count = 64
    mini_batch_prompts: Count | None = None
    num_generations: CountFromTwo = 8
    advantages: Literal["centred", "std", "posterior"] = "centred"
    skip_zero_advantage: bool = False
    learning_rate: PositiveShare = 3e-4
    warmup_steps: CountOrZero = 10
    temperature: Temperature = 1.0
    eval_temperature: Annotated[float, Range(0.0, 10.0)] | None = None
    max_completion_length: Count | None = None
    micro_batch: Count | None = None
    probe_batch: Count | None = None
    max_judgment_length: Count | None = None
    judgments_per_step: CountOrZero = 8
    num_prompts: Count | None = None
    profile: NonEmptyText | None = None
    eval_prompts: CountOrZero = 256
    eval_every: Count = 10
    eval_every_tokens: Count | None = None
    num_generations_eval: Count = 4
    eval_prompts_end: CountOrZero = 0
    num_generations_end: Count = 8
    eval_aggregate: NonEmptyText = "mean"
    save_every: Count = 10
    keep_checkpoints: Count = 2
    keep_best: NonEmptyText | None = None
    seed: CountOrZero = 0
    peft: dict[str, Any] = field(default_factory=dict)
    out: NonEmptyText | None = None
    report_to: NonEmptyText = "none"
    log: Literal["main", "all"] = "main"

    def __post_init__(self) -> None:
        for name in ("model", "profile", "out"):
            if isinstance(getattr(self, name), os.PathLike):
                setattr(self, name, os.fspath(getattr(self, name)))
        check_fields(self)
        if self.seed >= 2**32:
            raise ConfigError(f"seed must be a whole number in [0, 2^32), got {self.seed!r}")
        if self.task is None and not self.data:
            self.task = "countdown"
        if self.num_prompts is None and not self.data:
            self.num_prompts = 4000
        self._check_own()
        if self.data:  # a task says its sets when it is made
            check_aggregate(self.eval_aggregate, eval_sources(self.eval_data))
        self._check_evaluations()
        self._check_mini_batch()
        self._check_choices()

    def _check_own(self) -> None:
        """Options of data and rewards: with `data` they must be whole, without it there is nothing for them."""
        self.check_own_data()
        if self.data and self.task is not None and self.rewards:
            raise ConfigError(
                f"prompts are scored by one of the two: task {self.task!r} or reward {self.reward!r}; leave one out"
            )
        if self.task is None and self.task_options:
            raise ConfigError(f"task_options {self.task_options!r} are given but no task; add --task NAME")
        if self.data:
            return
        columns = ("prompt_column", "answer_column", "category", "id")
        for name in ("reward", "eval_data", "system", "template", *columns, *SELECTION):
            if getattr(self, name) != getattr(OwnData, name, None):
                raise ConfigError(f"{name} describes your own data: give --data, or leave it out")

    def _check_evaluations(self) -> None:
        """Options that need evaluations."""
        for name in ("keep_best", "eval_every_tokens", "eval_prompts_end"):
            if getattr(self, name) and not self.eval_prompts:
                raise ConfigError(f"{name} {getattr(self, name)!r} needs evaluations: give eval_prompts above 0")

    def _check_mini_batch(self) -> None:
        """Whether `mini_batch_prompts` divides a step, and nothing else decides the same."""
        if self.mini_batch_prompts is None:
            return
        if self.prompts_per_step % self.mini_batch_prompts:
            raise ConfigError(
                f"mini_batch_prompts must divide prompts_per_step {self.prompts_per_step}, got "
                f"{self.mini_batch_prompts!r}"
            )
        for name in ("steps_per_generation", "gradient_accumulation_steps"):
            if name in self.trainer_options:
                raise ConfigError(f"mini_batch_prompts decides trainer_options {name!r}; leave one of them out")

    def _check_choices(self) -> None:
        """Options of a gate or an allocator need one, and the run's own options are not the method's."""
        if self.allocator == NO_ALLOCATOR and self.allocator_options:
            raise ConfigError(
                f"allocator_options {self.allocator_options!r} are given but no allocator; add for example allocator "
                "'knapsack'"
            )
        if self.gate == NO_GATE and self.gate_options:
            raise ConfigError(f"gate_options {self.gate_options!r} are given but no gate; add for example gate 'mixed'")
        check_run_options(self.curriculum_options)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        source = self.stem if self.data else short_name(str(self.task))
        return Path(self.out or f"runs/{source}-{short_name(self.curriculum)}-seed{self.seed}")

    def method_options(self) -> dict[str, Any]:
        """`curriculum_options`, the allocator, and with the embedded policy that judges, the format it was taught."""
        taught = self.model == JUDGING and "format" in curriculum_options(self.curriculum)
        allocator = {"allocator": {"name": self.allocator, **self.allocator_options}}
        return {
            **({"format": CompactFormat.name} if taught else {}),
            **({} if self.allocator == NO_ALLOCATOR else allocator),
            **self.curriculum_options,
        }

    def check_parts(self) -> None:
        """Raise `ConfigError` for a wrong option of the method or the gate, before anything heavy is imported."""
        curriculum = make_curriculum(self.curriculum, **self.method_options())
        if self.advantages == "posterior":
            curriculum.need_beta_belief()
        if self.gate != NO_GATE:
            make_dynamic_sampling(self.gate, **self.gate_options)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as written to `config.yaml`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainConfig:
        """The config that `to_dict` wrote, now or before; `ConfigError` for a name that is not an option."""
        values = without_removed("train", with_new_names("train", values))
        check_options("train", values, [f.name for f in fields(cls)])
        return cls(**values)

    @property
    def updates(self) -> int:
        """Optimiser steps that train on what one ask rolled out."""
        return self.prompts_per_step // (self.mini_batch_prompts or self.prompts_per_step)

    def batch(self, processes: int) -> tuple[int, int]:
        """Rollouts of one process in one pass, and passes an optimiser step, for this many processes.

        Raises:
            ConfigError: a step's rollouts can't be shared out evenly.
        """
        name = "prompts_per_step" if self.mini_batch_prompts is None else "mini_batch_prompts"
        rollouts = getattr(self, name) * self.num_generations
        if rollouts % processes:
            raise ConfigError(
                f"{name} x num_generations = {rollouts} rollouts can't be shared by {processes} processes; "
                f"start a number of them that divides {rollouts}"
            )
        share = rollouts // processes
        most = self.micro_batch or (_EMBEDDED if made_here(self.model) else _IN_A_PASS)
        passes = next(n for n in range(1, share + 1) if share % n == 0 and share // n <= most)
        return share // passes, passes

    def eval_batch(self, processes: int) -> int:
        """Rollouts that one process generates at once in an evaluation, for this many processes.

        Of a pretrained model 64, as nothing is kept for a backward pass; with `micro_batch` at most those of a step.
        """
        n, (most, passes) = self.num_generations_eval, self.batch(processes)
        if not made_here(self.model):
            most = max(most, min(_EVALUATED, most * passes)) if self.micro_batch else _EVALUATED
        return n * max(1, most // n)
