"""What was once written down stays as it is: integers to the bit, floats within rounding.

By its name it runs after `test_lessons.py`, which compiles the same code.
"""

import os

import frozen
import numpy as np
import pytest
from catalogue import LESSONS, LISTED_PROBLEMS, QUICK_LESSONS

with np.load(frozen.FILE) as file:
    NAMES, DIGESTS, VECTORS = (
        file["names"].tolist(),
        file["digests"].tolist(),
        np.split(file["floats"], file["ends"][:-1]),
    )
CASES = frozen.cases()


def test_every_frozen_run_is_still_there():
    assert len(NAMES) >= 300
    assert set(NAMES) <= set(CASES)


# In single precision each run is a compilation of its own, minutes in all: by default only those others compile too.
ALL = bool(os.environ.get("FREEWALK_ALL_FROZEN"))
TRIED = [
    number
    for number, name in enumerate(NAMES)
    if ALL or "float32" not in name or name.startswith("learn: LeastSquares by SGD,")
]


#: What no other quick test compiles.
PHASES = ("LeastSquares", "LeastSquares, pooled, relays")
COMPILED_HERE = (
    *(f"learn: {problem} by {rule}, cpu" for problem, rule in LESSONS if (problem, rule) not in QUICK_LESSONS),
    *(f"learn: LeastSquares by SGD, {kind}, cpu, seed 3, float32" for kind in ("average", "all at once")),
    *(f"phases: {problem}, cpu" for problem in LISTED_PROBLEMS if problem not in PHASES),
)


@pytest.mark.quick(*(NAMES[number] for number in TRIED if not NAMES[number].startswith(COMPILED_HERE)))
@pytest.mark.parametrize("number", TRIED, ids=[NAMES[number] for number in TRIED])
def test_a_frozen_run(number):
    digest, vector = CASES[NAMES[number]]()
    assert digest == DIGESTS[number]
    single = "float32" in NAMES[number]
    np.testing.assert_allclose(vector, VECTORS[number], rtol=1e-5 if single else 1e-12, atol=1e-5 if single else 1e-12)
