"""The types of arrays that the linear algebra of chains, and the analysis, is about."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Matrix: TypeAlias = csr_array
else:
    Matrix = Any  # scipy takes long to import

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Vectors = Callable[[Floats], Floats]
