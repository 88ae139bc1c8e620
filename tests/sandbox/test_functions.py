"""A trusted function that executes hostile text in the sandbox: no text gets out, stalls or changes the next call."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import rollwise
from rollwise.errors import ConfigError
from rollwise.sandbox import Limits, SandboxedFunction, probe

HOSTILE = {
    "__import__('os')._exit(0)": "gave no reply",
    "__import__('os').kill(__import__('os').getppid(), 9)": "ended its sandbox",
    "__import__('os').kill(-1, 9)": "ended its sandbox",
    "exit()": "raised SystemExit",
    "(lambda f: f(f))(lambda f: f(f))": "raised RecursionError",
    "'x' * 10**7": "gave more than 64 KiB",
    "'x' * 10**10": "raised MemoryError",
    "open('/etc/shadow').read()": "raised FileNotFoundError",
    "open('/usr/x', 'w')": "raised OSError(30, 'Read-only file system')",
    "__import__('socket').create_connection(('1.1.1.1', 80), 1)": "raised OSError(101, 'Network is unreachable')",
    "open('/tmp/x', 'w').write('x' * 10**6)": "raised OSError(27, 'File too large')",
    "__import__('ctypes').CDLL(None).ptrace(16, __import__('os').getppid(), 0, 0)": "",
}

BOMB = """[n := 0, exec('''
import os, time
try:
    while n < 60:
        if os.fork() == 0:
            os.close(3)
            time.sleep(60)
        n += 1
except BlockingIOError:
    pass
'''), n][-1]"""
"""Its value is how many processes it could start."""


@pytest.fixture(scope="module")
def evaluate(sandbox: None) -> Iterator[SandboxedFunction]:
    made = SandboxedFunction("builtins:eval", limits=Limits(seconds=2.0, output=64), workers=2)
    yield made
    made.close()


def test_hostile_text_gets_a_reason_and_the_next_call_is_right(evaluate: SandboxedFunction) -> None:
    calls = [[text] for hostile in HOSTILE for text in (hostile, "40 + 2")]
    replies = evaluate.map(calls)
    for (text, wanted), reply in zip(HOSTILE.items(), replies[::2], strict=True):
        assert wanted in reply.reason, text
        assert wanted or reply.value == -1, text  # the tracer was refused
    assert [reply.value for reply in replies[1::2]] == [42] * len(HOSTILE)


def test_what_a_call_leaves_behind_is_gone(evaluate: SandboxedFunction) -> None:
    evaluate("[__import__('os').mkdir('/tmp/d'), open('/tmp/d/left', 'w').write('x')]")
    evaluate("__import__('builtins').__dict__.update(len=lambda _: 7)")
    assert evaluate("[__import__('os').listdir('/tmp'), len('abc')]").value == [[], 3]
    assert 1 <= evaluate(BOMB).value <= 16
    begun = "__import__('subprocess').Popen(['sleep', '30']) and __import__('time').sleep(0.1)"
    assert evaluate(begun).reason == ""
    assert evaluate("__import__('subprocess').run(['sleep', '0']).returncode").value == 0


def test_a_sandbox_outlives_the_threads_that_ask(evaluate: SandboxedFunction) -> None:
    """The kernel ends it with the thread that started it."""
    for _ in range(2):
        asking = threading.Thread(target=evaluate, args=("1",))
        asking.start()
        asking.join()
        assert [reply.value for reply in evaluate.map([["1 + 1"]] * 3)] == [2] * 3


def test_endless_text_takes_its_seconds(sandbox: None) -> None:
    quick = SandboxedFunction("builtins:eval", limits=Limits(seconds=0.3))
    before = time.monotonic()
    assert quick("6**6**6**6").reason == "took more than 0.3 s"
    assert quick("[] and 1 or __import__('time').sleep(60)").reason == "took more than 0.3 s"
    assert time.monotonic() - before < 5.0
    assert quick("1 + 1") == (2, "")


def test_a_package_that_is_not_installed_is_mounted(
    sandbox: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_scores").mkdir()
    (tmp_path / "my_scores/__init__.py").write_text(
        "import my_helper\n\ndef score(text, right=1): return my_helper.one\n"
    )
    (tmp_path / "my_helper.py").write_text("one = 1.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert SandboxedFunction("my_scores:score", packages=["my_helper"])("x", right=2).value == 1.0
    with pytest.raises(ConfigError, match=r"'my_scores:score' can't be imported: .*my_helper.* name them in packages"):
        SandboxedFunction("my_scores:score")("x")
    with pytest.raises(ConfigError, match="package 'absent' can't be found"):
        SandboxedFunction("absent:score")
    with pytest.raises(ConfigError, match="workers must be a whole number >= 1, got 0"):
        SandboxedFunction("builtins:eval", workers=0)


def test_what_can_be_seen_is_python_alone(evaluate: SandboxedFunction) -> None:
    seen = evaluate("[__import__('os').listdir(p) for p in ('/', '/etc', '/dev/shm', '/tmp')]").value
    python = {Path(prefix).parts[1] for prefix in (sys.prefix, sys.base_prefix)}
    assert not {"root", "home", "var", "sys", "proc", "mnt"} & set(seen[0]) - python
    assert set(seen[1]) <= {"ld.so.cache", "alternatives"}
    assert seen[2:] == [[], []]


def test_an_ordinary_user_has_the_same_sandbox(sandbox: None) -> None:
    """The tests may run as root, which has another way in."""
    if shutil.which("setpriv") is None or not Path("/usr/bin/python3").exists() or Path("/root").stat().st_uid != 0:
        pytest.skip("needs setpriv and the system's Python")
    folders = os.pathsep.join(str(Path(module.__file__ or "").parents[1]) for module in (rollwise, numpy))
    code = f"""
from rollwise.sandbox import Limits, SandboxedFunction
evaluate = SandboxedFunction("builtins:eval", limits=Limits(seconds=2.0, processes=8))
print(evaluate("40 + 2").value, evaluate({BOMB!r}).value, evaluate("40 + 2").value)
"""
    user = ["setpriv", "--reuid", "61000", "--regid", "61000", "--clear-groups"]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": folders}
    command = [*user, "/usr/bin/python3", "-B", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    if done.returncode:
        pytest.skip(f"an ordinary user can't: {done.stderr.strip().splitlines()[-1:]}")
    first, forks, last = map(int, done.stdout.split())
    assert first == last == 42
    assert 1 <= forks < 8


def test_without_a_sandbox_the_reason_and_the_remedy_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    remedies = {str(tmp_path): r"No permissions .*container must", "/absent": "apt-get install bubblewrap"}
    try:
        for path, said in remedies.items():
            monkeypatch.setenv("PATH", path)
            probe._reason.cache_clear()
            with pytest.raises(ConfigError, match=rf"^untrusted code runs only in a sandbox.*{said}"):
                SandboxedFunction("builtins:eval")
    finally:
        probe._reason.cache_clear()


@pytest.mark.parametrize("options", [{"seconds": 0}, {"memory": 0}, {"processes": -1}, {"output": 0.5}])
def test_limits_are_positive(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Limits(**options)
