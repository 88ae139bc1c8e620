"""Two random policies on disk, prompts with a reward, and rollouts of one of them: seconds, no training."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rollwise.models import EmbeddedConfig
from rollwise.sampling.folder import SampleFolder

SMALL = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=48)

REWARDS = '''
def begins_low(prompts, completions, threshold, **columns):
    """1 for a digit below the threshold first, 0.1 for any other character; None where nothing was said."""
    return [
        None if not c else 1.0 if c[0].isdigit() and int(c[0]) < t else 0.1 * (len(c) > 2)
        for c, t in zip(completions, threshold)
    ]
'''


@pytest.fixture(scope="module", autouse=True)
def _figures(module_without_figures: None) -> None:
    """Reports have none here, but in files that define this anew."""


@pytest.fixture(scope="module", autouse=True)
def _again_at_once() -> Iterator[None]:
    """A request that failed is made again at once: the client of openai, and ours, would wait for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        if "openai" in sys.modules:
            patch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.02)
            patch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.2)
        patch.setattr("rollwise.inference.endpoint.replies.LONGEST_WAIT", 0.1)
        yield


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command as typed: its exit status, what it wrote to the standard output, and to the standard error."""
    from rollwise.cli import main

    def run(*arguments: Any) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `one` and `other` (another alphabet), `data.jsonl` of 40 prompts, and `rewards.py`."""
    pytest.importorskip("torch")
    from rollwise.models.embedded import ALPHABET, build_policy

    folder = tmp_path_factory.mktemp("toy")
    for seed, (name, alphabet) in enumerate((("one", ALPHABET), ("other", ALPHABET[::-1]))):
        model, tokenizer = build_policy(SMALL, seed=seed, alphabet=alphabet)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    rows = [{"prompt": f"{i}+{i % 7}=", "threshold": 4 + i % 7} for i in range(40)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rewards.py").write_text(REWARDS)
    return folder


@pytest.fixture(scope="session")
def options(toy: Path) -> dict[str, Any]:
    """Of rollouts of the toy data."""
    return {
        "data": str(toy / "data.jsonl"),
        "model": str(toy / "one"),
        "reward": f"{toy / 'rewards.py'}:begins_low",
        "max_completion_length": 8,
        "batch_size": 32,
    }


@pytest.fixture(scope="session")
def rolled(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four rollouts of each prompt, in a folder."""
    from rich.console import Console

    from rollwise.inference.decoding.rollouts_config import RolloutsConfig
    from rollwise.inference.decoding.sample_rollouts import run_rollouts

    folder = tmp_path_factory.mktemp("rolled") / "all"
    run_rollouts(RolloutsConfig(**options, out=str(folder)), console=Console(file=io.StringIO()))
    return folder


@pytest.fixture
def interrupted_at() -> Callable[[int], AbstractContextManager[None]]:
    """`with interrupted_at(n):` ends what is inside by Ctrl-C, when a folder's lines are written for the n-th time."""

    @contextmanager
    def interrupted(number: int) -> Iterator[None]:
        append, calls = SampleFolder.append, 0

        def stop(self: Any, lines: list[Any]) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                raise KeyboardInterrupt
            append(self, lines)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(SampleFolder, "append", stop)
            yield

    return interrupted
