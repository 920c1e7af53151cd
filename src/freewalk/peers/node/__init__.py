"""A running node: the protocol with a disk, a clock, connections and data."""
