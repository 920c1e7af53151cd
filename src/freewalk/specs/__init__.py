"""Experiments as files: a TOML spec, checked before anything runs, and the folder that a run writes."""

from freewalk.data.files import read_samples
from freewalk.specs.folder import RunFolder
from freewalk.specs.spec import Spec, load, parse, shipped

__all__ = ["RunFolder", "Spec", "load", "parse", "read_samples", "shipped"]
