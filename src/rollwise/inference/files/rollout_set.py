"""Rollouts read back from folders of `rollwise rollouts`, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_folder import read_some, rollouts_folder, warn_of_missing
from rollwise.models.identity import model_facts
from rollwise.options import listed
from rollwise.rng import stream_generator
from rollwise.sampling.folder import Group, SampleFolder, read_facts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class RolloutSet:
    """N scored rollouts of Q prompts.

    Attributes:
        ids: (Q,) of the prompts.
        prompt_ids: (Q,) lists of their tokens.
        prompt: (N,) which prompt each rollout is of.
        number: (N,) its number among its prompt's, in its folder.
        token_ids: (N,) lists of the tokens generated, at least one, the end of text included.
        rewards: (N,) finite.
        truncated: (N,) whether it was cut off at the token limit.
        configs: Options of the folders that they are from.
        facts: `made_by` of the model that made them; empty where the folder does not say.
        unscored: Rollouts left out because they have no reward.
        failures: (N,) kinds of failure, None of those that are solved; empty where a folder does not name them.
        texts: (N,) completions; empty where a folder has none.
        prompts: (Q,) as they were put, text or chat messages.
    """

    ids: list[str]
    prompt_ids: list[list[int]] = field(repr=False)
    prompt: IntArray = field(repr=False)
    number: IntArray = field(repr=False)
    token_ids: list[list[int]] = field(repr=False)
    rewards: FloatArray = field(repr=False)
    truncated: NDArray[np.bool_] = field(repr=False)
    configs: list[dict[str, Any]] = field(repr=False, default_factory=list)
    facts: dict[str, Any] = field(repr=False, default_factory=dict)
    unscored: int = 0
    failures: list[str | None] = field(repr=False, default_factory=list)
    texts: list[str] = field(repr=False, default_factory=list)
    prompts: list[Any] = field(repr=False, default_factory=list)

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def lengths(self) -> IntArray:
        """(N,) tokens generated."""
        return np.array([len(ids) for ids in self.token_ids], dtype=np.int64)

    @property
    def sequences(self) -> list[list[int]]:
        """(N,) prompt and completion, as the model read them."""
        return [self.prompt_ids[q] + ids for q, ids in zip(self.prompt, self.token_ids, strict=True)]

    @property
    def prompt_lengths(self) -> IntArray:
        """(N,) tokens of each rollout's prompt."""
        return np.array([len(self.prompt_ids[q]) for q in self.prompt], dtype=np.int64)

    def select(self, rollouts: Sequence[int]) -> RolloutSet:
        """Some of the rollouts, in that order; all prompts stay, so that `prompt` keeps its meaning."""
        some = np.asarray(rollouts, dtype=np.int64)
        return RolloutSet(
            **(vars(self) | {name: getattr(self, name)[some] for name in ("prompt", "number", "rewards", "truncated")})
            | {"token_ids": [self.token_ids[i] for i in some]}
            | {name: [getattr(self, name)[i] for i in some if getattr(self, name)] for name in ("failures", "texts")}
        )

    def of_prompts(self, count: int, seed: int) -> RolloutSet:
        """The rollouts of this many prompts, at random; a larger number holds a smaller one's.

        Raises:
            ConfigError: there are fewer.
        """
        there = np.unique(self.prompt)
        if not 1 <= count <= len(there):
            raise ConfigError(f"num_prompts must lie in [1, {len(there)}], the prompts of the rollouts, got {count!r}")
        chosen = stream_generator(seed, "prompts").permutation(there)[:count]
        return self.select(np.flatnonzero(np.isin(self.prompt, chosen)).tolist())

    def check(self, model: Any, tokenizer: Any) -> None:
        """Refuse a model whose tokens mean something else.

        Raises:
            ConfigError: another tokenizer made these rollouts.
        """
        made, given = self.facts.get("tokenizer"), model_facts(model, tokenizer)["tokenizer"]
        if made is not None and made != given:
            raise ConfigError(
                f"the rollouts were made with another tokenizer ({made}) than this model's ({given}): their tokens "
                "mean nothing to it; give the model that made them, or roll out with this one"
            )

    @classmethod
    def read(cls, folders: str | Path | Sequence[str | Path]) -> RolloutSet:
        """The rollouts of one or several folders; a prompt that is in several is one prompt.

        Raises:
            ConfigError: no rollouts, no token ids, folders of different tokenizers, or the same rollouts twice.
            StateFileError: a damaged file.
        """
        paths = [Path(path) for path in listed(folders)]
        if not paths:
            raise ConfigError("no folder of rollouts is given; make one with `rollwise rollouts`")
        configs: list[dict[str, Any]] = []
        facts: dict[str, Any] = {}
        lines: list[tuple[Mapping[str, Any], str]] = []
        for path in paths:
            folder = rollouts_folder(path)
            groups = _lines(folder)
            config = folder.read_config()
            if config in configs:
                raise ConfigError(f"{str(path)!r} holds the same rollouts as a folder before it; give it once")
            facts = _same_tokenizer(facts, read_facts(path), path)
            configs.append(config)
            lines += [(group, str(path)) for group in groups]
        return _collected(lines, configs, facts)


