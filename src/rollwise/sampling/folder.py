"""Rolls out the sampled prompts into a folder, so that nothing is lost whenever it is killed.

`config.yaml` holds the options that decide the rollouts, a file of lines one for each prompt that is done. A line
that was torn by a kill is cut off; the same command goes on with the prompts that are missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, RewardError, StateFileError
from rollwise.models.sampler import Rollouts, SamplingOptions, encode, sample_prompts
from rollwise.renamed import with_new_names
from rollwise.runs.lines import append_lines, check_same_options, lines_by_id
from rollwise.runs.lock import hold_lock
from rollwise.runs.names import CONFIG_FILE, MODEL_FILE
from rollwise.sampling.data import PromptData
from rollwise.sampling.scoring import Scorer
from rollwise.state import make_folder, write_atomically
from rollwise.yaml_file import read_yaml, write_yaml

Group = dict[str, Any]
"""A prompt's line: id, category, prompt, rewards (n,) with None for unscored, tokens, truncated, texts, failures.

With `keep_ids` also prompt_ids and token_ids (n lists), the tokens themselves.
"""

Draw = Callable[..., Iterator[list[Rollouts]]]
"""Who rolls out: `sample_prompts`, or anything that takes and yields the same."""


class SampleFolder:
    """The files of whatever rolls out prompts.

    Args:
        path: The folder; made when it is first written to.
        lines: The file of lines, a prompt each.
        what: Whose folder it is, for messages.
        command: Which command's options it holds.
    """

    def __init__(self, path: str | os.PathLike[str], *, lines: str, what: str, command: str) -> None:
        self.path, self.what, self.command = Path(path), what, command
        self.config = self.path / CONFIG_FILE
        self.groups = self.path / lines

    def begin(self, options: Mapping[str, Any]) -> None:
        """Begin with these options, or go on with them; before the first rollout is kept, begin anew.

        Raises:
            ConfigError: the folder was begun with others; the message names the first that differs. Or it holds
                something else, such as a run, whose `config.yaml` would be lost.
            StateFileError: it has rollouts, but its options can't be read; or another process writes to it.
        """
        plain = json.loads(json.dumps(options))  # tuples as lists, as they come back
        if not self.groups.exists():
            self._refuse_others()
        taken = f"another process writes to {str(self.path)!r}; wait for it, stop it, or choose another --out"
        hold_lock(self, make_folder(self.path) / ".lock", taken)
        if not self.groups.exists():
            write_yaml(self.config, plain)
            return
        check_same_options(self.path, self.read_config(), plain, what="rollouts")

    def _refuse_others(self) -> None:
        """Before the first rollout is kept, nothing but the model's facts is beside the options."""
        own = {self.config.name, MODEL_FILE}
        others = [path.name for path in self.path.iterdir() if path.name not in own] if self.config.exists() else []
        if others := sorted(name for name in others if not name.startswith(".")):
            raise ConfigError(
                f"{str(self.path)!r} is not {self.what}: it has a {self.config.name} of something else, with "
                f"{', '.join(others[:3])}; choose another --out"
            )

    def read_config(self) -> dict[str, Any]:
        """The options it was begun with, by the names they have now; `StateFileError` if missing or damaged."""
        config = read_yaml(self.config, remedy=f"is this {self.what}?")
        if not isinstance(config, dict):
            raise StateFileError(f"{str(self.config)!r} holds no options; is this {self.what}?")
        return with_new_names(self.command, config)

    def read_groups(self, *, mend: bool = True) -> dict[str, Group]:
        """The prompts that are done, by id. A torn last line is left out, and cut off the file.

        Args:
            mend: Whether to cut it off. Who only reads must not: it may be being written.

        Raises:
            StateFileError: a line before the last is damaged.
        """
        return lines_by_id(self.groups, "rewards", mend=mend)

    def append(self, groups: Iterable[Group]) -> None:
        """Append lines in one write, and make them durable."""
        append_lines(self.groups, groups)


def read_facts(folder: Path) -> dict[str, Any]:
    """Facts of the model that made a folder's rollouts (`made_by`); empty if nothing was rolled out yet.

    Raises:
        StateFileError: they can't be read.
    """
    file = folder / MODEL_FILE
    if not file.is_file():
        return {}
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        return dict(facts)
    except (OSError, ValueError, TypeError) as error:
        raise StateFileError(f"{str(file)!r} can't be read: {error}; delete it, and roll out again") from error


