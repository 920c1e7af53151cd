"""Work that is done completely or not at all: a file replaces another once it is written, and signals are held back."""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from freewalk.checks import Checks
from freewalk.errors import RecordError

try:
    import fcntl
except ImportError:  # on Windows, where temporary files of killed processes remain
    fcntl = None  # type: ignore[assignment]

_STOPPING = (signal.SIGINT, signal.SIGTERM)
_check = Checks(RecordError)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a temporary file that replaces the file at the end of the block, or is removed if the block fails.

    The old file is kept until then. Folders are created as needed, temporary files that killed processes left for the
    same file are removed, and a symbolic link is followed: its target is replaced.
    """
    given = _check.path("files", "path", path)
    try:
        target = Path(os.path.realpath(given))
        if target.exists() and not target.is_file():
            raise OSError("this is a folder or a device, expected a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        _clean(target)
        temporary, handle = _beside(target)
    except OSError as error:
        raise RecordError(f"{given}: cannot be written ({_reason(error)}); give another path") from error
    try:
        yield temporary
        if handle is not None:
            os.fsync(handle)
        os.replace(temporary, target)
    except OSError as error:
        kept = "the previous file is kept" if target.exists() else "give another path"
        raise RecordError(f"{given}: cannot be written ({_reason(error)}); {kept}") from error
    finally:
        if handle is not None:
            os.close(handle)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def regular(path: str | os.PathLike[str]) -> Path:
    """A path to be read, or an OSError if something else than a file is there: opening a pipe would block."""
    file = Path(path)
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")
    return file


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a file atomically, in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())


class _Unchanged(Exception):
    """Leaves a file as it is."""


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check in advance that `replacing` can write a file; folders are created, and the file is left unchanged."""
    with suppress(_Unchanged), replacing(path):
        raise _Unchanged


def _beside(target: Path) -> tuple[Path, int | None]:
    """A new file beside another, and a handle that keeps it locked: the lock shows others that it is in use."""
    for number in count():
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{number}.tmp{target.suffix}")
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        if fcntl is None:  # Windows cannot move an open file
            os.close(handle)
            return temporary, None
        with suppress(OSError):  # a file system without locks: nobody else can lock it either
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):  # mistaken for an abandoned one before it was locked
            if os.path.samestat(os.fstat(handle), os.stat(temporary)):
                return temporary, handle
        os.close(handle)
    raise AssertionError("count() ends")


def _clean(target: Path) -> None:
    """Remove files left by killed processes: they are no longer locked."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.\d+-\d+\.tmp{re.escape(target.suffix)}")
    for entry in list(target.parent.iterdir()) if fcntl is not None else []:
        if ours.fullmatch(entry.name) is None:
            continue
        with suppress(OSError):  # in use, or owned by another user
            handle = os.open(entry, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                entry.unlink()
            finally:
                os.close(handle)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@dataclass
class Stop:
    """The signal that was received, if any."""

    signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def name(self) -> str:
        """Its name, or an empty string."""
        return "" if self.signal is None else self.signal.name

    def act(self) -> None:
        """Do now what the signal would have done: raise KeyboardInterrupt, or end the process."""
        if self.signal is not None:
            signal.raise_signal(self.signal)


@contextmanager
def held() -> Iterator[Stop]:
    """Note the first Ctrl-C or SIGTERM instead of acting on it; a second one takes effect immediately.

    A SIGTERM that the process ignores stays ignored. Outside the main thread nothing is held, since signals never
    arrive there.
    """
    stop = Stop()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _STOPPING:
            handler = signal.getsignal(number)
            # SIGTERM is ignored on purpose, SIGINT in any background job of a script.
            ignored = number == signal.SIGTERM and handler is signal.SIG_IGN
            if handler is not None and not ignored:  # None: it was not set by Python
                before[number] = handler

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        stop.signal = signal.Signals(number)
        restore()

    try:
        for number in before:
            signal.signal(number, note)
        yield stop
    finally:
        restore()


@contextmanager
def unbroken() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block is done, or has failed."""
    stop = Stop()
    try:
        with held() as stop:
            yield
    finally:
        stop.act()  # only now, when no signal is noted any more
