"""Answers compared as mathematics, by math-verify in a process of its own."""

import importlib.util
import os
import signal
import threading

import pytest

import rollwise
from rollwise.answers import check_math, math_equal, maths

SAME = [
    (r"\frac{1}{2}", r"\frac12"),
    (r"\frac12", "0.5"),
    ("$0.5$", "1/2"),
    (r"10\%", "10"),
    ("12.5%", "12.5"),
    (r"\text{A}", "A"),
    (r"\text{(C)}", "C"),
    (r"\text{Evelyn}", "evelyn"),
    ("$1,005$.", "1005"),
    ("1,000,000", r"10^6"),
    ("-0", "0"),
    ("5", "5.0"),
    ("x=5", "5"),
    ("3x+2", "2+3x"),
    (r"2\sqrt{3}", r"\sqrt{12}"),
    (r"90^\circ", "90"),
    ("Qu\u00e9bec", "Que\u0301bec"),  # an accent as a sign of its own
    ("4.5e33", r"4.5 \times 10^{33}"),
    ("1e-05", "0.00001"),
    ("0.000333", r"\frac{1}{3000}"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
    (r"(-\infty,2]\cup[3,\infty)", r"(-\infty, 2] \cup [3, \infty)"),
]
DIFFERENT = [
    ("1,2", "12"),
    ("14", "4"),
    ("no", "on"),  # as algebra both are n * o
    ("[2,5)", "(2,5)"),
    ("x", "y"),
    ("0.3333", "1/3"),
    ("10%", "11"),
    (r"6.6 \times 10^{-34}", r"1.2 \times 10^{-20}"),  # both 0 to 6 decimals
    ("0.0000001", "0.0000002"),
    ("0.0000001", "0.0"),
    ("1e3", "3e"),
    ("", ""),
    ("", "5"),
    (r"\frac{", "2"),
    ("half\ud800", "half"),
    ("(" * 10_000, "(" * 9_999),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_same(one: str, other: str) -> None:
    assert math_equal(one, other)
    assert math_equal(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one: str, other: str) -> None:
    assert not math_equal(one, other)
    assert not math_equal(other, one)


def test_what_takes_too_long_is_different_and_the_next_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maths, "_SECONDS", 0.5)
    assert not math_equal("9^{9^{9^9}}", "3")
    monkeypatch.setattr(maths, "_SECONDS", 60.0)
    assert math_equal(r"\frac{3}{12}", "0.25")


def test_of_an_option_its_letter_counts() -> None:
    for said in (r"\textbf{(B)}\ 12", r"\text{B) }12", r"(B)\ 12", "B. Paris", "B)", "B:", r"\textbf{B)}"):
        assert math_equal("B", said)
        assert not math_equal("C", said)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no limit on CPU time")
def test_a_process_that_gets_no_cpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert math_equal(r"\frac{7}{3}", r"\frac{14}{6}")  # it has begun
    process = maths._worker._process
    assert process is not None
    monkeypatch.setattr(maths, "_SECONDS", 1.0)
    process.send_signal(signal.SIGSTOP)  # as on a machine that is busy with training
    threading.Timer(2.0, process.send_signal, [signal.SIGCONT]).start()
    assert math_equal(r"\frac{7}{11}", r"\frac{14}{22}")
    assert maths._worker._process is process


def test_any_thread_may_ask() -> None:
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda i=i: found.append(math_equal(rf"\frac{{{i}}}{{3}}", rf"\frac{{{2 * i}}}{{6}}")))
        for i in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_an_interrupt_leaves_no_reply_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(maths._Worker, "_exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            math_equal(r"\frac{4}{7}", r"\frac{8}{14}")
    assert maths._worker._process is None
    assert math_equal(r"\frac{4}{7}", r"\frac{8}{14}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_has_a_process_of_its_own() -> None:
    assert math_equal(r"\frac{5}{7}", r"\frac{10}{14}")
    before = maths._worker._process
    child = os.fork()
    if child == 0:
        right = math_equal(r"\frac{5}{8}", r"\frac{10}{16}") and maths._worker._process is not before
        maths._worker.close()
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert math_equal(r"\frac{5}{9}", r"\frac{10}{18}")
    assert maths._worker._process is before


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(rollwise.MissingExtraError, match=r'rollwise\[math\]"'):
        check_math()
    with pytest.raises(rollwise.MissingExtraError, match=r'rollwise\[math\]"'):
        math_equal("1", "1")
