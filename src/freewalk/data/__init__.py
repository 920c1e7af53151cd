"""Data sets, and how their samples are distributed over the nodes of a graph.

- `dataset.py`: `Dataset`, features and targets with their source; it can be split, standardized and cut by node;
  `apportion` divides whole samples in fractional shares.
- `shipped.py`: the data sets of scikit-learn, one function each, with source and licence.
- `partitioners.py`: `Partitioner` and its kinds, which give every sample to one node; `Pool` is what they distribute.
- `partition.py`: `Partition`, the result: the node of each sample, and how much the nodes differ.
- `files.py`: `read_samples`, samples with their nodes from CSV, Parquet or .npz, as the specs of a run name them.

Everything is drawn by `freewalk.rng.generator`, whose purposes must never change: the same seed gives the same split
and the same partition, and `Partition.digest` proves it. CSV is read by the csv module of Python, because an error
names the line of its cell. Nothing in a file is ever executed: .npz files are opened without pickles.
"""

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
