"""Puzzles of reasoning-gym: any of its generators, or a mixture of several, in levels of its curricula."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rollwise.errors import ConfigError, TaskError
from rollwise.options import (
    CountOrZero,
    NonEmptyText,
    Positive,
    Share,
    check_mapping,
    check_number,
    check_options,
    check_whole,
)
from rollwise.tasks.base import HeldOut, Task, Text, completion_text
from rollwise.tasks.gym.generators import package_version, parameters_of
from rollwise.tasks.gym.items import NO_ANSWER, Item, Items
from rollwise.tasks.gym.prompts import STYLES, answer_in, completion, render, stop_texts
from rollwise.tasks.gym.scoring import Said, check_scorers, scores
from rollwise.tasks.seeding import distinct, first_in_shares, in_share, rng_for

# A source counts as exhausted after this many draws in a row that brought nothing new.
_GIVE_UP = 500


@dataclass(frozen=True)
class Source:
    """A generator at a level; None for its own parameters."""

    dataset: str
    level: int | None

    @property
    def name(self) -> str:
        """The category of its puzzles: `gcd`, or `gcd/L1`."""
        return self.dataset if self.level is None else f"{self.dataset}/L{self.level}"


class ReasoningGym(Task, name="reasoning-gym"):
    """Puzzles of the package reasoning-gym (the extra `reasoning-gym`), by one of its generators or several.

    The reward is what its scorer pays, from 0 to 1; 1 is solved. Scorers that compare the answer with the recorded one
    are called here. The others may execute the answer, and are called in a sandbox, for which bubblewrap must be
    installed. A puzzle's category is its generator, with the level if there are levels. The hash of a question decides
    whether it is held out.

    Args:
        dataset: A generator's name, or several.
        weights: How often each of several is drawn, in proportion; by default all alike.
        levels: Levels to train on, from 0, each of every generator: all attributes of its curriculum at that level.
            None for the generator's own parameters.
        eval_levels: Levels of a second held-out set, `ood`, which is `eval_records`; the training levels' is `id`.
        parameters: Parameters of generators: generator -> parameter -> value. They go before the level's.
        style: `line`, a text answered in one line; `tags`, a text, or `chat`, messages, answered in answer tags.
        shots: Worked examples before the question, of the same generator and level.
        eval_share: The share of all puzzles that is held out.
        demo_accuracy: The share of right answers among the demonstrations; the rest are answers to other puzzles.

    Raises:
        ConfigError: there is no such generator, level or parameter, or a scorer needs a sandbox that is not there.
        MissingExtraError: reasoning-gym is not installed.
    """

    text_style: ClassVar[str] = "line"

    def __init__(
        self,
        *,
        dataset: NonEmptyText | Sequence[NonEmptyText] = "letter_counting",
        weights: Sequence[Positive] | None = None,
        levels: Sequence[CountOrZero] | None = None,
        eval_levels: Sequence[CountOrZero] | None = None,
        parameters: dict[str, Any] | None = None,
        style: Literal["line", "tags", "chat"] = "line",
        shots: CountOrZero = 3,
        eval_share: HeldOut = 0.2,
        demo_accuracy: Share = 0.6,
    ) -> None:
        names = [dataset] if isinstance(dataset, str) else list(dataset)
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"dataset must name one or more data sets of reasoning-gym, each once, got {dataset!r}")
        if weights is not None and len(weights) != len(names):
            raise ConfigError(f"weights must have one number for each of {len(names)} data sets, got {weights!r}")
        given = check_mapping("parameters", parameters or {})
        check_options("parameters", given, names)
        self._weights = dict(zip(names, weights or [1.0] * len(names), strict=True))
        self._levels: dict[str, tuple[int | None, ...]] = {"train": tuple(levels) if levels else (None,)}
        self._levels["eval"] = tuple(eval_levels) if eval_levels else self._levels["train"]
        self._parameters = {
            source.name: parameters_of(source.dataset, source.level, check_mapping(source.dataset, given.get(name, {})))
            for name in names
            for source in (Source(name, level) for level in {*self._levels["train"], *self._levels["eval"]})
        }
        self.style, self.shots, self.eval_share, self.demo_accuracy = str(style), shots, eval_share, demo_accuracy
        check_scorers(names)

    @property
    def max_completion_length(self) -> int:
        """32 new tokens for an answer of a line, 512 for one after thoughts."""
        return STYLES[self.style]

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """The end of the line, or the closing answer tag."""
        return stop_texts(self.style)

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records; fewer, with a warning, where a generator has no further ones.

        Columns: `dataset`, `level` (-1 for none), `item_seed` and `answer`.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
            TaskError: an answer has several lines, and the style is `line`; or a worked example has none.
        """
        return self._records("train", "train", n, seed)

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` held-out records, of the `eval_levels` if these are given."""
        return self._records("eval", "eval", n, seed)

    def eval_sets(self, n: int, seed: int) -> dict[str, list[dict[str, Any]]]:
        """With `eval_levels` up to `n` held-out records of the training levels, `id`, and of the others, `ood`."""
        if set(self._levels["eval"]) == set(self._levels["train"]):
            return super().eval_sets(n, seed)
        return {"id": self._records("eval", "train", n, seed), "ood": self.eval_records(n, seed)}

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` answers to training puzzles, right with the chance `accuracy`, else those of other puzzles of their kind.

        Raises:
            ConfigError: `n`, `seed` or `accuracy` is out of its range.
            TaskError: a generator has no answers on record.
        """
        share = self.demo_accuracy if accuracy is None else check_number("accuracy", accuracy, low=0.0, high=1.0)
        rng = rng_for(seed, "reasoning-gym/demonstrations")
        records = self._records("train", "train", check_whole("n", n, least=1), seed)
        _check_answered((record["dataset"], record["answer"]) for record in records)
        others: dict[str, list[str]] = {}
        for record in records:
            others.setdefault(record["category"], []).append(record["answer"])
        demos = []
        for record in itertools.islice(itertools.cycle(records), n):
            said = record["answer"] if rng.random() < share else rng.choice(others[record["category"]])
            demos.append({"prompt": record["prompt"], "completion": completion(self.style, said)})
        return demos

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """What reasoning-gym's scorer pays for each answer; 0 for a completion without one.

        Raises:
            TaskError: a column of the records is missing.
            ConfigError: a scorer needs a sandbox, and there is none.
        """
        needed = ("dataset", "level", "item_seed", "answer")
        missing = [name for name in needed if len(columns.get(name) or ()) != len(completions)]
        if missing:
            raise TaskError(f"the reward of 'reasoning-gym' needs the columns {', '.join(missing)} of its records")
        rows = zip(completions, *(columns[name] for name in needed), strict=True)
        return scores([self._said(*row) for row in rows])

    def fingerprint(self) -> dict[str, Any]:
        """What decides the demonstrations, with the version of the package."""
        return {
            "task": self.name,
            "version": 1,  # to be raised when the same options come to give other demonstrations
            "package": package_version(),
            "weights": self._weights,
            "levels": list(self._levels["train"]),
            "parameters": {name: repr(sorted(given.items())) for name, given in self._parameters.items()},
            "style": self.style,
            "shots": self.shots,
            "eval_share": self.eval_share,
            "demo_accuracy": self.demo_accuracy,
        }

    def _said(self, text: Text, dataset: str, level: int, seed: int, recorded: str) -> Said:
        source = Source(dataset, None if level < 0 else level)
        if source.name not in self._parameters:
            raise TaskError(f"a record of {source.name!r} is scored by a task that has {', '.join(self._parameters)}")
        answer = answer_in(self.style, completion_text(text))
        return Said(dataset, self._parameters[source.name], seed, recorded, answer)

    def _records(self, split: str, levels: str, n: int, seed: int) -> list[dict[str, Any]]:
        weights: dict[Source, float] = {}
        for level in self._levels[levels]:
            for name, weight in self._weights.items():
                weights[Source(name, level)] = weights.get(Source(name, level), 0.0) + weight
        seen: set[str] = set()
        sources = {source: self._records_of(source, split, seed, seen) for source in weights}
        return first_in_shares(n, sources, weights, f"{split} puzzles of reasoning-gym")

    def _records_of(self, source: Source, split: str, seed: int, seen: set[str]) -> Iterator[dict[str, Any]]:
        shots = self._shots(source)
        seen.update(shot.question for _, shot in shots)
        worked = [shot for _, shot in shots]
        for item_seed, item in self._draws(source, rng_for(seed, f"reasoning-gym/{split}/{source.name}"), split, seen):
            if self.style == "line" and "\n" in item.answer:
                raise TaskError(f"answers of {source.dataset!r} have several lines; use style 'tags' or 'chat'")
            yield {
                "id": f"{source.name}:{item_seed}",
                "prompt": render(self.style, item.question, worked),
                "category": source.name,
                "difficulty": float(source.level or 0),
                "dataset": source.dataset,
                "level": -1 if source.level is None else source.level,
                "item_seed": item_seed,
                "answer": item.answer,
            }

    def _shots(self, source: Source) -> list[tuple[int, Item]]:
        """The worked examples: training items, the same whatever the seed."""
        draws = self._draws(source, rng_for(0, f"shots/{source.name}"), "train", set())
        shots = list(itertools.islice(draws, self.shots))
        _check_answered((source.dataset, shot.answer) for _, shot in shots)
        return shots

    def _draws(self, source: Source, rng: random.Random, split: str, seen: set[str]) -> Iterator[tuple[int, Item]]:
        """Items of one side with their seeds; no question comes twice."""
        items, held_out = Items.of(source.dataset, self._parameters[source.name]), split == "eval"
        seeds = (rng.getrandbits(31) for _ in itertools.count())
        return distinct(
            ((seed, items[seed]) for seed in seeds),
            key=lambda one: one[1].question,
            wanted=lambda one: in_share(f"reasoning-gym|{one[1].question}", self.eval_share) is held_out,
            seen=seen,
            give_up=_GIVE_UP,
        )


def _check_answered(shown: Iterable[tuple[str, str]]) -> None:
    """`TaskError` where of the generators and answers that a policy is to be shown one has none."""
    if lacking := [dataset for dataset, answer in shown if answer == NO_ANSWER]:
        raise TaskError(
            f"data set {lacking[0]!r} has no answers on record, so none can be shown; set shots to 0, and start from a "
            "model of your own (--model)"
        )
