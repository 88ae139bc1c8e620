"""tests/engines/test_trinity.py over the engine itself, and with its own operator."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from engines.test_trinity import *  # noqa: F403
from engines.test_trinity import KWARGS, ROWS, selector_of


def test_the_operators_own_metrics_are_told(make_scheduler: Any) -> None:
    operators = pytest.importorskip("trinity.buffer.operators.mappers.pass_rate_calculator", exc_type=ImportError)
    scheduler = make_scheduler(ROWS, KWARGS, {})
    tasks = asyncio.run(scheduler.read())
    rollouts = [
        SimpleNamespace(info={"task_index": task.index}, reward=float(number < 4))
        for task in tasks
        for number in range(8)
    ]
    _, metrics = operators.PassRateCalculator().process(rollouts)
    scheduler.feedback(metrics)
    told = selector_of(scheduler).service.metrics()
    assert (told["told"], told["mixed"]) == (4, 4)
