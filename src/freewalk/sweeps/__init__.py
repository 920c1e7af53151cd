"""Sweeps: a spec, the keys to vary, and every point computed once."""

from freewalk.sweeps.sweep import sweep

__all__ = ["sweep"]
