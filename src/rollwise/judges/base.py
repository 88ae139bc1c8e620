"""A judge predicts how prompts will fare before any rollout, and learns from how they did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import Declared, as_floats, shown
from rollwise.pool import PromptPool

Predicts = Literal["pass-rate", "variance"]
Measure = Literal["entropy", "perplexity"]
"""What is measured of a prompt's own tokens under the policy, whatever its rollouts earn."""
MAX_VARIANCE = 0.25
"""The greatest variance that scores in [0, 1] can have (METIS, section 3, footnote 1)."""


def highest(predicts: Predicts | Measure) -> float:
    """The greatest value of what is predicted: 1 of a pass rate, 1/4 of a variance, infinity of a measure."""
    return {"pass-rate": 1.0, "variance": MAX_VARIANCE}.get(predicts, np.inf)


def middle_of(predicts: Predicts | Measure) -> float:
    """The middle of the range of what is predicted: 1/2 of a pass rate, 1/8 of a variance."""
    return highest(predicts) / 2.0


def told_values(
    predicts: Predicts | Measure, mean: np.ndarray, variance: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows (R,) with a target this judge can learn from, and the values (M,).

    A group of one says nothing of its variance.
    """
    rows = np.flatnonzero((count > 1) | (predicts == "pass-rate"))
    return rows, mean if predicts == "pass-rate" else variance


class Prompts:
    """K prompts of a pool, as a judge sees them.

    Args:
        pool: the pool.
        slots: (K,) their rows.
        column: the pool's column of texts that the judge reads in place of the prompts; None for the prompts.

    Raises:
        MissingColumnError: the pool has no such column.

    >>> pool = PromptPool(ids=["a", "b"], prompts=["1+1=", [{"role": "user", "content": "2+2="}]])
    >>> Prompts(pool, np.array([1, 0])).texts
    ['2+2=', '1+1=']
    """

    def __init__(self, pool: PromptPool, slots: np.ndarray, *, column: str | None = None) -> None:
        self.pool, self.slots = pool, slots
        self.shown = None if column is None else shown_column(pool, column)

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def ids(self) -> list[str]:
        """K durable ids."""
        return [self.pool.ids[slot] for slot in self.slots]

    @property
    def prompts(self) -> list[Any]:
        """K prompts, text or chat messages; the texts of the named column, if there is one."""
        if self.shown is not None:
            return [str(self.shown[slot]) for slot in self.slots]
        return [self.pool.prompts[slot] for slot in self.slots]

    @property
    def texts(self) -> list[str]:
        """K texts: those of the named column, else the prompts' own."""
        return [prompt_text(prompt) for prompt in self.prompts]

    def column(self, name: str, judge: str, remedy: str) -> np.ndarray:
        """(K, ...) a column of the pool; `MissingColumnError` where it has none."""
        return np.asarray(self.pool.require(name, judge, remedy)[self.slots])


def shown_column(pool: PromptPool, column: str) -> np.ndarray:
    """(N,) the column of texts that a judge is shown in place of the prompts; `MissingColumnError` without it."""
    remedy = "add it, or leave judge_column out: the judge then reads the prompts"
    return np.asarray(pool.require(column, "the judge", remedy))


class Judge(Declared):
    """Predicts a number for each candidate; a curriculum ranks by it. Implement `predict`, and perhaps `learn`.

    It is handed over as it is and never changed: the curriculum works with what `fresh` returns. Its options are
    keyword-only arguments of `__init__`: checked, and saved.

    >>> import rollwise as rw
    >>> class ShortIsEasy(rw.Judge):
    ...     def predict(self, candidates):
    ...         return np.array([1 / len(text) for text in candidates.texts])
    >>> pool = rw.PromptPool(ids=["a", "b"], prompts=["12", "12345678"])
    >>> [t.prompt_id for t in rw.Judged(pool, judge=ShortIsEasy()).ask(1)]        # nearest to a pass rate of one half
    ['a']
    """

    predicts: Predicts | Measure = "pass-rate"
    """What the numbers are: pass rates in [0, 1] (mean scores), or variances of the scores in [0, 1/4]. Or they measure
    the prompt itself, for `HIVE` and `PREPO`: the mean entropy of its tokens in nats, or its perplexity."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What it was made with, JSON-safe: a state is refused by a judge of other options."""
        return self.saved_options()

    def fresh(self) -> Self:
        """A judge of these options that has learnt nothing; by default a new one of the same attributes."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def bind(self, pool: PromptPool, seed: int) -> None:
        """Prepare for this pool, and create everything that changes; random numbers come from `seed`."""

    def predict(self, candidates: Prompts) -> np.ndarray:
        """(K,) predictions; NaN where it has none."""
        return np.full(len(candidates), np.nan)

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        """Learn from all outcomes of one step; called when it is over.

        Args:
            told: M distinct prompts, in an order that does not depend on that of the tells.
            mean: (M,) mean scores in [0, 1].
            variance: (M,) variances of the scores, by METIS's equation 3.
            count: (M,) rollouts that they are of, 1 or more.
        """

    def metrics(self) -> dict[str, float]:
        """Numbers of its own."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """All that it has learnt, JSON-safe."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back `state_dict`, on a fresh judge that is bound."""

    # ---- a judge that is itself a model ----

    @property
    def reads_policy(self) -> bool:
        """Whether it can't predict without the policy."""
        return False

    def starting_from(self, source: str) -> Self:
        """This judge with all it has learnt, and the folder or hub id that the policy's weights came from."""
        return self

    def follow(self, model: Any, tokenizer: Any, *, sharded: bool = False) -> Judge:
        """This judge with all it has learnt, and the policy itself, whose weights it may read but not change.

        Args:
            model: the policy that is trained, unwrapped; its weights are those of the present step whenever it is read.
            tokenizer: its own.
            sharded: its weights lie in parts on several devices, so that one process alone can't read them.
        """
        return self

    def take_costs(self) -> dict[str, float]:
        """What the predicting model has cost since the last call; by default nothing.

        `questions` (prompts), `tokens` (generated for them), `context_tokens` (of the prompts), `s` (seconds), and
        `flops`, learning included. The tokens are charged to the run, as those of METIS's judgments are. Without
        `flops` they are taken to be the policy's.
        """
        return {}

    def save_files(self, folder: Path) -> None:
        """Write what is too big for `state_dict` into `folder`, which need not be there yet; by default nothing."""

    def load_files(self, folder: Path) -> None:
        """Take back what `save_files` wrote, once `load_state_dict` has taken the state of the same moment."""


def predictions_of(judge: Judge, candidates: Prompts) -> np.ndarray:
    """What a judge predicts, (K,) float64, NaN where it has nothing to say; `ConfigError` if that is anything else."""
    said = judge.predict(candidates)
    values = as_floats(said)
    if values.shape != (len(candidates),):
        raise ConfigError(
            f"{type(judge).__name__}.predict must give {len(candidates)} numbers, one a prompt and NaN where it has "
            f"none, got {shown(said)}"
        )
    return values


def summed(costs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Costs by name, those of several judges added.

    >>> summed([{"flops": 2.0}, {}, {"flops": 3.0, "s": 1.0}])
    {'flops': 5.0, 's': 1.0}
    """
    total: dict[str, float] = {}
    for one in costs:
        for name, more in one.items():
            total[name] = total.get(name, 0.0) + more
    return total


def prompt_text(prompt: Any) -> str:
    """A prompt as one text: itself; or its messages but for system ones, with their roles if there are several.

    >>> prompt_text([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2="}])
    '2+2='
    """
    if isinstance(prompt, str) or not isinstance(prompt, Sequence):
        return str(prompt)
    messages = [message for message in prompt if isinstance(message, Mapping)]
    messages = [message for message in messages if message.get("role") != "system"] or messages
    if len(messages) == 1:
        return content_text(messages[0])
    return "\n\n".join(f"{message.get('role', 'user')}: {content_text(message)}" for message in messages)


def content_text(message: Mapping[str, Any]) -> str:
    """A message's content, of content blocks the text ones."""
    content = message.get("content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        return "" if content is None else str(content)
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
