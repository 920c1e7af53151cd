"""Files: complete or absent, read with care, without pickles; large arrays mapped into memory."""
