"""Atomic file writes: each file is written to a temporary one, which then replaces it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from freewalk.checks import Checks
from freewalk.errors import RecordError

try:
    import fcntl
except ImportError:  # on Windows, where temporary files of killed processes remain
    fcntl = None  # type: ignore[assignment]

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
    except (OSError, UnicodeEncodeError) as error:
        raise RecordError(f"{given}: cannot be written ({_reason(error)}); give another path") from error
    try:
        yield temporary
        if handle is not None:
            os.fsync(handle)
        os.replace(temporary, target)
    except OSError as error:
        raise RecordError(f"{given}: cannot be written ({_reason(error)}); the previous file is kept") from error
    finally:
        if handle is not None:
            os.close(handle)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


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
