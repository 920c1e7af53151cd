"""PyTorch models: any `torch.nn.Module`, loss and optimizer, on data distributed over the nodes.

Needs the extra `torch`: pip install "freewalk[torch]". Nothing else in freewalk imports PyTorch.
"""

from freewalk.errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise MissingExtra("torch", "torch") from None

from freewalk.torch import models
from freewalk.torch.evaluation import accuracy
from freewalk.torch.files import load_state, save_state
from freewalk.torch.importance import Importance
from freewalk.torch.objective import TorchObjective
from freewalk.torch.optimizer import Optimizer

__all__ = ["Importance", "Optimizer", "TorchObjective", "accuracy", "load_state", "models", "save_state"]
