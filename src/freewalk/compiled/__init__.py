"""The compiler: plain functions become one compiled module, kept on disk and never stale."""
