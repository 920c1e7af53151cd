"""Linear systems of Markov chains: stationary distributions, hitting times, iterative solvers."""
