"""The interface of a task: prompts with an answer that can be verified, and the verifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from rollwise.errors import TaskError
from rollwise.options import Declared, Range, make
from rollwise.plugins import Registry, short_name
from rollwise.tickets.outcome import RewardSpec

Message = Mapping[str, Any]
Text = str | Sequence[Message]
HeldOut = Annotated[float, Range(0.01, 0.9)]
"""The share of a task's prompts that is held out."""


TASKS: Registry[type[Task]] = Registry("task", "tasks")
"""Name -> task. A subclass of `Task` with a `name` is in it once its module is imported."""


@dataclass(frozen=True, slots=True)
class TaskRewards:
    """How a task scores, as a trainer needs it.

    Attributes:
        functions: F reward functions of TRL's signature.
        weights: F weights of the sum that is trained on; None for all 1.
        success: the name of the function that says what is solved; None for the sum.
        spec: the range of what the curriculum is told.
        declared: whether that range is known; if not, a reward outside widens it.
    """

    functions: list[Callable[..., Any]]
    weights: list[float] | None
    success: str | None
    spec: RewardSpec
    declared: bool


class Task(Declared, ABC):
    """Prompts and their verifier; a new task is one subclass in one file: `class Mine(Task, name="mine")`.

    Rewards lie in [`reward_low`, `reward_high`], and a rollout counts as solved from `solved_at` on. Options are
    keyword-only arguments of `__init__`, which are checked before it runs and listed by the commands.

    Attributes:
        clean_first: The share of a warm start's demonstrations, the first ones, that are shown without errors. Above 0
            for tasks with answers so long that errors hide how they are found.
        text_style: The value of the option `style` for a pretrained model, where none is given; "" for the default.
    """

    name: ClassVar[str]
    reward_low: ClassVar[float] = 0.0
    reward_high: ClassVar[float] = 1.0
    solved_at: ClassVar[float] = 1.0
    clean_first: ClassVar[float] = 0.0
    text_style: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str | None = None, **more: Any) -> None:
        """Register a task under `name`, for commands and configuration files."""
        super().__init_subclass__(**more)
        if name is not None:
            cls.name = name
            TASKS[name] = cls

    @abstractmethod
    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records, the same ones for the same `seed`.

        Each holds `id` (durable, unique, derived from the content), `prompt` (text, or chat messages), `category`
        (text), `difficulty` (float, higher is harder), and the task's own columns that `reward` needs.
        """

    @abstractmethod
    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` held-out records of the same form; none is ever in `train_records`, whatever the seeds."""

    def eval_sets(self, n: int, seed: int) -> dict[str, list[dict[str, Any]]]:
        """The held-out records as sets by name, up to `n` in each; by default `eval_records` as "", without a name."""
        return {"": self.eval_records(n, seed)}

    @abstractmethod
    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """A reward for each completion, in TRL's signature: columns arrive as lists, extras are ignored."""

    @property
    def rewards(self) -> TaskRewards:
        """The verifier alone, and its range."""
        spec = RewardSpec(low=self.reward_low, high=self.reward_high, solved_at=self.solved_at)
        return TaskRewards([self.reward], None, None, spec, declared=True)

    @property
    @abstractmethod
    def max_completion_length(self) -> int:
        """The number of new tokens that is enough for this task's prompts."""

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """Texts with which an answer is complete, so that a completion ends there; () where only its end tells."""
        return ()

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """JSON-safe facts that decide what the task produces; caches are named by them."""

    def failure(self, completion: Text, record: Mapping[str, Any]) -> str | None:
        """Why `completion` does not solve the prompt of `record` (one of the task's records), in a word or two.

        None if it does, or if this task does not tell failures apart. Told as `Outcome.labels`, it lets a curriculum
        weigh kinds of failure.
        """
        return None

    @property
    def failure_of(self) -> Callable[[Text, Mapping[str, Any]], str | None] | None:
        """`failure`, where this task tells failures apart; None where it doesn't."""
        return self.failure if type(self).failure is not Task.failure else None

    @property
    def text_check(self) -> Callable[[str], bool] | None:
        """Whether a completion's text itself says that it is right; None where texts of this task don't say."""
        return None

    @property
    def warm_start(self) -> Task:
        """The task that an embedded policy is warm-started on: itself, unless its prompts are a user's."""
        return self

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` pairs of `prompt` and `completion` for a supervised warm start, none from the held-out prompts.

        Raises:
            TaskError: this task has none.
        """
        raise TaskError(
            f"task {self.name!r} has no demonstrations; start from a model that can already attempt it (--model), or "
            "write its method `demonstrations(n, seed, accuracy=None)`, as docs/tasks.md says"
        )


TASKS.base = Task


def make_task(name: str, **options: Any) -> Task:
    """The task called `name`, with its own options: built in, installed, or `file.py:Name` or `package.module:Name`.

    Raises:
        ConfigError: no task has that name, or it has no such option; the message lists the ones there are.

    >>> import rollwise.tasks
    >>> make_task("countdown", levels=(1, 2)).name
    'countdown'
    """
    kind = TASKS.find(name)
    if not hasattr(kind, "name"):
        kind.name = short_name(name)
    return make(f"task {name!r}", kind, options)


def with_all_columns(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with every column that one of them has, None where a row has none. `datasets` takes those of the first.

    >>> with_all_columns([{"a": 1}, {"a": 2, "hint": "b"}])
    [{'a': 1, 'hint': None}, {'a': 2, 'hint': 'b'}]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def answers_of(name: str, columns: Mapping[str, Any], completions: Sequence[Text]) -> list[str]:
    """The column `answer` as the reward of the task `name` is given it.

    Raises:
        TaskError: it is missing, not one for each completion, or holds something else than text.
    """
    answers = columns.get("answer")
    if answers is None or len(answers) != len(completions):
        raise TaskError(f"the reward of {name!r} needs the column 'answer', one for each completion")
    if wrong := [answer for answer in answers if not isinstance(answer, str)]:
        raise TaskError(
            f"the reward of {name!r} needs text in the column 'answer', got {wrong[0]!r:.80}; put it in quotes"
        )
    return list(answers)


def completion_text(completion: Text) -> str:
    """A completion's text: itself, or the contents of its assistant messages joined by line breaks.

    Raises:
        TaskError: it is neither text nor chat messages.

    >>> completion_text([{"role": "assistant", "content": "4"}])
    '4'
    """
    if isinstance(completion, str):
        return completion
    given = completion if isinstance(completion, list | tuple) else [completion]
    messages: list[Mapping[str, Any]] = [m for m in given if isinstance(m, Mapping)]
    if len(messages) != len(given):
        raise TaskError(f"a completion must be text or a list of chat messages, got {completion!r:.80}")
    # Only what the model said: an environment's own turns must not be able to earn the reward.
    spoken = [m for m in messages if m.get("role", "assistant") == "assistant"]
    return "\n".join(_content_text(m.get("content")) for m in spoken)


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):  # content blocks: [{"type": "text", "text": ...}, ...]
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""
