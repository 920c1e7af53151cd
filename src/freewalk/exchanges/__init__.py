"""Exchanges: how the tokens of a walk mix their models after an update. One file per exchange.

`exchange.py` has the base class `Exchange`, and `Gathering`, what it may know: the nodes of the tokens, the step, and
words to draw. An exchange is a matrix: `weights(gathering)` gives W for the tokens of one walk, after the update and
before the move. The models and all vectors that they carry are multiplied by it; vectors stored at the nodes are never
mixed. The messages follow from W and the nodes, or from `sent`.

Compiled code supports the mean of all tokens (`means = "all"`), the means by node ("node") and, for parked tokens,
weights that are `constant`. For any other exchange it stops where one is due and Python multiplies. With one parked
token per node (`designs.Stay`), `Gossip` is decentralized SGD and `Average` is FedAvg.
"""

from freewalk.exchanges.average import Average
from freewalk.exchanges.exchange import Exchange as Exchange
from freewalk.exchanges.exchange import Gathering as Gathering
from freewalk.exchanges.gossip import Gossip
from freewalk.exchanges.meet import Meet

__all__ = [
    "Average",
    "Gossip",
    "Meet",
]
