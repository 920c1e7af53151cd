"""Partitioners, which distribute samples over nodes: partitioner.py has the base class, other files one idea each."""

from freewalk.data.partitioners.even import IID, Quantity
from freewalk.data.partitioners.feature_shift import FeatureShift
from freewalk.data.partitioners.label_skew import Dirichlet, Shards
from freewalk.data.partitioners.partitioner import Partitioner as Partitioner

__all__ = ["IID", "Dirichlet", "FeatureShift", "Quantity", "Shards"]
