"""Tables and figures; they read records and nothing else."""

from freewalk.report.figures import curves, escape, occupancy
from freewalk.report.summary import Row, summarize, table

__all__ = ["Row", "curves", "escape", "occupancy", "summarize", "table"]