def keep_facts(folder: SampleFolder, facts: Mapping[str, Any]) -> None:
    """Write what the model is; or refuse one that is not the one that the folder was begun with.

    Only what the folder says is compared: an earlier version kept less.

    Args:
        folder: Compared only if it holds lines.
        facts: As `made_by` gives them: the same path may hold other weights by now.

    Raises:
        ConfigError: it is another model.
        StateFileError: what was kept can't be read.
    """
    before = read_facts(folder.path) if folder.groups.exists() else {}
    changed = [name for name, value in before.items() if facts.get(name) != value]
    if changed:
        raise ConfigError(
            f"{str(folder.path)!r} was begun with a model whose {changed[0]} is {before[changed[0]]!r}, now it is "
            f"{facts.get(changed[0])!r}; its rollouts can't be mixed: give the same model, or another --out"
        )
    write_atomically(folder.path / MODEL_FILE, json.dumps(dict(facts), indent=1).encode())


def sample_into(
    folder: SampleFolder,
    data: PromptData,
    rows: Sequence[int],
    scorer: Scorer,
    options: SamplingOptions,
    policy: Callable[[], tuple[Any, Any]],
    *,
    progress: Callable[[int, int, int], None] | None = None,
    keep_ids: bool = False,
    draw: Draw = sample_prompts,
) -> list[Group]:
    """The groups of the data's `rows` (S,), in that order: those of the folder, and the others rolled out now.

    Args:
        folder: Begun with the options that decide the rollouts.
        data: The prompts.
        rows: Which of them.
        scorer: Rewards each group.
        options: How rollouts are drawn.
        policy: Gives model and tokenizer; not called where nothing is missing.
        progress: Called with prompts done, prompts in all, and tokens generated since the start.
        keep_ids: Whether lines hold the tokens themselves, of prompt and rollouts.
        draw: Who rolls out.

    Raises:
        RewardError: a reward that can't be used, or none at all in the first batch. What was kept before stays.
    """
    done = folder.read_groups()
    ids = [data.ids[row] for row in rows]
    missing = [id_ for id_ in ids if id_ not in done]
    for group in done.values():
        scorer.check_range(group["rewards"])  # as when they were made: it may have widened the range
    count, tokens = len(ids) - len(missing), 0
    if missing:
        model, tokenizer = policy()
        row_of = {data.ids[row]: row for row in rows}
        prompts = [data.rows[row]["prompt"] for row in rows]
        if progress:
            progress(count, len(ids), tokens)
        for batch in draw(model, tokenizer, ids, prompts, options, done=frozenset(done)):
            groups = [_group(data, row_of[rollouts.id], rollouts, scorer) for rollouts in batch]
            if keep_ids:
                for group, rollouts in zip(groups, batch, strict=True):
                    group |= {"prompt_ids": encode(tokenizer, group["prompt"]), "token_ids": rollouts.token_ids}
            if not done and all(reward is None for group in groups for reward in group["rewards"]):
                raise RewardError(
                    f"{scorer.name} gave None for all {sum(len(g['rewards']) for g in groups)} rollouts of the first "
                    "batch; nothing can be said of prompts that are never scored"
                )
            folder.append(groups)
            done |= {group["id"]: group for group in groups}
            count, tokens = count + len(groups), tokens + sum(sum(group["tokens"]) for group in groups)
            if progress:
                progress(count, len(ids), tokens)
    return [done[id_] for id_ in ids]


def _group(data: PromptData, row: int, rollouts: Rollouts, scorer: Scorer) -> Group:
    record = data.rows[row]
    rewards, failures = scorer(record, rollouts.texts, rollouts.token_ids)
    return {
        "id": rollouts.id,
        **({} if data.categories is None else {"category": data.categories[row]}),
        "prompt": record["prompt"],
        "rewards": rewards,
        "tokens": rollouts.tokens,
        "truncated": rollouts.truncated,
        "texts": rollouts.texts,
        **({} if failures is None else {"failures": failures}),
    }
