"""Traps: sets of nodes to which a walk keeps returning."""
