"""Files: complete or absent, read with care, without pickles; large arrays mapped into memory.

- `files.py`: `replacing` writes to a temporary file, which then replaces the old one. It stays locked meanwhile, so
  that the next writer removes what a killed process left, and nothing else. `held` notes Ctrl-C and SIGTERM during
  work that must not be interrupted half-way. `regular` refuses paths to pipes and devices.
- `locks.py`: claims on work, which end with the process that made them.
- `archive.py` turns trees of dataclasses, arrays and plain values into JSON and named arrays, and back: records and
  what they need to resume. It reads and writes these arrays in .npz files, which may be damaged or malicious: types and
  sizes are checked before anything is decompressed.
- `mapped.py`: files of arrays that all processes of a machine share, with a checksum of each. A mapped array is pickled
  and archived as its location in the file.
"""
