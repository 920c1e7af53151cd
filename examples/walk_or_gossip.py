"""Compare a walk with gossip and federated averaging: updates, messages, bytes and rounds to twice the optimal error.

`fw.compare` chooses the step of each method by the same rule, so the steps given here are placeholders.
Writes the table, a figure, a page and the record into the folder `walk-or-gossip`. Prints the table, and how
gossip compares with the walk in messages and rounds.
"""

import freewalk as fw
from freewalk.baselines import Method, decentralized_sgd, fedavg

graph = fw.graphs.watts_strogatz(50, 4, 0.2, seed=1)
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, noise=0.3, seed=1)
methods = [
    Method("walk", fw.designs.Metropolis(), fw.SGD(step=0.01)),
    decentralized_sgd(step=0.01),
    fedavg(step=0.01),
]
found = fw.compare(problem, graph, methods, walks=50, seed=1)
print(found)
found.save("walk-or-gossip")

walk, gossip, _ = (row.to_goal for row in found.rows)
for count in ("messages", "rounds"):
    print(f"gossip needs {gossip[count].value / walk[count].value:.2g} times the {count} of the walk")
