"""Who scores the rollouts: a task's verifier, or a reward function of TRL's signature."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, MissingColumnError, RewardError, RollwiseError
from rollwise.outcome import RewardSpec
from rollwise.tasks import Task

_GIVEN = {"prompts", "completions", "completion_ids"}


class Scorer:
    """Calls the reward with a prompt's rollouts and checks what it gives.

    Args:
        function: TRL's signature: (prompts, completions, completion_ids, **columns) -> numbers, None for a rollout
            that can't be scored.
        name: For messages.
        spec: The range of rewards.
        failure: Why a completion is not a solution, in a word, where that can be told.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        spec: RewardSpec,
        failure: Callable[[Any, Mapping[str, Any]], str | None] | None = None,
    ) -> None:
        self.function, self.name, self.spec, self.failure = function, name, spec, failure

    def check(self, row: Mapping[str, Any]) -> None:
        """Find missing columns before anything is generated: by the signature and, for a task, a trial call.

        Raises:
            MissingColumnError: the function has a required parameter that is no column.
            TaskError: the task's verifier lacks a column.
        """
        parameters = inspect.signature(self.function).parameters.values()
        required = [
            p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        missing = [name for name in required if name not in _GIVEN and name not in row]
        if missing:
            raise MissingColumnError(
                f"{self.name} needs the column {missing[0]!r}, but the data has {', '.join(row)}; add or rename one"
            )
        if isinstance(getattr(self.function, "__self__", None), Task):
            self._call(row, [""], [[]])

    def __call__(
        self, row: Mapping[str, Any], texts: Sequence[str], token_ids: Sequence[Sequence[int]]
    ) -> tuple[list[float | None], list[str | None] | None]:
        """The rewards of a prompt's n rollouts, and why each failed, where that can be told.

        Raises:
            RewardError: the function fails, or gives something else than n finite numbers in range, or None.
        """
        try:
            given = self._call(row, texts, token_ids)
        except RollwiseError:
            raise
        except Exception as error:
            raise RewardError(f"{self.name} raised {error!r} for the prompt {row['prompt']!r:.80}; mend it") from error
        rewards = self._checked(given, row, len(texts))
        if self.failure is None:
            return rewards, None
        return rewards, [self.failure(completion, row) for completion in _completions(row, texts)]

    def solved(self, reward: float | None) -> bool | None:
        """Whether a rollout of this reward is solved; None where it could not be scored."""
        return None if reward is None else reward >= self.spec.threshold

    def _call(self, row: Mapping[str, Any], texts: Sequence[str], token_ids: Sequence[Sequence[int]]) -> Any:
        n = len(texts)
        columns = {name: [value] * n for name, value in row.items() if name not in ("prompt", "completion")}
        return self.function(
            prompts=[row["prompt"]] * n,
            completions=_completions(row, texts),
            **{**columns, "completion_ids": list(token_ids)},
        )

    def _checked(self, given: Any, row: Mapping[str, Any], n: int) -> list[float | None]:
        listed = given.tolist() if hasattr(given, "tolist") else given
        if inspect.isawaitable(listed):
            raise RewardError(f"{self.name} is asynchronous; give a plain function")
        if not isinstance(listed, list | tuple) or len(listed) != n:
            raise RewardError(f"{self.name} must give a list of {n} rewards, got {listed!r:.120}")
        return [None if value is None else self._number(value, row) for value in listed]

    def _number(self, value: Any, row: Mapping[str, Any]) -> float:
        about = f"{self.name} gave {value!r:.80} for the prompt {row['prompt']!r:.60}"
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise RewardError(f"{about}; a reward must be a number, or None for what can't be scored") from None
        if not math.isfinite(number):
            raise RewardError(f"{about}; a reward must be finite, or None for what can't be scored")
        slack = 1e-6 * (self.spec.high - self.spec.low)
        if not self.spec.low - slack <= number <= self.spec.high + slack:
            raise RewardError(
                f"{about}, outside [{self.spec.low:g}, {self.spec.high:g}]; say the range with --reward_low and "
                "--reward_high"
            )
        return number


def task_scorer(task: Task) -> Scorer:
    """The task's own verifier."""
    name = f"the reward of {task.name!r}"
    return Scorer(task.reward, name=name, spec=reward_spec_of(task), failure=task.failure_of)


def reward_spec_of(task: Task) -> RewardSpec:
    """The range of a task's rewards, and from where on they count as solved."""
    return RewardSpec(low=task.reward_low, high=task.reward_high, solved_at=task.solved_at)


def load_reward(where: str, *, what: str = "reward") -> tuple[Callable[..., Any], str]:
    """The function that `file.py:name` or `package.module:name` names, and a hash of its file.

    Args:
        where: As above.
        what: What the function is, for messages.

    Raises:
        ConfigError: there is no such file, module or function, or it can't be imported.
    """
    place, _, name = where.rpartition(":")
    if not place or not name.isidentifier():
        raise ConfigError(f"{what} must be file.py:function or package.module:function, got {where!r}")
    try:
        module = _load_file(Path(place), what) if place.endswith(".py") else importlib.import_module(place)
    except RollwiseError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{what} {where!r}: {place} can't be imported: {error!r}; give a path to a .py file, or an installed module"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        there = sorted(n for n, value in vars(module).items() if callable(value) and not n.startswith("_"))
        raise ConfigError(f"{what} {where!r}: {place} has no function {name!r}; it has {', '.join(there) or 'none'}")
    file = getattr(module, "__file__", None)
    return function, hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""


def _load_file(path: Path, what: str) -> Any:
    if not path.is_file():
        raise ConfigError(f"{what} file {str(path)!r} does not exist; give file.py:function")
    spec = importlib.util.spec_from_file_location(f"rollwise_{what}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{what} file {str(path)!r} can't be imported; give file.py:function")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _completions(row: Mapping[str, Any], texts: Sequence[str]) -> list[Any]:
    """In the form of the prompt: text, or an assistant's message, as TRL passes them."""
    if isinstance(row["prompt"], str):
        return list(texts)
    return [[{"role": "assistant", "content": text}] for text in texts]
