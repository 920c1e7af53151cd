"""The searches, sweeps and sensitivity studies that found what `freewalk.paper` stores; see README.md."""
