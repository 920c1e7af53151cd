"""Sweeps: a spec, keys that are varied in it, and every point computed once."""

from freewalk.sweeping.entry import sweep

__all__ = ["sweep"]
