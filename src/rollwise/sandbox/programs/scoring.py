"""Scores a program by its tests, in sandboxes of its own.

Expected values are never in the program's sandbox: outputs are compared here, and assertions run in a second sandbox
that calls the program's functions over a pipe (`guest/checks.py`). So a program can't read, change or answer its tests.
Only a `unittest.TestCase` (BigCodeBench) needs the program's own objects and runs in its process; there a program that
attacks its tests can pass them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

from rollwise.errors import RewardError
from rollwise.sandbox.limits import MIB, Limits
from rollwise.sandbox.programs.outputs import same_output
from rollwise.sandbox.programs.reading import continued, defines, program_of
from rollwise.sandbox.programs.running import run_alone, run_checked

_KINDS = {
    "stdin": ("cases",),
    "functional": ("cases", "function"),
    "check": ("code", "function"),
    "asserts": ("code",),
    "unittest": ("code",),
}
_ENDED = {"late": "took more than {seconds:g} s", "long": "wrote more than {output} KiB", "died": "ended with an error"}


class Score(NamedTuple):
    """What came of a program's tests.

    Attributes:
        passed: Tests that passed.
        tests: Tests in all; at least 1.
        reason: Why the first that did not pass failed; "" if all passed.
    """

    passed: int
    tests: int
    reason: str


def score_program(text: str, tests: str, *, limits: Limits | None = None) -> Score:
    """Score the program in a model's text.

    Each assertion is a test, and each time it runs; `assert True` is none. A program that gets to `assert False`, takes
    too long, ends its process or can't be loaded fails the tests that are left.

    Args:
        text: What the model wrote.
        tests: The tests as JSON text, as `docs/howto/presets.md` has them.
        limits: `seconds` are for each input of kind "stdin", and three times as many for all of them; for all tests
            of the other kinds together. `output` and `disk` grow where an input or output of the tests is longer.

    Raises:
        RewardError: The tests have another form.
    """
    parts = _parts(tests)
    limits = _with_room(limits or Limits(), parts)
    kind, function = parts["kind"], parts.get("function", "")
    program = program_of(text, function)
    if kind == "stdin":
        return _stdin(program, parts["cases"], limits)
    if kind == "unittest":
        return _unittest(program, parts["code"], limits)
    start = parts.get("start", "")
    if kind == "check" and start and not defines(program, function):
        program = continued(start, program)
    lines = run_checked([*([start] if start else []), program], parts, limits)
    return _counted(lines, limits)


def _parts(tests: str) -> dict[str, Any]:
    try:
        parts = json.loads(tests)
        wrong = [name for name in _KINDS[parts["kind"]] if not parts.get(name)]
    except (ValueError, TypeError, KeyError) as error:
        raise RewardError(
            f"reward 'code' needs tests as JSON text with a kind ({', '.join(_KINDS)}), got {str(tests)[:80]!r} "
            f"({error!r:.60}); --answer_column names the column that has them"
        ) from None
    if wrong:
        raise RewardError(f"tests of kind {parts['kind']!r} need {' and '.join(wrong)}, got {str(tests)[:80]!r}")
    if "cases" in _KINDS[parts["kind"]]:
        _check_cases(parts["kind"], parts["cases"])
    return dict(parts)


def _check_cases(kind: str, cases: Any) -> None:
    for case in cases if isinstance(cases, list) else [cases]:
        if not isinstance(case, list) or len(case) != 2 or not all(isinstance(text, str) for text in case):
            raise RewardError(
                f"tests of kind {kind!r} need cases that are pairs of texts, an input and an output, got {case!r:.80}"
            )


def _with_room(limits: Limits, parts: dict[str, Any]) -> Limits:
    """Limits with which the longest input can be stored, and the longest output be given."""
    longest = max((len(text) for case in parts.get("cases", ()) for text in case), default=0)
    room = 4 * longest  # bytes: of characters, and of values with their kinds
    return replace(limits, output=max(limits.output, room // 2**10), disk=limits.disk + room // MIB)


def _stdin(program: str, cases: list[list[str]], limits: Limits) -> Score:
    replies = run_alone("cases", [program, [given for given, _ in cases]], limits, seconds=3 * limits.seconds)
    passed, reason = 0, ""
    for reply, (_, expected) in zip(replies, cases, strict=False):
        ended, output = reply
        right = ended == "done" and same_output(output, expected)
        passed += right
        reason = reason or ("" if right else _ENDED.get(ended, "another output").format(**vars(limits)))
    if len(replies) < len(cases) and not reason:
        reason = "ended its sandbox, or took too long for all its inputs"
    return Score(passed, len(cases), reason)


def _unittest(program: str, code: str, limits: Limits) -> Score:
    replies = run_alone("unittests", [program, code], limits, seconds=2 * limits.seconds)
    ended, passed, tests, reason = _read(replies[0]) if replies else ("died", 0, 0, "")
    reason = reason or _ENDED.get(ended, "" if passed == tests > 0 else "no test ran").format(**vars(limits))
    return Score(int(passed), max(int(tests), 1), reason)


def _counted(lines: list[Any], limits: Limits) -> Score:
    """The score of a checker's lines: the number of assertions in the code, then a verdict for each that ran."""
    if not lines:
        return Score(0, 1, "the tests' sandbox ended")
    known, *verdicts = _read(lines[0]), *lines[1:]
    passed = sum(verdict[0] for verdict in verdicts)
    reason = next((verdict[1] for verdict in verdicts if not verdict[0]), "")
    tests = max(known, len(verdicts), 1)
    if len(verdicts) < tests and not reason:
        reason = _ENDED["late"].format(**vars(limits))
    return Score(passed, tests, reason)


def _read(first: Any) -> Any:
    """A sandbox's first reply; `RewardError` where it is text, which says why the tests can't be read."""
    if isinstance(first, str):
        raise RewardError(f"the tests of reward 'code' can't be read: {first}; mend or leave out their row")
    return first
