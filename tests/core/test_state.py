import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rollwise as rw
from rollwise.rng import RngStreams
from rollwise.state import decode_array, decode_strings, encode_array, encode_strings, write_atomically

dtypes = st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint32, np.bool_])


@given(hnp.arrays(dtypes, hnp.array_shapes(min_side=0)))
def test_arrays_survive_json_bit_for_bit(array: np.ndarray) -> None:
    back = decode_array(json.loads(json.dumps(encode_array(array), allow_nan=False)))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_a_folder_in_a_file_s_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(rw.errors.StateFileError, match="can't be a file: a folder is there"):
        write_atomically(tmp_path, b"1")
    assert not list(tmp_path.parent.glob("*.tmp"))


def test_a_file_that_cannot_be_written_is_named_and_not_the_scratch_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("1")
    for target in (tmp_path / "missing" / "state.json", tmp_path / "file" / "state.json"):
        with pytest.raises(OSError, match="directory") as caught:
            write_atomically(target, b"1")
        assert str(caught.value).endswith(f": {str(target)!r}")

    def refuse(old: object, new: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(old), None, str(new))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError) as caught:
        write_atomically(tmp_path / "state.json", b"1")
    assert str(caught.value).endswith(f": {str(tmp_path / 'state.json')!r}")


@given(st.lists(st.text()))
def test_strings_survive_json(strings: list[str]) -> None:
    assert decode_strings(json.loads(json.dumps(encode_strings(strings)))) == strings


@pytest.mark.parametrize(
    "bad", [{}, {"zlib64": "??"}, {"dtype": "|O", "shape": [1], "zlib64": "eJwDAAAAAAE="}, None, 3]
)
def test_damaged_values_raise(bad: object) -> None:
    with pytest.raises(rw.StateError):
        decode_array(bad)  # type: ignore[arg-type]
    with pytest.raises(rw.StateError):
        decode_strings(bad)  # type: ignore[arg-type]


def test_a_state_file_comes_back(tmp_path: Path) -> None:
    path = rw.save_state(tmp_path / "state.json", {"a": [1, 2.5, "x"], "b": {"c": None}})
    assert rw.load_state(path) == {"a": [1, 2.5, "x"], "b": {"c": None}}
    assert os.listdir(tmp_path) == ["state.json"]  # nothing of the writing is left behind


def test_every_torn_or_altered_file_is_refused(tmp_path: Path) -> None:
    path = rw.save_state(tmp_path / "state.json", {"beliefs": list(range(30))})
    whole = path.read_bytes()
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(rw.StateFileError):
            rw.load_state(path)
    body = whole.index(b"\n")
    for at in range(body + 1, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(rw.StateFileError, match="altered"):
            rw.load_state(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a rollwise state"),
        ('{"model": 3}\n', "not a rollwise state"),
        ("PK\x03\x04", "not a rollwise state"),
        ('{"format": "rollwise-state", "version": 7}\n{}', "version 7"),
        ('{"format": "rollwise-state", "version": 1}\n{}', "damaged header"),
    ],
)
def test_foreign_files_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(rw.StateFileError, match=reason):
        rw.load_state(path)


def test_a_missing_file_is_an_error_not_a_fresh_start(tmp_path: Path) -> None:
    with pytest.raises(rw.StateFileError, match="can't be read"):
        rw.load_state(tmp_path / "nowhere.json")


def test_what_json_can_not_carry_leaves_the_old_file(tmp_path: Path) -> None:
    path = rw.save_state(tmp_path / "state.json", {"good": 1})
    for bad in ({"x": float("nan")}, {"x": object()}, "a text", [1], None):
        with pytest.raises(rw.StateError):
            rw.save_state(path, bad)  # type: ignore[arg-type]
    assert rw.load_state(path) == {"good": 1}


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rw.save_state(tmp_path / "state.json", {"good": 1})

    def crash(*_: object) -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="disk on fire"):
        rw.save_state(path, {"good": 2})
    monkeypatch.undo()
    assert rw.load_state(path) == {"good": 1}
    assert os.listdir(tmp_path) == ["state.json"]


def test_streams_are_independent_of_one_another() -> None:
    one, two = RngStreams(7), RngStreams(7)
    two["other"].random(100)
    assert one["draw"].random(5).tolist() == two["draw"].random(5).tolist()
    assert RngStreams(8)["draw"].random() != RngStreams(7)["draw"].random()
    assert RngStreams(7)["a"].random() != RngStreams(7)["b"].random()


def test_streams_go_on_where_they_were_saved() -> None:
    streams = RngStreams(3)
    streams["a"].random(7)
    streams["a"].integers(10, dtype=np.uint32)  # leaves half a word behind
    saved = json.loads(json.dumps(streams.state_dict()))
    expected = streams["a"].integers(10, size=5, dtype=np.uint32).tolist()
    again = RngStreams(0)
    again.load_state_dict(saved)
    assert again["a"].integers(10, size=5, dtype=np.uint32).tolist() == expected
    with pytest.raises(rw.StateError):
        again.load_state_dict({"seed": 1, "streams": {"a": {}}})


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None, True])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(rw.ConfigError, match="seed"):
        rw.Uniform(seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda pool: rw.Uniform(pool, expire_after=np.int64(10)),
        lambda pool: rw.Recommended(pool, strata=np.int64(5)),
        lambda pool: rw.BOTS(pool, forgetting=np.float32(0.25), prior=(np.float32(1), np.float32(2))),
        lambda pool: rw.Uniform(pool, reward_spec=rw.RewardSpec(np.float32(0), np.float32(2))),
    ],
)
def test_options_may_be_numpys_numbers(make: Any, tmp_path: Path) -> None:
    pool = rw.PromptPool(ids=["a", "b"])
    state = make(pool).state_dict()
    rw.save_state(tmp_path / "state.json", state)
    make(pool).load_state_dict(rw.load_state(tmp_path / "state.json"))
