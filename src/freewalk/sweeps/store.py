"""Results on disk, stored by hash, with locks that the system releases when their holder dies."""

import os
import platform
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from freewalk.errors import FreewalkWarning, RecordError
from freewalk.storage.files import replacing

try:
    import fcntl
except ImportError:  # not on Windows: there two processes may compute the same result, with identical bytes
    fcntl = None  # type: ignore[assignment]

LOCKS = "locks"


@dataclass
class Lock:
    """A claim on a result: a locked file, which the system unlocks if this process ends.

    Attributes
    ----------
    path
        The file.
    handle
        Keeps it locked; None after release.
    """

    path: Path
    handle: int | None

    def release(self) -> None:
        """Release it; the file is removed while still locked, so that nobody waits for a removed file."""
        if self.handle is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self.handle)
            self.handle = None


@dataclass(frozen=True)
class Store:
    """A folder of results.

    A result is stored completely or not at all, and never changes: its name is the hash of everything it depends on.

    Attributes
    ----------
    folder
        Their folder.
    suffix
        The suffix of their names.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "points"), ".txt")
    ...     lock = store.lock("3f2a")
    ...     store.lock("3f2a") is None  # somebody has it
    ...     store.write("3f2a", b"found")
    ...     lock.release()
    ...     store.has("3f2a"), store.path("3f2a").read_text()
    True
    (True, 'found')
    """

    folder: Path
    suffix: str = ".npz"

    def path(self, key: str) -> Path:
        """The file of a result."""
        return self.folder / f"{key}{self.suffix}"

    def has(self, key: str) -> bool:
        """Whether a result is stored."""
        return self.path(key).is_file()

    def write(self, key: str, content: bytes) -> None:
        """Store a result.

        Raises
        ------
        RecordError
            If it cannot be written; existing files are not touched.
        """
        with replacing(self.path(key)) as temporary:
            temporary.write_bytes(content)

    def lock(self, key: str) -> Lock | None:
        """Claim a result for this process; None if another process has it. After claiming it, check `has` again.

        Raises
        ------
        RecordError
            If the lock cannot be written.
        """
        path = self.folder / LOCKS / key
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise RecordError(f"{path}: cannot be written ({error.strerror}); finished results are kept") from error
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError as error:
                words = f"{self.folder}: locks do not work there ({error.strerror}); run one process at a time"
                warnings.warn(words, FreewalkWarning, stacklevel=2)
            # The holder removes the file before releasing it, so the locked file may be gone and replaced by another.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return self._signed(Lock(path, handle))
            os.close(handle)

    def _signed(self, lock: Lock) -> Lock:
        """Write the holder into a lock, for people; if that fails, the lock still holds."""
        with suppress(OSError):
            if lock.handle is not None:
                os.truncate(lock.handle, 0)
                os.write(lock.handle, f"{os.getpid()} on {platform.node()}\n".encode())
        return lock

    def held(self) -> dict[str, str]:
        """The results being computed at this moment, and by whom."""
        found = {}
        for file in sorted((self.folder / LOCKS).glob("*")) if fcntl is not None else []:
            with suppress(OSError):
                handle = os.open(file, os.O_RDONLY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    found[file.name] = os.read(handle, 200).decode(errors="replace").strip()
                finally:
                    os.close(handle)
        return found

    def tidy(self) -> None:
        """Remove the locks that killed processes left behind."""
        for file in (self.folder / LOCKS).glob("*"):
            lock = self.lock(file.name)
            if lock is not None:
                lock.release()
