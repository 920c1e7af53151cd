"""An objective made of any PyTorch module, any loss and one dataset per node."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.blocks import read_only
from freewalk.checks import without_addresses
from freewalk.errors import ProblemError
from freewalk.graphs import Graph
from freewalk.objectives import Objective
from freewalk.objectives.objective import Share
from freewalk.objectives.samples import Nodes
from freewalk.torch.evaluation import Evaluation, Loss, Metric, checked_loss, checked_metrics, chosen, name_of
from freewalk.torch.gradients import Looped, is_random, learn_and_measure, learn_from_one
from freewalk.torch.importance import KINDS, Importance, estimate
from freewalk.torch.layout import Layout, redrawn, reset_of
from freewalk.torch.models import save_state
from freewalk.torch.samples import NodeSamples, Some, check, digest_of, gathered

_CPU = torch.device("cpu")


class TorchObjective(Objective):
    """f(x) = (1/n) Σ_v c_v · loss(module(inputs of v), targets of v), where x are the parameters of a PyTorch module.

    The module and the datasets are not modified: walks work on copies of the parameters. A model consists of the
    trained parameters (`requires_grad`) and the buffers of the state_dict, such as the statistics of a batch norm:
    visits update them from the node's own data, exchanges average them, and messages contain them.

    Parameters
    ----------
    module
        Any `torch.nn.Module`. Its current parameters are the initial model of every walk and every design, unless
        `redraw` is set.
    loss
        A function loss(outputs, targets) that returns a scalar tensor, usually a mean over samples: a function or
        module of PyTorch, your own function, or the name of one in `torch.nn.functional`, such as "cross_entropy".
    datasets
        One dataset per node: a pair (inputs, targets) of arrays or tensors, a `TensorDataset`, a `freewalk.data`
        dataset, or any dataset of pairs with a length, whose samples are fetched when needed. None or an empty dataset
        means a node without data, which must be listed in `relays`.
    test
        A dataset on which to measure `test_loss` and the metrics; without it, metrics use the samples of the nodes.
    metrics
        Functions metric(outputs, targets) that return a number, by name. Default: "accuracy" if the targets are
        classes, that is, integers.
    batch
        The number of samples per gradient, drawn without replacement at each visit. Default: all samples of the node.
    importance
        The values of `smoothness`, which designs use as importance: "smoothness" (the largest curvature of f_v, by
        Lanczos iteration), "gradient" (the norm of ∇f_v) or "size" (the number of samples), at the initial model, or
        one number per node. Estimated on first use; `importance.gradients` counts the cost.
    weight_by, relays, graph
        As for `Predictor`: whether nodes or samples have equal weight, the nodes without data, and the graph or the
        names of its nodes.
    measure_on
        The maximum number of samples on which the loss is computed, and the same for the test measures. If there are
        more, a fixed subset of about this size is used, in proportion at every node; see `measured_on`.
    redraw
        Draw an initial model for each walk with the layers' `reset_parameters`, from the seed of the run and the number
        of the walk.
    rising
        Your own metrics for which higher is better; "accuracy" is always included.
    primary
        The measure that reports show. Default: the first metric, else the loss.
    heavy
        The heavy nodes, if known.

    Raises
    ------
    ProblemError
        If the parts do not fit together; the message names the node.

    Examples
    --------
    >>> import freewalk as fw
    >>> from freewalk.torch import TorchObjective
    >>> inputs, targets = torch.randn(40, 3), torch.arange(40) % 2
    >>> nodes = [(inputs[v : v + 10], targets[v : v + 10]) for v in range(0, 40, 10)]
    >>> objective = TorchObjective(torch.nn.Linear(3, 2), "cross_entropy", nodes, batch=5)
    >>> objective
    TorchObjective(Linear, n=4, parameters=8, samples=40, batch=5)
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(4), objective.smoothness)
    >>> record = fw.learn(objective, kernel, fw.SGD(step=0.1), steps=100, every=50)
    >>> sorted(set(record.data) & {"loss", "accuracy"}), record.provenance["runtime"]
    (['accuracy', 'loss'], "Torch(device='cpu', vectorize=None)")
    """

    runtime = "torch"
    stored = False
    sizes: NDArray[np.int64]  #: The number of samples of each node.
    offsets: NDArray[np.int64]  #: The samples of node v are those with the numbers offsets[v] to offsets[v + 1] − 1.
    count: int  #: The total number of samples.

    def __init__(
        self,
        module: Any,
        loss: Loss | str,
        datasets: Sequence[Any],
        *,
        test: Any = None,
        metrics: Mapping[str, Metric] | None = None,
        batch: int | None = None,
        importance: str | ArrayLike = "smoothness",
        weight_by: Literal["node", "sample"] = "node",
        relays: Any = (),
        graph: Graph | Sequence[str] | None = None,
        measure_on: int = 10_000,
        redraw: bool = False,
        rising: Sequence[str] = (),
        primary: str | None = None,
        heavy: Sequence[int] = (),
    ) -> None:
        who = "TorchObjective"
        self.layout = Layout.of(who, module)
        self.module = module
        self.loss_function = checked_loss(who, loss)
        remedy = "dataset.by_node(partition) makes one"
        listed = check.items(who, "datasets", datasets, "a list with one dataset per node", remedy=remedy)
        nodes = Nodes.of(who, graph)
        if nodes.n is not None and len(listed) != nodes.n:
            raise ProblemError(f"{who}: got {len(listed)} datasets for {nodes.n} nodes, expected one for each")
        self._samples = samples = gathered(who, listed)
        self.sizes, self.offsets, self.count = samples.sizes, samples.offsets, samples.count
        if not self.count:
            raise ProblemError(f"{who}: no node has data, expected at least one sample")
        owners = np.repeat(np.arange(len(listed)), self.sizes)
        known, self.relays = Nodes(who, len(listed), nodes.names).relays(relays, owners)
        self.node_names, self.heavy = nodes.names, known.members("heavy", heavy)
        self.weight_by = check.choice(who, "weight_by", weight_by, ("node", "sample"))
        self.batch = None if batch is None else check.whole(who, "batch", batch, 1, rng.WORDS)
        self.redraw = check.flag(who, "redraw", redraw)
        self.measure_on = check.whole(who, "measure_on", measure_on, 1)
        self.test = None if test is None else gathered(who, [test])
        if self.test is not None and not self.test.count:
            raise ProblemError(f"{who}: test has no samples, expected some; leave it out to measure on the nodes' own")
        self.metrics = checked_metrics(who, metrics, self.one_sample()[1])
        extra = () if self.test is None else ("test_loss",)
        self.measures = ("loss", *extra, *self.metrics)
        higher = check.items(who, "rising", rising, "a list of names of metrics")
        for name in higher:
            if not isinstance(name, str) or name not in (*self.metrics, "accuracy"):
                raise check.fail(who, "rising", name, f"metrics: {', '.join(self.metrics) or 'there are none'}")
        self.rising = tuple(name for name in self.metrics if name in (*higher, "accuracy"))
        first = next(iter(self.metrics), "loss")
        self.primary = first if primary is None else check.choice(who, "primary", primary, self.measures)
        kinds = {part.dtype for part in module.parameters() if part.requires_grad}
        self.precision = "float64" if torch.float64 in kinds else "float32"
        if self.redraw and not any(map(reset_of, module.modules())):
            lacking = f"no layer of {type(module).__name__} has a method reset_parameters"
            raise ProblemError(f"{who}: redraw=True, but {lacking}; add one, or pass initial models as initial=")
        self._importance = self._checked_importance(who, importance)
        self._evaluations: dict[torch.dtype, Evaluation] = {}
        self._cast: dict[tuple[torch.dtype, torch.device], NodeSamples] = {}

    def _checked_importance(self, who: str, importance: Any) -> str | Importance:
        if isinstance(importance, str):
            return check.choice(who, "importance", importance, KINDS)
        remedy = f"or one of {', '.join(KINDS)}"
        values = check.floats(who, "importance", importance, (self.n,), positive=True, remedy=remedy)
        return Importance("given", read_only(values), 0)

    def __repr__(self) -> str:
        """A summary of the module and its data."""
        buffers = self.layout.size - self.layout.trained
        parts = [type(self.module).__name__, f"n={self.n}", f"parameters={self.layout.trained}"]
        parts += [f"buffers={buffers}"] * bool(buffers) + [f"samples={self.count}"]
        parts += [f"batch={self.batch}"] * (self.batch is not None)
        parts += [f"weight_by={self.weight_by!r}"] * (self.weight_by != "node")
        parts += [f"relays={self.relays}"] * bool(self.relays)
        return f"TorchObjective({', '.join(parts)})"

    # Its parts.

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.sizes)

    @property
    def dim(self) -> int:
        """The size of a model: the trained parameters, then the buffers."""
        return self.layout.size

    @property
    def trained(self) -> int:
        """The number of trained parameters."""
        return self.layout.trained

    def numbers(self, node: int) -> torch.Tensor:
        """The numbers of the samples of a node."""
        place = check.whole("TorchObjective", "node", node, 0, self.n - 1)
        return torch.arange(int(self.offsets[place]), int(self.offsets[place + 1]))

    def samples(self, node: int) -> int:
        """Return the number of samples of a node; 0 at a relay."""
        return len(self.numbers(node))

    def one_sample(self) -> tuple[Any, Any]:
        """Inputs and targets of the first sample, as a batch of one."""
        return self._samples.fetch(torch.arange(1))

    def samples_on(self, dtype: torch.dtype, device: torch.device) -> NodeSamples:
        """The samples on a device, in a type; moved only once."""
        key = dtype, device
        if key not in self._cast:
            self._cast[key] = self._samples.to(dtype, device)
        return self._cast[key]

    @cached_property
    def node_weights(self) -> NDArray[np.float64]:
        """The weights c_v of the nodes; they add up to n and are 0 at relays."""
        if self.weight_by == "sample":
            return read_only(self.n * self.sizes / self.count)
        owning = self.sizes > 0
        return read_only(np.where(owning, self.n / owning.sum(), 0.0))

    @cached_property
    def measured_samples(self) -> list[NDArray[np.int64]]:
        """The samples of each node on which the loss is measured."""
        return chosen(self.sizes, self.measure_on)

    @cached_property
    def test_numbers(self) -> torch.Tensor:
        """The samples of the test set on which models are measured."""
        sizes = np.zeros(1, dtype=np.int64) if self.test is None else self.test.sizes
        return torch.as_tensor(chosen(sizes, self.measure_on)[0])

    @property
    def measured_on(self) -> dict[str, str]:
        """For each measure, the number of samples used and available."""
        own = f"{sum(map(len, self.measured_samples)):,} of {self.count:,} samples of the nodes"
        other = own if self.test is None else f"{len(self.test_numbers):,} of {self.test.count:,} samples of a test set"
        return {name: own if name == "loss" else other for name in self.measures}

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of structure and data, which must match when a run is resumed."""
        parts = [repr(self), repr(self.layout), self._samples.digest(), repr(self.measures), str(self.measure_on)]
        parts += ["" if self.test is None else self.test.digest(), name_of(self.loss_function)]
        parts += [without_addresses(repr(self.module))]
        fixed = dict((*self.module.named_parameters(), *self.module.named_buffers()))
        parts += [f"{name} {digest_of(fixed[name])}" for name in fixed if name not in set(self.layout.names)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def story(self) -> dict[str, Any]:
        """Return the numbers of measured samples, the importance and its cost, and the version of PyTorch."""
        found: dict[str, Any] = {"measured_on": self.measured_on, "torch": torch.__version__}
        if isinstance(self._importance, Importance):  # else it was never needed
            found["importance"] = {"kind": self._importance.kind, "gradients": self._importance.gradients}
        return found

    # Importance.

    @property
    def importance(self) -> Importance:
        """The importance of the nodes at the initial model, how it was estimated, and the cost."""
        if isinstance(self._importance, str):
            self._importance = self.estimate(self._importance)
        return self._importance

    @property
    def smoothness(self) -> NDArray[np.float64]:
        """The importance that designs use: the constants L_v, or what `importance` specifies."""
        return self.importance.values

    @property
    def known_smoothness(self) -> NDArray[np.float64] | None:
        """`smoothness`, if it was given or already estimated."""
        return self._importance.values if isinstance(self._importance, Importance) else None

    def estimate(self, kind: str, model: ArrayLike | None = None, **options: Any) -> Importance:
        """Estimate the importance of all nodes at a model. Default: the initial model.

        Between the phases of a run, this gives the importance for the next kernel, which then does not change. The
        estimate of "smoothness" takes a relative `tolerance` (1e-3) and at `most` this many Lanczos steps (200).
        """
        check.choice("estimate", "kind", kind, KINDS)
        row = self._row(self.first_model() if model is None else model)
        return estimate(self, kind, row, **options)

    # Models.

    def first_model(self) -> NDArray[np.floating[Any]]:
        """The parameters and buffers of the module as one row."""
        return self.layout.flat(dict(self.module.state_dict(keep_vars=True)), self.precision)

    def initial(self, walks: int, seed: int) -> NDArray[np.floating[Any]]:
        """Return the initial models: the module's own parameters or, with `redraw`, drawn for each walk."""
        if not self.redraw:
            return self.first_model()
        words = [rng.words_of_use(seed, rng.INITIAL, walk, 0, 1)[0] >> np.uint64(1) for walk in range(walks)]
        return np.stack([redrawn(self.module, self.layout, self.first_model(), int(word)) for word in words])

    def named(self, model: ArrayLike) -> dict[str, NDArray[Any]]:
        """The parameters and buffers of a model as arrays, by their names in the state_dict."""
        return self.layout.named(self._row(model).numpy())

    def state_dict(self, model: ArrayLike) -> dict[str, torch.Tensor]:
        """The complete state_dict of the module for a model, including what is not sent."""
        state = self.module.state_dict()
        own = {n: part.detach().clone() if isinstance(part, torch.Tensor) else part for n, part in state.items()}
        kept = self.module.state_dict(keep_vars=True).items()
        tied = {name: part for name, part in kept if name not in self.layout.names}
        found = {name: torch.as_tensor(part.copy()) for name, part in self.named(model).items()}
        first = {id(part): name for name, part in (*self.module.named_parameters(), *self.module.named_buffers())}
        shared = {name: found[first[id(part)]] for name, part in tied.items() if first.get(id(part)) in found}
        return own | {name: part.to(own[name].dtype) for name, part in (found | shared).items()}

    def module_with(self, model: ArrayLike) -> Any:
        """A copy of the module with the parameters of a model, in evaluation mode."""
        module = copy.deepcopy(self.module)
        module.load_state_dict(self.state_dict(model))
        return module.eval()

    def save_model(self, model: ArrayLike, path: str | Path) -> Path:
        """Write a model to a file: named arrays as .safetensors, or a PyTorch state_dict as .pt or .pth."""
        return save_state(self.state_dict(model), path)

    # The interface of an objective.

    @contextmanager
    def _evaluation(self, x: ArrayLike) -> Iterator[tuple[Evaluation, torch.Tensor]]:
        """What measures a model, and the model as a row, which is released afterwards."""
        row = self._row(x)
        if row.dtype not in self._evaluations:
            self._evaluations[row.dtype] = Evaluation(self, row.dtype, _CPU)
        try:
            yield self._evaluations[row.dtype], row
        finally:
            self._evaluations[row.dtype].worker.release()

    def _row(self, x: ArrayLike) -> torch.Tensor:
        """A model as a tensor of the same type."""
        array = check.array("TorchObjective", "the model", x, "real numbers")
        kind = array.dtype if array.dtype in (np.dtype("float32"), np.dtype("float64")) else np.dtype("float64")
        if array.shape != (self.dim,):
            raise ProblemError(f"TorchObjective: the model has shape {array.shape}, expected ({self.dim},)")
        array = np.ascontiguousarray(array, dtype=kind)
        return torch.from_numpy(array if array.flags.writeable else array.copy())

    def views(self, row: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of a row, with copies of the buffers, which a gradient may change."""
        views, count = self.layout.views(row), len(self.layout.parameters)
        return [*views[:count], *(view.clone() for view in views[count:])]

    def measure(self, x: ArrayLike) -> Mapping[str, float]:
        """Return all measures of a model, by name."""
        with self._evaluation(x) as (evaluation, row):
            return evaluation.of_row(row)

    def on(self, features: ArrayLike, targets: ArrayLike) -> TorchObjective:
        """Return the same module and loss on other samples, which belong to one node and are reshaped to fit."""
        with check.attempt("TorchObjective: features and targets do not fit the module's own"):
            pair = [torch.as_tensor(np.array(part)) for part in (features, targets)]
            for place, own in enumerate(self._samples.tensors or ()):
                if pair[place][:1].numel() == own[:1].numel():
                    pair[place] = pair[place].reshape(-1, *own.shape[1:])
                pair[place] = pair[place].to(own.dtype)
        return self._with(tuple(pair), measure_on=self.measure_on, rising=self.rising)

    def _with(self, samples: Any, **options: Any) -> TorchObjective:
        """The same module and loss on the samples of one node."""
        options |= {"metrics": self.metrics, "importance": np.ones(1)}
        return TorchObjective(self.module, self.loss_function, [samples], **options)

    def loss(self, x: ArrayLike) -> float:
        """Return f(x) on the measured samples."""
        return float(self.losses(x).mean())

    def losses(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return f_v(x) for each node, on the measured samples."""
        with self._evaluation(x) as (evaluation, row):
            return evaluation.losses(row)

    def zero_loss(self) -> float:
        """Return NaN: the model whose parameters are all zero has no special meaning."""
        return float("nan")

    def gradient(self, node: int, x: ArrayLike, sample: int | NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Return ∇f_v(x), with zeros for the buffers; if samples are given by number, for these only."""
        row, numbers = self._row(x), self.numbers(node)
        if sample is not None:
            high = len(numbers) - 1
            numbers = numbers[check.integers("TorchObjective", "sample", sample, None, low=0, high=high).reshape(-1)]
        looped = Looped(self, row.dtype, _CPU)
        with looped.undisturbed():
            parts = looped.gradient(self.views(row), numbers, float(self.node_weights[node]), 0)
        result = np.zeros(self.dim)
        result[: self.trained] = torch.cat([part.reshape(-1) for part in parts]).double().numpy()
        return result

    def local(self, node: int) -> Share:
        """Return the share of one node: an objective with its samples only."""
        samples, numbers = self._samples, self.numbers(node)
        if not len(numbers):
            return Share(self, node, node, 0.0)
        own = samples.fetch(numbers) if samples.tensors is not None else Some(samples, numbers)
        return Share(self._with(own, batch=self.batch), node, 0, float(self.node_weights[node]))

    def admit(self, model: NDArray[np.floating[Any]]) -> None:
        """Reject a module, a loss or metrics that do not fit the data, by trying them on an initial model."""
        learn_and_measure(self, self._row(model))

    def admit_single(self, precision: str) -> None:
        """Reject a module that cannot learn from a single sample, as `sampled` rules require."""
        learn_from_one(self, self._row(self.first_model().astype(precision)))

    @cached_property
    def random(self) -> bool:  # type: ignore[override]
        """Whether the module draws random numbers during training."""
        return is_random(self, self._row(self.first_model()))