def _lines(folder: SampleFolder) -> list[Group]:
    path = folder.path
    if not folder.groups.is_file():
        other = (path / "groups.jsonl").is_file()
        what = "is a profile, without token ids" if other else "does not exist" if not path.exists() else "has none"
        raise ConfigError(f"rollouts are wanted, but {str(path)!r} {what}; make some with `rollwise rollouts`")
    groups = read_some(folder)
    warn_of_missing(folder, len(groups))
    return groups


def _same_tokenizer(before: dict[str, Any], facts: dict[str, Any], path: Path) -> dict[str, Any]:
    if before and facts and before.get("tokenizer") != facts.get("tokenizer"):
        raise ConfigError(f"the rollouts in {str(path)!r} were made with another tokenizer than those before it")
    return before or facts


def _columns(group: Mapping[str, Any], path: str) -> list[list[Any]]:
    """Tokens, rewards and ends of a line's rollouts, as many of each; `ConfigError` if they are not there."""
    tokens, *others = columns = [group.get(name) for name in ("token_ids", "rewards", "truncated")]
    if not isinstance(tokens, list) or not group.get("prompt_ids"):
        raise ConfigError(f"prompt {group['id']!r} of {path!r} has no token ids; roll out with `rollwise rollouts`")
    if any(not isinstance(column, list) or len(column) != len(tokens) for column in others):
        raise ConfigError(
            f"prompt {group['id']!r} of {path!r} needs as many rewards and truncated as it has token_ids, "
            f"{len(tokens)}; mend its line, or roll out anew"
        )
    return [list(column or []) for column in columns]


def _collected(
    lines: Sequence[tuple[Mapping[str, Any], str]], configs: list[dict[str, Any]], facts: dict[str, Any]
) -> RolloutSet:
    place: dict[tuple[str, tuple[int, ...]], int] = {}
    scored: list[tuple[int, int, list[int], float, bool]] = []
    failures: list[str | None] = []
    texts: list[str] = []
    prompts: dict[int, Any] = {}
    unscored = 0
    for group, path in lines:
        columns = _columns(group, path)
        at = place.setdefault((group["id"], tuple(group["prompt_ids"])), len(place))
        prompts[at] = group.get("prompt")
        for j, (tokens, reward, cut) in enumerate(zip(*columns, strict=True)):
            if reward is None or not tokens:
                unscored += 1
                continue
            scored.append((at, j, tokens, float(reward), bool(cut)))
            failures += [group["failures"][j]] if group.get("failures") else []
            texts += [group["texts"][j]] if group.get("texts") else []
    if not scored:
        raise ConfigError(f"none of the {unscored} rollouts has a reward; nothing can be learnt from them")
    prompt, number, token_ids, rewards, truncated = zip(*scored, strict=True)
    return RolloutSet(
        ids=[id_ for id_, _ in place],
        prompt_ids=[list(ids) for _, ids in place],
        prompt=np.array(prompt, dtype=np.int64),
        number=np.array(number, dtype=np.int64),
        token_ids=list(token_ids),
        rewards=np.array(rewards, dtype=np.float64),
        truncated=np.array(truncated, dtype=np.bool_),
        configs=configs,
        facts=facts,
        unscored=unscored,
        failures=failures if len(failures) == len(scored) else [],
        texts=texts if len(texts) == len(scored) else [],
        prompts=list(prompts.values()),
    )
