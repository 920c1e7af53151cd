"""Claims on work: files that the system unlocks when the process that claimed the work ends, whatever ends it."""

import os
import platform
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from freewalk.errors import FreewalkWarning, RecordError

try:
    import fcntl
except ImportError:  # not on Windows: there two processes may do the same work
    fcntl = None  # type: ignore[assignment]


@dataclass
class Lock:
    """A claim on work: a file that an open handle keeps locked."""

    path: Path
    handle: int | None  # None after release

    def release(self) -> None:
        """Release it; the file is removed while still locked, so that nobody waits for a removed file."""
        if self.handle is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self.handle)
            self.handle = None


def claim(path: Path) -> Lock | None:
    """Lock a file for this process, which creates it and its folder; None if another process has it."""
    begun = os.path.isdir(path.parent)  # so there may be results
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            advice = "finished results are kept" if begun else "choose another folder"
            raise RecordError(f"{path}: cannot be written ({error.strerror}); {advice}") from error
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            words = f"{path.parent}: locks do not work there ({error.strerror}); run one process at a time"
            warnings.warn(words, FreewalkWarning, stacklevel=2)
        # The holder removes the file before releasing it, so the locked file may be gone and replaced by another.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                break
        os.close(handle)
    with suppress(OSError):  # the holder is noted for people; if that fails, the lock still holds
        os.truncate(handle, 0)
        os.write(handle, f"{os.getpid()} on {platform.node()}\n".encode())
    return Lock(path, handle)


def holder(path: Path) -> str:
    """Which process has locked a file at this moment, in words; empty if none has."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(handle, 200).decode(errors="replace").strip() or "another process"
        finally:
            os.close(handle)
    return ""
