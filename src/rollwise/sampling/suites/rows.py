"""What a row of each of the papers' data sets becomes: `prompt`, `answer`, and often `id` and `category`."""

from __future__ import annotations

import base64
import io
import json
import pickle
import re
import zlib
from typing import Any

from rollwise.answers import boxed_answer
from rollwise.judges import prose_of
from rollwise.sampling.suites.lookup import Row, lookup

PROBLEM = ("problem", "question", "Problem")
"""Columns that hold a problem's text."""

_GURU_WORDING = re.compile(r"\s*Please output the final answer within \\+boxed\{\}\.?")
_BOXED_NAME = (
    "Provide only the name of the person as your final answer and put it in \\boxed{}, for example: \\boxed{Alice}."
)
_PUZZLE_WORDING = (
    ("Your final answer should be just", "Your final answer must be placed in \\boxed{} and should be just"),
    ("Provide only the name of the person as your final answer.", _BOXED_NAME),
)
_FIGURE = re.compile(
    r"!\[|<img\b|<image>|\\includegraphics|\b(?:figure|picture|image|diagram)s? (?:below|above|shows?|illustrates?)\b"
    r"|\b(?:shown|illustrated|depicted|see) (?:in|on) the (?:figure|picture|image|diagram)",
    re.IGNORECASE,
)


def maths(row: Row) -> Row:
    """A problem with its answer, or with a solution whose last balanced box is the answer."""
    answer = _first(row, "answer", "Answer")
    if answer is None:
        answer = boxed_answer(str(_first(row, "solution", "Solution") or ""))
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    columns = {"prompt": _first(row, *PROBLEM), "answer": None if answer is None else str(answer)}
    if (id_ := _first(row, "unique_id", "ID", "id")) is not None:
        columns["id"] = str(id_)
    if (category := _first(row, "level", "subject", "type")) is not None:
        columns["category"] = str(category)
    return columns


def exercise(row: Row) -> Row:
    """A problem of MATH, also as METIS's judge reads it: without words about how to answer (appendix B.3)."""
    made = maths(row)
    return {**made, "prose": made["prompt"]}


def dapo(row: Row) -> Row:
    """A problem whose column `solution` is the short answer, also as METIS's judge reads it."""
    return {"prompt": row["prompt"], "prose": row["prompt"], "answer": str(row["solution"])}


def guru(row: Row) -> Row:
    """The problem without GURU's own wording, and its two pass rates as reference."""
    prompt = row["prompt"] if isinstance(row["prompt"], str) else row["prompt"][-1]["content"]
    rates = [row.get("qwen2.5_7b_pass_rate"), row.get("qwen3_30b_pass_rate")]
    return {
        "prompt": _GURU_WORDING.sub("", prompt).strip(),
        "answer": str(lookup(row, "reward_model.ground_truth")),
        **({} if None in rates else {"reference_pass_rates": rates}),
    }


def puzzle(row: Row) -> Row:
    """A puzzle of reasoning-gym, which asks for a box where SEC does."""
    question = str(row["question"]).strip()
    for plain, boxed in _PUZZLE_WORDING:
        question = question.replace(plain, boxed)
    return {"prompt": question, "answer": str(row["answer"])}


def contest(row: Row) -> Row:
    """A problem of CodeContests+ with all its tests, and its prose alone (METIS, appendix A.2)."""
    tests = [[case["input"], case["output"]] for case in row["test_cases"]]
    text = row["description"]
    answer = _tests(kind="stdin", cases=tests)
    return {"prompt": text, "prose": prose_of(text), "id": str(row["id"]), "answer": answer}


def live_code(row: Row) -> Row:
    """A problem of LiveCodeBench with its public and private tests."""
    cases = [*json.loads(row["public_test_cases"]), *_private(row["private_test_cases"])]
    kind = cases[0]["testtype"] if cases else "stdin"
    function = json.loads(row.get("metadata") or "{}").get("func_name")
    starter = f"\n\n{row['starter_code']}" if row.get("starter_code") else ""
    return {
        "prompt": f"{row['question_content']}{starter}",
        "id": str(row["question_id"]),
        "category": row["difficulty"],
        "answer": _tests(kind=kind, cases=[[case["input"], case["output"]] for case in cases], function=function),
    }


def human_eval(row: Row) -> Row:
    """A function's head; its tests are those of `check(candidate)`, which may call helpers of the head."""
    tests = _tests(kind="check", code=row["test"], function=row["entry_point"], start=row["prompt"])
    return {"prompt": row["prompt"], "id": str(row["task_id"]), "answer": tests}


def big_code(row: Row) -> Row:
    """A function's head; its tests are a `unittest.TestCase`."""
    tests = _tests(kind="unittest", code=row["test"], function=row["entry_point"])
    return {"prompt": row["complete_prompt"], "id": str(row["task_id"]), "answer": tests}


def mbpp(row: Row) -> Row:
    """The text with the first assertion, which names the function."""
    tests, setup = row["test_list"], row.get("test_setup_code") or ""
    return {
        "prompt": f"{row['text']}\nYour code must pass: {tests[0]}",
        "id": str(row["task_id"]),
        "answer": _tests(kind="asserts", code="\n".join(filter(None, [setup, *tests]))),
    }


def _tests(**parts: Any) -> str:
    """A program's tests as JSON text, in one form for all suites."""
    return json.dumps({name: value for name, value in parts.items() if value is not None}, sort_keys=True)


class _Plain(pickle.Unpickler):
    """Loads text, numbers and lists; anything that would run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"private tests hold {module}.{name}, where text is expected")


def _private(text: str) -> list[Any]:
    """LiveCodeBench's private tests: JSON, or JSON that was pickled, compressed and written as base64."""
    try:
        return list(json.loads(text))
    except ValueError:
        loaded = _Plain(io.BytesIO(zlib.decompress(base64.b64decode(text)))).load()
        return list(json.loads(loaded))


def _first(row: Row, *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def has_figure(statement: str) -> bool:
    """Whether a statement points to a picture, which a policy of text can't see."""
    return _FIGURE.search(statement) is not None


def in_python(row: Row) -> bool:
    """Whether one of a problem's correct programs is in Python."""
    return any(str(one["language"]).lower().startswith("py") for one in row["correct_submissions"])
