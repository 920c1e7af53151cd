"""What a reproduction stores on disk, and when it may be reused.

The folder of a figure holds its spec, the record of its walks and its exact curves. A file is reused if it was made
from the same spec by the same versions. Nothing in it depends on when or how fast it was made, so the same spec gives
the same bytes on the same machine.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from freewalk.errors import RecordError
from freewalk.run.record import Record, read, versions
from freewalk.run.record import timeless as without_times

if TYPE_CHECKING:
    import xarray

SPEC, RECORD, EXACT, VERDICTS = "spec.toml", "record.npz", "exact", "verdicts.json"
FIGURE, CHARTS, SWEEP = "figure.png", "charts.png", "sweep.png"


def stored(path: Path, spec: str) -> Record | None:
    """The record in a file, if it was made from this spec by these versions; else None."""
    if not path.is_file():
        return None
    try:
        record = read(path)
    except RecordError:  # half a file, or something else: rebuilt
        return None
    story = record.provenance
    return record if story.get("spec") == spec and story.get("versions") == versions() and not record.partial else None


def timeless(record: Record, spec: str) -> Record:
    """A record with its spec and without times; visits are summed over the walks."""
    kept = without_times(record)
    kept.provenance |= {"spec": spec, "versions": versions()}
    return kept


def keep_data(path: Path, spec: str, data: "xarray.Dataset") -> Record:
    """Write numbers that no walk made; returns what a reader of the file will see."""
    kept = timeless(Record(data), spec)
    kept.save(path)
    return kept


def digest(*paths: Path) -> str:
    """The first characters of the SHA-256 of files one after the other, by which a figure names what is behind it."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
