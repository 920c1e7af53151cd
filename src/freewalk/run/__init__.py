"""A run: what `fw.learn`, `fw.walk` and `fw.resume` do once a job is prepared.

- `learn.py`: `learn` and `walk` prepare a job and its first state. A `Method` is all that `learn` takes except the
  problem and the length of the run. It is here, not in jobs, because it can run itself.
- `loop.py`: the loop advances a state chunk by chunk, tells progress, keeps checkpoints and stops at Ctrl-C or SIGTERM.
  A chunk takes a fraction of a second, whatever the engine. If code of the user fails, the error carries a record.
- `checkpoint.py`: a `Continuation` is what a checkpoint contains: job, state, measurements, clock. It makes the data
  and the provenance of the record, and checks itself when it comes from a file, since engines trust their input.
- `record.py`: a `Record`, its file (a .npz archive of plain arrays and one JSON text, never code), and `concat`.
- `resume.py`: from a partial record to the complete one; only classes that are listed here or given are created.
- `evaluate.py`: measures of final models, also on other samples.

A resumed run equals an uninterrupted one bit for bit, since a draw depends on the seed, the walk and the step alone.
"""
