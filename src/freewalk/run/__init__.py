"""A run: learn, walk and resume, the loop that they share, checkpoints and records."""
