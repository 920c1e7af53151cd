"""The walk as a Markov chain: its stationary distribution, spectrum, times and traffic.

`chain.py` reads a kernel as one matrix that does not change with time (`Kernel.at(step)` is such a kernel), checks it,
and has its stationary distribution and period. `unrolled.py` writes a jump as hops, with states "at node v, k hops to
go", so that the chain stays as sparse as its graph; two hops on a star would connect all leaves. `states.py` has the
states of a walk that remembers the last node: pairs of nodes, to which distributions, sets and moments are lifted.
`spectrum.py` and `mixing_time.py` say how fast a walk forgets its start, `times.py` how long it takes to reach, leave
and escape, and `traffic.py` what a move sends. A result is right to nearly all digits, or a bound that says so, or
refused.
"""
