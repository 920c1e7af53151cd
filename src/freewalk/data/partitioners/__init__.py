"""Ways to distribute samples over nodes: one file per idea; partitioner.py, what a partitioner is."""

from freewalk.data.partitioners.even import IID, Quantity
from freewalk.data.partitioners.feature_shift import FeatureShift
from freewalk.data.partitioners.label_skew import Dirichlet, Shards
from freewalk.data.partitioners.partitioner import Partitioner as Partitioner

__all__ = ["IID", "Dirichlet", "FeatureShift", "Quantity", "Shards"]
