"""The walk between real processes: each node its own, with its own data and its own disk."""
