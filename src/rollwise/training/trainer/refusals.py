"""What a trainer with a curriculum can't do, refused when it is made."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from typing import Any

import trl
from transformers import TrainingArguments

from rollwise.allocators import Allocator
from rollwise.curricula import Curriculum, make_curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.gates import DynamicSampling, Gate

_HOOKS = {
    "_generate_and_score_completions": ["self", "inputs"],
    "_calculate_rewards": ["self", "inputs", "prompts", "completions", "completion_ids_list"],
    "compute_loss": ["self", "model", "inputs", "return_outputs", "num_items_in_batch"],
    "_save_checkpoint": ["self", "model", "trial"],
    "_load_optimizer_and_scheduler": ["self", "checkpoint"],
}
_RANKS = frozenset({"RANK", "LOCAL_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"})
_COMMAND = "torchrun --nproc_per_node 2 -m rollwise train ..."


def check_launch(processes: int | None = None) -> None:
    """Refuse a launch of several processes that would each train alone.

    Args:
        processes: number of ranks that train together; None where torch.distributed is not initialised yet.

    Raises:
        ConfigError: the environment is that of a launch of several processes, and this one is alone, or will be.
    """
    world = os.environ.get("WORLD_SIZE", "")
    several = world not in ("", "1")
    if several and (processes == 1 or not _RANKS & os.environ.keys()):
        raise ConfigError(
            f"WORLD_SIZE is {world}, but no launcher has given this process a rank, so torch.distributed is not "
            f"initialised; start all processes by {_COMMAND}, or unset WORLD_SIZE"
        )
    by_accelerate = {"ACCELERATE_MIXED_PRECISION", "MASTER_PORT"} <= os.environ.keys()
    if by_accelerate and processes in (None, 1) and not world and not _RANKS & os.environ.keys():
        raise ConfigError(  # accelerate names a port where it is to start several processes
            "accelerate launch was to start several processes and started this one alone, as it does with --cpu; start "
            f"them by {_COMMAND} (a script: torchrun --nproc_per_node 2 SCRIPT)"
        )


def curriculum_of(
    curriculum: Curriculum | str, options: Mapping[str, Any] | None, arguments: Iterable[Any]
) -> Curriculum:
    """The curriculum, or the one of that name, with the seed of the `TrainingArguments` among a trainer's arguments.

    Raises:
        ConfigError: it is neither, an unknown name or option, or options for a curriculum that is made already.
    """
    if isinstance(curriculum, Curriculum):
        if options:
            raise ConfigError("curriculum_options are for a curriculum given by name; give them to the curriculum")
        return curriculum
    if not isinstance(curriculum, str):
        raise ConfigError(
            f"curriculum must be a rollwise curriculum or its name, got {type(curriculum).__name__}; give for example "
            "rw.Recommended() or 'recommended'"
        )
    seeds = [one.seed for one in arguments if isinstance(one, TrainingArguments)]
    return make_curriculum(curriculum, **{"seed": seeds[0] if seeds else TrainingArguments.seed, **(options or {})})


def check_hooks(kind: type) -> None:
    """Refuse other trainers, and a TRL whose hooks are not where they were: they would train without the curriculum."""
    if not issubclass(kind, (trl.GRPOTrainer, trl.RLOOTrainer)):
        raise ConfigError(
            f"{kind.__name__} is neither a GRPOTrainer nor an RLOOTrainer of TRL: put CurriculumMixin before one of "
            "these, or before a subclass of one"
        )
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] in ("trl", "transformers")]
    for name, expected in _HOOKS.items():
        found = next((vars(base)[name] for base in bases if name in vars(base)), None)
        parameters = list(inspect.signature(found).parameters) if found else None
        if parameters != expected:
            raise SilentNoOpError(
                f"trl {trl.__version__} has {name}({parameters}) where {expected} is expected, so the curriculum "
                "would not take effect; use a version of trl that this rollwise names in its requirements"
            )


def check_enough(wanted: int, prompts: int) -> None:
    """`ConfigError` where a step needs more distinct prompts than the pool has."""
    if wanted > prompts:
        raise ConfigError(
            f"a step needs {wanted} distinct prompts but the pool has {prompts}, without those that are held out; give "
            "more prompts, or ask for fewer a step: a smaller prompts_per_step of rollwise train, or in a script of "
            "your own a smaller batch, or more num_generations"
        )


def gate_of(gate: DynamicSampling | Gate | None) -> DynamicSampling | None:
    """The gate as dynamic sampling."""
    return gate if gate is None or isinstance(gate, DynamicSampling) else DynamicSampling(gate)


def check_parts(trainer: Any) -> None:
    """Refuse options of a trainer, or of what stands for one that is to be made, that don't go with its other parts.

    Raises:
        ConfigError: its advantages can't be redone for a gate, or it can't do what its curriculum asks for.
    """
    if trainer.gate is not None and getattr(trainer, "multi_objective_aggregation", "") == "normalize_then_sum":
        raise ConfigError(
            'multi_objective_aggregation="normalize_then_sum" scales advantages over the batch, which can\'t be '
            'redone for the groups that a gate admits; use "sum_then_normalize", or no gate'
        )
    curriculum: Curriculum = trainer.curriculum
    if curriculum.probe_purpose == "screen":
        check_screening(trainer)
    if curriculum.allocator is not None:
        check_allocator(trainer, curriculum.allocator)
    if curriculum.wants_feedback:
        check_feedback(trainer)
    if trainer.posterior:
        check_posterior(trainer)
    if trainer.skip_zero_advantage:
        check_skip(trainer)


def check_allocator(trainer: Any, allocator: Allocator) -> None:
    """Groups of different size come of several calls, and can't have every feature of one."""
    allocator.bounds(trainer.num_generations)
    what = f"{type(trainer.curriculum).__name__} gives groups different sizes, by {type(allocator).__name__}"
    reasons = {
        "match_uniform compares groups of one size: train without it": trainer.match_uniform,
        **_not_by_several_calls(trainer),
    }
    _refuse(what, reasons)


