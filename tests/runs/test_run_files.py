"""Reading a run's folder: whole, torn, malformed, resumed."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import StateFileError
from rollwise.evaluation import Faults, read_json_lines, read_run
from rollwise.runs.lines import append_lines, lines_by_id, parse_line, read_lines_at
from rollwise.runs.reading import is_training_line


def write_lines(folder: Path, rows: list[Any], name: str = "metrics.jsonl", tail: str = "") -> Path:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    (folder / name).write_text(text + tail)
    return folder


def test_columns_align_by_step_and_missing_is_nan(tmp_path: Path) -> None:
    rows = [
        {"step": 0, "eval/pass@1": 0.1},
        {"step": 1, "reward": 0.5, "loss": None, "note": "text"},
        {"step": 2, "reward": float("nan"), "grad_norm": 10**400, "resumed": True},
    ]
    run = read_run(write_lines(tmp_path, rows))
    assert run.steps.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(run.metrics["eval/pass@1"], [0.1, np.nan, np.nan])
    np.testing.assert_array_equal(run.metrics["reward"], [np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(run.column("grad_norm"), [np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(run.column("resumed"), [np.nan, np.nan, 1.0])
    np.testing.assert_array_equal(run.column("never"), [np.nan] * 3)
    assert "note" not in run.metrics
    assert "loss" not in run.metrics


def test_what_training_began_with(tmp_path: Path) -> None:
    write_lines(tmp_path, [{"step": 1}])
    assert read_run(tmp_path).start is None
    for text, start in (('{"weights_digest": "ab"}', "ab"), ('{"weights_digest": 3}', None), ("[]", None)):
        (tmp_path / "model.json").write_text(text)
        assert read_run(tmp_path).start == start
    (tmp_path / "model.json").write_text('{"weights_dig')
    with pytest.raises(StateFileError, match=r"model.json can't be read .*; delete it"):
        read_run(tmp_path)
    assert read_run(tmp_path, faults := Faults()).start is None
    assert "model.json can't be read" in " ".join(faults.sentences())


@pytest.mark.parametrize("tail", ['{"step": 2, "rew', '{"step": 2, "rew\n', "\n\n", "12", "\x00\x00\x00", ""])
def test_torn_last_line_is_left_out(tmp_path: Path, tail: str) -> None:
    assert read_run(write_lines(tmp_path, [{"step": 1}], tail=tail)).steps.tolist() == [1]


def test_line_torn_inside_a_character_is_left_out(tmp_path: Path) -> None:
    whole = json.dumps({"step": 1}).encode()
    (tmp_path / "metrics.jsonl").write_bytes(whole + b"\n" + '{"step": 2, "café'.encode()[:-1])
    assert read_run(tmp_path).steps.tolist() == [1]


def test_half_a_surrogate_pair_is_read_by_whoever_reads_the_file(tmp_path: Path) -> None:
    """A server's answer may hold one; UTF-8 can't, so that the line was damaged for `profile --rollouts` and others."""
    lines = [{"id": id_, "texts": ["cut \ud83d"]} for id_ in ("a\ud83d", "b")]
    append_lines(tmp_path / "groups.jsonl", lines)
    assert [row for _, row in read_json_lines(tmp_path / "groups.jsonl")] == lines
    assert [*lines_by_id(tmp_path / "groups.jsonl", "texts", mend=False).values()] == lines


def test_whole_last_line_without_newline_counts(tmp_path: Path) -> None:
    assert read_run(write_lines(tmp_path, [{"step": 1}], tail='{"step": 2}')).steps.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"step": 2, "rew', "not valid JSON"),
        ("[1, 2]", "holds a list"),
        ('{"reward": 1.0}', "'step' must be a whole number >= 0, got None"),
        ('{"step": -1}', "got -1"),
        ('{"step": 1.5}', "got 1.5"),
        ('{"step": true}', "got True"),
    ],
)
def test_malformed_line_names_file_and_line(tmp_path: Path, bad: str, reason: str) -> None:
    write_lines(tmp_path, [{"step": 1}, "", bad, {"step": 3}])
    with pytest.raises(StateFileError, match=r"metrics\.jsonl, line 3: ") as caught:
        read_run(tmp_path)
    assert reason in str(caught.value)


def test_malformed_rollout_line_raises_when_reached(tmp_path: Path) -> None:
    write_lines(tmp_path, [{"step": 1}])
    write_lines(tmp_path, [{"step": 1, "rewards": [1]}, "{", {"step": 2}], name="rollouts.jsonl")
    rollouts = read_run(tmp_path).rollouts()
    assert next(rollouts) == {"step": 1, "rewards": [1]}
    with pytest.raises(StateFileError, match=r"rollouts\.jsonl, line 2: "):
        next(rollouts)


def test_a_log_of_something_else_is_refused_by_line_and_field(tmp_path: Path) -> None:
    foreign = {"step": 1, "prompt": "1+1=", "completion": "2", "reward": 1.0}
    write_lines(tmp_path, [{"step": 1}])
    write_lines(tmp_path, ["{", foreign, foreign], name="rollouts.jsonl")
    for faults in (None, Faults()):
        with pytest.raises(
            StateFileError, match=r"rollouts\.jsonl, line 2: no 'rewards'.*`rollwise profile --rollouts"
        ):
            read_run(tmp_path, faults)


def test_a_line_without_rewards_among_others_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path, [{"step": 1}])
    write_lines(tmp_path, [{"step": 1, "rewards": [1]}, {"step": 1}, {"step": 1, "rewards": []}], name="rollouts.jsonl")
    faults = Faults()
    assert [number for number, _ in read_run(tmp_path, faults).rollout_lines(faults)] == [1, 3]
    assert "rollouts.jsonl: line 2 could not be read (no 'rewards')." in faults.sentences()
    with pytest.raises(StateFileError, match=r"rollouts\.jsonl, line 2: no 'rewards'"):
        list(read_run(tmp_path).rollouts())


def test_columns_of_prompts(tmp_path: Path) -> None:
    write_lines(tmp_path, [{"step": 1}])
    assert read_run(tmp_path).prompt_columns() == {}
    known = [{"step": 1, "prompt_id": "a", "columns": {"difficulty": d}} for d in (1.0, 2.0)]
    write_lines(tmp_path, [*known, '{"step": 2, "prom'], name="prompts.jsonl")
    assert read_run(tmp_path).prompt_columns() == {"a": {"difficulty": 2.0}}
    for bad in ({"step": 1, "columns": {}}, {"prompt_id": "a", "columns": [1]}, "{"):
        write_lines(tmp_path, [known[0], bad, known[1]], name="prompts.jsonl")
        with pytest.raises(StateFileError, match=r"prompts\.jsonl, line 2: "):
            read_run(tmp_path).prompt_columns()


def test_lines_are_streamed(tmp_path: Path) -> None:
    lines = read_json_lines(write_lines(tmp_path, [{"step": 1}, {"step": 2}]) / "metrics.jsonl")
    assert iter(lines) is lines
    assert list(lines) == [(1, {"step": 1}), (2, {"step": 2})]


def test_resumed_run_drops_what_the_abandoned_attempt_wrote(tmp_path: Path) -> None:
    rows = [{"step": s, "reward": 0.1} for s in range(1, 7)] + [{"step": s, "reward": 0.9} for s in (4, 5)]
    run = read_run(write_lines(tmp_path, rows))
    assert run.steps.tolist() == [1, 2, 3, 4, 5]
    assert run.metrics["reward"].tolist() == [0.1, 0.1, 0.1, 0.9, 0.9]


def test_late_evaluation_joins_its_step_and_drops_nothing(tmp_path: Path) -> None:
    rows = [
        {"step": 1, "reward": 0.1},
        {"step": 2, "reward": 0.2},
        {"step": 1, "time": 5.0, "tokens": 3, "eval/pass@1": 0.4},
        {"step": 0, "eval/pass@1": 0.3},
    ]
    run = read_run(write_lines(tmp_path, rows))
    assert run.steps.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(run.metrics["eval/pass@1"], [0.3, 0.4, np.nan])
    np.testing.assert_array_equal(run.metrics["reward"], [np.nan, 0.1, 0.2])


def test_a_late_evaluation_is_of_what_its_step_had_spent(tmp_path: Path) -> None:
    """Its line has what was spent by the time that it was written; step 1 seemed to have spent more than step 2."""
    rows = [{"step": s, "reward": 0.1, "tokens": 100.0 * s} for s in range(1, 5)]
    rows.insert(3, {"step": 1, "tokens": 340.0, "eval/pass@1": 0.4})
    run = read_run(write_lines(tmp_path, rows))
    assert run.metrics["tokens"].tolist() == [100, 200, 300, 400]
    assert run.metrics["eval/pass@1"][0] == 0.4


def test_empty_metrics_is_a_run_without_steps(tmp_path: Path) -> None:
    run = read_run(write_lines(tmp_path, []))
    assert run.steps.tolist() == []
    assert list(run.rollouts()) == []
    assert run.config == {}


def test_a_folder_of_profile_or_rollouts_is_no_damaged_run(tmp_path: Path) -> None:
    """The report would name its logs as missing, and draw nothing."""
    (tmp_path / "config.yaml").write_text("data: my.jsonl\ndata_hash: 9daf30d6\n")
    with pytest.raises(StateFileError, match="holds no run: its config.yaml is of `rollwise profile`"):
        read_run(tmp_path, Faults())


def test_a_folder_that_is_no_run_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match=r"has no metrics\.jsonl; give a run's folder"):
        read_run(tmp_path)
    with pytest.raises(StateFileError, match="is not a folder"):
        read_run(tmp_path / "absent")


def test_config(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    write_lines(tmp_path, [])
    path = tmp_path / "config.yaml"
    path.write_text("seed: 3\ncurriculum: {name: bots}\n")
    run = read_run(tmp_path)
    assert run.config == {"seed": 3, "curriculum": {"name": "bots"}}
    assert run.config_text == "seed: 3\ncurriculum: {name: bots}\n"
    path.write_text("")
    assert read_run(tmp_path).config == {}
    for bad in ("- a\n- b\n", "a: [1\n"):
        path.write_text(bad)
        with pytest.raises(StateFileError, match=r"config\.yaml"):
            read_run(tmp_path)


def test_without_pyyaml_the_text_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    write_lines(tmp_path, [])
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    monkeypatch.setattr(builtins, "__import__", refuse)
    run = read_run(tmp_path)
    assert run.config == {}
    assert run.config_text == "seed: 3\n"


def test_a_reader_that_notes_faults_goes_on_without_damaged_lines(tmp_path: Path) -> None:
    bad = ['{"step": 2, "rew', "[1, 2]", {"reward": 1.0}, {"step": -1}, '{"step": 3, "caf\ufffd']
    write_lines(tmp_path, [{"step": 1, "reward": 0.5}, *bad, {"step": 6, "reward": 0.7}], tail='{"step": 7, "r')
    write_lines(
        tmp_path, ["{", {"step": 1, "rewards": [1]}, "", "x", {"step": 6, "rewards": []}], name="rollouts.jsonl"
    )
    faults = Faults()
    run = read_run(tmp_path, faults)
    assert run.steps.tolist() == [1, 6]
    assert list(run.rollout_lines(faults)) == [(2, {"step": 1, "rewards": [1]}), (5, {"step": 6, "rewards": []})]
    assert faults.sentences() == [
        "metrics.jsonl: lines 2 and 6 could not be read (not valid JSON).",
        "metrics.jsonl: line 3 could not be read (not a JSON object).",
        "metrics.jsonl: lines 4 and 5 could not be read (no whole number as step).",
        "rollouts.jsonl: lines 1 and 4 could not be read (not valid JSON).",
        "config.yaml is not there.",
        "metrics.jsonl has a torn last line (8), still being written or cut off; it was left out.",
    ]
    assert len(faults) == 9


def test_many_damaged_lines_are_counted(tmp_path: Path) -> None:
    write_lines(tmp_path, ["no"] * 5000 + [{"step": 1}])
    faults = Faults()
    assert read_run(tmp_path, faults).steps.tolist() == [1]
    sentence = next(s for s in faults.sentences() if "lines" in s)
    assert "lines 1, 2, 3" in sentence
    assert "12 and 4,988 more could not be read" in sentence
    assert len(sentence) < 150


@pytest.mark.parametrize("name", ["metrics.jsonl", "rollouts.jsonl", "config.yaml"])
def test_one_file_is_a_run_for_a_reader_that_notes_faults(tmp_path: Path, name: str) -> None:
    write_lines(tmp_path, [], name=name)
    faults = Faults()
    run = read_run(tmp_path, faults)
    assert run.steps.tolist() == []
    assert list(run.rollout_lines(faults)) == []
    assert sum("is not there" in sentence for sentence in faults.sentences()) == 2


def test_no_file_is_no_run_for_anyone(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="give a run's folder"):
        read_run(tmp_path, Faults())


def test_files_that_can_not_be_opened(tmp_path: Path) -> None:
    write_lines(tmp_path, [], name="rollouts.jsonl")
    for name in ("metrics.jsonl", "config.yaml"):
        (tmp_path / name).mkdir()
    faults = Faults()
    assert read_run(tmp_path, faults).config == {}
    assert {s.split("(")[0] for s in faults.sentences()} == {
        "config.yaml can't be read ",
        "metrics.jsonl can't be read ",
    }
    with pytest.raises(StateFileError, match=r"has no metrics\.jsonl"):
        read_run(tmp_path)
    (tmp_path / "metrics.jsonl").rmdir()
    write_lines(tmp_path, [{"step": 1}])
    with pytest.raises(StateFileError, match=r"config\.yaml can't be read"):
        read_run(tmp_path)


@pytest.mark.parametrize("bad", ["- a\n- b\n", "a: [1\n", "a: 2025-99-99\n"])
def test_a_config_that_can_not_be_read_is_a_fault(tmp_path: Path, bad: str) -> None:
    pytest.importorskip("yaml")
    write_lines(tmp_path, [{"step": 1}])
    (tmp_path / "config.yaml").write_text(bad)
    faults = Faults()
    run = read_run(tmp_path, faults)
    assert (run.config, run.config_text) == ({}, bad)
    assert len(faults.sentences()) == 1
    assert "\n" not in " ".join(faults.sentences())
    with pytest.raises(StateFileError, match=r"config\.yaml"):
        read_run(tmp_path)


def test_lines_are_found_again_by_number(tmp_path: Path) -> None:
    path = write_lines(tmp_path, [{"step": 1}, "no", {"step": 3}, {"step": 4}]) / "metrics.jsonl"
    assert read_lines_at(path, {2, 3, 9}) == {3: {"step": 3}}
    assert read_lines_at(path, set()) == {}
    with pytest.raises(StateFileError, match="can't be read"):
        read_lines_at(tmp_path / "absent", {1})


@pytest.mark.parametrize(
    ("names", "trained"),
    [
        (["step", "time", "wall_s", "rollouts", "tokens", "eval/pass@1", "eval/pass@4"], False),
        (["step", "time", "wall_s", "rollouts", "tokens"], False),
        ([], False),
        (["step", "eval/pass@1", "loss"], True),
        (["evaluations"], True),
    ],
)
def test_an_evaluation_is_no_training_line(names: list[str], trained: bool) -> None:
    assert is_training_line(names) is trained


@pytest.mark.parametrize(
    ("line", "row", "fault"),
    [
        (b' {"step": 1}\r\n', {"step": 1}, None),
        (b'{"step": 1', None, "not valid JSON"),
        ("café".encode()[:-1], None, "not valid JSON"),
        (b"[" * 10**5, None, "not valid JSON"),
        (b"12", None, "not a JSON object"),
    ],
)
def test_a_line_gives_its_object_or_its_fault(line: bytes, row: dict[str, Any] | None, fault: str | None) -> None:
    found, said = parse_line(line)
    assert found == row
    assert (None if said is None else said[0]) == fault


def test_the_time_of_a_late_evaluation_is_no_training_step(tmp_path: Path) -> None:
    """It joins its step, and what was written after that step stays."""
    rows = [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}, {"step": 1, "eval/pass@1": 0.3, "time/evaluation": 2.0}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(tmp_path)
    assert run.column("loss").tolist() == [0.5, 0.4]
    assert run.column("time/evaluation")[0] == 2.0
