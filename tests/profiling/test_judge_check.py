"""The preflight of METIS: what a model's judgments are worth, before a run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from rich.console import Console

from rollwise.errors import ConfigError, MissingColumnError
from rollwise.judges import Exemplar, JudgmentFormat
from rollwise.judges import formats as judgment_formats
from rollwise.profiling import judge_check
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.display import show
from rollwise.profiling.judge_check import verdict
from rollwise.profiling.profile import Profile, run_profile

QUIET = Console(file=io.StringIO())


class FirstSign(JudgmentFormat):
    """Predicts by the first sign of the answer; reads no letter. Keeps what it was asked."""

    name = "first"
    max_tokens = 3
    asked: ClassVar[list[tuple[tuple[Exemplar, ...], str]]] = []

    def context(self, exemplars: Any, candidate: str) -> str:
        self.asked.append((tuple(exemplars), candidate))
        return "".join(f"{round(36 * e.variance)}" for e in exemplars) + candidate

    def read(self, answer: str) -> float | None:
        return None if not answer or answer[0].isalpha() else ord(answer[0]) % 10 / 36


def profile(options: dict[str, Any], out: Path, **changed: Any) -> Profile:
    return run_profile(ProfileConfig(**{**options, "out": str(out), **changed}), console=QUIET)


@pytest.fixture
def first_sign(monkeypatch: pytest.MonkeyPatch) -> type[FirstSign]:
    """The only form that is tried."""
    FirstSign.asked.clear()
    monkeypatch.setitem(judgment_formats.FORMATS, "first", FirstSign)
    monkeypatch.setattr(judge_check, "FORMATS", ("first",))
    return FirstSign


def test_the_numbers_are_those_of_the_answers(
    options: dict[str, Any], tmp_path: Path, first_sign: type[FirstSign]
) -> None:
    """24 prompts: 8 are asked about, and shown low, moderate and high variances of the other 16."""
    numbers = profile(options, tmp_path, judge=8).numbers
    judged = numbers["judge"]
    (line,) = judged["formats"]
    asked = {candidate for _, candidate in first_sign.asked}
    groups = [json.loads(row) for row in (tmp_path / "groups.jsonl").read_text().splitlines()]
    rewards = {g["prompt"]: [r for r in g["rewards"] if r is not None] for g in groups}
    assert line["asked"] == 8 == len(asked)
    for exemplars, _ in first_sign.asked:
        assert len(exemplars) == 3
        assert [e.variance for e in exemplars] == sorted(e.variance for e in exemplars)
        for shown in exemplars:
            assert shown.text not in asked
            assert shown.variance == pytest.approx(np.var(rewards[shown.text]))
    assert (line["too_long"], line["whole"], line["exemplars"]) == (0, 1.0, 3.0)
    assert 1.0 <= line["tokens"] <= 3.0
    rollout = np.mean([t for g in groups for t in g["tokens"]])
    assert line["share_of_step"] == pytest.approx(8 * line["tokens"] / (8 * line["tokens"] + 4 * rollout))
    assert len(line["answers"]) == 2
    assert 0.0 <= line["unreadable"] <= 1.0
    assert json.loads((tmp_path / "profile.json").read_text())["judge"] == judged
    show(numbers, console := Console(file=io.StringIO(), width=120))
    assert judged["verdict"] in " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_a_profile_that_is_there_is_asked_without_rolling_out_again(
    options: dict[str, Any], tmp_path: Path, first_sign: type[FirstSign]
) -> None:
    before = profile(options, tmp_path)
    assert "judge" not in before.numbers
    groups = (tmp_path / "groups.jsonl").read_bytes()
    first, second = (profile(options, tmp_path, judge=8).numbers for _ in range(2))
    assert first == second
    assert (tmp_path / "groups.jsonl").read_bytes() == groups
    assert {name: value for name, value in first.items() if name != "judge"} == before.numbers


def test_a_named_column_is_what_the_judge_reads(
    options: dict[str, Any], tmp_path: Path, first_sign: type[FirstSign]
) -> None:
    profile(options, tmp_path, judge=4, judge_column="kind")
    assert {candidate for _, candidate in first_sign.asked} <= {"k0", "k1", "k2"}
    with pytest.raises(MissingColumnError, match="no column 'prose'"):
        profile(options, tmp_path, judge=4, judge_column="prose")
    with pytest.raises(ConfigError, match="--judge needs more than 30 prompts with two scored rollouts, got 24"):
        profile(options, tmp_path, judge=4, judge_exemplars=30)


@pytest.mark.parametrize(
    ("options_of_judge", "message"),
    [
        ({"judge_column": "prose"}, "no column 'prose'"),
        ({"judge_exemplars": 30}, "needs more than 30 prompts with two scored rollouts, got 24"),
    ],
)
def test_what_can_not_be_asked_is_refused_before_anything_is_rolled_out(
    options_of_judge: dict[str, Any], message: str, options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, MissingColumnError), match=message):
        profile(options, tmp_path / "new", judge=4, **options_of_judge)
    assert not (tmp_path / "new").exists()


def test_questions_that_do_not_fit_are_unreadable(options: dict[str, Any], tmp_path: Path) -> None:
    """The toy's context is 48 signs: the paper's words are many more."""
    judged = profile(options, tmp_path, judge=4).numbers["judge"]
    words = judged["formats"][0]
    assert (words["format"], words["too_long"], words["unreadable"], words["context"]) == ("words", 4, 1.0, None)
    assert judged["take"] is None
    assert judged["verdict"].startswith("METIS can't ask this model: ")


def test_where_no_form_fits_the_shortest_is_tried(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a small policy trained on from the embedded one that judges, which is given by its folder."""
    monkeypatch.setattr(judge_check, "FORMATS", ("words", "listing"))
    lines = profile(options, tmp_path, judge=4).numbers["judge"]["formats"]
    assert [(one["format"], one["too_long"]) for one in lines] == [("words", 4), ("listing", 4), ("compact", 0)]


