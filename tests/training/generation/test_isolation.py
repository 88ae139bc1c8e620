"""What is set for a while is put back, whatever happens meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rollwise.training.generation.isolation import attributes_set


def test_attributes_are_put_back() -> None:
    owner = SimpleNamespace(a=1, b=2, c=3)
    with attributes_set(owner, a=10, b=20):
        assert owner == SimpleNamespace(a=10, b=20, c=3)
    assert owner == SimpleNamespace(a=1, b=2, c=3)


def test_attributes_are_put_back_after_an_error() -> None:
    owner = SimpleNamespace(a=1)
    with pytest.raises(KeyError), attributes_set(owner, a=10):
        raise KeyError
    assert owner.a == 1


def test_an_attribute_that_is_not_there_is_refused_before_anything_is_set() -> None:
    owner = SimpleNamespace(a=1)
    with pytest.raises(AttributeError, match="nowhere"), attributes_set(owner, a=10, nowhere=0):
        pass
    assert owner == SimpleNamespace(a=1)
