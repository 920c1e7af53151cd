"""The walk as a Markov chain: its stationary distribution, spectrum, times and traffic."""
