"""The preflight: rolls out a sample of the prompts, and says what a curriculum could gain from them."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rollwise.errors import ConfigError, StateFileError
from rollwise.models import is_embedded, load_policy, policy_source, task_for
from rollwise.models.extras import need
from rollwise.models.sampling import SamplingOptions
from rollwise.outcome import RewardSpec
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.data import load_data, sampling_order
from rollwise.profiling.sample import ProfileFolder, sample_into
from rollwise.profiling.scoring import Scorer, load_reward, task_scorer
from rollwise.profiling.summary import Summary
from rollwise.profiling.tables import join_rates, read_table, table_rows, write_table
from rollwise.state import write_atomically
from rollwise.tasks import TASKS, Task

logger = logging.getLogger(__name__)

FILE_COMPLETION_LENGTH = 512
PROFILE_FILE = "profile.json"


@dataclass(frozen=True)
class Profile:
    """A finished profile.

    Attributes:
        path: Its folder, with `profile.json`, `pass_rates.jsonl`, `pass_rates.parquet` and `groups.jsonl`.
        numbers: The contents of `profile.json`.
    """

    path: Path
    numbers: dict[str, Any]


def run_profile(config: ProfileConfig, *, console: Console | None = None) -> Profile:
    """Profile the data with the model; goes on where it was, if the folder holds a part of it.

    Raises:
        ConfigError: options that don't fit, or a folder that was begun with others.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used. What was rolled out before is kept.
    """
    console = console or Console(stderr=True)
    task = _make_task(config)
    scorer, reward_hash = _make_scorer(config, task)
    data = load_data(config, task)
    scorer.check(data.rows[0])
    other = None if config.join is None else read_table(config.join)
    options = _sampling_options(config, task)
    folder = ProfileFolder(config.folder)
    decided = {**config.sampling(), "max_completion_length": options.max_new_tokens}
    folder.begin({**decided, "data_hash": data.fingerprint(), "reward_hash": reward_hash})
    order = sampling_order(data.ids, data.categories, config.seed)
    rows = order if config.sample == "all" else order[: config.sample]
    with _Bar(console) as bar:
        groups = sample_into(
            folder, data, rows, scorer, options, lambda: _policy(config, task, bar), progress=bar.sampled
        )
    return _finish(config, folder, Summary(config, data, groups, scorer), other)


def read_profile(path: str | Path) -> Profile:
    """A finished profile; `StateFileError` if there is none in that folder."""
    file = Path(path) / PROFILE_FILE
    try:
        return Profile(Path(path), json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise StateFileError(f"{str(file)!r} can't be read: {error}; give the folder of a finished profile") from error


def _finish(config: ProfileConfig, folder: ProfileFolder, summary: Summary, other: dict[str, Any] | None) -> Profile:
    """Write the table and the numbers."""
    rows = table_rows(summary.groups, summary.rates, summary.scores, None)
    if other is not None:
        names = str(config.folder), str(config.join)
        summary.references = join_rates({row["id"]: row for row in rows}, other, names=names)
        rows = table_rows(summary.groups, summary.rates, summary.scores, summary.references)
        lost = len(rows) - len(summary.references)
        if lost:
            logger.warning("%d of %d prompts are not in the joined profile %s", lost, len(rows), config.join)
    numbers = summary.to_dict()
    write_table(folder.path, rows)
    write_atomically(folder.path / PROFILE_FILE, json.dumps(numbers, indent=1, ensure_ascii=False).encode())
    return Profile(folder.path, numbers)


def _make_task(config: ProfileConfig) -> Task | None:
    """The task whose prompts, or whose verifier, are wanted; None with a reward function."""
    named = config.data in TASKS
    if named and (config.task not in (None, config.data) or config.reward is not None):
        raise ConfigError(
            f"{config.data!r} is a task with prompts and verifier of its own; leave out --task and --reward"
        )
    if not named and config.task is None:
        if config.reward is None and Path(config.data).suffix:
            raise ConfigError(
                f"who scores the prompts of {config.data!r}? give --task NAME ({', '.join(sorted(TASKS))}) or --reward "
                "file.py:function"
            )
        if is_embedded(config.model) and config.reward is not None:
            raise ConfigError("the embedded policy is a task's own: with --reward, name a model with --model")
        if config.task_options:
            raise ConfigError(f"task_options {config.task_options!r} are given but no task; add --task NAME")
        return None
    name = config.data if named else str(config.task)
    return task_for(config.model, name, config.task_options, own_prompts=named)


def _make_scorer(config: ProfileConfig, task: Task | None) -> tuple[Scorer, str]:
    if task is not None:
        return task_scorer(task), ""
    if config.reward is None:  # neither a task nor a file: say so where files are read
        return Scorer(lambda **_: [], name="no reward", spec=RewardSpec()), ""
    function, digest = load_reward(config.reward)
    spec = RewardSpec(low=config.reward_low, high=config.reward_high, solved_at=config.solved_at)
    return Scorer(function, name=f"reward {config.reward!r}", spec=spec), digest


def _sampling_options(config: ProfileConfig, task: Task | None) -> SamplingOptions:
    longest = config.max_completion_length or (
        task.max_completion_length if task is not None else FILE_COMPLETION_LENGTH
    )
    return SamplingOptions(
        n=config.rollouts,
        temperature=config.temperature,
        top_p=config.top_p,
        max_new_tokens=longest,
        batch_size=config.batch_size,
        seed=config.seed,
    )


def _policy(config: ProfileConfig, task: Task | None, bar: _Bar) -> tuple[Any, Any]:
    torch = need("torch", "profiling")
    transformers = need("transformers", "profiling")
    transformers.utils.logging.disable_progress_bar()
    source: str | Path = config.model
    if task is not None:
        source = policy_source(config.model, task, progress=bar.warmed)
    model, tokenizer = load_policy(source)
    return model.to(torch.device("cuda" if torch.cuda.is_available() else "cpu")), tokenizer


class _Bar:
    """What is going on, with the time left; where there is no terminal, a line every tenth."""

    def __init__(self, console: Console) -> None:
        columns = (
            *(TextColumn("[bold]{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn()),
            *(TimeElapsedColumn(), TextColumn("<"), TimeRemainingColumn(), TextColumn("{task.fields[signals]}")),
        )
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self.warming = self.progress.add_task("warm start", total=None, visible=False, signals="")
        self.said = 0  # tenths
        self.sampling = self.progress.add_task("prompts", total=None, visible=False, signals="")

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def warmed(self, done: int, steps: int) -> None:
        """So many steps of the embedded policy's warm start."""
        self.progress.update(self.warming, completed=done, total=steps, visible=done < steps)

    def sampled(self, done: int, prompts: int, tokens: int) -> None:
        """So many prompts are rolled out."""
        if self.progress.tasks[self.sampling].total is None:
            self.progress.reset(self.sampling, completed=done, total=prompts, visible=True)
        if self.progress.disable and done * 10 // prompts > self.said:
            self.progress.console.print(f"{done:,} of {prompts:,} prompts rolled out, {tokens:,} tokens")
        self.said = done * 10 // prompts
        self.progress.update(self.sampling, completed=done, total=prompts, signals=f"{tokens:,} tokens")
