"""The walk between real processes: one per node, each with its own data and its own disk."""
