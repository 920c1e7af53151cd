"""Experiments as files: a TOML spec, checked before anything runs, and the folder that a run writes.

Where a key of a spec is checked:

- its name and form in `keys.py`: the tables of a spec are pydantic models, and the parameters of a kind
  (`kind = "MHLJ"`) are checked against the annotations of what they describe;
- its value by the object itself, which `catalogue.py` creates; the place in the file is put in front of the message;
- how all of it fits together in `plan.py`, as `learn` would: a plan has a job and the methods of each walk.

`spec.py` reads a spec, without importing anything that it names, and runs its walks one after the other; `folder.py` is
the folder of such a run, which can be resumed whenever the process was killed. `own.py` imports classes of the user
("module:Name"), `datasets.py` and `models.py` describe problems on data sets and PyTorch models, and `optimizers.py`
PyTorch optimizers, all without importing PyTorch. `export.py` writes a final model for other programs. The specs that
come with the package are in `examples/`.
"""

from freewalk.data.files import read_samples
from freewalk.specs.folder import RunFolder
from freewalk.specs.spec import Spec, load, parse, shipped

__all__ = ["RunFolder", "Spec", "load", "parse", "read_samples", "shipped"]
