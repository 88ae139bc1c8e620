"""A curriculum on TRL's own trainers: one mixin over GRPOTrainer and RLOOTrainer.

TRL's data loader is left as a clock. Its rows are ignored; prompts are bound at the moment the trainer is about to
generate, so neither accelerate's look-ahead nor gradient accumulation can make a choice stale, and a resumed run does
not ask again for what it skips. Rank 0 asks and tells; the other ranks follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from rollwise.curricula import Curriculum
from rollwise.gates import DynamicSampling, Gate
from rollwise.options import Count, CountOrZero, Range, checked
from rollwise.training.generation.groups import Groups
from rollwise.training.recording.recorder import Recorder, RunPath, log_prompts
from rollwise.training.trainer.checkpoint_mixin import CheckpointMixin
from rollwise.training.trainer.dataset_mixin import DatasetMixin
from rollwise.training.trainer.generation_mixin import GenerationMixin
from rollwise.training.trainer.refusals import check_hooks, curriculum_of, gate_of
from rollwise.training.trainer.rollout_mixin import FailureOf
from rollwise.training.trainer.stopping import StopMixin
from rollwise.training.trainer.success import Success, success_index, with_success
from rollwise.training.trainer.timing_mixin import TimingMixin


class CurriculumMixin(GenerationMixin, StopMixin, DatasetMixin, CheckpointMixin, TimingMixin):
    """Put before a TRL trainer in a class's bases, it lets a curriculum choose every prompt.

    The trainer is `GRPOTrainer`, `RLOOTrainer` or a subclass of one: TRL's `GMPOTrainer`, or your own.

    Args:
        *args: the trainer's.
        curriculum: unbound (its pool is then made from `train_dataset`), or bound to a pool of the same prompts; or the
            name of a method, such as "recommended", which then has the seed of the trainer's arguments.
        curriculum_options: options of the method that `curriculum` names.
        run: a folder to write the run into, which report, watch and compare read; see `Recorder`.
        eval_aggregate: the score of several evaluation sets together: "mean" of the sets, "prompts" (each prompt weighs
            the same), or the name of the set that counts.
        eval_temperature: of the rollouts of evaluations; by default that of training, 0 for greedy decoding.
        keep_best: a score of the evaluations, as "pass@1" or "eval/NAME/pass@1", whose best checkpoint is kept besides
            `save_total_limit`, and saved when it is reached: `best` in `output_dir`. It is chosen on the evaluation
            prompts, so its score on them is too high.
        log: what TRL's logs, and so console and trackers, get of the curriculum: "main" six numbers, "all" every
            one. `metrics.jsonl` has all of them.
        prompt_table_every: with wandb or trackio, steps between two tables of the chosen prompts.
        gate: dynamic sampling, or a gate that is used so: groups it rejects are not trained on, further prompts are
            rolled out in their place. Every group is told to the curriculum all the same.
        id_column: the column of `train_dataset` with durable ids; the prompts' content where there is none.
        group_observers: called on rank 0 with the `Groups` of every generation.
        probe_batch: most rollouts of one call that only measures or screens prompts, and most judgments of one; by
            default as many as a step trains on, so that they need no more memory. More are quicker where there is room.
        max_judgment_length: most tokens of a judgment, where the curriculum asks the policy for them; by default what
            the judgment's format needs.
        judgments_per_step: judgments of a step that the run's `judgments.jsonl` gets, at most; 0 for none.
        success: the reward function, by its name or itself, that says which rollouts are solved: the curriculum, pass@k
            and reports go by its rewards, and the weighted sum of all is trained on. A function that is none of
            `reward_funcs` is called besides, with weight 0. By default the only function; of several, see
            `choose_success`.
        failure_of: given a completion and its row of the data set, the kind of failure in a word or two, None if it is
            solved; told as `Outcome.labels`. Called once for each rollout.
        match_uniform: multiply all advantages by one number, so that their mean square is that of prompts drawn at
            random (lanes "uniform", "explore" and "rail-explore"), as far as the curriculum knows it; see `Contrast`.
            For a learning rate that was tuned with uniform sampling.
        posterior_advantages: train on MaPP's posterior advantages: those of GRPO with `scale_rewards="group"`, as the
            curriculum's Beta belief about the prompt expects them. For rewards of 0 and 1, and for `MaPP`, `MoPPS` and
            `BOTS`. What is logged and told as a group's advantages are the trainer's own.
        skip_zero_advantage: leave rollouts whose advantage is 0 out of the update; see `SkipMixin`. Not for losses with
            other terms, as `beta` of GRPO adds one, and not with images. TRL's `entropy` and clip ratios are then of
            the other rollouts.
        stop: texts with which a completion ends, besides the end of text; it keeps them.
        **kwargs: the trainer's.

    Raises:
        ConfigError: the data set or the batch can't be served by the curriculum.
        SilentNoOpError: the curriculum could not take effect (other prompts, or a TRL whose hooks have moved); also
            raised while training, at the first step at which that shows.
    """

    @checked
    def __init__(
        self,
        *args: Any,
        curriculum: Curriculum | str,
        curriculum_options: Mapping[str, Any] | None = None,
        run: RunPath | None = None,
        eval_aggregate: str = "mean",
        eval_temperature: Annotated[float, Range(0.0, 10.0)] | None = None,
        keep_best: str | None = None,
        log: Literal["main", "all"] = "main",
        prompt_table_every: Count = 10,
        gate: DynamicSampling | Gate | None = None,
        id_column: str = "id",
        group_observers: list[Callable[[Groups], None]] | None = None,
        success: Success | None = None,
        failure_of: FailureOf | None = None,
        match_uniform: bool = False,
        posterior_advantages: bool = False,
        skip_zero_advantage: bool = False,
        stop: Sequence[str] = (),
        probe_batch: Count | None = None,
        max_judgment_length: Count | None = None,
        judgments_per_step: CountOrZero = 8,
        **kwargs: Any,
    ) -> None:
        curriculum = curriculum_of(curriculum, curriculum_options, (*args, *kwargs.values()))
        check_hooks(type(self))
        success, args, kwargs = with_success(success, args, kwargs)
        super().__init__(*args, **kwargs)
        self._check_start(stop)
        self.curriculum, self._logs_all, self._id_column = curriculum, log == "all", id_column
        self.failure_of, self.probe_batch, self.max_judgment_length = failure_of, probe_batch, max_judgment_length
        self.success = success_index(success, self, curriculum)
        self._sample_by(gate_of(gate), group_observers, posterior_advantages, match_uniform, skip_zero_advantage)
        log_prompts(self, every=prompt_table_every)
        self._evaluate_by(eval_aggregate, eval_temperature)
        self._save_by(keep_best)
        self._begin(curriculum)
        if run is not None:
            Recorder(run, judgments_per_step=judgments_per_step).attach(self)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.model.training:
            return self._evaluate_batch(inputs)
        with self.phases.phase("other"):
            return self._generate_batch(inputs)
