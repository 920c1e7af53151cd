"""The on-disk cache of compiled code: it reads only files that nobody else could have written or damaged.

numba's own cache unpickles whatever is in its folder. This one replaces it and keeps one file per compiled function and
argument types. A file is read only if it belongs to the user, nobody else can write to it, and its checksum is correct;
any other file counts as missing, is compiled again and replaced. If a folder cannot be trusted or written, another one
is used, with one warning; if there is none, code is compiled and not kept.
"""

import hashlib
import os
import pickle
import shlex
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from freewalk.errors import CacheWarning

_SUFFIX = ".code"
_DIGEST = 32  # bytes of a checksum
_ABANDONED = 3600  # seconds after which a temporary file is assumed to come from a killed process

_unwritable: dict[Path, str] = {}  # folders in which a write failed, and why
_reported: set[str] = set()


def cache_folder() -> Path | None:
    """The folder for compiled code, created if missing: $FREEWALK_CACHE, the user's cache, a temporary one or None."""
    folder, problem = _choose()
    _report(problem, folder)
    return folder


def keep(function: Any, kind: str, module: str) -> None:
    """Let a function that numba's decorator returned be read from disk, and be stored there once compiled.

    `kind` is the class of numba's cache for such functions, with its module; `module`, the name of the module with the
    function, stands for everything the code depends on.
    """
    if hasattr(function, "enable_caching") and cache_folder() is not None:  # not if compilation is disabled
        place, _, name = kind.rpartition(".")
        function._cache = _kept(getattr(import_module(place), name), module)(function.py_func)


def _kept(kind: Any, module: str) -> Any:
    """A class of numba's caches that uses our files instead of its own."""

    class _Locator:
        """The location numba asks for; it reads and writes nothing there by itself."""

        _py_file = module

        def get_cache_path(self) -> str:
            return str(cache_folder())

        def get_source_stamp(self) -> str:
            return module

        def ensure_cache_path(self) -> None:
            pass

    class _Contents(kind._impl_class):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:  # numba's version would look for a folder
            self._locator = _Locator()
            self._lineno = function.__code__.co_firstlineno
            self._filename_base = module

    class _KeptCache(kind):  # type: ignore[misc]
        _impl_class = _Contents
        _cache_file: Any

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            packages = ["numba", "llvmlite", *(["numba_cuda"] if ".cuda." in kind.__module__ else [])]
            self._cache_file = _Files(module, packages, self._cache_file._dump)

        def _load_overload(self, *arguments: Any) -> Any:
            try:
                return super()._load_overload(*arguments)
            except Exception:  # of any kind: what cannot be read is compiled again
                return None

    return _KeptCache


class _Files:
    """The files of a module, with the interface that numba's cache expects."""

    def __init__(self, module: str, packages: list[str], dump: Callable[[Any], bytes]) -> None:
        self.module, self.dump = module, dump
        versions = [getattr(sys.modules.get(package), "__version__", "") for package in packages]
        self.made_by = (sys.version, *versions)

    def load(self, key: Any) -> Any:
        """The data saved under a key, or None."""
        for folder, _ in _candidates():
            content = _read(folder / self._name(key))
            kept, data = pickle.loads(content) if content is not None else (None, None)
            if kept == key:
                return data
        return None

    def save(self, key: Any, data: Any) -> None:
        """Save data under a key."""
        content = self.dump((key, data))
        while folder := _choose()[0]:
            try:
                _write(folder / self._name(key), content)
                break
            except OSError as error:
                _unwritable[folder] = _cannot(folder, "be written", error)
        cache_folder()  # with a warning if it is another one than before

    def flush(self) -> None:
        """Nothing to do: recompiled code replaces the saved file."""

    def _name(self, key: Any) -> str:
        return f"{self.module}-{hashlib.sha256(repr((self.made_by, key)).encode()).hexdigest()[:20]}{_SUFFIX}"


def _choose() -> tuple[Path | None, str]:
    """The first usable folder, and what is wrong with the preferred one."""
    problem = ""
    for folder, automatic in _candidates():
        found = _unwritable.get(folder) or _problem(folder, automatic)
        if not found:
            return folder, problem
        problem = problem or found
    return None, problem


