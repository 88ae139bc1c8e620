"""Runs plans of `rollwise compare` one after another, and keeps the tables of each in the repository.

    python benchmarks/evidence.py examples/evidence/small                            # what `make evidence-small` does
    python benchmarks/evidence.py my.yaml --jobs 1 --seeds 0 1 2                     # options go to `rollwise compare`

For each plan: the reference pass rates of its methods that need some (`examples/compare/references.py`), then
`rollwise compare`, then `results.csv`, `curves.csv` and those of its seeds for choosing, if it has some, into
`benchmarks/results/evidence/NAME/`. What is done already is left alone, so after a kill the same command goes on. A
plan that fails is named at the end, and does not stop the others.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rollwise.comparing import Plan, read_plan

ROOT = Path(__file__).parents[1]
TABLES = ("results.csv", "curves.csv", "tune.csv", "tune_curves.csv")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="+", type=Path, help="files of plans, or folders with some")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/evidence", help="where the tables go")
    parser.add_argument("--comparisons", type=Path, default=Path("comparisons"), help="where the comparisons go")
    options, more = parser.parse_known_args()
    files = [file for path in options.plans for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    if not files:
        parser.error(f"no plans in {', '.join(map(str, options.plans))}")
    plans = {path: read_plan(path) for path in files}  # all are checked before the first is run
    failed = []
    for path, plan in plans.items():
        began, folder = time.monotonic(), options.comparisons / plan.name
        print(f"{path}: {len(plan.methods)} methods x {len(plan.every_seed)} seeds", flush=True)
        if not (prepare(path, plan) and run("-m", "rollwise", "compare", path, "--out", folder, *more)):
            failed.append(path)
        keep(folder, options.out / plan.name)
        print(f"{path}: {(time.monotonic() - began) / 60:.0f} minutes; tables in {options.out / plan.name}", flush=True)
    for path in failed:
        print(f"failed: {path}")
    return 1 if failed else 0


def prepare(path: Path, plan: Plan) -> bool:
    """Make the reference pass rates that methods of the plan need; whether that went well."""
    needed = any("profile" in options for options in (plan.base, *plan.methods.values()))
    return not needed or run(ROOT / "examples/compare/references.py", path)


def keep(folder: Path, place: Path) -> None:
    """Copy the tables of a comparison."""
    for name in TABLES:
        if (folder / name).exists():
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, place / name)


def run(*arguments: object) -> bool:
    """Run a Python program; whether it went well."""
    return subprocess.run([sys.executable, *map(str, arguments)], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
