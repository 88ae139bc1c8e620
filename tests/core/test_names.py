"""Every public name of the version before is there still, or warns and says what to write instead."""

import importlib
import json
import sys
import warnings
from pathlib import Path

import pytest

from rollwise.moved import MOVED

# Of the commit before the layout changed: every `__all__`, and every import in README, docs and examples.
BEFORE: dict[str, list[str]] = json.loads((Path(__file__).parent / "public_names.json").read_text())


@pytest.mark.parametrize("module", sorted(BEFORE))
def test_a_name_of_before_works(module: str) -> None:
    if module.startswith(("rollwise.training", "rollwise.models", "rollwise.inference.serving")):
        pytest.importorskip("trl")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found = importlib.import_module(module)
    for name in BEFORE[module]:
        assert getattr(found, name, None) is not None, name


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_name_warns_and_is_the_new_one(old: str) -> None:
    pytest.importorskip("trl")
    new = importlib.import_module(MOVED[old])
    spec = new.__spec__
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=MOVED[old]):
        found = importlib.import_module(old)
    assert found is new
    assert new.__spec__ is spec
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert importlib.import_module(old) is new  # it warns once
