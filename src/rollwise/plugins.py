"""Names that stand for objects: built in, installed by another package, or `file.py:Name` and `package.module:Name`.

A package installs names by entry points, for example in its pyproject.toml:

    [project.entry-points."rollwise.tasks"]
    maths = "my_package.tasks:Maths"

The groups are `rollwise.tasks`, `.curricula`, `.gates`, `.allocators`, `.judges`, `.rewards`, `.beliefs`, `.implicit`,
`.curriculum_rewards` and `.choice_rules`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from rollwise.errors import ConfigError, MissingExtraError, RewardError, RollwiseError
from rollwise.options import did_you_mean, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_OWN_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Installed(Generic[T]):
    """A name that another package installs.

    Attributes:
        name: what commands and configuration files call it.
        source: the package and its version.
        found: the object; None if it can't be imported.
        problem: why it can't be used; empty if it can.
    """

    name: str
    source: str
    found: T | None
    problem: str = ""


class Registry(dict[str, T]):
    """The objects of one kind by name. As a dict it holds the built-in ones, and those that were registered.

    `registry[name]` and `name in registry` also find installed names, `file.py:Name` and `package.module:Name`.

    Args:
        what: one of them, in a word, for messages.
        group: the last part of the entry points' group.
        built_in: the objects that are there from the start.

    Attributes:
        base: the class that all objects are subclasses of; None if they need only be callable.
    """

    def __init__(self, what: str, group: str, built_in: dict[str, T] | None = None) -> None:
        super().__init__(built_in or {})
        self.what, self.group = what, f"rollwise.{group}"
        self.base: type | None = None

    def __missing__(self, name: str) -> T:
        return self.find(name)

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        return isinstance(name, str) and (bool(self._entries(name)) or _is_there(name))

    def find(self, name: str) -> T:
        """The object called `name`.

        Raises:
            ConfigError: nothing has that name, or it can't be imported, or it is not of this kind.
        """
        return self.load(name)[0]

    def load(self, name: str) -> tuple[T, str]:
        """The object called `name`, and a hash of the file that defines it; "" for a built-in one.

        Raises:
            ConfigError: as `find`.
        """
        if not isinstance(name, str):
            raise ConfigError(f"{self.what} must be a name, got {shown(name)}; known are {', '.join(self)}")
        if super().__contains__(name):
            return super().__getitem__(name), ""
        entries = self._entries(name)
        if len(entries) > 1:
            both = " and ".join(_source(entry) for entry in entries)
            raise ConfigError(f"{self.what} {name!r} is installed by {both}; give {entries[0].value!r} or the like")
        if not entries and ":" not in str(name):
            known = [*self, *sorted(entry.name for entry in self._entries())]
            also = f"; one of your own is given as file.py:Name or package.module:Name ({self.what})"
            raise ConfigError(
                f"unknown {self.what} {name!r}{did_you_mean(name, known)}; known are {', '.join(known)}{also}"
            )
        found, digest = load_object(entries[0].value if entries else name, what=self.what)
        return self._checked(name, found), digest

    def installed(self) -> Iterator[Installed[T]]:
        """What other packages install, by name. One that can't be imported does not stop the others."""
        for entry in sorted(self._entries(), key=lambda entry: entry.name):
            hidden = super().__contains__(entry.name)
            try:
                found = self._checked(entry.name, load_object(entry.value, what=self.what)[0])
            except RollwiseError as error:
                yield Installed(entry.name, _source(entry), None, str(error))
                continue
            if hidden and super().__getitem__(entry.name) is not found:
                yield Installed(entry.name, _source(entry), None, f"there is another {self.what} {entry.name!r}")
            else:
                yield Installed(entry.name, _source(entry), found)

    def _entries(self, name: str | None = None) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # half the time of `import rollwise`

        chosen = entry_points(group=self.group) if name is None else entry_points(group=self.group, name=name)
        return list({(entry.name, entry.value): entry for entry in chosen}.values())

    def _checked(self, name: str, found: Any) -> T:
        fits = callable(found) if self.base is None else isinstance(found, type) and issubclass(found, self.base)
        if not fits:
            wanted = "can't be called" if self.base is None else f"is no subclass of rollwise's {self.base.__name__}"
            raise ConfigError(f"{self.what} {name!r} {wanted}, it is {found!r:.80}; name another object")
        if lacking := ", ".join(sorted(getattr(found, "__abstractmethods__", ()))):
            raise ConfigError(f"{self.what} {name!r} lacks {lacking}; define them")
        return found  # type: ignore[no-any-return]


