"""Learning as a linear recursion of moments: exact curves, limits and steps."""
