"""A check of a completion's text, text -> bool: the baseline of a success head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rollwise.errors import ConfigError
from rollwise.plugins import told_true
from rollwise.sampling.rewards import load_reward
from rollwise.tasks import Task


@dataclass(frozen=True)
class TextCheck:
    """Whether a completion's text passes, by the text only.

    Attributes:
        name: In tables and messages.
        digest: Of its file or task: checks of equal digests are equal.
        function: Text -> bool.
    """

    name: str
    digest: str
    function: Callable[[str], bool] = field(repr=False, compare=False)

    def __call__(self, text: str) -> bool:
        """Whether the text passes.

        Raises:
            RewardError: the function fails, or gives something else than true or false.
        """
        return told_true(self.function, f"check {self.name!r}", f"text {text!r:.80}", text)

    def vote(self, text: str) -> str | None:
        """The text's answer to policy `check`: something if it passes, else None."""
        return "passed" if self(text) else None


def check_of(where: str | None, task: Task | None) -> TextCheck | None:
    """The check that `file.py:function` or `package.module:function` names, else the task's own; None without one."""
    if where is not None:
        function, digest = load_reward(where, what="check")
        return TextCheck(where, digest, function)
    own = None if task is None else task.text_check
    return None if task is None or own is None else TextCheck(f"that of {task.name}", f"task {task.name}", own)


def check_for(where: str | None, task: Task | None) -> TextCheck:
    """As `check_of`; `ConfigError` if there is none."""
    check = check_of(where, task)
    if check is None:
        whose = "these data bring" if task is None else f"task {task.name!r} in this style brings"
        raise ConfigError(f"policy 'check' needs a check of the text, and {whose} none: add --check file.py:function")
    return check
