"""A curriculum on TRL's own trainers: one mixin over GRPOTrainer and RLOOTrainer.

TRL's data loader is left as a clock. Its rows are ignored; prompts are bound at the moment the trainer is about to
generate, so neither accelerate's look-ahead nor gradient accumulation can make a choice stale, and a resumed run does
not ask again for what it skips. Rank 0 asks and tells; the other ranks follow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np

from rollwise.curricula import Curriculum, JoinReport
from rollwise.errors import ConfigError
from rollwise.gates import DynamicSampling, Everything, Gate
from rollwise.options import Count, CountOrZero, Range, checked
from rollwise.runs.folder import RunFolder
from rollwise.training.generation.generation import Generation
from rollwise.training.generation.groups import Groups
from rollwise.training.generation.merging import COUNT, gather_rows, merge
from rollwise.training.generation.messages import Call, Inquiry, Judgment, Order, Screened
from rollwise.training.judging.judgments import JudgmentMixin
from rollwise.training.recording.phases import JUDGING, Phases
from rollwise.training.recording.recorder import Recorder
from rollwise.training.recording.trackers import PromptTable, takers
from rollwise.training.trainer.callbacks import NoOpAlarm
from rollwise.training.trainer.checkpoint_mixin import CheckpointMixin
from rollwise.training.trainer.dataset import check_prompts, pool_from_dataset, rows_of_pool, say_groups
from rollwise.training.trainer.evaluation_mixin import EvaluationMixin
from rollwise.training.trainer.refusals import (
    check_allocator,
    check_enough,
    check_hooks,
    check_launch,
    check_screening,
    curriculum_of,
    gate_of,
)
from rollwise.training.trainer.rollout_mixin import FailureOf, RolloutMixin
from rollwise.training.trainer.stopping import StopMixin
from rollwise.training.trainer.success import Success, success_index, with_success
from rollwise.training.trainer.timing_mixin import TimingMixin

_PER_ROLLOUT = ("totals", "advantages")
_MAIN = frozenset({"success", "abs_advantage", "frac_all_good", "frac_all_bad", "coverage", "effective_ratio"})
"""What TRL's logs get with log="main". The share of groups with contrast is 1 - TRL's own `frac_reward_zero_std`."""


class CurriculumMixin(StopMixin, EvaluationMixin, JudgmentMixin, RolloutMixin, CheckpointMixin, TimingMixin):
    """Put before a TRL trainer in a class's bases, it lets a curriculum choose every prompt.

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
        run: RunFolder | str | os.PathLike[str] | None = None,
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
        stop: Sequence[str] = (),
        probe_batch: Count | None = None,
        max_judgment_length: Count | None = None,
        judgments_per_step: CountOrZero = 8,
        **kwargs: Any,
    ) -> None:
        curriculum = curriculum_of(curriculum, curriculum_options, (*args, *kwargs.values()))
        check_hooks(type(self))
        success, args, kwargs = with_success(success, args, kwargs)
        self.phases = Phases()
        super().__init__(*args, **kwargs)
        self._stop_at(stop)
        check_launch(self.accelerator.num_processes)
        check_prompts(self)
        self.curriculum, self._logs_all = curriculum, log == "all"
        self._dataset_rows: np.ndarray = np.empty(0, dtype=np.int64)  # by slot of rank 0's pool
        self.success = success_index(success, self, curriculum)
        self.failure_of, self.probe_batch, self.max_judgment_length = failure_of, probe_batch, max_judgment_length
        self.gate = gate_of(self, gate)
        self._sampling = self.gate or DynamicSampling(Everything(), max_rounds=1)
        self.group_observers = list(group_observers or [])
        if trackers := takers(self.args.report_to):
            self.group_observers.append(PromptTable(trackers, every=prompt_table_every))
        self._judge_batches, self.before_save, self.after_evaluation = [], [], []
        self._evaluate_by(eval_aggregate, eval_temperature)
        if keep_best is not None:
            self._keep_best_by(keep_best)
        self._generations = self._clock = 0
        self._id_column, self._screened = id_column, Screened()
        self._begin(curriculum)
        self.add_callback(NoOpAlarm(self))
        if run is not None:
            Recorder(run, judgments_per_step=judgments_per_step).attach(self)

    def _begin(self, curriculum: Curriculum) -> None:
        """Check that the trainer can do what the curriculum asks for, and give it the model and the data set."""
        if curriculum.wants_answers:
            self._check_judging()
        self._screens = curriculum.probe_purpose == "screen"
        self._allocates = curriculum.allocator is not None
        self._weighs_prompts = curriculum.allocator is not None and curriculum.allocator.weight == "prompt"
        if self._screens:
            check_screening(self)
        if curriculum.allocator is not None:
            check_allocator(self, curriculum.allocator)
        curriculum.start_from(str(getattr(self.model, "name_or_path", "")))
        curriculum.follow(self.accelerator.unwrap_model(self.model), self._tokenizer, sharded=self._is_sharded())
        self._check_enough(self._on_main(self._bind))

    def _bind(self) -> int:
        """Join the curriculum to the data set, on rank 0, which alone asks it; the number of its prompts."""
        self._dataset_rows = rows_of_pool(self.curriculum, self.train_dataset, id_column=self._id_column)
        say_groups(self.curriculum)
        return len(self._dataset_rows)

    # ---- choosing and learning ----

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.model.training:
            return self._evaluate_batch(inputs)
        with self.phases.phase("other"):
            return self._generate_batch(inputs)

    def _generate_batch(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """What this rank trains on: probed, asked, rolled out and told."""
        processes, group = self.accelerator.num_processes, self.num_generations
        n_prompts, rest = divmod(len(inputs) * processes, group)
        if rest:
            raise ConfigError(f"{len(inputs)} rollouts a process do not make whole groups of {group}")
        if self.curriculum.counts_tokens:
            self._on_main(lambda: self.curriculum.count_tokens(int(self.state.num_input_tokens_seen)))
        generation = Generation(
            self.curriculum,
            self._sampling,
            dataset_rows=self._dataset_rows,
            kept=self._screened.groups,
            n_prompts=n_prompts,
            group=group,
            processes=processes,
            step=self.state.global_step + 1,
            clock=self._clock,
            probe_batch=self.probe_batch,
            advantages=self._advantages,
            told_advantages=None if self.success is None and not self._weighs_prompts else self._told_advantages,
        )
        trainable: list[Call] = []
        judgments: dict[str, Judgment] = {}
        while order := self._on_main(generation.order):
            if isinstance(order, Inquiry):
                judgments |= self._answer(order, generation)
            else:
                trainable += self._fulfil(order, generation)
        if self.curriculum.wants_answers:
            self._prepare_lessons(self._on_main(generation.lessons), judgments)
        chosen, sizes, awaited = self._on_main(lambda: (*generation.rows(), generation.awaited()))
        self._screened.retain(awaited)
        self._on_main(lambda: self._observe(generation))
        return self._merged(trainable, chosen, sizes)

    def _answer(self, inquiry: Inquiry, generation: Generation) -> dict[str, Judgment]:
        """Have the live policy judge the candidates, and tell the curriculum; the judgments by question."""
        started = time.perf_counter()
        with self.phases.phase(JUDGING):
            judgments = self._judge(inquiry.questions, max(1, generation.probe_batch // self.accelerator.num_processes))
        seconds = time.perf_counter() - started
        self._on_main(lambda: generation.advise(judgments, seconds=seconds))
        return {judgment.question_id: judgment for judgment in judgments}

    def _fulfil(self, order: Order, generation: Generation) -> list[Call]:
        """Roll out an order and tell what came of it; what of it may be trained on now."""
        kept = [self._screened.take(prompt_id) for prompt_id in order.screened]
        started = time.perf_counter()
        with self._as_one_call([n * len(rows) for n, rows in order.parts]):
            calls = [self._roll_out(rows, n, order.purpose) for n, rows in order.parts]
        seconds = time.perf_counter() - started
        self._on_main(lambda: generation.tell(kept, calls, first=self._generations == 0, seconds=seconds))
        self._generations += 1
        if order.purpose == "screen":
            self._screened.add(order, generation.step, calls)
        return [*(one.call for one in kept), *calls] if order.purpose == "train" else []

    def _merged(self, calls: list[Call], rows: list[int], sizes: list[int]) -> dict[str, Any]:
        """What this rank trains on: its share of the chosen `rows` of all calls and ranks, in groups of `sizes`."""
        if len(calls) == 1 and not self._batch_scale and rows == list(range(len(calls[0].rewards))):
            return calls[0].output
        n = len(rows) // self.accelerator.num_processes
        share = slice(self.accelerator.process_index * n, (self.accelerator.process_index + 1) * n)
        pad_token, device = self._tokenizer.pad_token_id, self.accelerator.device
        merged = merge(
            [
                {name: tensor.to(device) for name, tensor in call.output.items()}
                if call.whole
                else gather_rows(call.output, self.accelerator, pad_token)
                for call in calls
            ],
            rows,
            pad_token=pad_token,
            share=share,
            counted=any(COUNT in call.output for call in calls),
            multiple_of=getattr(self, "pad_to_multiple_of", None),
        )
        totals, advantages = (np.concatenate([getattr(c, name) for c in calls])[rows] for name in _PER_ROLLOUT)
        merged["advantages"] = self._advantages(totals, advantages, sizes)[share]
        return merged

    def _observe(self, generation: Generation) -> None:
        groups = generation.groups(self.train_dataset if self.group_observers else None, gated=self.gate is not None)
        numbers = {**groups.metrics(), **groups.curriculum}
        logged = {f"curriculum/{name}": value for name, value in numbers.items() if self._logs_all or name in _MAIN}
        for name, value in {**logged, **{f"gate/{name}": value for name, value in groups.gate.items()}}.items():
            self._metrics["train"][name].append(value)
        for observer in self.group_observers:
            observer(groups)

    def change_dataset(self, dataset: Any) -> JoinReport:
        """Go on with other prompts from the next generation on: the pool grows, shrinks, or both.

        Beliefs and open tickets stay with the prompts that both have, joined by id; the pool is then the whole of
        `dataset`. Rollouts that are made already are still trained on. TRL's data loader, which is no more than a
        clock here, goes on with the old data set, so an epoch is as long as it was. Call it between two steps, from a
        callback for example; with several processes on every one, with the same data (rank 0's curriculum takes it).

        Returns:
            How many prompts were found again, are new, and are gone.

        Raises:
            ConfigError: a stream, or fewer prompts than a step needs. Nothing has changed then.
            PoolError: no rows, or duplicate ids. Nothing has changed then.
        """
        report: JoinReport = self._on_main(lambda: self._rebind(dataset))
        self.train_dataset = dataset
        return report

    def _rebind(self, dataset: Any) -> JoinReport:
        pool = pool_from_dataset(dataset, id_column=self._id_column)
        self._check_enough(len(pool))
        report = self.curriculum.rebind(pool)
        self._dataset_rows = np.arange(len(pool))
        return report

    def _is_sharded(self) -> bool:
        """Whether the policy's weights lie in parts on several devices, so that no rank can read it alone."""
        plugin = getattr(self.accelerator.state, "deepspeed_plugin", None)
        return bool(self.is_fsdp_enabled) or (plugin is not None and plugin.zero_stage == 3)

    # ---- what can't be done is refused at the start ----

    def _check_enough(self, prompts: int) -> None:
        check_enough(self.args.generation_batch_size // self.num_generations, prompts)
