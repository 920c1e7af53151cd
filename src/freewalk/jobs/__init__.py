"""What is to be run, checked: all callers that run, plan, compare or compute a walk prepare it here.

- `phase.py`: a `Phase` is a kernel, a rule and an exchange up to a step; which phase a step belongs to, which steps are
  measured, and how many updates they have made.
- `job.py`: a `Job` determines a run except its length. A `State` is where it is: a row is a token, and those of walk w
  are the rows w · tokens to (w + 1) · tokens − 1. Engines only change a state, so its parts can be sent elsewhere.
- `arguments.py`: checks of single arguments, such as where tokens start and whether a rule reaches every node.
- `prepare.py`: `prepare` makes the checked job, `place` the start of its tokens if they fit into memory, and
  `first_state` its first state. `learn` and `walk` call all three; specs, comparisons and networks call the first two,
  so that they reject what `learn` would reject before anything runs; exact curves and checkpoints need only the job.
  `blamed_on` puts the place of a mistake, such as a table of a spec, in front of its message.

Nothing here computes a step: runtimes do. Errors begin with the name of the function that was called, or of the class
that objects.
"""
