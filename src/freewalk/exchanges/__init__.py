"""Exchanges: how the tokens of a replica mix their models after an update. One file per exchange."""

from freewalk.exchanges.average import Average
from freewalk.exchanges.exchange import Exchange as Exchange
from freewalk.exchanges.exchange import Gathering as Gathering
from freewalk.exchanges.gossip import Gossip
from freewalk.exchanges.meet import Meet

__all__ = ["Average", "Gossip", "Meet"]
