"""Results on disk, each under its hash, and a lock on each that the system frees when its holder dies."""

import os
import platform
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from freewalk.errors import FreewalkWarning, RecordError
from freewalk.files import replacing

try:
    import fcntl
except ImportError:  # not on Windows: two processes may then compute the same, to the same bytes
    fcntl = None  # type: ignore[assignment]

LOCKS = "locks"


@dataclass
class Lock:
    """A result that nobody else computes meanwhile: a locked file, which the system unlocks if this process ends.

    Attributes
    ----------
    path
        The file.
    handle
        Keeps it locked; None once it is released.
    """

    path: Path
    handle: int | None

    def release(self) -> None:
        """Let others have it; the file goes while it is still locked, so that nobody waits for one that is gone."""
        if self.handle is not None:
            with suppress(OSError):
                self.path.unlink()
            os.close(self.handle)
            self.handle = None


@dataclass(frozen=True)
class Store:
    """A folder of results.

    A result is there as a whole or not at all, and never changes: its name is the hash of all that it depends on.

    Attributes
    ----------
    folder
        Where they are.
    suffix
        What their names end with.

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
        """Whether a result is there."""
        return self.path(key).is_file()

    def write(self, key: str, content: bytes) -> None:
        """Keep a result.

        Raises
        ------
        RecordError
            If it cannot be written; nothing that was there is touched.
        """
        with replacing(self.path(key)) as temporary:
            temporary.write_bytes(content)

    def lock(self, key: str) -> Lock | None:
        """Take a result for this process, or None where somebody has it; whoever gets it asks `has` again.

        Raises
        ------
        RecordError
            If there is no room for a lock.
        """
        path = self.folder / LOCKS / key
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise RecordError(f"{path}: cannot be written ({error.strerror}); what is finished is kept") from error
            try:
                if fcntl is not None:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError as error:
                words = f"{self.folder}: locks do not work there ({error.strerror}); run one process at a time"
                warnings.warn(words, FreewalkWarning, stacklevel=2)
            # Its holder removes a file before it lets go: what was locked may be gone, with another in its place.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return self._signed(Lock(path, handle))
            os.close(handle)

    def _signed(self, lock: Lock) -> Lock:
        """Write into a lock who has it, for people; where there is no room for that, it holds all the same."""
        with suppress(OSError):
            if lock.handle is not None:
                os.truncate(lock.handle, 0)
                os.write(lock.handle, f"{os.getpid()} on {platform.node()}\n".encode())
        return lock

    def held(self) -> dict[str, str]:
        """The results that somebody computes at this moment, and who."""
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
        """Remove the locks that killed processes left; those that are held stay."""
        for file in (self.folder / LOCKS).glob("*"):
            lock = self.lock(file.name)
            if lock is not None:
                lock.release()
