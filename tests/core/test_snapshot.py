"""A state that is taken at once and encoded later."""

import json

import numpy as np
import pytest

from rollwise.errors import StateError
from rollwise.snapshot import Snapshot, deferred
from rollwise.state import encode_array, load_state, save_state


def test_what_is_encoded_later_is_what_was_there() -> None:
    arrays = [np.arange(5), np.array([True, False]), np.empty((0, 3)), np.array(1.5)]
    expected = [encode_array(array) for array in arrays]
    snapshot = Snapshot()
    taken = snapshot.take(lambda: {"deep": {"list": [encode_array(array) for array in arrays]}, "n": 3})
    for array in arrays:
        array[...] = 0
    assert snapshot.encoded(taken) == {"deep": {"list": expected}, "n": 3}


def test_memory_is_used_again() -> None:
    array, snapshot = np.arange(1000), Snapshot()
    first = snapshot.copy(array)
    snapshot.take(dict)
    assert snapshot.copy(array + 1) is first
    snapshot.take(dict)
    assert snapshot.copy(array.astype(np.int32)).dtype == np.int32  # another form takes other memory


def test_outside_a_snapshot_nothing_is_deferred() -> None:
    def broken() -> dict[str, object]:
        raise RuntimeError("no state")

    with pytest.raises(RuntimeError, match="no state"):
        Snapshot().take(broken)
    assert deferred(len, "abc") == 3


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"a": [], "b": {}, "c": {"d": {"e": None}}, "text": 'ä\n"', "rows": list(range(2500)), "numbers": {"1": 1.5}},
        {"lists": {"ids": [f"t{i}" for i in range(1000)], "more": [{"x": i} for i in range(1001)]}},
    ],
)
def test_a_file_written_in_parts_is_as_one_written_at_once(state: dict[str, object], tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = save_state(tmp_path / "state", state)
    assert load_state(path) == state
    assert path.read_bytes().split(b"\n", 1)[1][:-1] == json.dumps(state, separators=(",", ":")).encode()


def test_what_json_does_not_know_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for wrong in ({"a": float("nan")}, {"a": [1] * 2000 + [float("inf")]}, {"a": {1, 2}}):
        with pytest.raises(StateError):
            save_state(tmp_path / "state", wrong)
    assert not list(tmp_path.iterdir())