def check_feedback(trainer: Any) -> None:
    """Gains are told once the rollouts have been trained on, which must be in one optimiser step."""
    args = trainer.args
    several = args.steps_per_generation * trainer.num_iterations != args.gradient_accumulation_steps
    reasons = {
        "several steps train on one generation: use num_iterations=1 and steps_per_generation equal to "
        "gradient_accumulation_steps, without mini_batch_prompts": several,
    }
    _refuse(f"{type(trainer.curriculum).__name__} learns from what one optimiser step gained on its rollouts", reasons)


def check_posterior(trainer: Any) -> None:
    """Posterior advantages need a Beta belief about each prompt, and nothing that scales them afterwards."""
    trainer.curriculum.need_beta_belief()
    spec = trainer.curriculum.reward_spec
    reasons = {
        'scale_rewards="batch" scales them again: use scale_rewards="group"': getattr(trainer, "scale_rewards", "")
        == "batch",
        "normalize_advantages scales them again: use normalize_advantages=False": bool(
            getattr(trainer, "normalize_advantages", False)
        ),
        "the rewards are in another range than 0 to 1: rescale them in the reward function": (spec.low, spec.high)
        != (0.0, 1.0),
        **_not_by_several_calls(trainer),
    }
    _refuse("posterior advantages are computed by group, of rewards of 0 and 1", reasons)


def check_skip(trainer: Any) -> None:
    """A rollout without an advantage can be left out where the loss has no other term with a gradient."""
    args, grpo = trainer.args, hasattr(trainer.args, "scale_rewards")  # RLOO's beta is in its rewards
    reasons = {
        "beta other than 0 adds the divergence from the reference: use beta=0.0": grpo and args.beta != 0.0,
        "an entropy bonus is of all of them: use entropy_coef=0.0, without use_adaptive_entropy": grpo
        and bool(args.entropy_coef or args.use_adaptive_entropy),
        "top_entropy_quantile chooses among the tokens of all of them: use top_entropy_quantile=1.0": grpo
        and args.top_entropy_quantile < 1.0,
        "the router's loss is of all of them: use router_aux_loss_coef=0.0": bool(
            getattr(trainer, "aux_loss_enabled", False)
        ),
    }
    _refuse("skip_zero_advantage leaves rollouts out of the loss", reasons)


def check_screening(trainer: Any) -> None:
    """A group of screened and later rollouts can't have every feature of one that was rolled out at once."""
    trainer.curriculum.check_screening(trainer.num_generations)
    vllm = getattr(trainer, "use_vllm", False)
    reasons = {
        "a gate would roll out further prompts in place of those that the screening has qualified: train without "
        "a gate": trainer.gate is not None,
        **_not_by_several_calls(trainer),
        "vLLM's importance sampling correction has not been tried with rollouts that wait for a step: use "
        "vllm_importance_sampling_correction=False": vllm
        and getattr(trainer, "vllm_importance_sampling_correction", False),
        "sync_ref_model changes the reference while screened rollouts wait: use sync_ref_model=False": bool(
            getattr(trainer.args, "sync_ref_model", False)
        ),
    }
    _refuse(f"{type(trainer.curriculum).__name__} trains on what it screened", reasons)


def _not_by_several_calls(trainer: Any) -> dict[str, bool]:
    """What is computed over one call to the generation, and can't be done again for groups of several."""
    return {
        "RLOO with beta other than 0 has the divergence in its rewards, which can't be redone for groups of several "
        "calls: use beta=0.0, or GRPO": not hasattr(trainer, "scale_rewards") and trainer.beta != 0.0,
        "reward_clip_range is not applied to groups of several calls: clip in the reward function": bool(
            getattr(trainer, "reward_clip_range", None)
        ),
        'multi_objective_aggregation="normalize_then_sum" scales each reward over its call, which can\'t be redone '
        'for groups of several calls: use "sum_then_normalize"': getattr(trainer, "multi_objective_aggregation", "")
        == "normalize_then_sum",
    }


def _refuse(what: str, reasons: Mapping[str, bool]) -> None:
    wrong = next((reason for reason, applies in reasons.items() if applies), None)
    if wrong is not None:
        raise ConfigError(f"{what}, but {wrong}")
