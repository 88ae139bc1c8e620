"""Tools in a TRL trainer: the environment, its options, and which tokens the policy wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trl.chat_template_utils import supports_tool_calling

from rollwise.errors import ConfigError
from rollwise.tasks import Task
from rollwise.tasks.tool_conversation import ToolTask


def environment_arguments(task: Task, *, trainer: str, tokenizer: Any) -> dict[str, Any]:
    """Further arguments of the trainer: `environment_factory` for a task with tools, nothing for any other.

    Raises:
        ConfigError: the trainer has no environments, or the chat template drops tool calls.
    """
    if not isinstance(task, ToolTask):
        return {}
    check_trainer(task, trainer)
    if not supports_tool_calling(tokenizer):
        raise ConfigError(
            f"task {task.name!r} calls tools, but the model's chat template renders no tool calls; choose an instruct "
            "model whose template does, such as those of the Qwen2.5 or Qwen3 families"
        )
    return {"environment_factory": task.environment}


def check_trainer(task: Task, trainer: str) -> None:
    """`ConfigError` for a task with tools and a trainer that has none."""
    if isinstance(task, ToolTask) and trainer != "grpo":
        raise ConfigError(f"task {task.name!r} calls tools, which TRL's {trainer!r} trainer can't; use trainer 'grpo'")


def environment_options(task: Task) -> dict[str, Any]:
    """Fields of `GRPOConfig` that a task with tools implies; none for any other.

    >>> from rollwise.tasks import make_task
    >>> environment_options(make_task("countdown"))
    {}
    """
    return {"max_tool_calling_iterations": task.max_tool_calls} if isinstance(task, ToolTask) else {}


def generated_lengths(completions: Sequence[Sequence[int]], tool_mask: Sequence[Sequence[int]] | None) -> list[int]:
    """How many tokens of each completion the policy wrote, tool results left out.

    Args:
        completions: B completions' tokens, tool results included.
        tool_mask: for each of these tokens 0 if it is of a tool's result, else 1; None without tools. The mask in a
            trainer's output will not do: `mask_truncated_completions` sets it to 0 on all of a truncated completion.

    >>> generated_lengths([[7, 8, 9, 9, 7], [7, 8, 7]], [[1, 1, 0, 0, 1], [1, 1, 1]])
    [3, 3]
    """
    return list(map(len, completions)) if tool_mask is None else list(map(sum, tool_mask))
