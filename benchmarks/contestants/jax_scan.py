"""JAX: `lax.scan` over the steps, `vmap` over the walks, one jitted program."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from contestants.contestant import ALL_CORES, Contestant, missing
from contestants.task import DESIGN, Task, least_squares

BLOCK = 20


class JaxScan(Contestant):
    """The law by a table of neighbours, padded to the largest degree; four draws a step.

    The draws of a block of steps are one batch for all walks: drawn step by step they take longer.
    """

    cores = ALL_CORES
    does = "no counts, no checkpoints"

    def __init__(self, kind: str, precision: str, walks: int, steps: int) -> None:
        self.name = f"JAX scan + vmap, {kind}, {precision}"
        self.loop, self.precision, self.walks, self.updates = kind, precision, walks, walks * steps

    def available(self) -> str | None:
        return missing("jax")

    def task(self) -> Task:
        return least_squares(self.loop)

    def prepare(self) -> None:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        task = self.task()
        problem, graph = task.problem, task.kernel.graph
        padded = np.zeros((graph.n, int(graph.degrees.max())), np.int32)
        for node in range(graph.n):
            padded[node, : graph.degrees[node]] = graph.neighbours(node)
        neighbours, degrees = jnp.asarray(padded), jnp.asarray(graph.degrees, jnp.float32)
        score = jnp.asarray(problem.smoothness / graph.degrees, jnp.float32)
        features = jnp.asarray(problem.features, self.precision)
        targets = jnp.asarray(problem.targets, self.precision)
        rates = jnp.asarray(task.rates(), self.precision)
        jump = DESIGN.jump

        def hop(node, u):
            return neighbours[node, (u * degrees[node]).astype(jnp.int32)]

        def step(x, node, u):
            a = features[node]
            x = x - rates[node] * (a @ x - targets[node]) * a
            first = hop(node, u[1])
            second = hop(first, u[2])
            third = hop(second, u[3])
            # One draw decides between the moves: below `jump` it is a jump, and how far below says how long.
            jumped = jnp.where(u[0] < jump * 4 / 7, first, jnp.where(u[0] < jump * 6 / 7, second, third))
            moved = jnp.where(u[2] * score[node] < score[first], first, node)
            return x, jnp.where(u[0] < jump, jumped, moved)

        def together(carry, draws):
            return jax.vmap(step)(*carry, draws), None

        def block(carry, key):
            return jax.lax.scan(together, carry, jax.random.uniform(key, (BLOCK, self.walks, 4), jnp.float32))[0], None

        @partial(jax.jit, static_argnums=1)
        def walk(key, steps):
            begin = jnp.zeros((self.walks, problem.dim), self.precision), jnp.zeros(self.walks, jnp.int32)
            return jax.lax.scan(block, begin, jax.random.split(key, steps // BLOCK))[0][0]

        self.walk, self.key = walk, jax.random.key(7)

    def run(self, updates: int) -> tuple[int, float]:
        steps = updates // self.walks // BLOCK * BLOCK
        models = np.asarray(self.walk(self.key, steps))
        problem = self.task().problem
        return steps * self.walks, float(((problem.features @ models.T - problem.targets[:, None]) ** 2).mean())


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """Both graphs in float64, the ring in float32."""
    cases = [("ring", "float64"), ("ring", "float32"), ("Watts–Strogatz", "float64")]
    return [JaxScan(kind, precision, walks, steps // 4) for kind, precision in cases]
