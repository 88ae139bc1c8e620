"""What past rollouts are worth: a profile of a log, without a model, with what changed over its steps."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, fields

from rollwise.errors import ConfigError
from rollwise.profiling.config import PastConfig
from rollwise.profiling.finished import Profile
from rollwise.profiling.past_replay import replay
from rollwise.profiling.past_summary import PastSummary
from rollwise.profiling.tables import check_folder, table_rows, write_numbers, write_table
from rollwise.runs.names import METRICS_FILE
from rollwise.runs.past import PastRollouts, read_past
from rollwise.runs.past_columns import Columns, value_at
from rollwise.runs.reading import read_run
from rollwise.runs.solved import SolvedRule
from rollwise.state import make_folder
from rollwise.tickets.outcome import RewardSpec


@dataclass(frozen=True)
class PastPlan:
    """The training that is planned, by default one like the log's; what `Summary` needs of a profile's options."""

    source: str
    model: str
    num_generations: int
    answer: str | None
    planned_generations: int
    steps: int | None
    prompts_per_step: int
    seed: int


def run_past(config: PastConfig) -> Profile:
    """Profile past rollouts; writes `profile.json`, `pass_rates.jsonl` and `pass_rates.parquet`.

    Raises:
        ConfigError: options that don't fit, or columns that can't be found.
        StateFileError: the log is not there, or a line of it can't be read.
    """
    past = read_past(config.rollouts, config)
    check_folder(config.folder, past.path)
    place = past.path if past.path.is_dir() else past.path.parent  # a run's rollouts.jsonl means the run
    run = read_run(place) if past.kind == "run" and (place / METRICS_FILE).is_file() else None
    if run is not None:
        past.columns.update(run.prompt_columns())
    name_answers(past, config.answer_column)
    if config.max_completion_length is not None and past.unit != "tokens":
        raise ConfigError(
            f"max_completion_length {config.max_completion_length} counts tokens, and {config.rollouts!r} does not say "
            "how many each rollout has; leave it out"
        )
    longest = config.max_completion_length or (None if run is None else run.config.get("max_completion_length"))
    mark_truncated(past, longest if isinstance(longest, int) else None)
    spec = reward_range(past, config, None if run is None else run.rewards)
    summary = PastSummary(plan_of(past, config), past, spec)
    if not summary.groups:
        raise ConfigError(f"{config.rollouts!r} has no rollout with a reward; name its column: --reward_column")
    numbers = summary.to_dict() | {"replay": replay(past, spec) | {"command": _command(config, past)}}
    rows = table_rows(summary.groups, summary.rates, summary.scores, None)
    for row in rows if past.unit != "tokens" else ():
        del row["mean_tokens"]
    folder = make_folder(config.folder)
    write_table(folder, rows)
    write_numbers(folder, numbers)
    return Profile(folder, numbers)


def _command(config: PastConfig, past: PastRollouts) -> str:
    """What replays the log with its columns as they were named; those of a run's folder are known."""
    known = (past.path / METRICS_FILE).is_file()
    named = {} if known else {f"--{f.name}": getattr(config, f.name) for f in fields(Columns)}
    words = [word for option, name in named.items() if name is not None for word in (option, name)]
    return shlex.join(["rollwise", "simulate", "--replay", config.rollouts, *words])


def plan_of(past: PastRollouts, config: PastConfig) -> PastPlan:
    """The training that is planned: what the options say, else what the log did."""
    steps = len(past.steps) if past.has_steps else None
    return PastPlan(
        source=str(past.path),
        model="past rollouts",
        num_generations=past.group_size,
        answer="answer" if config.answer_column is not None else "gts" if past.kind == "verl" else None,
        planned_generations=config.planned_generations or max(2, past.group_size),
        steps=config.steps or steps,
        prompts_per_step=config.prompts_per_step or (max(1, round(len(past.groups) / steps)) if steps else 64),
        seed=config.seed,
    )


def name_answers(past: PastRollouts, column: str | None) -> None:
    """Call the recorded answers `answer`, where their column is named; `a.b` is the field `b` of the column `a`.

    Raises:
        ConfigError: no prompt has it.
    """
    if column is None:
        return
    found = {id_: value_at(row, column) for id_, row in past.columns.items()}
    if all(value is ... for value in found.values()):
        names = ", ".join(dict.fromkeys(name for row in past.columns.values() for name in row)) or "none"
        raise ConfigError(
            f"{str(past.path)!r} has no {column!r} (--answer_column) that is the same in all rows of a prompt; columns "
            f"that are: {names}"
        )
    for id_, value in found.items():
        past.columns[id_]["answer"] = None if value is ... else value


def mark_truncated(past: PastRollouts, longest: int | None) -> None:
    """Mark rollouts of this many tokens as cut off, where the log counts tokens and does not say which were."""
    if longest is None or past.unit != "tokens":
        return
    for group in past.groups:
        if not group.truncated:
            group.truncated = [size >= longest for size in group.sizes]


def reward_range(past: PastRollouts, config: PastConfig, said: RewardSpec | None) -> RewardSpec:
    """The range of the rewards: as the options say, else as the run said, else guessed from what is there.

    Raises:
        ConfigError: a reward lies outside the range that the options say.
    """
    rewards = [reward for group in past.groups for reward in group.rewards if reward is not None]
    least, greatest = min(rewards, default=0.0), max(rewards, default=1.0)
    given = {name: getattr(config, name) for name in ("reward_low", "reward_high", "solved_at")}
    if said is not None and not any(value is not None for value in given.values()):
        return said
    guess = RewardSpec(low=min(0.0, least), high=max(1.0, greatest), solved_at=SolvedRule.guess(greatest).at)
    known = asdict(said or guess)
    low, high = (known[end] if given[f"reward_{end}"] is None else given[f"reward_{end}"] for end in ("low", "high"))
    if least < low - 1e-6 * (high - low) or greatest > high + 1e-6 * (high - low):
        raise ConfigError(
            f"rewards of {str(past.path)!r} go from {least:g} to {greatest:g}, outside [{low:g}, {high:g}]; say their "
            "range with --reward_low and --reward_high"
        )
    at = given["solved_at"] if given["solved_at"] is not None else high if given["reward_high"] is not None else None
    return RewardSpec(low=low, high=high, solved_at=known["solved_at"] if at is None else at)
