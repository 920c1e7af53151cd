"""Any PyTorch optimizer as a rule: its state travels with the model, stays at the nodes or is reset."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import torch

from freewalk.checks import without_addresses
from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError
from freewalk.objectives import Objective
from freewalk.rules.rule import Rule, check, check_options
from freewalk.schedules import Schedule

OTHERS = "others"  # vectors for state that does not have the shape of a parameter, such as step counts


@dataclass(frozen=True)
class Slot:
    """The location of one tensor of an optimizer's state: its vector, its range there, and its shape."""

    parameter: int
    key: str
    vector: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Optimizer(Rule):
    """One step of a PyTorch optimizer per visit, with the gradient of the node times its weight.

    Parameters
    ----------
    factory
        The name of a class in `torch.optim`, such as "Adam", or a function that creates an optimizer from a list of
        parameters, such as `functools.partial(torch.optim.Adam, lr=1e-3)`.
    options
        Its options, such as {"lr": 1e-3}.
    state
        What happens to the optimizer's state, such as momenta. "travels": it is sent with the model and counted in its
        bytes. "stays": each node keeps a state for each token. "resets": each visit starts without one.
    step
        A factor for all learning rates: a number or a schedule.
    weighted
        Whether gradients are multiplied by the weights 1 / (n · target_v) of the kernel. Optimizers that normalise
        gradients, such as Adam, partly undo that.
    local_steps
        The number of steps at a node before the model moves on.

    Notes
    -----
    It needs the runtime `torch`. A record can be resumed from a file if the factory is a name; otherwise pass the rule
    to `fw.resume` again.

    Examples
    --------
    >>> Optimizer("Adam", {"lr": 1e-3}, state="stays").state
    'stays'
    """

    runs_on: ClassVar[str] = "torch"  # type: ignore[misc]

    factory: str | Callable[[list[Any]], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    state: Literal["travels", "stays", "resets"] = "travels"
    step: float | Schedule = 1.0
    weighted: bool = True
    local_steps: int = 1
    slots: tuple[Slot, ...] = field(default=(), repr=False)  # filled in by `fitted`

    def __post_init__(self) -> None:
        check_options(self)
        check.choice("Optimizer", "state", self.state, ("travels", "stays", "resets"))
        check.instance("Optimizer", "options", self.options, Mapping, 'a mapping such as {"lr": 1e-3}')
        if isinstance(self.factory, str):
            names = [name for name, kind in vars(torch.optim).items() if _is_optimizer(kind)]
            check.choice("Optimizer", "factory", self.factory, names)
        elif not callable(self.factory):
            expected = 'the name of a class in torch.optim, such as "Adam", or a function of a list of parameters'
            raise check.fail("Optimizer", "factory", self.factory, expected)
        self.make([torch.nn.Parameter(torch.zeros(1, 1))])

    def make(self, parameters: list[Any]) -> Any:
        """An optimizer of these parameters."""
        maker = getattr(torch.optim, self.factory) if isinstance(self.factory, str) else self.factory
        with check.attempt(f"Optimizer: {self._name} cannot be made"):
            made = maker(parameters, **self.options)
        if not isinstance(made, torch.optim.Optimizer) or isinstance(made, torch.optim.LBFGS):
            raise check.fail("Optimizer", "factory", made, "a torch.optim.Optimizer that takes one gradient per step")
        return made

    @property
    def _name(self) -> str:
        return without_addresses(str(self.factory))

    def __repr__(self) -> str:
        """The rule as it is written, with functions by name."""
        shown = (one.name for one in fields(self) if one.repr)
        return without_addresses(f"Optimizer({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})")

    @property
    def stored(self) -> bool:  # type: ignore[override]
        """Whether a record can store it: if the factory is a name."""
        return isinstance(self.factory, str)

    @property
    def vectors(self) -> tuple[str, ...]:
        """The vectors of its state, by name."""
        return tuple(dict.fromkeys([OTHERS, *(slot.vector for slot in self.slots)])) if self.slots else ()

    @property
    def carries(self) -> tuple[str, ...]:  # type: ignore[override]
        """The vectors of its state, if they travel."""
        return self.vectors if self.state == "travels" else ()

    @property
    def stores(self) -> tuple[str, ...]:  # type: ignore[override]
        """The vectors of its state, if they stay."""
        return self.vectors if self.state == "stays" else ()

    @property
    def update(self) -> Callable[..., Any]:
        """Not available: the learner calls the optimizer."""
        raise NotImplementedError("an Optimizer has no update: the runtime 'torch' calls it")

    def sent(self, objective: Objective) -> int:
        """The number of floats sent with the model: the state, and a flag for its presence."""
        if self.state != "travels" or not self.slots:
            return 0
        return 1 + sum(slot.size for slot in self.slots)

    def fitted(self, objective: Objective, kernel: Kernel) -> Optimizer:
        """The rule with the layout of its optimizer's state, found by trying one step."""
        from freewalk.torch.objective import TorchObjective

        if not isinstance(objective, TorchObjective):
            given, expected = type(objective).__name__, "a freewalk.torch.TorchObjective"
            raise FreewalkError(f"Optimizer: {given} has no torch module, expected {expected}; use one of fw.rules")
        if self.state == "resets":
            return self
        layout = objective.layout
        parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in layout.shapes[: len(layout.parameters)]]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer = self.make(parameters)
        with check.attempt(f"Optimizer: {self._name} fails in a step"):
            optimizer.step()
        starts = [0, *layout.ends]
        # The first element of the others tells whether there is a state. A very small model needs several such vectors.
        slots, others, name, count = list[Slot](), 1, OTHERS, 1
        for place, parameter in enumerate(parameters):
            for key, value in optimizer.state.get(parameter, {}).items():
                if value is None:
                    continue
                if not isinstance(value, (torch.Tensor, int, float)):
                    what = f"{self._name} keeps a {type(value).__name__} {key!r}"
                    raise FreewalkError(f'Optimizer: {what}, expected tensors and numbers; use state="resets"')
                shape = tuple(value.shape) if isinstance(value, torch.Tensor) else ()
                if shape == layout.shapes[place]:
                    slots.append(Slot(place, key, f"state {key}", starts[place], shape))
                    continue
                size = math.prod(shape)
                if size > objective.dim:
                    what = f"{self._name} keeps {size:,} numbers in {key!r}"
                    raise FreewalkError(f'Optimizer: {what}, more than the model has; use state="resets"')
                if others + size > objective.dim:
                    count, others = count + 1, 0
                    name = f"{OTHERS} {count}"
                slots.append(Slot(place, key, name, others, shape))
                others += size
        return replace(self, slots=tuple(slots))


