"""Sweeps: a spec, the keys to vary, and every point computed once."""

from freewalk.sweeping.entry import sweep

__all__ = ["sweep"]
