"""Runs a comparison: each run in a process of its own, several at a time, all of them resumable."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from rollwise.comparing.checks import check_runs, chosen_runs, setting_of
from rollwise.comparing.plan import Plan, Run
from rollwise.comparing.workers import Workers
from rollwise.models import is_embedded
from rollwise.progress_bar import progress_bar
from rollwise.runs.folder import RunFolder
from rollwise.runs.names import CONFIG_FILE, METRICS_FILE
from rollwise.sampling.own_task import task_of
from rollwise.training.cost import Cost, Estimate
from rollwise.training.dry_run import dry_run
from rollwise.training.run import is_over
from rollwise.training.trainer.checkpoint import latest_complete, step_of
from rollwise.training.warm_start import make_embedded

_POLL_SECONDS = 0.5


def run_comparison(
    plan: Plan,
    folder: Path,
    *,
    jobs: int,
    console: Console,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[Run]:
    """Run whatever of the plan is not done yet, and return when all of it is; the runs that failed.

    A run that fails does not stop the others. Interrupted, it stops all of them; begun again, each goes on from its
    newest checkpoint, and those that are complete are left alone.

    Args:
        plan: what to run.
        folder: the comparison's.
        jobs: how many runs at a time; each has its share of the cores.
        console: where to show progress.
        methods: those of the plan to run now; by default all.
        seeds: likewise.

    Raises:
        ConfigError: a method or seed is not in the plan, the model's folder holds no model, or the comparison's holds
            runs that were made with other options.
    """
    runs = chosen_runs(plan, folder, methods, seeds)
    waiting = [run for run in runs if not is_done(run)]
    check_runs(waiting)
    plan.write(folder)
    done = len(runs) - len(waiting)
    at_a_time = f", {jobs} at a time" if waiting else ""
    _say(console, f"{escape(str(folder))}: {len(runs)} runs, {done} of them complete{at_a_time}")
    failed: list[Run] = []
    if waiting:
        _warm_start(waiting, console)
        with progress_bar(console, note="what") as bar, Workers(folder, jobs) as workers:
            total = bar.add_task("all runs", total=len(runs), completed=done, what="")
            _work(workers, waiting, failed, bar, total)
    return failed


def dry_run_comparison(
    plan: Plan,
    folder: Path,
    *,
    console: Console,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> None:
    """Show what the first runs would do, once for each distinct data and model, and the cost of all; writes nothing.

    Raises:
        ConfigError: as `run_comparison`, and whatever a run would refuse.
    """
    runs = chosen_runs(plan, folder, methods, seeds)
    check_runs(runs)
    costs: dict[str, Estimate] = {}
    for run in runs:
        key = setting_of(run.config)
        if key not in costs:
            _say(console, f"[bold]{escape(run.name)}[/]")
            costs[key] = dry_run(run.config, console=console)
    total = sum((costs[setting_of(run.config)].of(run.config) for run in runs), Cost())
    _say(console, f"[bold]all {len(runs)} runs[/]: {total}")


def is_done(run: Run) -> bool:
    """Whether a run has done all its steps or used up its budget."""
    if not (run.folder / CONFIG_FILE).exists():
        return False
    folder = RunFolder(run.folder)
    checkpoint = latest_complete(folder.checkpoints, hashes=False)  # nothing is resumed here
    return checkpoint is not None and is_over(run.config, folder, step_of(checkpoint))


def _work(workers: Workers, waiting: list[Run], failed: list[Run], bar: Progress, total: TaskID) -> None:
    tasks: dict[str, TaskID] = {}
    queue = list(waiting)
    while queue or workers.active:
        while queue and workers.free:
            run = queue.pop(0)
            workers.start(run)
            tasks[run.name] = bar.add_task(escape(run.name), total=run.config.token_budget or run.config.steps, what="")
        time.sleep(_POLL_SECONDS)
        for run in list(workers.active.values()):
            last = _last_line(run.folder / METRICS_FILE)
            at = last.get("tokens" if run.config.token_budget else "step", 0)
            bar.update(tasks[run.name], completed=at, what=f"step {last.get('step', 0)}")
        for run, status in workers.ended():
            bar.remove_task(tasks.pop(run.name))
            bar.advance(total)
            if status:
                failed.append(run)
                _say(bar.console, f"[red]failed[/]: {escape(run.name)}; see {escape(str(workers.log(run)))}")
            else:
                _say(bar.console, f"done: {escape(run.name)}  {_result(run)}")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _warm_start(runs: list[Run], console: Console) -> None:
    """Make the embedded policies once, before several runs would each make their own."""
    made: set[tuple[str, str]] = set()
    for run in runs:
        model = run.config.model
        if not is_embedded(model):
            continue
        task = task_of(run.config)
        if (key := (model, json.dumps(task.fingerprint(), sort_keys=True))) not in made:
            made.add(key)
            make_embedded(model, task, console)


def _last_line(path: Path) -> dict[str, Any]:
    """The last whole line of a run's metrics; empty where there is none yet."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            lines = file.read().split(b"\n")[:-1]
        found = json.loads(lines[-1])
    except (OSError, IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _result(run: Run) -> str:
    last = _last_line(run.folder / METRICS_FILE)
    score = last.get("eval/pass@1")
    scored = "" if score is None else f"pass@1 {score:.3f}, "
    return f"{scored}{last.get('step', 0)} steps, {last.get('tokens', 0):,} tokens"
