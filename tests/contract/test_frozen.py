"""What was once written down stays as it is: integers to the bit, floats within rounding."""

import frozen
import numpy as np
import pytest

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


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_frozen_run(number):
    digest, vector = CASES[NAMES[number]]()
    assert digest == DIGESTS[number]
    single = "float32" in NAMES[number]
    np.testing.assert_allclose(vector, VECTORS[number], rtol=1e-5 if single else 1e-12, atol=1e-5 if single else 1e-12)
