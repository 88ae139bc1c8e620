"""The core needs numpy alone, and imports point one way."""

import ast
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
    "child_process",
}
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
    | {"curricula", "gates", "judges", "tasks", "models", "sampling", "profiling", "inference", "training"},
    "inference": CORE | {"answers", "judges", "tasks", "models", "sampling", "evaluation", "inference"},
    "comparing": CORE | {"curricula", "gates", "models", "tasks", "training", "comparing"},
    "evaluation": {"errors", "yaml_file", "evaluation"},
    "reports": {"errors", "evaluation", "reports"},
    "watching": {"errors", "checks", "yaml_file", "evaluation", "watching"},
    "cli": CORE
    | {"comparing", "curricula", "evaluation", "gates", "profiling", "reports", "simulation", "tasks", "training"}
    | {"watching", "inference", "models", "sampling", "cli"},
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


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rollwise."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("rollwise.")}
    return found


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_point_one_way(room: str) -> None:
    files = [SOURCE / f"{name}.py" for name in CORE] if room == "core" else sorted((SOURCE / room).glob("*.py"))
    assert files
    for path in files:
        assert imports_of(path) <= ALLOWED[room], path
