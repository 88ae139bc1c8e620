"""The loop: it waits, follows, ends, and leaves the terminal as it was."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from rollwise.errors import ConfigError, StateFileError
from rollwise.training import RunFolder
from rollwise.watching import WatchOptions, watch

ALTERNATE, NORMAL, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
STEPS = 6


def terminal(width: int = 80, height: int = 24) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None, highlight=False,
        legacy_windows=False, _environ={"TERM": "xterm"},
    )  # fmt: skip


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def play(*actions: Callable[[], object]) -> Callable[[float], None]:
    """In place of waiting, what happens next; the loop must not wait more often."""
    rest: Iterator[Callable[[], object]] = iter(actions)

    def sleep(seconds: float) -> None:
        assert seconds == 1.0
        next(rest)()

    return sleep


def test_from_before_the_run_over_a_kill_to_its_end(begun: RunFolder, replay: Callable[[int], None]) -> None:
    config = begun.config.read_text()
    begun.config.unlink()
    console = terminal()
    watch(
        [begun.path],
        console,
        now=lambda: 0.0,
        sleep=play(
            lambda: begun.config.write_text(config),
            *(lambda step=step: replay(step) for step in range(5)),
            lambda: begun.roll_back(2),
            *(lambda step=step: replay(step) for step in range(3, STEPS + 1)),
        ),
    )
    text = text_of(console)
    states = ["waiting for the run", "no step yet", *(f"step {s}/6" for s in (0, 1, 2, 3, 4, 2, 3, 4, 5, 6))]
    at = 0
    for state in states:  # in this order
        at = text.index(state, at) + 1
    assert text.index(ALTERNATE) < text.index(states[0])
    assert "step 6/6" in text[text.rindex(NORMAL) :]  # the last screen stays
    assert text.rindex(SHOW_CURSOR) > text.rindex("\x1b[?25l")


def test_interrupted_the_terminal_is_as_it_was(begun: RunFolder, replay: Callable[[int], None]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    console = terminal()
    replay(0)
    with pytest.raises(KeyboardInterrupt):
        watch([begun.path], console, now=lambda: 0.0, sleep=play(interrupt))
    text = text_of(console)
    assert NORMAL in text
    assert text.rindex(SHOW_CURSOR) > text.rindex("\x1b[?25l")
    assert "step" not in text[text.rindex(NORMAL) :]


def test_a_complete_run_ends_at_once_unless_kept(real_run: Path) -> None:
    watch([real_run], terminal(), sleep=play())

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch([real_run], terminal(), WatchOptions(stay=True), sleep=play(stop))


def test_without_a_terminal_it_is_one_snapshot(real_run: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    watch([real_run], console, sleep=play())
    text = text_of(console)
    assert "\x1b" not in text
    assert "step 6/6" in text


def test_one_snapshot_of_nothing_is_an_error(tmp_path: Path, real_run: Path) -> None:
    with pytest.raises(StateFileError, match="nowhere' holds no run"):
        watch([real_run, tmp_path / "nowhere"], terminal(), WatchOptions(once=True), sleep=play())
    with pytest.raises(StateFileError, match="is not a folder"):
        watch([real_run / "metrics.jsonl"], terminal(), sleep=play())
    with pytest.raises(ConfigError, match="every"):
        WatchOptions(every=0.0)


def test_a_profile_is_no_run(tmp_path: Path) -> None:
    """It would seem to wait for its first step for ever."""
    (tmp_path / "config.yaml").write_text("data: my.jsonl\ndata_hash: 9daf30d6\n")
    with pytest.raises(StateFileError, match="holds no run: its config.yaml is of `rollwise profile`"):
        watch([tmp_path], terminal(), WatchOptions(once=True), sleep=play())
    with pytest.raises(StateFileError, match="holds no run"):
        RunFolder(tmp_path).read_config()


def test_a_comparison_is_a_row_for_each_planned_run(real_run: Path, tmp_path: Path) -> None:
    """Two methods, two seeds; one has run, the others come, and the loop ends only then."""
    folder = tmp_path / "comparison"

    def begin() -> None:
        folder.mkdir()
        plan = {"methods": {"uniform": {}, "bots": {"target": 0.5}}, "seeds": [0, 1], "baseline": "uniform"}
        (folder / "comparison.yaml").write_text(yaml.safe_dump(plan))

    def finish(method: str, seed: int) -> None:
        run = folder / "runs" / method / f"seed{seed}"
        run.mkdir(parents=True)
        for name in ("config.yaml", "metrics.jsonl"):
            (run / name).write_bytes((real_run / name).read_bytes())

    console = terminal()
    runs = [(method, seed) for method in ("uniform", "bots") for seed in (0, 1)]
    watch([folder], console, sleep=play(begin, *(lambda run=run: finish(*run) for run in runs)))
    text = text_of(console)
    at = 0
    for state in ["nothing there yet", *(f"{n} of 4 runs complete" for n in range(5))]:
        at = text.index(state, at) + 1
    assert "bots/seed1" in text


def test_a_comparison_without_a_plan_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "comparison.yaml").write_text("methods: {}\n")
    with pytest.raises(StateFileError, match="'methods' and 'seeds'"):
        watch([tmp_path], terminal(), sleep=play())
    (tmp_path / "comparison.yaml").unlink()
    (tmp_path / "comparison.yaml").symlink_to(tmp_path / "comparison.yaml")  # leads nowhere: not the same as absent
    with pytest.raises(StateFileError, match=r"comparison.yaml' can't be read"):
        watch([tmp_path], terminal(), sleep=play())


def test_runs_of_the_same_name_are_told_apart_by_their_paths(real_run: Path, tmp_path: Path) -> None:
    other = tmp_path / "real"
    other.mkdir()
    console = terminal(200)
    for name in ("config.yaml", "metrics.jsonl"):
        (other / name).write_bytes((real_run / name).read_bytes())
    watch([real_run, other], console, sleep=play())
    assert str(other)[-15:] in text_of(console)
