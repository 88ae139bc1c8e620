"""What a script's run was made of, for `config.yaml`: in the words of `rollwise train`, so that all readers know it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from trl import RLOOTrainer

from rollwise.gates import GATES, DynamicSampling
from rollwise.models.loading import without_adapters
from rollwise.options import keyword_options
from rollwise.runs.names import SCRIPT
from rollwise.training.recording.facts import changed_options, plain, versions

_ROWS_AT_ONCE = 10_000

_COVERED = frozenset(
    {"output_dir", "seed", "max_steps", "learning_rate", "warmup_steps", "temperature", "max_completion_length"}
    | {"num_generations", "num_generations_eval", "scale_rewards", "normalize_advantages", "reward_weights"}
    | {"per_device_train_batch_size", "eval_strategy", "eval_steps", "save_strategy", "save_steps", "save_total_limit"}
    | {"accelerator_config", "dataloader_pin_memory", "debug", "hub_token", "push_to_hub_token"}
    | {"report_to", "run_name", "project", "logging_dir", "disable_tqdm", "data_seed", "generation_batch_size"}
)
"""Fields of the trainer's arguments that have a key of their own, follow from others, or change nothing."""


def script_config(trainer: Any, state: Any) -> dict[str, Any]:
    """`config.yaml` of a script's run, as plain values; the keys that `rollwise train` has too mean the same.

    Args:
        trainer: one with a curriculum, whose training begins.
        state: transformers' `TrainerState`, which knows how many steps there will be.
    """
    args, curriculum, gate, own = trainer.args, trainer.curriculum, trainer.gate, type(trainer)
    kind = "rloo" if isinstance(trainer, RLOOTrainer) else "grpo"
    scale = getattr(trainer, "scale_rewards", None) or ("group" if trainer.normalize_advantages else "none")
    facts = {
        "kind": SCRIPT,
        "model": model_name(trainer),
        "peft": _adapters(trainer.model),
        "curriculum": curriculum.method_name or type(curriculum).__name__,
        "curriculum_options": changed_options(curriculum),
        "curriculum_resolved": curriculum.options,
        **_gate(gate),
        "trainer": kind,
        "trainer_class": None if own.__module__.startswith("rollwise.") else f"{own.__module__}.{own.__qualname__}",
        "trainer_options": changed_arguments(args),
        "steps": state.max_steps,
        "prompts_per_step": _prompts_per_step(trainer),
        "num_generations": trainer.num_generations,
        "advantages": {"group": "std", "none": "centred"}.get(str(scale), scale),
        "learning_rate": args.learning_rate,
        "warmup_steps": args.warmup_steps,
        "temperature": args.temperature,
        "max_completion_length": trainer.max_completion_length,
        "micro_batch": args.per_device_train_batch_size,
        "reward": list(trainer.reward_func_names),
        "reward_weights": trainer.reward_weights.tolist(),
        "success": None if trainer.success is None else trainer.reward_func_names[trainer.success],
        "num_prompts": len(curriculum.pool),
        "train_dataset": data_facts(trainer.train_dataset),
        **_evaluation(trainer, state),
        "save_every": state.save_steps if args.save_strategy == "steps" else None,
        "keep_checkpoints": args.save_total_limit,
        "seed": args.seed,
        "report_to": ", ".join(args.report_to) or "none",
        "checkpoints": args.output_dir,
        "versions": versions(),
    }
    return {name: plain(value) for name, value in facts.items() if value is not None}


def model_name(trainer: Any) -> str:
    """The folder or hub id that the policy came from; its class where it was made in memory."""
    model = without_adapters(trainer.accelerator.unwrap_model(trainer.model))
    return str(getattr(model, "name_or_path", "") or type(model).__name__)


def changed_arguments(args: Any) -> dict[str, Any]:
    """Fields of a `GRPOConfig` or `RLOOConfig` that are not the defaults and have no key of their own.

    Tokens are masked, as transformers does it.
    """
    values = args.to_dict()
    defaults = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(args)
        if field.name not in _COVERED and field.name in values
    }
    if values.get("steps_per_generation") == values.get("gradient_accumulation_steps"):
        defaults.pop("steps_per_generation", None)
    found = {name: values[name] for name, default in defaults.items() if values[name] != plain(default)}
    return {name: value for name, value in found.items() if value is not None}


def data_facts(dataset: Any) -> dict[str, Any]:
    """Rows, columns, and a hash of what is in them; a data set with the same rows in the same order has the same."""
    digest = hashlib.sha256()
    columns = sorted(dataset.column_names)
    for batch in dataset.with_format("arrow").select_columns(columns).iter(batch_size=_ROWS_AT_ONCE):
        digest.update(json.dumps(batch.to_pylist(), default=str).encode("utf-8", "surrogatepass"))
    return {"rows": len(dataset), "columns": list(dataset.column_names), "fingerprint": digest.hexdigest()[:16]}


def _gate(gate: DynamicSampling | None) -> dict[str, Any]:
    if gate is None:
        return {"gate": "none", "gate_options": {}}
    kind = type(gate.gate)
    name = next((name for name, known in GATES.items() if known is kind), kind.__name__)
    given = gate.gate.options() | {option: getattr(gate, option) for option in keyword_options(DynamicSampling)}
    default = keyword_options(kind) | keyword_options(DynamicSampling)
    return {"gate": name, "gate_options": {k: v for k, v in given.items() if default.get(k, MISSING) != v}}


def _adapters(model: Any) -> dict[str, Any] | None:
    """What is not the default of each adapter of a PEFT model; None for a model without."""
    adapters = getattr(model, "peft_config", None)
    if not adapters:
        return None
    found = {}
    for name, config in adapters.items():
        default, own = type(config)().to_dict(), config.to_dict()
        changed = {key: value for key, value in own.items() if default.get(key) != value and value is not None}
        found[name] = {"peft_type": own["peft_type"], **changed}
    return found if len(found) > 1 else next(iter(found.values()))


def _prompts_per_step(trainer: Any) -> int | None:
    """Prompts that the curriculum is asked for at each step; None where a step is not one generation."""
    args = trainer.args
    if args.steps_per_generation != args.gradient_accumulation_steps:
        return None
    return int(args.generation_batch_size // trainer.num_generations)


def _evaluation(trainer: Any, state: Any) -> dict[str, Any]:
    given = trainer.eval_dataset
    sets = given if isinstance(given, Mapping) else {"": given}
    facts = {name: data_facts(one) for name, one in sets.items() if hasattr(one, "column_names")}
    return {
        "eval_prompts": sum(one["rows"] for one in facts.values()),
        "eval_dataset": facts.get("", facts) or None,
        "eval_every": state.eval_steps if trainer.args.eval_strategy == "steps" else None,
        "num_generations_eval": trainer.num_generations_eval,
        "eval_aggregate": trainer.eval_aggregate,
        "eval_temperature": trainer.eval_temperature,
    }
