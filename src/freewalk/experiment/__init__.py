"""Experiments as files: a TOML spec, checked before anything runs, and the folder that a run writes."""

from freewalk.experiment.data import read_samples
from freewalk.experiment.folder import RunFolder
from freewalk.experiment.spec import Spec, load, parse, shipped

__all__ = ["RunFolder", "Spec", "load", "parse", "read_samples", "shipped"]
