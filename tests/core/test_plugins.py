"""Names from elsewhere: installed by a package with entry points, or given as `file.py:Name` and `module:Name`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rollwise as rw
from rollwise.gates import make_dynamic_sampling
from rollwise.judges import make_judge
from rollwise.plugins import Registry, load_object, short_name
from rollwise.tasks import TASKS, make_task, task_options


def test_installed_names_are_found(installed: Path) -> None:
    assert make_task("sums", largest=5).train_records(1, 0)[0]["category"] == "sums"
    assert task_options("sums") == {"largest": 9}
    assert type(rw.make_curriculum("backwards", stride=2)).__name__ == "Backwards"
    assert type(make_dynamic_sampling("always", max_rounds=2).gate).__name__ == "Always"
    assert make_judge("half", predicts="pass-rate").predicts == "pass-rate"
    rewards: Registry[object] = Registry("reward", "rewards")
    function, digest = rewards.load("digit")
    assert callable(function)
    assert len(digest) == 16
    assert "sums" in TASKS
    assert "summs" not in TASKS
    with pytest.raises(rw.ConfigError, match=r"unknown task 'summs' \(did you mean 'sums'\?\)"):
        make_task("summs")


def test_a_plugin_that_fails_is_named_and_does_not_stop_the_others(installed: Path) -> None:
    found = {one.name: one for one in TASKS.installed()}
    assert list(found) == ["broken", "countdown", "no-task", "sums"]
    assert found["sums"].source == "rollwise-plugins 1.2"
    assert "ModuleNotFoundError: No module named 'not_there'" in found["broken"].problem
    assert "there is another task 'countdown'" in found["countdown"].problem
    assert "is no subclass of rollwise's Task" in found["no-task"].problem
    assert type(make_task("countdown")).__module__.startswith("rollwise.")
    with pytest.raises(rw.ConfigError, match=r"task 'rollwise_plugins.broken:Broken': .* \(broken.py, line 3\)"):
        make_task("broken")


@pytest.mark.parametrize("how", ["plugin.py:{}", "plugin:{}", "FOLDER/plugin.py:{}"])
def test_names_of_files_and_modules(how: str, own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is importable; a file may import what lies beside it."""
    how = how.replace("FOLDER", str(own_file.parent))
    if how.startswith("/"):
        monkeypatch.chdir("/")
    task = make_task(how.format("Sums"), largest=3)
    assert task.name == "Sums"
    assert type(rw.make_curriculum(how.format("Backwards"), stride=3)).__name__ == "Backwards"
    assert type(make_dynamic_sampling(how.format("Always")).gate).__name__ == "Always"
    assert make_judge(how.format("Half"), predicts="pass-rate").predicts == "pass-rate"
    function, digest = load_object(how.format("digit"), what="reward")
    assert function(["a"], ["7"]) == [1.0]
    assert len(digest) == 16
    assert how.format("Sums") in TASKS
    assert how.format("Sums").replace("plugin", "nothing") not in TASKS


def test_a_file_is_read_again_once_it_has_changed(own_file: Path) -> None:
    function, before = load_object("plugin.py:digit")
    assert load_object("plugin.py:digit") == (function, before)
    own_file.write_text(own_file.read_text().replace("isdigit", "isalpha"))
    function, after = load_object("plugin.py:digit")
    assert function(["a"], ["7"]) == [0.0]
    assert before != after


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nothing.py:Sums", "task file 'nothing.py' does not exist"),
        (
            "plugin.py:Sum",
            r"plugin.py has no 'Sum' \(did you mean 'Sums'\?\); it has Always, Backwards, Half, Sums, digit",
        ),
        ("plugin.py:digit", "is no subclass of rollwise's Task"),
        ("no_such_module:Sums", "No module named 'no_such_module'"),
        ("lazy.py:Sum", r"lazy.py has no 'Sum' \(did you mean 'Sums'\?\); it has Sums"),
        ("plugin.py:", "must be file.py:name or package.module:name"),
        ("bad.py:Sums", r"bad.py can't be imported: ZeroDivisionError: division by zero \(bad.py, line 2\)"),
        ("wrong.py:Sums", r"wrong.py can't be imported: SyntaxError: .*wrong.py, line 1"),
        ("leaves.py:Sums", "leaves.py can't be imported: SystemExit: 3"),
    ],
)
def test_what_is_wrong_with_a_name(name: str, reason: str, own_file: Path) -> None:
    own_file.with_name("lazy.py").write_text("__all__ = ['Sums']\ndef __getattr__(name): raise AttributeError(name)\n")
    own_file.with_name("bad.py").write_text("\n1 / 0\n")
    own_file.with_name("wrong.py").write_text("class :\n")
    own_file.with_name("leaves.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(rw.ConfigError, match=reason) as error:
        make_task(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "lines", "reason"),
    [
        ("Later", ["from rollwise.tasks import Task", "class Later(Task): ..."], "lacks eval_records, .*; define them"),
        ("Later", ["from rollwise import Curriculum", "class Later(Curriculum): ..."], "lacks .*select.*; define them"),
        ("Later", ["from rollwise import Curriculum", "class Later(Curriculum, name='uniform'): ..."],
         r"the name 'uniform' is that of Uniform; .* \(own.py, line 2\)"),
        ("Own", ["from rollwise import Uniform", "class Own(Uniform):", " def __init__(self, pool=None): len(3)"],
         r"object of type 'int' has no len\(\) \(own.py, line 3\)"),
        ("Own", ["from rollwise import Uniform", "class Own(Uniform):", " def __init__(self, *, k: int): ..."],
         "curriculum 'own.py:Own': 'k' must be given; rollwise curricula own.py:Own describes it"),
    ],
)  # fmt: skip
def test_a_class_of_ones_own_that_can_not_be_made(name: str, lines: list[str], reason: str, own_file: Path) -> None:
    own_file.with_name("own.py").write_text("\n".join(lines))
    make = make_task if "Task" in lines[0] else rw.make_curriculum
    with pytest.raises(rw.ConfigError, match=reason):
        make(f"own.py:{name}")


def test_two_packages_with_one_name(installed: Path) -> None:
    other = installed / "other-0.1.dist-info"
    other.mkdir()
    other.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 0.1\n")
    other.joinpath("entry_points.txt").write_text("[rollwise.tasks]\nsums = other.tasks:Sums\n")
    with pytest.raises(rw.ConfigError, match="'sums' is installed by .*rollwise-plugins 1.2.*; give "):
        make_task("sums")


def test_a_colon_in_the_name_of_data_is_no_task() -> None:
    """`--data hub/name:split` is asked of the registry of tasks as well."""
    for name in ("openai/gsm8k:train", "gsm8k:train", "C:/data.jsonl", "data.jsonl", "a b:c"):
        assert name not in TASKS
    assert short_name("runs/my.py:Task") == "Task"


def test_rollwise_looks_for_plugins_only_when_asked() -> None:
    code = "import sys, rollwise as rw; rw.make_curriculum('bots'); print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
