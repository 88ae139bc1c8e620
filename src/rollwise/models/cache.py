"""A folder of finished artefacts, each named by the hash of everything that determined it.

An artefact is built in a temporary folder beside its place and moved there whole, so a half-built one is never used.
A build that was killed leaves its temporary folder (`scratch.py`): the next one goes on in it, or clears it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.models.loading import save_policy
from rollwise.models.scratch import Scratch, clear_left_behind, kept_beside
from rollwise.state import cache_root, writing

logger = logging.getLogger(__name__)

RECEIPT = "rollwise.json"
"""Written last into an artefact's folder, an embedded policy's too: what determined it, and its files with sizes."""


def cached(root: Path, kind: str, recipe: Mapping[str, Any], build: Callable[[Path], None]) -> Path:
    """The folder of the artefact that `recipe` describes; `build(folder)` fills it if it is not there yet.

    A folder without its receipt, or whose receipt names files that are missing or of another size, is built anew.
    Two processes may build the same artefact at once: the first to finish is kept. What `build` writes into
    `kept_beside(folder)` survives a kill and Ctrl-C: the next build of the same artefact finds it there.

    Raises:
        ConfigError: the cache folder can't be written.
        OSError: its disk is full.
    """
    try:
        text = json.dumps(recipe, sort_keys=True)
    except TypeError as error:
        raise ConfigError(f"what determines a cached {kind} must be JSON-safe: {error}") from error
    place = root / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if _whole(place):
        return place
    _check_readable(place)
    try:
        root.mkdir(parents=True, exist_ok=True)
        clear_left_behind(root, _whole)
        scratch = Scratch.of(place)
        building = scratch.built
    except OSError as error:
        raise ConfigError(f"cache folder {str(root)!r} can't be written ({error}); set ROLLWISE_CACHE") from error
    resumable = False
    try:
        with writing(root):
            build(building)
            files = {str(f.relative_to(building)): f.stat().st_size for f in sorted(building.rglob("*")) if f.is_file()}
            receipt = json.dumps({"recipe": recipe, "files": files}, indent=2, sort_keys=True)
            (building / RECEIPT).write_text(receipt, encoding="utf-8")
        try:
            _publish(building, place)
        except OSError as error:
            raise ConfigError(f"{str(place)!r} can't be written ({error}); set ROLLWISE_CACHE") from error
    except KeyboardInterrupt:
        resumable = True
        raise
    finally:
        scratch.close(keep=resumable)
    clear_left_behind(root, _whole)
    return place


def cached_policy(
    kind: str, recipe: Mapping[str, Any], make: Callable[[Path], tuple[Any, Any]], *, cache_dir: str | Path | None
) -> Path:
    """The folder of the policy that `recipe` describes; `make(kept)` gives model and tokenizer if it is not there yet.

    `kept` is the folder in which a build that is killed may leave what the next one goes on with.
    """
    root = cache_root(cache_dir)

    def build(folder: Path) -> None:
        logger.info("making the policy %s, which is kept in %s", kind, root)
        save_policy(*make(kept_beside(folder)), folder)

    return cached(root, kind, recipe, build)


def _check_readable(place: Path) -> None:
    try:
        os.listdir(place)
    except PermissionError as error:
        raise ConfigError(
            f"{str(place)!r} is there, and this user can't read it ({error}); have it opened, or set ROLLWISE_CACHE"
        ) from error
    except OSError:  # not there, or no folder
        pass


def _whole(place: Path) -> bool:
    try:
        files = json.loads((place / RECEIPT).read_text(encoding="utf-8"))["files"]
        return all((place / name).stat().st_size == size for name, size in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _publish(building: Path, place: Path, attempts: int = 20) -> None:
    try:
        os.replace(building, place)
    except PermissionError:
        raise
    except OSError:
        # Something is there already: another process's finished copy is as good as ours, anything else is torn.
        if _whole(place):
            return
        if attempts == 0:
            raise
        aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.torn.", dir=place.parent))
        try:
            os.replace(place, aside / "torn")
            if _whole(aside / "torn"):  # finished by another process just now
                os.replace(aside / "torn", place)
        except PermissionError:
            raise
        except OSError:  # another process was at the same thing
            pass
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _publish(building, place, attempts - 1)
