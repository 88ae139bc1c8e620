"""`judgments.jsonl`: which judgments of a step it gets, what of them, and what a resume takes back."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from judging import JudgingGRPO, LetterFormat, judging

import rollwise as rw
from rollwise.judges import WordsFormat
from rollwise.training import Recorder, RunFolder
from rollwise.training.generation.messages import JudgedPrompt, Judgment
from rollwise.training.recording.judgment_lines import LONGEST, prediction_of, sample_of

LINE = {"step", "question", "prompt_id", "prompt", "exemplars", "answer", "prediction", "realised", "reward", "chosen"}


def one(number: int, answer: str | None, reward: float | None = None) -> JudgedPrompt:
    question = rw.Question(f"q{number}", f"p{number}", "1+1=", (), WordsFormat())
    lesson = None if reward is None else rw.Lesson(question.id, math.nan, 0.25, reward, reward)
    return JudgedPrompt(question, Judgment(question.id, [1], [2], answer, 0), lesson, reward is not None)


def sampled(judged: list[JudgedPrompt], most: int) -> dict[int, str]:
    return sample_of(judged, [prediction_of(each) for each in judged], most)


def test_the_sample_by_hand() -> None:
    """Of ten: 3 earned the most, 7 the least, 5 can't be read; of 0 1 2 4 6 8 9 the ends, and the middle, 4."""
    rewards = {3: 0.9, 7: 0.2, 8: 0.5, 5: 0.0}
    judged = [one(n, "?" if n == 5 else r"\boxed{0.10}", rewards.get(n)) for n in range(10)]
    assert sampled(judged, 6) == {3: "best", 7: "worst", 5: "unreadable", 0: "chance", 4: "chance", 9: "chance"}
    assert sampled(judged, 2) == {3: "best", 7: "worst"}
    assert sampled(judged, 0) == {}
    assert len(sampled(judged, 99)) == 10
    assert sampled([one(0, r"\boxed{0.1}", 0.5)], 8) == {0: "best"}
    assert sampled([one(0, None)], 8) == {0: "unreadable"}  # too long to be asked
    assert sampled([], 8) == {}


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "judgments.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("expected", [False, True], ids=["sampled", "expected"])
def test_a_run_writes_what_was_asked_and_answered(tmp_path: Path, expected: bool) -> None:
    trainer = judging(tmp_path / "t", expected=expected, max_steps=3)
    Recorder(RunFolder(tmp_path / "run"), judgments_per_step=5).attach(trainer)
    trainer.train()
    lines = lines_of(tmp_path / "run")
    assert [line["step"] for line in lines] == [1] * 5 + [2] * 5 + [3] * 5
    lessons = {lesson.question_id: lesson for lesson in trainer.curriculum.taught}
    answers = {j.question_id: j for _, judgments in trainer.prepared for j in judgments.values()}
    chosen = {(row["step"], row["prompt_id"]) for row in _rollouts(tmp_path / "run")}
    for line in lines:
        assert set(line) >= LINE
        judgment, lesson = answers[line["question"]], lessons.get(line["question"])
        assert line["answer"] == judgment.text
        read = judgment.prediction if expected else LetterFormat().read(str(judgment.text))
        assert line["prediction"] == pytest.approx(read)
        assert line["chosen"] == ((line["step"], line["prompt_id"]) in chosen)
        assert (line["reward"], line["realised"]) == (
            (None, None) if lesson is None else (pytest.approx(lesson.reward), pytest.approx(lesson.variance))
        )
        assert len(line["exemplars"]) == (0 if line["step"] == 1 else 2)
        assert line["asked"] == len(answers) / 3
    for step in (1, 2, 3):
        own = [line for line in lines if line["step"] == step]
        earned = [lessons[q].reward for q in lessons if answers[q] and _step(trainer, q) == step]
        best = next(line for line in own if line["sample"] == "best")
        assert best["reward"] == pytest.approx(max(earned))


def _step(trainer: Any, question_id: str) -> int:
    return next(n for n, (_, judgments) in enumerate(trainer.prepared, start=1) if question_id in judgments)


def _rollouts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]


class Wordy(LetterFormat):
    """Shows the last signs of the candidate, which is far longer than the context."""

    def context(self, exemplars: Any, candidate: str) -> str:
        return candidate[-5:]


def test_the_file_is_bounded_in_size(tmp_path: Path) -> None:
    """By steps x judgments x the longest texts, however long prompts are and however many are judged."""
    rows = [{"prompt": f"item {i}=", "threshold": 0, "long": "x" * 50_000} for i in range(40)]
    metis = rw.METIS(seed=3, candidate_multiplier=3, format=Wordy(), judge_column="long")
    extra = {"run": tmp_path / "run", "judgments_per_step": 2}
    judging(tmp_path / "t", curriculum=metis, dataset=Dataset.from_list(rows), max_steps=3, extra=extra).train()
    lines = lines_of(tmp_path / "run")
    assert len(lines) == 6
    for line in lines:
        assert len(line["prompt"]) == LONGEST
        assert all(len(shown["prompt"]) == LONGEST // 4 for shown in line["exemplars"])
    assert (tmp_path / "run/judgments.jsonl").stat().st_size < 6 * (2 * LONGEST + 3 * LONGEST // 4 + 1000)


def test_none_are_written_where_none_are_wanted_or_asked(tmp_path: Path) -> None:
    for name, options in (
        ("none", {"extra": {"run": tmp_path / "none", "judgments_per_step": 0}}),
        ("uniform", {"curriculum": rw.Uniform(), "extra": {"run": tmp_path / "uniform"}}),
    ):
        judging(tmp_path / f"t-{name}", max_steps=1, **options).train()
        assert not (tmp_path / name / "judgments.jsonl").exists()


def test_a_resume_takes_later_judgments_back(tmp_path: Path) -> None:
    options: dict[str, Any] = {"kind": JudgingGRPO, "save_steps": 2, "save_strategy": "steps", "max_steps": 4}
    straight = judging(tmp_path / "straight", extra={"run": tmp_path / "run"}, **options)
    straight.train()
    whole = lines_of(tmp_path / "run")
    assert {line["step"] for line in whole} == {1, 2, 3, 4}
    shutil.copytree(tmp_path / "straight/checkpoint-2", tmp_path / "again/checkpoint-2")
    resumed = judging(tmp_path / "again", extra={"run": tmp_path / "run"}, **options)
    resumed.train(resume_from_checkpoint=True)
    assert lines_of(tmp_path / "run") == whole
