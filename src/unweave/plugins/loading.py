"""Find parts from outside the package, and say where a part came from.

A part is named by a reference, `path/to/file.py:Name` or `package.module:Name`, or by an entry point of an
installed distribution. Nothing is registered: a reference is resolved each time, and Python's own table of
modules sees to it that a file is executed once.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar

from unweave.errors import MissingFileError, UnweaveError, did_you_mean

Record = TypeVar("Record")
Kind: TypeAlias = Literal["method", "metric", "data", "architecture", "likelihood"]
# Kind of part -> group of entry points.
GROUPS: Mapping[Kind, str] = {
    "method": "unweave.methods",
    "metric": "unweave.metrics",
    "data": "unweave.data",
    "architecture": "unweave.architectures",
    "likelihood": "unweave.likelihoods",
}
WORDS: Mapping[str, str] = {kind: kind for kind in (*GROUPS, "logger", "model")} | {
    "data": "data set",
    "engine": "study engine",
}
_NAME = r"[^\W\d]\w*"
_MODULE = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}")
_FILE = re.compile(rf"[^,\n]+\.py:{_NAME}")


@dataclass(frozen=True)
class Plugin:
    """Where a part of a run came from.

    `place` is a reference that finds it again. `file` is its source file, which is used if the module cannot
    be imported any more. `hash` is that of the source file's content, `version` that of the installed
    distribution.
    """

    kind: str
    place: str
    file: str
    hash: str
    version: str | None = None

    @property
    def name(self) -> str:
        """The name of the object in its module."""
        return self.place.rpartition(":")[2]

    @property
    def identity(self) -> dict[str, str]:
        """What tells two versions of a part apart, wherever they are installed."""
        return {"kind": self.kind, "hash": self.hash}

    def to_dict(self) -> dict[str, str | None]:
        """Plain data for JSON."""
        return {
            "kind": self.kind,
            "from": self.place,
            "file": self.file,
            "version": self.version,
            "hash": self.hash,
        }

    @classmethod
    def from_dict(cls, plain: Any) -> Plugin:
        """The record that `to_dict` wrote."""
        try:
            return cls(plain["kind"], plain["from"], plain["file"], plain["hash"], plain.get("version"))
        except (AttributeError, KeyError, TypeError) as error:
            raise UnweaveError(f"this record of a plug-in cannot be read: {plain!r}.") from error

    def load(self) -> Any:
        """The part, from where it was or from its source file."""
        if _FILE.fullmatch(self.place):
            return load_reference(self.place, self.kind)
        try:
            importlib.import_module(self.place.partition(":")[0])
        except ImportError as error:
            if not Path(self.file).is_file():
                version = f" {self.version}" if self.version else ""
                raise UnweaveError(
                    f"the {self.kind} {self.place}{version} is from a plug-in that is not installed here "
                    f"({error}). Install the package that has it, or restore {self.file}."
                ) from error
            return load_reference(f"{self.file}:{self.place.partition(':')[2]}", self.kind)
        return load_reference(self.place, self.kind)

    def difference(self, present: Plugin) -> str | None:
        """A sentence if the part that is present has another source than this, the recorded one."""
        if present.hash == self.hash:
            return None
        versions = "" if present.version == self.version else f", version {present.version} of {self.version}"
        return (
            f"the source of the {self.kind} {self.place} has changed: {self.hash} was recorded, and "
            f"{present.file} is {present.hash}{versions}."
        )


def is_reference(text: object) -> bool:
    """Whether a text names a part by its place.

    >>> [is_reference(text) for text in ("my/file.py:Name", "package.module:Name", "beta_vae", "a/b.npz")]
    [True, True, False, False]
    """
    return isinstance(text, str) and bool(_FILE.fullmatch(text) or _MODULE.fullmatch(text))


def absolute(reference: str, folder: str | Path = ".") -> str:
    """A reference to a file with the whole path, seen from a folder; any other text as it is."""
    if not _FILE.fullmatch(reference):
        return reference
    path, _, name = reference.rpartition(":")
    return f"{(Path(folder) / Path(path).expanduser()).resolve()}:{name}"


def without_folder(reference: str) -> str:
    """A reference without the folder of its file, which differs from machine to machine.

    >>> without_folder("/home/me/file.py:Name")
    'file.py:Name'
    """
    return Path(reference).name if _FILE.fullmatch(reference) else reference


def load_reference(reference: str, kind: str) -> Any:
    """The object that a reference names."""
    place, _, name = absolute(reference).rpartition(":")
    if _FILE.fullmatch(reference):
        module = _module_of_file(Path(place), kind)
    else:
        module = _imported(place, reference, kind)
    if not hasattr(module, name):
        raise UnweaveError(f'there is no {WORDS[kind]} "{name}" in {place}. Check the name after the colon.')
    return getattr(module, name)


def _imported(name: str, reference: str, kind: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise UnweaveError(
            f"cannot import the {WORDS[kind]} {reference}: {error_text(error)}. Install the package, or "
            "name the file: path/to/file.py:Name."
        ) from error


def _module_of_file(path: Path, kind: str) -> ModuleType:
    if not path.is_file():
        raise MissingFileError(
            f"expected the {WORDS[kind]} in {path}, and there is no such file. Restore it, or name the file "
            "that has it now."
        )
    return _executed(path, file_hash(path), kind)


@cache  # a study asks for thousands of runs
def _executed(path: Path, digest: str, kind: str) -> ModuleType:
    """The module of a file with that content: the one that is imported already, or a new one."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        own = getattr(module, "__name__", "").startswith("unweave_plugin_")
        if not own and isinstance(file, str) and file.endswith(path.name) and Path(file).resolve() == path:
            return module
    where = hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()
    stem = re.sub(r"\W", "_", path.stem)
    name = f"unweave_plugin_{stem}_{where}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnweaveError(f"cannot load {path} as Python source.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UnweaveError(
            f"cannot load the {WORDS[kind]} in {path}: {error_text(error)}. Fix the file."
        ) from error
    return module


