"""Transition designs: how the next node is chosen. One file per design.

A design is not code inside an engine: it compiles to a short table of moves, and everything else reads that table.

- `design.py`: the base class `Design`, a frozen dataclass with `moves` and `target`, and what several designs share.
- `kernel.py`: `Move`, one row of the table, and `Kernel`, the table on one graph. It holds O(nodes + edges) numbers.
- `memory.py`: what a token may remember, and the rows of outcomes that a memory changes; `with_memory.py`: the base
  class of designs that give a memory to another design.
- `local.py`: `LocalKernel`, all that one node needs in order to act, from `kernel.local(node)`.

A move is chosen with its probability, takes `hops` steps, uniform or by `rows`, and is then accepted with probability
min(1, ratio[end] / ratio[start]); `law` draws from all nodes instead, for baselines. `SimpleWalk` is one uniform hop,
`Metropolis` one hop with the ratio target / degree, `MHLJ` the same and jumps of 1 to `hops` hops. A schedule is one
factor on all moves but the first (`Kernel.fade`), so the table stays a table.

The gradient weights follow from the target, w_v = 1 / (n · target_v). A design says with `biased` whether its walk
misses the target; if it says nothing, `learn` checks it where that is cheap, and warns. `Metropolis` and `FromMatrix`
have a parameter `target` and, as every design, a method `target`: they write their `__init__` out.
"""

from freewalk.designs.centralized import Centralized
from freewalk.designs.closed_form import ClosedFormMHLJ
from freewalk.designs.decay import Decaying
from freewalk.designs.design import Design as Design
from freewalk.designs.from_matrix import FromMatrix
from freewalk.designs.history_driven import HistoryDriven
from freewalk.designs.metropolis import Metropolis
from freewalk.designs.mhlj import MHLJ
from freewalk.designs.no_step_back import NonBacktracking
from freewalk.designs.self_repellent import SelfRepellent
from freewalk.designs.simple_walk import SimpleWalk
from freewalk.designs.stay import Stay

__all__ = [
    "MHLJ",
    "Centralized",
    "ClosedFormMHLJ",
    "Decaying",
    "FromMatrix",
    "HistoryDriven",
    "Metropolis",
    "NonBacktracking",
    "SelfRepellent",
    "SimpleWalk",
    "Stay",
]
