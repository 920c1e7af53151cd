"""Exact learning of least squares: expected errors along a run, in the limit, and for a race between designs.

With e = x − x*, the moments (p, m, S) by node follow a linear recursion, so nothing is drawn and nothing is estimated.

- `model.py`: `Quadratic`, a problem around its optimum, and the checks of what has such a recursion.
- `moments.py`: the recursion as scalar code, compiled like the runtimes. `learn` maps the moments of a node by its
  update, `learn_together` those of 32 nodes side by side, `spread_rows` moves them along the edges, hop by hop,
  and `turn` those of pairs of nodes, if a walk remembers the last one.
- `recursion.py`: `Update`, the compiled steps, for everything below; `Recursion`, one step as a linear map.
- `curve.py`: `exact_curve` runs the phases, block by block. `groups.py` decides how several tokens depend on each
  other, or refuses, and has the moments of those that mix.
- `limits.py`: the fixed point of the map (by BiCGSTAB, preconditioned by (I − decay · Pᵀ)⁻¹) and the step at which its
  spectral radius is 1 (`stability_limit`). `tokens.py`: `steady_state`, for one token or several: for gossip it is the
  first-moment system of a walk by Wᵀ, for an average a small linear map. `small_step.py` is the limit of small steps.
- `race.py`: steps that settle at a wanted error, and the updates that a design then needs.
"""
