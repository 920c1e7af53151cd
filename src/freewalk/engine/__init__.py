"""Compiled code: the scalar step, and the loops around it."""
