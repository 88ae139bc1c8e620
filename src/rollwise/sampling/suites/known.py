r"""The papers' data sets: where each is, and what its columns become. `--data preset:NAME` reads one.

Nothing of them is in the package. Column names and revisions are those of the hub; `main` where no revision is pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rollwise.sampling.scorers.programs import CODE
from rollwise.sampling.suites.lookup import Row
from rollwise.sampling.suites.rows import (
    PROBLEM,
    big_code,
    contest,
    dapo,
    exercise,
    guru,
    has_figure,
    human_eval,
    in_python,
    live_code,
    maths,
    mbpp,
    puzzle,
)

_LIVE_CODE = tuple(f"test{n}.jsonl" for n in ("", "2", "3", "4", "5", "6"))

BOXED = "{prompt}\nPlease reason step by step, and put the final answer in \\boxed{{}}."
PROGRAM = "{prompt}\nPlease answer with one Python program that reads stdin and writes stdout."
FUNCTION = "{prompt}\nPlease answer with one complete Python function."
_SEC = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant "
    "first thinks about the reasoning process in the mind and then provides the user with the answer.\nUser: {}\n"
    "Assistant: Let me solve this step by step."
)
TEMPLATES: Mapping[str, str] = {
    "boxed": BOXED,
    "sec": _SEC.replace("{}", "{prompt}"),
    "sec-math": _SEC.replace("{}", "{prompt} Put your final answer within \\boxed{{}}."),
}
"""Templates by name, for `--template NAME`: METIS's (A.2), and SEC's (C)."""


@dataclass(frozen=True)
class Suite:
    """A data set of the papers.

    Attributes:
        about: what it is, and which papers use it.
        hub: its id on the hub; "" where it has to be made.
        read: the columns that a row gets beside its own: `prompt`, and `answer`, `id`, `category` or others.
        needs: columns that a copy must have; of a tuple, one.
        rows: how many the release has; None where that is not known.
        keep: reason -> condition; rows that fail one are left out.
        split: which part; "train+test" for two.
        config: the data set's configuration.
        files: files of the repository, where it is no plain data set.
        revision: of the repository.
        template: what is asked.
        reward: who scores.
    """

    about: str
    hub: str
    read: Callable[[Row], Row]
    needs: tuple[str | tuple[str, ...], ...]
    rows: int | None = None
    keep: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    split: str = "test"
    config: str | None = None
    files: tuple[str, ...] = ()
    revision: str = "main"
    template: str = BOXED
    reward: str = "math"


SUITES: Mapping[str, Suite] = {
    "aime24": Suite(
        "AIME 2024 (METIS, BOTS, prioritized replay, SEC)",
        "Maxwell-Jia/AIME_2024",
        maths,
        (PROBLEM, ("Answer", "answer", "solution")),
        rows=30,
        split="train",
        revision="8d88b2876a82a080e2f172cc9b25d0d9d2cb4792",
    ),
    "aime25": Suite(
        "AIME 2025, both sittings (METIS)",
        "math-ai/aime25",
        maths,
        (PROBLEM, ("answer", "solution")),
        rows=30,
        revision="563bb8404243c5f09de6ec262f2db674fe5bce9b",
    ),
    "amc": Suite(
        "AMC 12 of 2022 and 2023 (SEC)", "AI-MO/aimo-validation-amc", maths, (PROBLEM, "answer"), 83, split="train"
    ),
    "math500": Suite(
        "MATH-500, by level (all but Frontier)",
        "HuggingFaceH4/MATH-500",
        maths,
        (PROBLEM, ("answer", "solution")),
        rows=500,
        revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
    ),
    "minerva": Suite(
        "Minerva Math: the answer is the solution's last balanced box (METIS)",
        "svc-huggingface/minerva-math",
        maths,
        (PROBLEM, ("answer", "solution")),
        rows=272,
    ),
    "math-train": Suite(
        "the training split of MATH, by level (SEC)",
        "DigitalLearningGmbH/MATH-lighteval",
        exercise,
        (PROBLEM, "solution", "level"),
        rows=7500,
        split="train",
    ),
    "dapo": Suite(
        "DAPO-Math-17k, to train on (METIS)",
        "open-r1/DAPO-Math-17k-Processed",
        dapo,
        ("prompt", "solution"),
        rows=17398,
        split="train",
        config="all",
    ),
    "guru-math": Suite(
        "GURU's mathematics with two models' pass rates, to train on (BOTS, prioritized replay)",
        "LLM360/guru-RL-92k",
        guru,
        ("prompt", "reward_model"),
        rows=54404,
        split="train",
        files=("train/math__combined_54.4k.parquet",),
    ),
    "codecontests-plus": Suite(
        "CodeContests+ after METIS's three filters, to train on",
        "ByteDance-Seed/Code-Contests-Plus",
        contest,
        ("id", "description", "correct_submissions", "test_cases"),
        keep={
            "no correct Python program": in_python,
            "more than 25 tests, or none": lambda row: 1 <= len(row["test_cases"] or ()) <= 25,
            "a figure in the statement": lambda row: not has_figure(row["description"]),
        },
        split="train",
        config="1x",
        revision="7fe2c1821a7e36765e3308841658b0531ca281cf",
        template=PROGRAM,
        reward=CODE,
    ),
    "livecodebench": Suite(
        "LiveCodeBench v6, by difficulty (METIS, BOTS)",
        "livecodebench/code_generation_lite",
        live_code,
        ("question_content", "question_id", "difficulty", "public_test_cases", "private_test_cases"),
        rows=1055,
        split="train",
        files=_LIVE_CODE,
        revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        template=PROGRAM,
        reward=CODE,
    ),
    "humaneval": Suite(
        "HumanEval (METIS, BOTS)",
        "openai/openai_humaneval",
        human_eval,
        ("task_id", "prompt", "test", "entry_point"),
        rows=164,
        revision="7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
        template=FUNCTION,
        reward=CODE,
    ),
    "mbpp": Suite(
        "MBPP, all parts (METIS, BOTS)",
        "google-research-datasets/mbpp",
        mbpp,
        ("task_id", "text", "test_list"),
        rows=974,
        split="train+test+validation+prompt",
        config="full",
        revision="4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        template=FUNCTION,
        reward=CODE,
    ),
    "bigcodebench": Suite(
        "BigCodeBench 0.1.4 (METIS)",
        "bigcode/bigcodebench",
        big_code,
        ("task_id", "complete_prompt", "test", "entry_point"),
        rows=1140,
        split="v0.1.4",
        template=FUNCTION,
        reward=CODE,
    ),
    "zebra": Suite(
        "zebra puzzles of reasoning-gym (SEC)",
        "",
        puzzle,
        ("question", "answer"),
        template=TEMPLATES["sec"],
        reward="boxed",
    ),
    "arc-1d": Suite(
        "ARC-1D of reasoning-gym (SEC)", "", puzzle, ("question", "answer"), template=TEMPLATES["sec"], reward="boxed"
    ),
}
"""Name -> data set."""