def error_text(error: Exception) -> str:
    """The kind of an error and what it says, without a full stop at the end."""
    return f"{type(error).__name__}: {error}".rstrip(".: ")


def file_hash(path: Path) -> str:
    """A short hash of a file's content."""
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


@cache  # what a class was made from does not change when its file is edited later
def origin_of(part: Any, kind: str) -> Plugin:
    """Where a class or function came from, so that another process finds it again."""
    name = getattr(part, "__qualname__", repr(part))
    module = sys.modules.get(getattr(part, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or not isinstance(file, str) or not Path(file).is_file():
        raise UnweaveError(
            f"the {kind} {name} is defined in no file, so its runs could not be opened again. Write it into "
            "a file and import it from there."
        )
    if getattr(module, name, None) is not part:
        raise UnweaveError(
            f"the {kind} {name} cannot be found in {file} by that name, so its runs could not be opened "
            "again. Define it at the top level of the file."
        )
    path = Path(file).resolve()
    version = _version(module.__name__)
    in_package = "." in module.__name__ or version is not None
    place = f"{module.__name__}:{name}" if in_package else f"{path}:{name}"
    return Plugin(kind, place, str(path), file_hash(path), version)


def origin_at(reference: str, kind: str) -> Plugin:
    """Where the part that a reference names came from; the part may be any object."""
    place = absolute(reference)
    load_reference(place, kind)
    name = place.rpartition(":")[0]
    if _FILE.fullmatch(place):
        return Plugin(kind, place, name, file_hash(Path(name)))
    file = getattr(sys.modules[name], "__file__", None)
    if not isinstance(file, str):
        raise UnweaveError(f"the {WORDS[kind]} {place} is defined in no file. Write it into one.")
    path = Path(file).resolve()
    return Plugin(kind, place, str(path), file_hash(path), _version(name))


@cache
def _version(module: str) -> str | None:
    """The version of the distribution that has a module; None if there is none."""
    top = module.partition(".")[0]
    for group in GROUPS.values():
        for entry in metadata.entry_points(group=group):
            if entry.module.partition(".")[0] == top and entry.dist is not None:
                return entry.dist.version
    if top.startswith("unweave_plugin_") or top == "__main__":
        return None
    names = metadata.packages_distributions().get(top)
    return metadata.version(names[0]) if names else None


def installed(kind: Kind, name: str) -> metadata.EntryPoint | None:
    """The entry point of that name; two of one name are refused."""
    entries = list(metadata.entry_points(group=GROUPS[kind], name=name))
    places = sorted({entry.value for entry in entries})
    if len(places) > 1:
        raise UnweaveError(
            f'two installed plug-ins define the {WORDS[kind]} "{name}": {" and ".join(places)}. Uninstall '
            "one of them, or name the one you mean by its place."
        )
    return entries[0] if entries else None


@cache  # networks ask at every step; within a process a part stays what it was
def resolved(kind: Kind, name: str) -> tuple[Any, Plugin] | None:
    """The part that a reference or an entry point names, and where it came from; None if there is none."""
    place = place_of(kind, name)
    return None if place is None else (load_reference(place, kind), origin_at(place, kind))


def record_named(kind: Kind, name: object, record: type[Record], built_in: Mapping[str, Record]) -> Record:
    """The architecture or likelihood of that name: built in, or of a plug-in."""
    if isinstance(name, str) and name in built_in:
        return built_in[name]
    pair = resolved(kind, name) if isinstance(name, str) else None
    if pair is None:
        raise UnweaveError(f'there is no {kind} "{name}". {did_you_mean(str(name), tuple(built_in))}')
    part = pair[0]
    if not isinstance(part, record):
        raise UnweaveError(
            f"{pair[1].place} does not name a usable {kind}: expected a record {record.__name__}; got "
            f"{part!r}."
        )
    own = str(getattr(part, "name", name))
    refuse_built_in(kind, own, built_in, pair[1].place)
    check_entry_name(kind, str(name), own)
    return part


def names_plugin(kind: Kind, text: object) -> bool:
    """Whether a text names a part from outside the package: a reference, or an entry point."""
    return isinstance(text, str) and (is_reference(text) or installed(kind, text) is not None)


def installed_names(kind: Kind) -> list[str]:
    """The names of all entry points for a kind of part, sorted."""
    return sorted({entry.name for entry in metadata.entry_points(group=GROUPS[kind])})


def place_of(kind: Kind, name: str) -> str | None:
    """The reference behind a name: itself with the whole path, or that of an entry point; else None."""
    if is_reference(name):
        return absolute(name)
    entry = installed(kind, name)
    return None if entry is None else entry.value.replace(" ", "")


def plugin_place(kind: Kind, name: str, built_in: Collection[str]) -> str:
    """The reference behind the name of a plug-in; the error for an unknown name lists the known ones."""
    place = place_of(kind, name)
    if place is None:
        known = [*built_in, *installed_names(kind)]
        base = name.partition(":")[0]  # without a condition on data
        raise UnweaveError(f'there is no {WORDS[kind]} "{name}". {did_you_mean(base, known)}')
    return place


def installed_parts(
    kind: Kind, built_in: Collection[str], load: Callable[[str], Any], problem: Callable[[str], None]
) -> Iterator[Any]:
    """All parts of installed plug-ins, for a list. `problem` gets a sentence on each that is left out."""
    for name in installed_names(kind):
        try:
            refuse_built_in(kind, name, built_in, f"the installed plug-in {name}")
            yield load(name)
        except UnweaveError as error:
            problem(f'the {WORDS[kind]} "{name}" of a plug-in is left out: {error}')


def check_entry_name(kind: Kind, asked: str, own: str) -> None:
    """Refuse an entry point whose name is not the one that its part has in tables of results."""
    if not is_reference(asked) and asked != own:
        raise UnweaveError(
            f'the {WORDS[kind]} of the entry point "{asked}" calls itself "{own}". Give both the same name.'
        )


def refuse_built_in(kind: Kind, name: str, built_in: Collection[str], whose: str) -> None:
    """Refuse a part that is called like one of the package."""
    if name in built_in:
        raise UnweaveError(
            f'{whose} has the name of a built-in {WORDS[kind]}, "{name}". Choose another name for it.'
        )


@contextmanager
def failures_named(plugins: Sequence[Plugin]) -> Iterator[None]:
    """Raise an error of any other kind as an `UnweaveError` that names these parts; without parts, as it is.

    Such an error can also appear later, where unweave uses what a part has returned.
    """
    try:
        yield
    except (UnweaveError, OSError, MemoryError):
        raise
    except Exception as error:
        if not plugins:
            raise
        places = " and ".join(f"{plugin.kind} {plugin.place}" for plugin in plugins)
        files = {str(Path(plugin.file)) for plugin in plugins}
        raise UnweaveError(
            f"training with the {places} failed{_line(error, files)}: {error_text(error)}. Check "
            "the part as docs/plugins.md explains, or add --verbose for the traceback."
        ) from error


def _line(error: Exception, files: set[str]) -> str:
    """The last line of these files that was executed; empty if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f" in line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""
