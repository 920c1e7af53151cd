"""A network on disk: its configuration, certificates and processes."""
