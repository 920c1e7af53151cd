"""The version, in one place: packaging, `freewalk --version` and every record read it from here."""

__version__ = "0.1.0"
