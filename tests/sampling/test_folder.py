"""A folder of rollouts is resumed only with the options that it was begun with."""

from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.sampling.folder import SampleFolder


def begun(path: Path, **options: Any) -> SampleFolder:
    config = RolloutsConfig(data="d.jsonl", model="m", reward=["exact", "boxed"], **options)
    folder = SampleFolder(path, lines="rollouts.jsonl", what="a folder of rollouts", command="rollouts")
    folder.begin(config.deciding())
    return folder


@pytest.mark.parametrize(
    "given", [{"reward_weights": [2.0, 1.0]}, {"success": "boxed"}, {"reward_workers": 2, "reward_timeout": 5.0}]
)
def test_an_option_that_is_left_out_is_another_option(given: dict[str, Any], tmp_path: Path) -> None:
    """Options of rewards stand in a folder only where they are given; both ways the rewards would be mixed."""
    name = list(given)[-1]
    begun(tmp_path / "with", **given).append([{"id": "a", "rewards": [1.0]}])
    with pytest.raises(ConfigError, match=rf"was begun with {name}=.*, now it is None; its rollouts can't be mixed"):
        begun(tmp_path / "with")
    begun(tmp_path / "with", **given)
    begun(tmp_path / "without").append([{"id": "a", "rewards": [1.0]}])
    with pytest.raises(ConfigError, match=rf"was begun with {name}=None, now it is"):
        begun(tmp_path / "without", **given)
