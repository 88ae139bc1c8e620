r"""Whether two answers are the same as mathematics, as `\frac{1}{2}`, `\frac12` and `0.5` are: by math-verify."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import re
import subprocess
import sys
import unicodedata
from functools import lru_cache
from pathlib import Path
from threading import Lock, Timer
from typing import IO, cast

from rollwise.answers.comparing import TEXT
from rollwise.answers.prose import without_unit
from rollwise.errors import MissingExtraError

_SECONDS = 5.0
"""Of CPU time that a comparison may take; answers that take longer count as different."""

_PATIENCE = 600.0 if os.name == "posix" else _SECONDS
"""Seconds by the clock after which it is ended anyway: a busy machine may give it a hundredth of a core."""

_LONGEST = 500
"""Characters of an answer up to which it is parsed; a longer one equals its own text alone."""

_WHOLE = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+|[-+]?\d+")
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[\s'-]+[^\W\d_]+)*")
_SCIENTIFIC = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+))[eE]([-+]?\d{1,4})")
_RAISED, _LOWERED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+"), re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋ₙ]+")
_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉₊₋ₙ", "0123456789+-n" * 2)
_FRACTION = re.compile(r"(?<!\d)(\d+)\u2044(\d+)")
_MIXED = re.compile(r"([-+]?\d+)\s+(\d+)/(\d+)")
_ROOT = re.compile(r"√\s*(?:\(([^()]*)\)|(\d+(?:\.\d+)?|[a-zA-Z]))")
_SIGNS = {"∞": r"\infty ", "°": r"^\circ", "·": r"\cdot ", "⋅": r"\cdot ", "\u2212": "-"}
_CHOICE = re.compile(  # "B)", "B) Paris", and \textbf{(B)}\ 12
    r"(?:\\(?:text(?:bf|rm)?|math(?:bf|rm)|mbox)\s*\{)?\(?([A-Z])[).:](?:(?:[\s~}]|\\[ ,;])+\S.*)?", re.DOTALL
)
_PERCENT = re.compile(r"\s*(?:\\?%|percent)$", re.IGNORECASE)
_AROUND = re.compile(r"^(?:\\?[$€£¥]|\s)+|(?<![\\$€£¥.\s])[\\$€£¥.\s]+$")
_THOUSANDS = re.compile(r"(?<=\d)(?:,?\\!|\\,|[\u00a0\u2009\u202f])(?=\d{3}(?!\d))")
_BASED = re.compile(r"([\dA-Fa-f]+)_\{?(\d+)\}?")
_MISSING = 'comparing answers as mathematics needs math-verify; pip install "rollwise[math]"'


def math_equal(gold: str, answer: str) -> bool:
    r"""Whether an answer is the same as the right one, as mathematics.

    Numbers are compared by value to 6 decimals, those below 0.001 to 3 digits, expressions as algebra, sets and
    intervals by their elements. A percent sign may be left out. Words are compared as text, whatever their case; of
    "B) Paris" only the letter counts where the right answer is one. Signs of Unicode such as `½`, `√` and `x²` are
    read. Works in any thread.

    Args:
        gold: The right answer, such as `\frac{1}{2}`, without `\boxed`; a single `$` at each end does not matter.
        answer: The one to compare. The order matters little: the form of an equation follows `gold`.

    Raises:
        MissingExtraError: math-verify is not installed.

    >>> math_equal("1,005", "$1005$"), math_equal(r"\text{A}", "A"), math_equal(r"10\%", "10"), math_equal("no", "on")
    (True, True, True, False)
    """
    check_math()
    return _equal(_bare(gold), _bare(answer))


def check_math() -> None:
    """`MissingExtraError` if math-verify is not installed."""
    if importlib.util.find_spec("math_verify") is None:
        raise MissingExtraError(_MISSING)


def _bare(answer: str) -> str:
    """Without signs of money, a full stop and braces of text around it; `3e8` and `3 1/2` as LaTeX writes them."""
    answer = _AROUND.sub("", _THOUSANDS.sub("", _latex(answer))).replace(r"\varnothing", r"\emptyset")
    text = TEXT.fullmatch(answer)
    answer = text[1].strip() if text else answer
    if mixed := _MIXED.fullmatch(answer):
        return f"{mixed[1]}\\frac{{{mixed[2]}}}{{{mixed[3]}}}"
    number = _SCIENTIFIC.fullmatch(answer)
    return f"{number[1]} \\times 10^{{{int(number[2])}}}" if number else answer


def _latex(answer: str) -> str:
    r"""Signs that math-verify does not read, as LaTeX or ASCII: `2½` is `2\frac{1}{2}`, `√2x²` is `\sqrt{2}x^{2}`."""
    if answer.isascii():
        return answer
    answer = unicodedata.normalize("NFC", answer)  # "é" of two signs would be no word
    answer = _RAISED.sub(lambda run: f"^{{{run[0].translate(_PLAIN)}}}", answer)
    answer = _LOWERED.sub(lambda run: f"_{{{run[0].translate(_PLAIN)}}}", answer)
    answer = "".join(_parted(sign) for sign in answer)
    answer = _FRACTION.sub(r"\\frac{\1}{\2}", answer)
    answer = _ROOT.sub(lambda root: rf"\sqrt{{{root[1] or root[2]}}}", answer)
    answer = re.sub(r"^\u2013(?=[\d.\\])", "-", answer)
    return "".join(_SIGNS.get(sign, sign) for sign in answer)


def _parted(sign: str) -> str:
    """`½` as a fraction of LaTeX, a digit of full width as the plain one."""
    plain = unicodedata.normalize("NFKC", sign)
    return _FRACTION.sub(r"\\frac{\1}{\2}", plain)


@lru_cache(maxsize=2**16)
def _equal(gold: str, answer: str) -> bool:
    if not gold or not answer or gold == answer:
        return bool(gold) and gold == answer
    if _WHOLE.fullmatch(gold) and _WHOLE.fullmatch(answer):
        return _digits(gold) == _digits(answer)
    if len(gold) == 1 and gold.isupper() and (choice := _CHOICE.fullmatch(answer)):  # "B) Paris" where B is right
        return choice[1] == gold
    if _WORDS.fullmatch(gold) and _WORDS.fullmatch(answer):  # as algebra "no" would be n * o, and "on" the same
        return gold.casefold().split() == answer.casefold().split()
    if len(gold) > _LONGEST or len(answer) > _LONGEST:
        return False
    if (one := _BASED.fullmatch(gold)) and (other := _BASED.fullmatch(answer)):  # math-verify reads no bases
        return one.groups() == other.groups()
    plain = (without_unit(gold), without_unit(answer))
    if (plain[0] != gold) != (plain[1] != answer) and not (TEXT.search(gold) or TEXT.search(answer)):
        return _equal(*plain)
    if bool(_PERCENT.search(gold)) != bool(_PERCENT.search(answer)):
        without = (_PERCENT.sub("", gold), _PERCENT.sub("", answer))
        return _equal(*without) or _worker.ask(gold, answer)
    return _worker.ask(gold, answer)


def _digits(whole: str) -> str:
    sign, digits = ("-" if whole[0] == "-" else ""), whole.replace(",", "").lstrip("+-").lstrip("0")
    return sign + digits if digits else "0"


class _Worker:
    """The process that compares. It is started at the first question, and again after one that took too long.

    math-verify's own time limit is a signal, which only a main thread can set and which ends alarms of the caller.
    """

    def __init__(self) -> None:
        self._lock, self._owner = Lock(), 0
        self._process: subprocess.Popen[str] | None = None

    def ask(self, gold: str, answer: str) -> bool:
        """What math-verify says; False if it takes too long."""
        with self._lock:
            if self._process is None or self._owner != os.getpid():  # a fork must not share its parent's
                self._start()
            try:
                return self._exchange(cast("subprocess.Popen[str]", self._process), [gold, answer, _SECONDS]) == "true"
            except BaseException:  # interrupted: a reply that is still to come would be taken for the next question's
                self._end()
                raise

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("math_worker.py"))],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._owner = os.getpid()
        first = cast(IO[str], self._process.stdout).readline().strip()
        if first != "null":
            self._end()
            raise MissingExtraError(f"{_MISSING} (it can't be imported: {first or 'its process ended'})")

    def _exchange(self, process: subprocess.Popen[str], question: list[str | float]) -> str:
        """The reply's line; empty if the process was ended, as it took too long, or ended itself."""
        timer = Timer(_PATIENCE, process.kill)
        timer.start()
        try:
            question_to, reply_from = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
            question_to.write(json.dumps(question) + "\n")
            question_to.flush()
            reply = reply_from.readline().strip()
        except BrokenPipeError:
            reply = ""
        finally:
            timer.cancel()
        if not reply:
            self._end()
        return reply

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()


_worker = _Worker()
atexit.register(_worker.close)
