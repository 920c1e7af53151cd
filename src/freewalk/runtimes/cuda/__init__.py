"""Walks on an NVIDIA GPU, compiled from the same functions as on the CPU."""
