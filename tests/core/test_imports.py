"""The core needs numpy alone, and imports point one way."""

import ast
import importlib
import importlib.util
import itertools
import re
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
TABLE = (Path(__file__).parents[2] / "docs/design.md").read_text()


def rules() -> dict[str, set[str]]:
    """Room -> rooms it may import, from the table in docs/design.md. A room is a folder in src/rollwise, or the core.

    One import goes by name alone: `judges.registry` holds "module:maker" for judges that need an extra, which are in
    `models` and `inference`, and imports them when they are first used.
    """
    found: dict[str, set[str]] = {}
    for line in TABLE.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        named = re.findall(r"`([a-z/]+)/`", cells[0]) if len(cells) == 3 else []
        named = ["core"] if cells[0].startswith("core: ") else named
        allowed = {room.strip() for room in cells[-1].split(",")} - {""}
        found |= {room: allowed | {room} for room in named}
    return {room: set(found) | {"__version__"} if "all" in allowed else allowed for room, allowed in found.items()}


CORE = set(
    re.findall(r"`(\w+)`", next(line for line in TABLE.splitlines() if line.startswith("| core: ")).split("|")[1])
)
ALLOWED = rules()


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


def room_of(module: str) -> str:
    """The room of a module under rollwise: the deepest folder with a rule, or the core; else its first name."""
    parts = module.split(".")[1:]
    folders = ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
    if parts and parts[0] in CORE:
        return "core"
    return next((folder for folder in folders if folder in ALLOWED), folders[-1] if folders else "rollwise")


def imports_of(path: Path, source: Path = SOURCE) -> set[str]:
    """The rooms that a file imports, however it writes that.

    `from rollwise import x` counts as `x`, and `import rollwise` as `rollwise`: either imports the whole package.
    """
    parts = ["rollwise", *path.relative_to(source).parts[:-1]]
    found = {
        room_of(name)
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _modules(node, parts)
        if name.split(".")[0] == "rollwise"
    }
    own = "/".join(parts[1:])
    return {room for room in found if not (path.name == "__init__.py" and room.startswith(f"{own}/"))}


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
    """The files of a room, without those of the rooms in it."""
    if room == "core":
        return [path for name in sorted(CORE) for path in [*source.glob(f"{name}.py"), *source.glob(f"{name}/*.py")]]
    inner = [source / other for other in ALLOWED if other.startswith(f"{room}/")]
    found = sorted((source / room).rglob("*.py"))
    return [path for path in found if not any(folder in path.parents for folder in inner)]


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_point_one_way(room: str) -> None:
    files = files_of(room)
    assert files
    for path in files:
        assert imports_of(path) <= ALLOWED[room], path


def test_every_folder_has_its_rule() -> None:
    """`rollwise/__init__.py` may import what it likes that needs numpy alone, which the first test holds."""
    folders = {str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("*.py")} - {"."}
    assert folders - CORE == set(ALLOWED) - {"core"}
    assert {path.stem for path in SOURCE.glob("*.py")} | (folders & CORE) == CORE | {"__init__", "__main__"}


def test_no_room_imports_one_that_imports_it() -> None:
    """Rooms can be put in an order in which each imports only those before it."""
    left = {room: allowed - {room} for room, allowed in ALLOWED.items() if room != "cli"}
    while left:
        free = [room for room, allowed in left.items() if not allowed & left.keys()]
        assert free, f"a circle among {sorted(left)}"
        for room in free:
            del left[room]


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


@pytest.mark.parametrize("folder", ["benchmarks", "examples"])
def test_what_scripts_import_of_rollwise_is_there(folder: str) -> None:
    """Nothing else runs most of them, and a name may have moved."""
    wanted = {
        (node.module, alias.name)
        for path in (SOURCE.parents[1] / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rollwise"
        for alias in node.names
    }
    assert wanted
    assert [f"{module}.{name}" for module, name in sorted(wanted) if not _is_there(module, name)] == []


def _is_there(module: str, name: str) -> bool:
    found = importlib.import_module(module)
    return hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None
