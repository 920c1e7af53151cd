"""gossipy (PyPI: gossipy-dfl): its AdaLine, which is least squares by single samples, pushed between neighbours.

It has no transition law: each round every node sends its model to a uniform neighbour, and the receiver updates it
(mode UPDATE), or merges it with its own first (MERGE_UPDATE). With token accounts some models are sent in reaction to
one that came (in gossipy 0.0.1 by the node whose turn was last, not by the one that received). UPDATE is the nearest to
walks. A round of one time step and no evaluation are the least that gossipy can do beside updates; the graph is small
so that it learns in seconds.
"""

import importlib
import logging
import sys
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from contestants.contestant import Contestant, missing
from contestants.task import Task, normalised

NODES = 100
STEP = 0.6
ROUNDS = 10
ROUNDS_TO_LEARN = 300


class GossipyPush(Contestant):
    """A simulation that goes on from run to run: the first one learns, the timed ones stay where it came to."""

    loop = "Watts–Strogatz"
    updates = ROUNDS * NODES
    warm_up = ROUNDS_TO_LEARN * NODES

    def __init__(self, mode: str, tokens: bool = False) -> None:
        self.name = f"gossipy, {mode}" + (", tokens" if tokens else "")
        self.mode, self.tokens = mode, tokens
        when = "in turn or in reaction" if tokens else "in turn"
        self.does = f"no law: nodes push {when} to a uniform neighbour, n = {NODES}"

    def available(self) -> str | None:
        absent = missing("torch", "gossipy")
        if absent:
            return f"{absent} (pip install gossipy-dfl)"
        try:
            importlib.import_module("torchvision")
        except (ImportError, RuntimeError):
            # gossipy imports it for its image data, without declaring it; nothing here uses it.
            sys.modules["torchvision"] = ModuleType("torchvision")
        try:
            importlib.import_module("gossipy.simul")
        except ImportError as error:
            return f"gossipy does not import: {error}"
        logging.getLogger().setLevel(logging.WARNING)  # importing it makes every package talk
        return None

    def task(self) -> Task:
        return normalised(self.loop, NODES, STEP)[0]

    def prepare(self) -> None:
        import torch
        from gossipy import set_seed
        from gossipy.core import AntiEntropyProtocol, CreateModelMode, StaticP2PNetwork
        from gossipy.data import DataDispatcher
        from gossipy.data.handler import ClassificationDataHandler
        from gossipy.flow_control import SimpleTokenAccount
        from gossipy.model.handler import AdaLineHandler
        from gossipy.model.nn import AdaLine
        from gossipy.node import GossipNode
        from gossipy.simul import GossipSimulator, SimulationEventReceiver, TokenizedGossipSimulator
        from scipy.sparse import csr_matrix

        class Count(SimulationEventReceiver):
            """Nothing is dropped, so each message that is sent is one update."""

            messages = 0

            def update_message(self, failed, msg=None):
                self.messages += not failed

            def update_evaluation(self, *arguments):
                pass

            def update_timestep(self, t):
                pass

            def update_end(self):
                pass

        set_seed(0)
        task, features, targets = normalised(self.loop, NODES, STEP)
        samples = [torch.tensor(values, dtype=torch.float32) for values in (features, targets)]
        # Its handler for regression returns no data; the one for classification takes real targets as they are.
        dispatcher = DataDispatcher(
            ClassificationDataHandler(*samples, test_size=0), n=NODES, eval_on_user=False, auto_assign=False
        )
        dispatcher.set_assignments([[node] for node in range(NODES)], None)
        network = StaticP2PNetwork(NODES, csr_matrix(task.kernel.graph.adjacency()))
        learner = AdaLineHandler(AdaLine(task.problem.dim), STEP, CreateModelMode[self.mode])
        self.nodes = GossipNode.generate(dispatcher, network, learner, round_len=1, sync=True)
        common = (self.nodes, dispatcher)
        options = {"delta": 1, "protocol": AntiEntropyProtocol.PUSH}
        if self.tokens:
            account = {"token_account": SimpleTokenAccount(1), "utility_fun": lambda ours, theirs, message: 1}
            self.simulator = TokenizedGossipSimulator(*common, **account, **options)
        else:
            self.simulator = GossipSimulator(*common, **options)
        self.count = Count()
        self.simulator.add_receiver(self.count)
        self.simulator.init_nodes()

    def run(self, updates: int) -> tuple[int, float]:
        before, problem = self.count.messages, self.task().problem
        self.simulator.start(updates // NODES)
        models = np.array([node.model_handler.model.model.numpy() for node in self.nodes.values()])
        error = float(((problem.features @ models.T - problem.targets[:, None]) ** 2).mean())
        return self.count.messages - before, error


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """Both modes, and tokens."""
    return [GossipyPush("UPDATE"), GossipyPush("MERGE_UPDATE"), GossipyPush("UPDATE", tokens=True)]
