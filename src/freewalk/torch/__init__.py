"""PyTorch models: any `torch.nn.Module`, loss and optimizer, on data distributed over the nodes.

Needs the extra `torch`: pip install ".[torch]". Only this folder and `runtimes/torch/` import PyTorch; `specs/`
describes the same parts without it, and a test compares the two.

- `objective.py`: `TorchObjective`, an objective whose x is one row of numbers: the trained parameters of a module, then
  its buffers. States, rules, exchanges and records handle only such rows; `layout.py` says what is where in a row.
- `samples.py` holds the data of all nodes. `gradients.py` computes gradients, row by row or in one batch, which is used
  only if a trial gives the same up to rounding. `evaluation.py` measures losses and metrics.
- `importance.py` estimates how important nodes are; it is expensive, so only on request.
- `optimizer.py`: a torch optimizer as a rule, whose vectors are its state. `models.py`: small modules,
  and models in files.

A module is code, and no record holds code: a record keeps a fingerprint, and to resume you pass the objective again.
"""

from freewalk.errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise MissingExtra("torch", "torch") from None

from freewalk.torch import models
from freewalk.torch.evaluation import accuracy
from freewalk.torch.importance import Importance
from freewalk.torch.models import load_state, save_state
from freewalk.torch.objective import TorchObjective
from freewalk.torch.optimizer import Optimizer

__all__ = ["Importance", "Optimizer", "TorchObjective", "accuracy", "load_state", "models", "save_state"]
