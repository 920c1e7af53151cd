"""The compiler: plain functions become one compiled module, kept on disk and never stale.

- `compiler.py` gathers the sources of all functions that an entry point reaches, with their constants, into one module
  named by the hash of its text, and decorates them for a target: a processor, a GPU, or numba's simulator of one. The
  caller may replace globals by name: this is how an objective's `slope` and a rule's `update` get into the step of
  `runtimes/step/update.py`. The text is executed and never read from a file, so editing any function that takes part
  compiles anew. What cannot be written out, such as a lambda, is refused with a reason.
- `native.py` helps numba on processors: a compiler with the vectorizer that numba leaves out, and four intrinsics that
  replace plain functions of the step and compute the same.
- `cache.py` keeps compiled code on disk, instead of numba's own cache, which unpickles whatever it finds. A file is
  used only if the user owns it, nobody else can write to it and its checksum is right.
"""
