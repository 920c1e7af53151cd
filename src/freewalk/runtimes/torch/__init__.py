"""Compiled walks that learn in PyTorch."""
