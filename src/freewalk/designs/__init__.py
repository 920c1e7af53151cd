"""Transition designs: how the next node is chosen. One file per design."""

from freewalk.designs.centralized import Centralized
from freewalk.designs.closed_form import ClosedFormMHLJ
from freewalk.designs.decaying import Decaying
from freewalk.designs.design import Design as Design
from freewalk.designs.from_matrix import FromMatrix
from freewalk.designs.metropolis import Metropolis
from freewalk.designs.mhlj import MHLJ
from freewalk.designs.simple_walk import SimpleWalk
from freewalk.designs.stay import Stay

__all__ = ["MHLJ", "Centralized", "ClosedFormMHLJ", "Decaying", "FromMatrix", "Metropolis", "SimpleWalk", "Stay"]
