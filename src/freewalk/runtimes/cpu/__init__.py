"""Compiled walks on all cores."""
