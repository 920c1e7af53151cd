"""Sweep over the jump probability on a Ray cluster; without one, Ray starts on this machine.

Needs `pip install ".[ray]"`. Writes jumps.toml, the spec, and the results into the folder `jumps`; run
it again and it computes nothing twice. Prints the error after 4000 updates for each jump probability,
averaged over two draws of the data.
"""

from pathlib import Path

import freewalk as fw

SPEC = """
name = "jumps"

[sweep]
"walk.MHLJ.design.jump" = [0.02, 0.1, 0.5]
"problem.seed" = [1, 2]

[graph]
kind = "ring"
n = 200

[problem]
kind = "LeastSquares"
dim = 5
heavy = 2

[run]
steps = 4000
walks = 50
every = 1000
start = "heaviest"

[[walk]]
label = "MHLJ"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }
rule = { kind = "SGD", step = 1e-3 }
"""

if __name__ == "__main__":
    Path("jumps.toml").write_text(SPEC)
    data = fw.sweep("jumps.toml", folder="jumps", on="ray", walks="mean")
    final = data.mse.sel(design="MHLJ").isel(step=-1).mean("problem.seed")
    for jump in final["walk.MHLJ.design.jump"].values:
        print(f"jump {jump:4}: error {float(final.sel({'walk.MHLJ.design.jump': jump})):.4f}")
