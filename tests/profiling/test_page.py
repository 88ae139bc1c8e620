"""What docs/profile.md shows, runs."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rollwise.profiling import ProfileConfig
from rollwise.profiling.profile import run_profile

PAGE = Path(__file__).parents[2] / "docs/profile.md"


def test_the_page_runs(options: dict[str, Any], toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.jsonl").write_bytes((toy / "data.jsonl").read_bytes())
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    for out, model in (("my", "one"), ("small", "one"), ("large", "other")):
        changed = {"data": "my.jsonl", "model": str(toy / model), "out": f"profiles/{out}"}
        changed["join"] = "profiles/small" if out == "large" else None
        run_profile(ProfileConfig(**{**options, **changed}), console=Console(file=io.StringIO()))
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(blocks[0], names)
    assert {"pass_rate", "difficulty"} <= set(names["dataset"].column_names)
    joined, again = blocks[1].splitlines()
    exec(joined, names)
    there = names["dataset"]["reference_pass_rates"]
    exec(again, names)
    assert list(names["dataset"]["reference_pass_rates"]) == list(there)
