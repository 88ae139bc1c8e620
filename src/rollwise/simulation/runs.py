"""Runs of methods x seeds: each kept in a file of its own, skipped when it is there, one process or several."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from rollwise.child_process import leave_interrupts_to
from rollwise.errors import ConfigError, RollwiseError, StateFileError
from rollwise.renamed import with_new_names
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.one_run import options_of, run_one
from rollwise.simulation.worlds import idle_mark, sizes, world_of
from rollwise.state import LONGEST_NAME, make_folder, write_atomically


def run_all(
    config: SimulateConfig, out: str | Path, *, on_run: Callable[[str, int, bool], None] | None = None
) -> list[dict[str, Any]]:
    """Every method with every seed; what is finished in `out` already is not run again.

    Args:
        config: what to run.
        out: folder; the runs are in `runs/` under it.
        on_run: called with method, seed and whether it was there already, as each is done.

    Returns:
        The runs, as written in their files, method by method; with a `mark` where the method has nothing to choose by.

    Raises:
        ConfigError: the config can't be run, or `out` holds a run with other options; named before anything is run.
    """
    marks = check(config)
    folder = make_folder(Path(out) / "runs")
    # By seed first, as the methods of a seed share a world, and a process keeps the last one.
    wanted = [(name, seed) for seed in config.seeds for name in config.methods]
    done = {key: run for key in wanted if (run := _finished(config, folder, *key)) is not None}
    missing = [key for key in wanted if key not in done]
    tell = on_run or (lambda *_: None)
    for name, seed in done:
        tell(name, seed, True)
    for (name, seed), run in _run(config, missing):
        write_atomically(_path(folder, name, seed), json.dumps(run, indent=1, allow_nan=False).encode())
        done[name, seed] = run
        tell(name, seed, False)
    return [done[name, seed] | marks.get(name, {}) for name in config.methods for seed in config.seeds]


def check(config: SimulateConfig) -> dict[str, dict[str, str]]:
    """Raise the error that a run would, as far as it can be known before: sizes, and columns that methods need.

    Returns:
        Name -> `{"mark": why}` of the methods that have nothing to choose by.
    """
    for seed in config.seeds if config.replay is not None and "{seed}" in config.replay.run else config.seeds[:1]:
        sizes(config, seed)
    group = sizes(config, config.seeds[0])[2]
    small = replace(config, num_prompts=min(config.num_prompts, 500))
    files: dict[Path, str] = {}
    for name in config.methods:
        if len(name.encode("utf-8", "replace")) > LONGEST_NAME:
            raise ConfigError(
                f"a method's name becomes a file's, of {LONGEST_NAME} bytes at most: shorten {name!r:.80}"
            )
        other = files.setdefault(_path(Path(), name, 0), name)
        if other != name:
            raise ConfigError(f"methods {other!r} and {name!r} would have the same file; name one of them otherwise")
    world, marks = world_of(small, config.seeds[0]), dict[str, dict[str, str]]()
    for name, method in config.methods.items():
        try:
            curriculum = method.make(0)
            if curriculum.wants_answers:
                raise ConfigError("it asks the policy for judgments, and a simulated learner has none to give")
            curriculum.check_screening(group)
            if curriculum.wants_feedback and method.sampling() is not None and config.lag > 1:
                raise ConfigError(
                    f"it learns from what a step gained, and with lag {config.lag} a gate's groups are trained on too "
                    "late for that; take a lag of 0 or 1, or no gate"
                )
            curriculum.bind(world.pool)
        except RollwiseError as error:
            raise ConfigError(f"method {name!r}: {error}") from error
        if mark := idle_mark(curriculum, world):
            marks[name] = {"mark": mark}
    return marks


def _run(config: SimulateConfig, keys: list[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Runs as they are done, in this process or in several."""
    processes = min(config.processes, len(keys))
    if processes <= 1:
        for key in keys:
            yield key, run_one(config, *key)
        return
    # Fresh processes: a fork would copy the locks of this one's threads, such as a progress bar's.
    fresh, others = get_context("spawn"), set(active_children())
    with ProcessPoolExecutor(
        processes, mp_context=fresh, initializer=leave_interrupts_to, initargs=(os.getpid(),)
    ) as workers:
        futures = {workers.submit(run_one, config, *key): key for key in keys}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:  # what is running would be waited for, and then thrown away
            for child in set(active_children()) - others:
                child.terminate()
            workers.shutdown(cancel_futures=True)
            raise


def _path(folder: Path, name: str, seed: int) -> Path:
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
    return folder / f"{safe}-seed{seed}.json"


def _finished(config: SimulateConfig, folder: Path, name: str, seed: int) -> dict[str, Any] | None:
    """The run's file, if it is there.

    Raises:
        ConfigError: it was run with other options, or belongs to a method of another name.
        StateFileError: it is damaged.
    """
    path = _path(folder, name, seed)
    if not path.exists():
        return None
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        theirs = dict(_flat({"name": run["method"], **with_new_names("simulate", run["options"])}))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise StateFileError(f"{str(path)!r} is damaged ({error!r}); delete it to have it run again") from error
    ours = dict(_flat({"name": name, **options_of(config, name, seed)}))
    changed = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    if changed:
        key = changed[0]
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise ConfigError(
            f"{str(path)!r} was run with {key} = {theirs.get(key)!r}, the config has {ours.get(key)!r}{more}; give "
            "another --out, or delete that file"
        )
    return run


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
