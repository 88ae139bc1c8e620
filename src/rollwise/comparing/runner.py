"""Runs a comparison: each run in a process of its own, several at a time, all of them resumable."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from rollwise.comparing.checks import check_runs, chosen_runs, setting_of
from rollwise.comparing.plan import Plan, Run
from rollwise.comparing.state import delete_checkpoints_if_done, is_done, last_line, result_of
from rollwise.comparing.warm_start import cautions_of, warm_start
from rollwise.comparing.workers import Workers, alone_in, end_in_words
from rollwise.errors import ConfigError
from rollwise.progress_bar import progress_bar
from rollwise.training.cost import Cost, Estimate
from rollwise.training.dry_run import dry_run

_POLL_SECONDS = 0.5


def run_comparison(
    plan: Plan,
    folder: Path,
    *,
    jobs: int,
    console: Console,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    delete_checkpoints: bool = False,
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
        delete_checkpoints: delete the checkpoints of each run that is complete; its logs and scores stay.

    Raises:
        ConfigError: a method or seed is not in the plan, the model's folder holds no model, the comparison's holds
            runs that were made with other options, a plan with `timing` is to run several at a time, or one with
            `keep_best` is to delete its checkpoints.
        StateFileError: another process runs this comparison.
    """
    if plan.timing and jobs != 1:
        raise ConfigError(f"the plan has timing: true, so its runs go one at a time, not {jobs}; leave --jobs out")
    runs = chosen_runs(plan, folder, methods, seeds)
    if delete_checkpoints and (keeping := next((run for run in runs if run.config.keep_best), None)):
        said = f"keep_best: {keeping.config.keep_best} keeps a checkpoint of {keeping.name}"
        raise ConfigError(f"{said}, and --delete_checkpoints deletes them all; leave one of them out")
    waiting = [run for run in runs if not is_done(run)]
    with progress_bar(console, transient=True) as bar:
        check_runs(waiting, lambda runs: bar.track(runs, description="checking methods"))
    with alone_in(folder):
        plan.write(folder)
        done = len(runs) - len(waiting)
        at_a_time = f", {jobs} at a time" if waiting else ""
        _say(console, f"{escape(str(folder))}: {_runs(len(runs))}, {done} of them complete{at_a_time}")
        for caution in cautions_of(waiting):
            _say(console, f"note: {escape(caution)}")
        failed: list[Run] = []
        if delete_checkpoints:
            for run in runs:
                delete_checkpoints_if_done(run)
        if waiting:
            warm_start(waiting, console)
            with progress_bar(console, note="what") as bar, Workers(folder, jobs, pinned=plan.timing) as workers:
                total = bar.add_task("all runs", total=len(runs), completed=done, what="")
                _work(workers, waiting, failed, bar, total, delete_checkpoints)
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
    _say(console, f"[bold]{'all ' * (len(runs) > 1)}{_runs(len(runs))}[/]: {total}")


def _work(workers: Workers, waiting: list[Run], failed: list[Run], bar: Progress, total: TaskID, delete: bool) -> None:
    tasks: dict[str, TaskID] = {}
    queue = list(waiting)
    while queue or workers.active:
        while queue and workers.free:
            run = queue.pop(0)
            workers.start(run)
            tasks[run.name] = bar.add_task(escape(run.name), total=run.config.token_budget or run.config.steps, what="")
        time.sleep(_POLL_SECONDS)
        for run in list(workers.active.values()):
            last = last_line(run)
            at = last.get("tokens" if run.config.token_budget else "step", 0)
            bar.update(tasks[run.name], completed=at, what=f"step {last.get('step', 0)}")
        for run, status in workers.ended():
            bar.remove_task(tasks.pop(run.name))
            bar.advance(total)
            if status:
                failed.append(run)
                how, log = end_in_words(status), escape(str(workers.log(run)))
                _say(bar.console, f"[red]failed[/]: {escape(run.name)} ({how}); see {log}")
                if status > 0:  # ended by a signal, it had no last words
                    _say(bar.console, f"  {escape(workers.last_words(run))}")
            else:
                _say(bar.console, f"done: {escape(run.name)}  {result_of(run)}")
                if delete:
                    delete_checkpoints_if_done(run)


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)
