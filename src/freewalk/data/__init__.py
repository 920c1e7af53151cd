"""Data sets, and how their samples are distributed over the nodes of a graph."""

from freewalk.data.dataset import Dataset
from freewalk.data.partition import Partition
from freewalk.data.partitioners import IID, Dirichlet, FeatureShift, Partitioner, Quantity, Shards
from freewalk.data.shipped import breast_cancer, diabetes, digits, wine

__all__ = [
    "IID",
    "Dataset",
    "Dirichlet",
    "FeatureShift",
    "Partition",
    "Partitioner",
    "Quantity",
    "Shards",
    "breast_cancer",
    "diabetes",
    "digits",
    "wine",
]
