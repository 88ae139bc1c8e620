"""A real run on terminals of every size."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from rollwise.watching.follow import RunFollower
from rollwise.watching.glyphs import ASCII, BLOCKS, Glyphs, sparkline
from rollwise.watching.judge import JudgeState
from rollwise.watching.rows import render_rows
from rollwise.watching.screen import Canvas, render_run
from rollwise.watching.state import Snapshot, take_snapshot


def snapshot(path: Path) -> Snapshot:
    follower = RunFollower(path)
    follower.look()
    return take_snapshot(follower.name, follower.history, now=0.0)


def drawn(body: RenderableType, width: int, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    Console(file=file, width=width, color_system=None, highlight=False).print(body)
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (200, 60)])
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII])
def test_a_run_fits_its_terminal(size: tuple[int, int], glyphs: Glyphs, real_run: Path) -> None:
    width, height = size
    lines = drawn(render_run(snapshot(real_run), Canvas(width, height, glyphs)), width, "utf-8")
    assert 20 < len(lines) <= height
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "real" in lines[0]
    assert "complete" in lines[0]
    assert "step 6/6" in lines[1]
    for word in ("pass@1", "mixed", "all solved", "mean |A|", "pool", "coverage", "belief", "tokens/s", "overhead"):
        assert word in text
    assert "priority" in text  # a lane
    assert "left solved" in text
    assert "c1" in text  # a category
    assert "task " in text  # a prompt
    assert "~" not in "".join(lines[2:10])  # nothing of the signals is cut
    assert "…" not in "".join(lines[2:10])
    assert text.isascii() == (glyphs is ASCII)


def test_a_set_whose_name_looks_like_markup_is_shown_by_it() -> None:
    """`[hard]` was left out, and `[/x]` ended the view."""
    table = Canvas(80, 24, BLOCKS).table(("held out", 8), (">[hard]", 6), (">[/x]", 4))
    assert drawn(table, 80)[0].split() == ["held", "out", "[hard]", "[/x]"]


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (1, 1)])
def test_a_terminal_that_is_too_small_is_no_error(size: tuple[int, int], real_run: Path) -> None:
    shown = snapshot(real_run)
    assert drawn(render_run(shown, Canvas(*size, BLOCKS)), size[0])
    assert drawn(render_rows([shown, shown], Canvas(*size, BLOCKS)), size[0])


@pytest.mark.parametrize(("width", "headers"), [(60, "last first low high"), (40, "last first"), (30, "last")])
def test_a_narrow_terminal_has_fewer_numbers_not_cut_ones(width: int, headers: str, real_run: Path) -> None:
    lines = drawn(render_run(snapshot(real_run), Canvas(width, 30, BLOCKS)), width)
    found = next(i for i, line in enumerate(lines) if line.split()[:1] == ["last"])
    assert " ".join(lines[found].split()).startswith(headers + " first s")
    signal = next(line for line in lines[found:] if line.startswith("mixed"))
    assert all(len(number) == 5 for number in signal.split()[1 : 1 + len(headers.split())])  # as in 0.688


def test_the_numbers_are_the_files(real_run: Path) -> None:
    rows = [json.loads(text) for text in (real_run / "metrics.jsonl").read_text().splitlines()]
    lines = drawn(render_run(snapshot(real_run), Canvas(120, 40, BLOCKS)), 120)
    last = next(line for line in lines if line.startswith("mixed")).split()[1:5]
    mixed = [row["frac_mixed"] for row in rows if "frac_mixed" in row]
    assert last == [f"{value:.3f}" for value in (mixed[-1], mixed[0], min(mixed), max(mixed))]
    spent = next(line for line in lines if line.startswith("spent"))
    assert f"{rows[-1]['rollouts']:,} rollouts" in spent
    assert f"{rows[-1]['tokens']:,} tokens" in spent


def test_a_text_with_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    row = {"step": 1, "lane": "[red]", "rewards": [0, 1], "prompt": "[/b] :smile:", "texts": ["[bold]x[/bold]"]}
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    (tmp_path / "rollouts.jsonl").write_text(json.dumps(row) + "\n")
    text = "\n".join(drawn(render_run(snapshot(tmp_path), Canvas(100, 30, BLOCKS)), 100))
    assert "[/b] :smile: → [bold]x[/bold]" in text
    assert "[red]" in text


@pytest.mark.parametrize("width", [80, 120, 200])
def test_long_prompts_and_names_leave_the_numbers_their_room(width: int, tmp_path: Path) -> None:
    names = [
        "intermediate algebra / level 5 (competition)",
        "数え上げと確率 / レベル 4 (競技数学の問題集)",
        "prealgebra",
    ]
    rows = [
        {
            "step": step,
            "lane": "adaptive/prompts/retest",
            "category": name,
            "rewards": [0, 1, 1, 0],
            "prompt": 300 * "what ",
        }
        for step, name in enumerate(names, start=1)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(f'{{"step": {row["step"]}, "frac_mixed": 1.0}}\n' for row in rows))
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = drawn(render_run(snapshot(tmp_path), Canvas(width, 40, BLOCKS)), width)
    shares = [line for line in lines if "33%" in line]
    assert len(shares) == 3
    assert all("50%" in line and "100%" in line for line in shares)
    groups = lines[
        next(i for i, line in enumerate(lines) if "first completion" in line or line.startswith("step  ")) + 1 :
    ]
    assert [line.split()[0] for line in groups] == ["3", "2", "1"]
    assert all("0.50" in line and "what what" in line for line in groups)


def test_negative_and_large_numbers_are_whole(tmp_path: Path) -> None:
    """Of an engine that tells no seconds in ask and tell: an overhead is not known, and not 0."""
    line = {"step": 1, "lane": "uniform", "predicted": -12.5, "rewards": [-20.0, -30.5], "prompt": "p"}
    (tmp_path / "rollouts.jsonl").write_text(json.dumps(line) + "\n")
    numbers = {"step": 1, "reward": -123456.0, "frac_mixed": 1.0, "wall_s": 2.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(numbers) + "\n")
    text = "\n".join(drawn(render_run(snapshot(tmp_path), Canvas(80, 24, BLOCKS)), 80))
    for shown in (" -1.23e+05  -1.23e+05 ", " -12.50  -25.25 "):
        assert shown in text
    assert "overhead" not in text


def test_before_the_first_step(tmp_path: Path) -> None:
    assert "waiting for the run to begin" in drawn(render_run(snapshot(tmp_path), Canvas(80, 24, BLOCKS)), 80)[1]
    (tmp_path / "config.yaml").write_text("steps: 9\n")
    assert "no step yet" in drawn(render_run(snapshot(tmp_path), Canvas(80, 24, BLOCKS)), 80)[1]


@pytest.mark.parametrize("width", [80, 120])
def test_several_runs_are_rows(width: int, real_run: Path, tmp_path: Path) -> None:
    shown = [snapshot(real_run), snapshot(tmp_path)]
    lines = drawn(render_rows(shown, Canvas(width, 24, BLOCKS)), width)
    assert lines[0].strip() == "1 of 2 runs complete"
    assert "6/6" in lines[2]
    assert "complete" in lines[2]
    assert "waiting" in lines[3]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [60, 80, 120])
def test_seeds_of_a_method_with_a_wide_name_are_told_apart(width: int, tmp_path: Path) -> None:
    """A Chinese letter takes two columns, so the end of such a name, the seed, was cut off."""
    one, name = snapshot(tmp_path), "\u5747\u5300\u91c7\u6837" * 3
    shown = [replace(one, name=f"{name}/seed{seed}") for seed in (0, 1)]
    lines = drawn(render_rows(shown, Canvas(width, 24, BLOCKS)), width)
    assert ["/seed0" in lines[2], "/seed1" in lines[3]] == [True, True]


def test_of_more_runs_than_lines_those_that_go_on_are_shown(real_run: Path, tmp_path: Path) -> None:
    lines = drawn(render_rows([snapshot(real_run)] * 9 + [snapshot(tmp_path)], Canvas(80, 6, BLOCKS)), 80)
    assert len(lines) == 6
    assert lines[-1].strip() == "and 7 more"


def test_sparkline_by_hand() -> None:
    """On [0, 1], 0.5 is at 3.5 of 7 steps, rounded to even 4; four values in two columns are two means, 1 and 6."""
    assert sparkline([0.0, 0.5, 1.0, float("nan"), 2.0], 9, BLOCKS, low=0.0, high=1.0) == "▁▅█ █"
    assert sparkline([0.0, 2.0, 5.0, 7.0], 2, BLOCKS) == "▁█"
    assert sparkline([], 5, BLOCKS) == ""
    assert sparkline([float("nan")], 5, BLOCKS) == " "


@pytest.mark.parametrize(("glyphs", "spread"), [(BLOCKS, "0.131 ± 0.042"), (ASCII, "0.131 +- 0.042")])
def test_a_judge_has_one_line(glyphs: Glyphs, spread: str, real_run: Path) -> None:
    judge = JudgeState(reward=0.8125, baseline=0.625, failure_rate=1.0, mean=0.131, spread=0.042)
    shown = replace(snapshot(real_run), judge=judge)
    lines = [line for line in drawn(render_run(shown, Canvas(80, 24, glyphs)), 80) if line.startswith("judge")]
    assert [line.split() for line in lines] == [
        ["judge", *f"reward 0.81 (baseline 0.62) {glyphs.dot} unread 100% {glyphs.dot} predicts {spread}".split()]
    ]
    assert not any(
        line.startswith("judge") for line in drawn(render_run(snapshot(real_run), Canvas(80, 24, glyphs)), 80)
    )