def load_object(where: str, *, what: str = "object") -> tuple[Any, str]:
    """The object that `file.py:name` or `package.module:name` names, and a hash of the file that defines it.

    Modules are also looked for in the working directory, and a file's own imports beside it. A file is run once; again
    after it has changed.

    Args:
        where: As above; a relative path is relative to the working directory.
        what: What the object is, for messages.

    Raises:
        ConfigError: there is no such file, module or object, or it can't be imported.

    >>> load_object("fractions:Fraction")[0](1, 2)
    Fraction(1, 2)
    """
    place, _, name = str(where).rpartition(":")
    if not place or not name.isidentifier():
        raise ConfigError(f"{what} must be file.py:name or package.module:name, got {where!r}")
    module = _load_file(Path(place), what, where) if place.endswith(".py") else _load_module(place, what, where)
    if not hasattr(module, name):
        there = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        own = [n for n in there if getattr(vars(module)[n], "__module__", "") == module.__name__] or there
        own += [n for n in getattr(module, "__all__", ()) if n not in vars(module)]  # imported once asked for, as TRL's
        raise ConfigError(
            f"{what} {where!r}: {place} has no {name!r}{did_you_mean(name, [*there, *own])}; it has "
            f"{', '.join(sorted(own)) or 'nothing that can be called'}"
        )
    file = getattr(module, "__file__", None)
    return getattr(module, name), _digest(Path(file).read_bytes()) if file else ""


def told_true(function: Callable[..., object], about: str, of: str, *given: object) -> bool:
    """What a user's function says, which must be true or false.

    Raises:
        RewardError: it fails, or gives something else.
    """
    try:
        said = function(*given)
    except Exception as error:
        raise RewardError(f"{about} raised {error!r} for the {of}; fix it") from error
    if not isinstance(said, bool | np.bool_):
        raise RewardError(f"{about} gave {said!r:.80} for the {of}; give true or false")
    return bool(said)


def short_name(name: str) -> str:
    """A name that may be part of a folder's name.

    >>> short_name("countdown"), short_name("my/tasks.py:Maths"), short_name("my_package.tasks:Maths")
    ('countdown', 'Maths', 'Maths')
    """
    return name.rpartition(":")[2]


def _load_module(place: str, what: str, where: str) -> ModuleType:
    _make_importable(Path.cwd())
    try:
        return importlib.import_module(place)
    except MissingExtraError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{what} {where!r}: {place} can't be imported: {reason_of(error)}") from error


class _SourceLoader(SourceFileLoader):
    """Compiles a user's file at every load: Python may take kept bytecode for a file edited in the same second."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(path: Path, what: str, where: str) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"{what} file {str(path)!r} does not exist; give file.py:name")
    full = path.resolve()
    _make_importable(Path.cwd())
    _make_importable(full.parent)
    name = f"rollwise_file_{path.stem}_{_digest(str(full).encode() + full.read_bytes())}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, full, loader=_SourceLoader(name, str(full)))
    if spec is None or spec.loader is None:
        raise ConfigError(f"{what} file {str(path)!r} can't be imported; give file.py:name")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look themselves up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"{what} {where!r}: {path} can't be imported: {reason_of(error)}") from error
    return module


def _make_importable(folder: Path) -> None:
    """Last, so that no file there hides an installed module."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _is_there(name: str) -> bool:
    """Whether a name is `file.py:Name` of a file, or `package.module:Name` of a module that can be found."""
    place, _, attribute = name.rpartition(":")
    if not attribute.isidentifier():
        return False
    if place.endswith(".py"):
        return Path(place).is_file()
    if not all(part.isidentifier() for part in place.split(".")):
        return False
    _make_importable(Path.cwd())
    try:
        return importlib.util.find_spec(place) is not None
    except (Exception, SystemExit):
        return False


def reason_of(error: BaseException) -> str:
    """What was raised, and the line of the innermost file that is not rollwise's own, in one line."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename
        and "<frozen" not in frame.filename
        and _OWN_FOLDER not in Path(frame.filename).parents
    ]
    at = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{at}"


def _source(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
