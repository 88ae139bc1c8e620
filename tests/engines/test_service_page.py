"""What docs/service.md shows, runs."""

import re
from pathlib import Path
from typing import Any

import pytest

from rollwise.engines import CurriculumService

PAGE = (Path(__file__).parents[2] / "docs/service.md").read_text()


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"rollout_and_score": lambda prompt, n: [float(i % 2) for i in range(n)]}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], names)
    assert names["service"].metrics()["told"] == 4
    assert (tmp_path / "runs/curriculum/curriculum-1.state").exists()


def test_the_options_are_those_of_the_service() -> None:
    table = PAGE.split("## Options")[1].split("##")[0]
    named = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert sorted(named) == sorted(set(CurriculumService.__init__.__kwdefaults__) - {"clock"})
