"""Saved state: arrays and strings as JSON-safe values, and state files that are whole or refused.

A state file is two lines of text: a header (format, version, length and SHA-256 of the body) and the body, plain JSON.
It is written beside its target, flushed to disk and renamed over it, so a crash leaves the old file or the new one.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateError, StateFileError
from rollwise.options.checks import shown
from rollwise.snapshot import deferred

LONGEST_NAME = 200
"""Most bytes of a plan's or a method's name, of the 255 that a file's may have: logs are called NAME-seed12.json."""
_FORMAT = "rollwise-state"
_VERSION = 1
_REMEDY = "put back an intact copy, or use an earlier one"
_ROWS_AT_ONCE = 1_000
_COMPRESSION = 1  # the fastest level: a million floats compress in tens of milliseconds


def encode_array(array: np.ndarray) -> dict[str, Any]:
    """A JSON-safe copy of a numeric or boolean array of any shape, bit for bit.

    >>> decode_array(encode_array(np.array([1.5, np.inf]))).tolist()
    [1.5, inf]
    """
    return deferred(_pack_array, array)


def _pack_array(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(zlib.compress(little.tobytes(), _COMPRESSION)).decode("ascii")
    return {"dtype": little.dtype.str, "shape": list(array.shape), "zlib64": data}


def decode_array(encoded: Mapping[str, Any], *, writable: bool = True) -> np.ndarray:
    """The array that `encode_array` packed; one that is not `writable` costs a copy less.

    Raises:
        StateError: `encoded` is malformed.
    """
    try:
        raw = zlib.decompress(base64.b64decode(encoded["zlib64"], validate=True))
        dtype = np.dtype(encoded["dtype"])
        if dtype.hasobject:
            raise ValueError(f"dtype {dtype} is not numeric")
        array = np.frombuffer(raw, dtype=dtype).reshape([int(n) for n in encoded["shape"]])
        return array.astype(dtype.newbyteorder("="), copy=writable)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise StateError(f"an array in the state can't be decoded: {error!r}") from error


def encode_strings(strings: Sequence[str]) -> dict[str, Any]:
    """A JSON-safe, compressed copy of a list of strings.

    >>> decode_strings(encode_strings(["a", "b"]))
    ['a', 'b']
    """
    text = json.dumps(list(strings), separators=(",", ":")).encode()
    return {"zlib64": base64.b64encode(zlib.compress(text, _COMPRESSION)).decode("ascii")}


def decode_strings(encoded: Mapping[str, Any]) -> list[str]:
    """The list that `encode_strings` packed.

    Raises:
        StateError: `encoded` is malformed.
    """
    try:
        strings = json.loads(zlib.decompress(base64.b64decode(encoded["zlib64"], validate=True)))
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise StateError(f"a list of strings in the state can't be decoded: {error!r}") from error
    if not isinstance(strings, list) or not {str} >= set(map(type, strings)):
        raise StateError("a list of strings in the state holds something else")
    return strings


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` so that a crash at any moment leaves either the old file or the new one."""
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with naming(target, scratch=scratch):
            with open(scratch, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, target)
    except IsADirectoryError as error:
        raise StateFileError(f"{str(target)!r} can't be a file: a folder is there; give another name") from error
    finally:
        with suppress(OSError):
            scratch.unlink()
    sync_folder(target.parent)


def check_no_folder(out: str | os.PathLike[str], example: str) -> None:
    """`ConfigError` where a file is to be written and a folder stands; call it before the work, not after."""
    if Path(out).is_dir():
        raise ConfigError(f"out must be a file, and {str(out)!r} is a folder; for example {str(Path(out) / example)!r}")


@contextmanager
def naming(path: str | os.PathLike[str], *, scratch: Path | None = None) -> Iterator[None]:
    """Give an `OSError` that names no file this one: a write to a full disk says only that the disk is full.

    So too one that names the `scratch` file, of which nobody knows.
    """
    try:
        yield
    except OSError as error:
        unnamed = error.filename is None or (scratch is not None and str(error.filename) == str(scratch))
        if unnamed and error.errno is not None:
            error.filename = str(path)
            del error.filename2  # of a renaming; None would be shown
        raise


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise what torch and safetensors say where a file can't be written as an `OSError` that names the folder."""
    try:
        with naming(folder):
            yield
    except Exception as error:
        said = str(error)
        if known := re.search(r"\(os error (\d+)\)", said):  # safetensors, in the words of its language
            raise OSError(int(known[1]), said, str(folder)) from error
        if "inline_container" in said or "PytorchStreamWriter" in said:  # torch does not say why
            reason = "torch could not write a file whole: the disk is full, or there is a limit on the size of files"
            raise OSError(errno.EIO, reason, str(folder)) from error
        raise


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, with those above it, unless it is there.

    Raises:
        StateFileError: it can't be made; the message names it and the reason.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StateFileError(f"{str(path)!r} can't be a folder: a file is there; give another one") from error
    except OSError as error:
        raise StateFileError(f"the folder {str(path)!r} can't be made: {error.strerror}; give another one") from error
    return folder


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in `folder` durable, where the system can (Windows can't open folders)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save_state(path: str | os.PathLike[str], state: Mapping[str, Any]) -> Path:
    """Save a `state_dict` to `path`, atomically and with a checksum.

    Raises:
        StateError: `state` is no mapping, or holds something that JSON can't carry.
    """
    if not isinstance(state, Mapping):
        raise StateError(f"a state is the mapping that `state_dict()` returns, got {shown(state)}")
    try:
        body = b"".join(_json_parts(state))
    except (TypeError, ValueError) as error:
        raise StateError(f"state is not JSON-safe: {error}") from error
    header = {"format": _FORMAT, "version": _VERSION, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    write_atomically(path, json.dumps(header).encode() + b"\n" + body + b"\n")
    return Path(path)


def _json_parts(value: Any) -> Iterator[bytes]:
    """`value` as JSON, in parts: one call for all of it would keep other threads waiting for a second."""
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        for number, (name, inner) in enumerate(value.items()):
            yield (b"," if number else b"{") + _json(name) + b":"
            yield from _json_parts(inner)
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and len(value) > _ROWS_AT_ONCE:
        for start in range(0, len(value), _ROWS_AT_ONCE):
            yield (b"," if start else b"[") + _json(value[start : start + _ROWS_AT_ONCE])[1:-1]
        yield b"]"
    else:
        yield _json(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def load_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `save_state` wrote.

    Raises:
        StateFileError: the file is missing, foreign, of a later version, torn, or altered.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise StateFileError(
            f"state file {str(path)!r} can't be read: {error.strerror}; put it back, or use an earlier one"
        ) from error
    head, _, body = raw.partition(b"\n")
    header = _parse_header(head, path)
    body = body.removesuffix(b"\n")
    if len(body) != header["bytes"]:
        raise StateFileError(
            f"state file {str(path)!r} is torn: {len(body)} bytes of state where {header['bytes']} were written; "
            f"{_REMEDY}"
        )
    if hashlib.sha256(body).hexdigest() != header["sha256"]:
        raise StateFileError(f"state file {str(path)!r} has been altered: its checksum does not match; {_REMEDY}")
    state = json.loads(body)
    if not isinstance(state, dict):
        raise StateFileError(f"state file {str(path)!r} holds a {type(state).__name__}, not a state; {_REMEDY}")
    return state


def _parse_header(head: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        header = json.loads(head)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise StateFileError(
            f"{str(path)!r} is not a rollwise state file: torn in its first line, or another program's; {_REMEDY}"
        )
    if header.get("version") != _VERSION:
        raise StateFileError(
            f"state file {str(path)!r} has version {header.get('version')!r}; this rollwise reads version {_VERSION}. "
            "Go on with the rollwise that wrote it, or begin anew (a checkpoint's weights can be the model)"
        )
    if not isinstance(header.get("bytes"), int) or not isinstance(header.get("sha256"), str):
        raise StateFileError(f"state file {str(path)!r} has a damaged header; {_REMEDY}")
    return header


def write_whole(path: Path, text: str) -> None:
    """Write a text for others to read, atomically, into a folder that is made if it is not there.

    Half a surrogate pair, which a completion can hold and UTF-8 can't, becomes "?".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode("utf-8", errors="replace"))


def cache_root(folder: str | Path | None = None) -> Path:
    """Where what can be made again is kept: `folder`, else `$ROLLWISE_CACHE`, else `~/.cache/rollwise`."""
    return Path(folder or os.environ.get("ROLLWISE_CACHE") or Path.home() / ".cache" / "rollwise").expanduser()
