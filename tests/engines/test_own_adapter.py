"""The adapter that docs/howto/own-adapter.md writes."""

import re
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ShortError

PAGE = Path(__file__).parents[2] / "docs/howto/own-adapter.md"
ROWS = [{"prompt": f"{i}+{i}=", "category": f"c{i % 3}"} for i in range(40)]


@pytest.fixture
def page() -> dict[str, Any]:
    names: dict[str, Any] = {"rollout_and_score": lambda prompt, n: [float((len(prompt) + k) % 2) for k in range(n)]}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    return names


def test_the_adapter_has_thirty_lines() -> None:
    block = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    assert len([line for line in block.splitlines() if line.strip()]) <= 30


def test_a_resumed_run_asks_as_the_straight_one(page: dict[str, Any], tmp_path: Path) -> None:
    straight = page["Adapter"](ROWS, tmp_path / "a", seed=1)
    asked = page["run"](straight, range(1, 7))
    assert straight.service.open_tickets() == []
    straight.service.close()
    resumed = page["Adapter"](ROWS, tmp_path / "a", seed=1)
    resumed.load(3)
    assert page["run"](resumed, range(4, 7)) == asked[3:]


def test_rollouts_without_a_reward_are_failed(page: dict[str, Any], tmp_path: Path) -> None:
    adapter = page["Adapter"](ROWS, tmp_path)
    (row,) = adapter.choose(1)
    assert adapter.finished([(row, [1, None, 0])]).taken == 1
    assert adapter.service.metrics()["failed"] == 1


def test_too_few_prompts_are_an_error(page: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = page["Adapter"](ROWS[:3], tmp_path)
    ask = adapter.service.ask
    monkeypatch.setattr(adapter.service, "ask", lambda n, n_rollouts, timeout: ask(n, n_rollouts=n_rollouts))
    with pytest.raises(ShortError, match="4 prompts are needed, 3 are free"):
        adapter.choose(4)
