"""Draw the figure of docs/how-to/data-and-topologies.md, in a second: python docs/images/partition.py."""

from pathlib import Path

import freewalk as fw
from freewalk.report import partition_figure

partition = fw.data.Dirichlet(alpha=0.1).partition(fw.data.digits(), n=100, seed=0)
partition_figure(partition, Path(__file__).with_suffix(".png"))