def line(name: str, unreadable: float, spread: float | None, **changed: Any) -> dict[str, Any]:
    more = {"share_of_step": 0.18, "whole": 1.0, "one_token": False}
    return {"format": name, "unreadable": unreadable, "spread": spread, **more, **changed}


@pytest.mark.parametrize(
    ("lines", "take", "said"),
    [
        ([line("words", 0.03, 0.06), line("digit", 0.0, 0.08)], "words",
         "METIS can ask this model: format words (3% unreadable, predictions spread by 0.060, 18% of a step's tokens)"),
        ([line("words", 0.4, 0.06), line("boxed", 0.1, 0.05)], "boxed", "format boxed (10% unreadable"),
        ([line("words", 0.0, 0.001), line("boxed", 0.0, 0.02)], "boxed", "spread by 0.020"),
        ([line("words", 0.0, 0.001)], "words", "are all alike, so that chance decides at first: add explore 0.25"),
        ([line("words", 0.0, 0.05, whole=0.25)], "words", "all examples fit into 25% of the contexts"),
        ([line("words", 1.0, None), line("digit", 0.0, 0.05, one_token=True)], "digit", "answers: expected"),
        ([line("words", 1.0, None), line("boxed", 0.45, 0.1)], None, "45% of its answers can't be read at the best"),
    ],
)  # fmt: skip
def test_the_verdict_by_hand(lines: list[dict[str, Any]], take: str | None, said: str) -> None:
    found = verdict(lines)
    assert found["take"] == take
    assert said in found["verdict"]
    assert "\n" not in found["verdict"]


@pytest.mark.parametrize("given", [{"judge_exemplars": 1}, {"judge_column": "hint"}])
def test_how_to_ask_without_anything_to_ask_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ConfigError, match=f"{name} .* is of judgments, and none is asked for: add --judge N"):
        ProfileConfig(data="countdown", **given)
    ProfileConfig(data="countdown", judge=8, **given)
