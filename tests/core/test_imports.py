"""The core needs numpy alone, and imports point one way."""

import ast
import itertools
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/rollwise"
HEAVY = [
    "torch",
    "transformers",
    "trl",
    "datasets",
    "accelerate",
    "rich",
    "yaml",
    "matplotlib",
    "jsonargparse",
    "pytest",
    "scipy",
    "sklearn",
]
CORE = {
    "errors",
    "checks",
    "pool",
    "stream",
    "ticket",
    "outcome",
    "evidence",
    "ledger",
    "state",
    "rng",
    "columns",
    "yaml_file",
    "progress_bar",
    "terminal",
    "child_process",
}
# One import goes by name alone: `judges.registry` holds "module:maker" for judges that need an extra, which are in
# `models` and `inference`, and imports them when they are first used.
ALLOWED: dict[str, set[str]] = {
    "core": CORE,
    "estimators": CORE | {"estimators"},  # these four never import one another
    "acquisition": {"acquisition"},
    "draws": {"draws"},
    "gates": CORE | {"gates"},
    "judges": CORE | {"judges"},
    "curricula": CORE | {"estimators", "acquisition", "draws", "judges", "curricula"},
    "testing": CORE | {"curricula", "testing"},
    "simulation": CORE | {"curricula", "gates", "evaluation", "reports", "simulation"},
    "answers": {"answers"},
    "tasks": {"checks", "errors", "rng", "tasks"},
    "models": {"checks", "errors", "pool", "rng", "state", "judges", "tasks", "models"},
    "sampling": CORE | {"tasks", "models", "sampling"},
    "profiling": CORE | {"answers", "curricula", "models", "sampling", "profiling"},
    "training": CORE
    | {"curricula", "evaluation", "gates", "judges", "tasks", "models", "sampling", "profiling", "training"},
    "inference": CORE | {"answers", "judges", "tasks", "models", "sampling", "evaluation", "inference"},
    "comparing": CORE | {"curricula", "gates", "models", "tasks", "training", "comparing"},
    "evaluation": {"errors", "outcome", "yaml_file", "evaluation"},
    "reports": {"errors", "evaluation", "reports"},
    "watching": {"errors", "checks", "yaml_file", "evaluation", "watching"},
    "cli": CORE
    | {"comparing", "curricula", "evaluation", "gates", "profiling", "reports", "simulation", "tasks", "training"}
    | {"watching", "inference", "models", "sampling", "cli", "__version__"},
}


def test_importing_rollwise_needs_numpy_alone() -> None:
    code = f"""
        import sys
        for name in {HEAVY}:
            sys.modules[name] = None          # importing it would raise
        import rollwise as rw
        pool = rw.PromptPool(ids=["a", "b"])
        c = rw.PrioritizedReplay(pool)
        c.tell([rw.Outcome(t.id, [1, 0]) for t in c.ask(2)])
        rw.PrioritizedReplay(pool).load_state_dict(c.state_dict())
        import rollwise.tasks
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def imports_of(path: Path, source: Path = SOURCE) -> set[str]:
    """The folders and modules right under rollwise that a file imports, however it writes that.

    `from rollwise import x` counts as `x`, and `import rollwise` as `rollwise`: either imports the whole package.
    """
    parts = ["rollwise", *path.relative_to(source).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        for name in _modules(node, parts):
            top, _, rest = name.partition(".")
            if top == "rollwise":
                found.add(rest.split(".")[0] or "rollwise")
    return found


def _modules(node: ast.AST, parts: list[str]) -> list[str]:
    """The modules, by full name, that a statement of a file in the package `parts` imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = [] if not node.level else parts[: len(parts) - node.level + 1]
        whole = ".".join([*base, *([node.module] if node.module else [])])
        return [f"{whole}.{alias.name}" if whole == "rollwise" else whole for alias in node.names]
    if isinstance(node, ast.Call) and node.args:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
        named = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return [first.value] if named and called in ("import_module", "__import__", "need") else []  # type: ignore[attr-defined]
    return []


def files_of(room: str, source: Path = SOURCE) -> list[Path]:
    return [source / f"{name}.py" for name in sorted(CORE)] if room == "core" else sorted((source / room).rglob("*.py"))


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_point_one_way(room: str) -> None:
    files = files_of(room)
    assert files
    for path in files:
        assert imports_of(path) <= ALLOWED[room], path


def test_every_file_has_its_rule() -> None:
    """`rollwise/__init__.py` may import what it likes that needs numpy alone, which the first test holds."""
    ruled = {path for room in ALLOWED for path in files_of(room)}
    assert set(SOURCE.rglob("*.py")) - ruled == {SOURCE / "__init__.py", SOURCE / "__main__.py"}


PLACES = ("draws/planted.py", "draws/deep/planted.py", "draws/deep/__init__.py")
STATEMENTS = [
    "import rollwise.training",
    "import rollwise.training as t",
    "import numpy, rollwise.training.run",
    "from rollwise.training import Recorder",
    "from rollwise.training.run import train",
    "from rollwise import training",
    "from rollwise import training as t",
    "from rollwise import PromptPool",
    "import rollwise",
    "import rollwise as rw",
    "def late():\n    from rollwise.training import Recorder",
    "import importlib\nimportlib.import_module('rollwise.training')",
    "from importlib import import_module\nimport_module(f'rollwise.training.{__name__}')",
]
RELATIVE = [
    ("draws/planted.py", "from ..training import Recorder"),
    ("draws/planted.py", "from .. import training"),
    ("draws/deep/planted.py", "from ...training import Recorder"),
    ("draws/deep/planted.py", "from ... import training"),
]


@pytest.mark.parametrize(("place", "statement"), [*itertools.product(PLACES, STATEMENTS), *RELATIVE])
def test_what_is_planted_is_found(place: str, statement: str, tmp_path: Path) -> None:
    """In a folder that may import nothing, and in one nested in it."""
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(statement)
    assert path in files_of("draws", tmp_path)
    assert not imports_of(path, tmp_path) <= ALLOWED["draws"]


@pytest.mark.parametrize(
    ("place", "statement"),
    [
        ("draws/keys.py", "from rollwise.draws.tree import Tree\nimport rollwise.draws"),
        ("draws/keys.py", "from .tree import Tree"),
        ("draws/keys.py", "from . import tree"),
        ("draws/deep/keys.py", "from ..tree import Tree"),
        ("draws/deep/keys.py", "from .. import tree"),
        ("draws/keys.py", "import numpy as np\nfrom rollwise_other import training"),
    ],
)
def test_what_is_allowed_is_not(place: str, statement: str, tmp_path: Path) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(statement)
    assert imports_of(path, tmp_path) <= ALLOWED["draws"]
