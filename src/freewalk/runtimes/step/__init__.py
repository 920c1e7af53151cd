"""One step of one walk, written once as scalar functions, and the arrays that it works on."""