def _candidates() -> list[tuple[Path, bool]]:
    """The folders to try, and whether each is chosen by freewalk and not by the user."""
    chosen, base = os.environ.get("FREEWALK_CACHE"), os.environ.get("XDG_CACHE_HOME")
    folders = []
    with suppress(RuntimeError):  # a user without a home
        folder = Path(chosen) if chosen else Path(base or Path.home() / ".cache") / "freewalk"
        folders.append((folder.absolute(), not chosen))
    with suppress(OSError):  # no temporary folder at all
        temporary = Path(tempfile.gettempdir()).resolve()
        user = os.geteuid() if hasattr(os, "geteuid") else "user"
        folders += [
            (temporary / f"freewalk-{user}{end}", True) for end in ("", "-1", "-2")
        ]  # others may have taken one
    return folders


def _problem(folder: Path, automatic: bool) -> str:
    """Create a folder if necessary; return what prevents its use, and the remedy."""
    try:
        for place in [*reversed(folder.parents), folder]:
            if not place.is_dir():
                place.mkdir(mode=0o700, exist_ok=True)
        status = os.lstat(folder)
        if automatic and stat.S_ISDIR(status.st_mode) and _is_mine(status) and status.st_mode & 0o022:
            folder.chmod(0o700)  # created with a permissive umask: files that others left in it are not read
        return _distrust(folder)
    except OSError as error:
        return _cannot(folder, "be used", error)


def _cannot(folder: Path, what: str, error: OSError) -> str:
    return f"cache: {folder} cannot {what} ({error.strerror}); set FREEWALK_CACHE to another folder"


def _distrust(folder: Path) -> str:
    """How others could change files in a folder, and the remedy; empty if they cannot."""
    if not hasattr(os, "geteuid"):
        return ""
    real = Path(os.path.realpath(folder))
    status = os.stat(real)
    another = "set FREEWALK_CACHE to a folder of your own"
    if not _is_trusted(status) or not _is_trusted(os.lstat(folder)):
        return f"cache: {folder} belongs to another user; {another}"
    if status.st_mode & 0o022:
        remedy = f"{another}, or, if it is only used for this, run: chmod 700 {shlex.quote(str(real))}"
        return f"cache: {folder} can be written by others (mode {stat.S_IMODE(status.st_mode):o}); {remedy}"
    for parent in real.parents:
        status = os.stat(parent)
        if not _is_trusted(status) and status.st_uid != _user_outside():
            return f"cache: {folder} is in {parent}, which belongs to another user; {another}"
        if status.st_mode & 0o002 and not status.st_mode & stat.S_ISVTX:
            remedy = f"run: chmod o-w {shlex.quote(str(parent))}, or {another}"
            return f"cache: {folder} can be replaced by others, because everybody can write to {parent}; {remedy}"
    return ""


def _is_mine(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _is_trusted(status: os.stat_result) -> bool:
    return _is_mine(status) or status.st_uid == 0


@cache
def _user_outside() -> int | None:
    """In a rootless container, the apparent owner of files that belong to users outside, such as `/`."""
    try:
        shown = int(Path("/proc/sys/kernel/overflowuid").read_text())
        known = [[int(word) for word in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except (OSError, ValueError):
        return None
    return None if any(first <= shown < first + count for first, _, count in known) else shown


def _report(problem: str, folder: Path | None) -> None:
    if problem and problem not in _reported:
        _reported.add(problem)
        instead = f"kept in {folder} instead" if folder else "not kept, so every process compiles it again"
        warnings.warn(f"{problem}; compiled code is {instead}", CacheWarning, stacklevel=2)


def _read(path: Path) -> bytes | None:
    """The content of one of our files; None if it is missing, damaged or possibly someone else's."""
    try:
        if _distrust(path.parent):
            return None
        with open(path, "rb", opener=_open) as file:
            status = os.fstat(file.fileno())
            ours = _is_trusted(status) and (not hasattr(os, "geteuid") or not status.st_mode & 0o022)
            if not (ours and stat.S_ISREG(status.st_mode) and status.st_nlink <= 1):
                return None
            digest, content = file.read(_DIGEST), file.read()
    except OSError:
        return None
    return content if digest == _digest(path, content) else None


def _open(path: str, flags: int) -> int:
    """Neither follow a link nor block on a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _digest(path: Path, content: bytes) -> bytes:
    """The checksum includes the name, so that one file cannot replace another."""
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically; other processes may read or write it at the same time."""
    prefix = f".{path.name}."
    handle, temporary = tempfile.mkstemp(".tmp", prefix, path.parent)  # readable by nobody else
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(path, content))
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    for left in path.parent.glob(f"{prefix}*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()
