"""Sweeps: a spec, the keys to vary, and every point computed once.

- `sweep.py` is `fw.sweep`. `folder.py` is the folder of a sweep, with its records, and its table, figures and page.
- `axes.py` reads the table [sweep]: lists, ranges, draws; zipped keys are one axis.
- `points.py`: a `Sweep` is a spec, its axes and its points. A `Point` is the spec with values inserted, checked like
  any spec, and the work of running it.
- `hashes.py`: the key of a point is the hash of its tables, of the files and modules that it names, and of the
  versions. Names, comments and the time of day are not part of it.
- `resume.py`: how a sweep resumes. A result is a file named by its key, complete or absent; only missing ones are
  computed, under a lock that the system releases when its holder dies. A point that fails is noted; a result that
  cannot be written ends the sweep.
- `crews.py`: who computes. Threads; processes that hold one end of a pipe and end when the other end closes, on purpose
  or because the leader died; or tasks on a Ray cluster, planned by the driver.
- `dataset.py` combines the records, which it reads twice and one at a time.

The result of a piece of work is bytes: those of a record without the time of day, with arrays in one memory order. So
they do not depend on who computed them, and any number of processes can work on one folder. A crew does not know what
it computes: the folder `reproduction` of the repository lets crews call functions and stores their results as JSON.
"""

from freewalk.sweeps.sweep import sweep

__all__ = ["sweep"]