def _is_optimizer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer


class Stepper:
    """One optimizer, whose state is loaded for each row that it works on."""

    def __init__(self, rule: Optimizer, parameters: list[Any]) -> None:
        self.rule, self.parameters = rule, parameters
        self.optimizer = rule.make(parameters)
        self.eager = bool(self.optimizer.state)  # it makes its state at once, others in their first step
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.words = f"Optimizer: {rule._name} fails in a step"
        self.places = {name: index for index, name in enumerate(rule.vectors)}

    def visit(self, vectors: Sequence[torch.Tensor], gradients: Iterable[Sequence[torch.Tensor]], rate: float) -> None:
        """One step per gradient, with learning rates multiplied by `rate`, and with the state in these vectors."""
        begun = self.rule.slots and float(vectors[self.places[OTHERS]][0]) != 0.0
        self.optimizer.state.clear()
        for state, key, view in self._slots(vectors) if begun else ():
            state[key] = view
        for gradient in gradients:
            for parameter, part in zip(self.parameters, gradient, strict=True):
                parameter.grad = part
            if self.eager and not self.optimizer.state:  # only now do the parameters have their shapes
                self.optimizer.state.update(self.rule.make(self.parameters).state)
            for group, own in zip(self.optimizer.param_groups, self.rates, strict=True):
                group["lr"] = own * rate
            with torch.no_grad(), check.attempt(self.words):
                self.optimizer.step()
            for parameter in self.parameters:
                parameter.grad = None
        for state, key, view in self._slots(vectors):
            value = state.get(key)
            if value is not None and not (isinstance(value, torch.Tensor) and value.data_ptr() == view.data_ptr()):
                view.copy_(torch.as_tensor(value))  # it was not written in place
        if self.rule.slots:
            vectors[self.places[OTHERS]][0] = 1.0

    def _slots(self, vectors: Sequence[torch.Tensor]) -> Iterator[tuple[dict[str, Any], str, torch.Tensor]]:
        """Each slot: the state of its parameter, its key there, and its place in these vectors."""
        for slot in self.rule.slots:
            view = vectors[self.places[slot.vector]][slot.start : slot.start + slot.size].view(slot.shape)
            yield self.optimizer.state[self.parameters[slot.parameter]], slot.key, view
