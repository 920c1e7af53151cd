"""Compile plain Python functions into one module, cached on disk and never stale.

numba caches a function by its file and does not notice changes in other files. So the sources of all functions that
take part (the engine's step, an objective's slope, a rule's update) and the constants they use are put into one module
named by the hash of its text, and that module is compiled. Editing any of them gives another name, hence another
compilation; editing a comment does not. The text is never read from a file: only compiled code is kept, by
`freewalk.compiled.cache`.
"""

import ast
import copy
import dis
import hashlib
import inspect
import linecache
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from freewalk.checks import show
from freewalk.compiled.cache import cache_folder, keep
from freewalk.errors import FreewalkError

__all__ = [
    "CPU",
    "SIMULATOR",
    "Target",
    "Written",
    "address_of",
    "cache_folder",
    "compile_functions",
    "cuda_target",
    "module_source",
]

_PARSING = threading.Lock()
# Compiled functions do not allocate, so they need not count references to the arrays they receive, which would cost
# more than most of them do.
_OPTIONS = "nogil=True, error_model='numpy', _nrt=False"


class Written(str):
    """A function given as the text of its definition, for code that depends on the number of vectors of a rule."""


class Target(NamedTuple):
    """How the functions of a module are decorated, depending on their role, and the imports this needs."""

    entry: str
    call: str
    part: str
    imports: str
    cache: str = ""  # the class of numba's cache for the entry, if it can be cached


CPU = Target(
    entry=f"@numba.njit(pipeline_class=Vectorizing, no_cfunc_wrapper=True, {_OPTIONS})",
    call=f"@numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, {_OPTIONS})",
    # Always inlined: a call inside a loop prevents the compiler from using vector registers.
    part=f"@numba.njit(inline='always', {_OPTIONS})",
    imports="import numba\nfrom freewalk.compiled.native import Vectorizing",
    cache="numba.core.caching.FunctionCache",
)


def cuda_target(registers: int) -> Target:
    """A GPU, with at most this many registers per thread."""
    return Target(
        entry=f"@cuda.jit(max_registers={registers})",
        call="@cuda.jit(device=True)",
        part="@cuda.jit(device=True, forceinline=True)",
        imports="from numba import cuda",
        cache="numba.cuda.dispatcher.CUDACache",
    )


# numba's CUDA simulator runs the functions unchanged, except the kernel.
SIMULATOR = Target(entry="@cuda.jit", call="", part="", imports="from numba import cuda")
_NATIVE = "freewalk.compiled.native"
_BESIDE = (_NATIVE, "freewalk.runtimes.step.arrays")  # used by compiled modules without containing their text
_NUMBERS = (bool, int, float, np.number, np.bool_)
_MODULES = ("math", "numpy")
_CUDA = "numba.cuda"
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | _GENERATORS  # what a function is


def compile_functions(
    functions: Mapping[str, Any],
    entry: str,
    calls: Sequence[str] = (),
    target: Target = CPU,
    unroll: Mapping[str, int] | None = None,
) -> Callable[..., Any]:
    """The function `entry`, which is compiled, with everything it calls, on its first call, or read from the cache."""
    # `functions`, which may also be numbers or `Written`, replace globals of their names in the engine's functions.
    # Those in `calls` remain calls; all others are inlined. Loops of the engine's functions over range(name) are
    # unrolled as often as `unroll` says: arrays indexed only by constants can live in registers.
    text = module_source(functions, entry, calls, target, unroll)
    name = "freewalk_" + hashlib.sha256(text.encode()).hexdigest()[:20]
    if name not in sys.modules:
        module, file = ModuleType(name), f"<{name}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # for tracebacks and for numba
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))
        if target.cache and sys.modules["numba"].config.DISABLE_JIT:  # the numbers of C are not those of Python
            words = "NUMBA_DISABLE_JIT is set in the environment, expected a compiler"
            raise FreewalkError(f"compile: {words}; unset it, or use runtime='reference'")
        if target.cache:
            keep(getattr(module, entry), target.cache, name)
        sys.modules[name] = module  # where numba looks for it
    compiled: Callable[..., Any] = getattr(sys.modules[name], entry)
    return compiled


def address_of(function: Any, *arguments: Any) -> int:
    """The address of a compiled function for arguments of these types, where it stays while the process lives."""
    kinds = tuple(map(function.typeof_pyval, arguments))
    function.compile(kinds)
    made = function.overloads[kinds]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def module_source(
    functions: Mapping[str, Any],
    entry: str,
    calls: Sequence[str],
    target: Target = CPU,
    unroll: Mapping[str, int] | None = None,
) -> str:
    """The text of the module with the functions, what they call and the constants they use."""
    module = _Module(functions, entry, calls, target, unroll or {})
    module.visit(entry, functions[entry])
    for name, value in functions.items():  # errors are reported even for unused functions
        if name not in module.visited and not isinstance(value, _NUMBERS) and not _is_code(value):
            module.visit(name, value)
    return module.text()


class _Module:
    """A module under construction: the functions collected so far, by name, and what they need."""

    def __init__(
        self, functions: Mapping[str, Any], entry: str, calls: Sequence[str], target: Target, unroll: Mapping[str, int]
    ) -> None:
        self.functions, self.entry, self.calls, self.target, self.unroll = functions, entry, calls, target, unroll
        # The room of the entry point, such as freewalk.runtimes: the names in its functions may be replaced.
        self.engine = ".".join((getattr(functions[entry], "__module__", None) or "").split(".")[:-1][:2])
        self.imports: dict[str, str] = {"np": "numpy"}
        self.constants: dict[str, str] = {}
        self.intrinsics: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.visited: dict[str, Any] = {}

    def visit(self, name: str, function: Any) -> None:
        """Collect a function and everything it uses."""
        if self.visited.setdefault(name, function) is not function:
            raise FreewalkError(f"compile: two different functions are called {name!r}; rename one")
        if name in self.sources:
            return
        if isinstance(function, Written):
            self.sources[name] = f"{self.target.part}\n{function}\n"
            used = {part.id for part in ast.walk(parsed(function)) if isinstance(part, ast.Name)}
            for other in sorted(used & set(self.functions)):
                self.gather(other, self.functions[other], name)
        elif _is_intrinsic(function):
            if function._defn.__module__ != _NATIVE:
                raise FreewalkError(f"{name}: got a numba intrinsic, expected a function made with def")
            self.intrinsics[name] = f"from {function._defn.__module__} import {function._name} as {name}"
        elif not isinstance(function, FunctionType):
            expected = "a function made with def (no method, no builtin)"
            raise FreewalkError(f"{name}: got {show(function)}, expected {expected}")
        elif function.__defaults__ or function.__kwdefaults__:
            raise FreewalkError(f"{function.__qualname__}: has arguments with defaults; make them constants instead")
        else:
            self._visit_source(name, function)

    def _visit_source(self, name: str, function: FunctionType) -> None:
        self.sources[name] = ""  # breaks the cycle of a function that calls itself
        ours = (function.__module__ or "").startswith(self.engine)
        for used in sorted(_names(function.__code__)):
            # A user's helper that happens to be called `update` is not replaced: `visit` raises an error.
            if used in self.functions and ours:
                self.gather(used, self.functions[used], function.__qualname__)
            elif used in function.__globals__:
                self.gather(used, function.__globals__[used], function.__qualname__)
        for used, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.gather(used, cell.cell_contents, function.__qualname__)
        target = self.target
        decorator = target.entry if name == self.entry else target.call if name in self.calls else target.part
        text = _definition(name, function, function.__code__)
        if self.unroll and ours:  # loops of user code may mean something else
            text = _unrolled(text, tuple(self.unroll.items()))
        self.sources[name] = f"{decorator}\n{text}\n"

    def gather(self, name: str, value: Any, user: str) -> None:
        """Collect what a function uses by a name."""
        if _is_named_tuple(value):
            self.imports["collections"] = "collections"
            self._define(name, f"collections.namedtuple({name!r}, {value._fields!r})", user)
        elif _is_code(value):
            self.visit(name, value)
        elif isinstance(value, ModuleType):
            if value.__name__ == _CUDA:  # imported for the decorators
                return
            # Numbers of any other module would be compiled in without being part of the text: a stale cache.
            if value.__name__ not in _MODULES:
                remedy = f"import what it needs by name: from {value.__name__} import ..."
                raise FreewalkError(f"{user}: uses the module {name!r}, expected {' or '.join(_MODULES)}; {remedy}")
            if self.imports.setdefault(name, value.__name__) != value.__name__:
                raise FreewalkError(f"{user}: another module is called {name!r} elsewhere; rename one")
        elif isinstance(value, _NUMBERS):
            plain = value.item() if isinstance(value, np.generic) else value
            text = f"float({str(plain)!r})" if isinstance(plain, float) else repr(plain)
            self._define(name, f"np.{type(value).__name__}({text})" if isinstance(value, np.generic) else text, user)
        else:
            expected = "numbers, modules such as math, or functions"
            raise FreewalkError(f"{user}: uses {name!r} = {show(value)}, expected {expected}")

    def _define(self, name: str, text: str, user: str) -> None:
        if self.constants.setdefault(name, text) != text:
            raise FreewalkError(f"{user}: its constant {name!r} has another value elsewhere; rename one")

    def text(self) -> str:
        """The module."""
        for name in self.sources:
            if name in self.constants or name in self.imports:
                clash = f"{name!r} is a function here and a constant or module elsewhere"
                raise FreewalkError(f"compile: {clash}; rename one")
        beside = b"".join(import_module(name).SOURCE for name in _BESIDE)  # their files may have been edited since
        return "\n".join(
            [
                *(f"import {module} as {alias}" for alias, module in sorted(self.imports.items())),
                f"# with the modules beside it as they were imported: {hashlib.sha256(beside).hexdigest()[:20]}",
                self.target.imports,
                *self.intrinsics.values(),
                *(f"{name} = {value}" for name, value in sorted(self.constants.items())),
                *self.sources.values(),  # in any order: numba binds them when it compiles
                "",
            ]
        )


def _is_code(value: Any) -> bool:
    return isinstance(value, (FunctionType, Written)) or _is_intrinsic(value) or _is_named_tuple(value)


def _is_intrinsic(value: Any) -> bool:
    """Whether it is a numba intrinsic; checked by name, since numba is slow to import."""
    return type(value).__name__ == "_Intrinsic"


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


@lru_cache(maxsize=256)
def _names(code: CodeType) -> set[str]:
    """The globals that a function reads, without attribute names."""
    nested = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    read = {instruction.argval for instruction in dis.get_instructions(code) if instruction.opname == "LOAD_GLOBAL"}
    return read.union(*nested)


@lru_cache(maxsize=256)
def _definition(name: str, function: FunctionType, code: CodeType) -> str:
    """The function under its new name, without decorators, annotations or docstring."""
    # Its code is passed separately, since tools that reload a module give an old function new code.
    if function.__name__ == "<lambda>":
        raise FreewalkError(f"{function.__qualname__}: got a lambda, expected a function made with def")
    try:
        lines, _ = inspect.findsource(function)
    except OSError as error:
        remedy = "define it in a file or a notebook, not at a prompt"
        raise FreewalkError(f"{function.__qualname__}: its source cannot be read; {remedy}") from error
    found = _definitions("".join(lines)).get((code.co_firstlineno, _fingerprint(code)))
    if found is None:
        changed = "its file has changed since it was imported; reload it, or restart Python"
        raise FreewalkError(f"{function.__qualname__}: {changed}")
    documented = ast.get_docstring(found) is not None
    tree = copy.copy(found)  # unchanged parts are shared
    tree.name, tree.decorator_list, tree.returns = name, [], None
    tree.body = (tree.body[1:] or [ast.Pass()]) if documented else tree.body
    tree.args = copy.copy(found.args)
    for kind in ("posonlyargs", "args", "kwonlyargs"):
        setattr(tree.args, kind, [ast.arg(argument.arg) for argument in getattr(found.args, kind)])
    return ast.unparse(tree)


def parsed(text: str | bytes) -> ast.Module:
    """The syntax tree of a source text; one thread at a time, because parallel parsing fails in Python 3.11."""
    with _PARSING:
        return ast.parse(text)


@lru_cache(maxsize=32)
def _definitions(text: str) -> dict[tuple[Any, ...], ast.FunctionDef]:
    """Every function in a source text, by its first line and its fingerprint."""
    try:
        tree = parsed(text)
        waiting = [compile(tree, "<source>", "exec", dont_inherit=True)]
    except SyntaxError:
        return {}
    begins = {min([node.lineno, *(mark.lineno for mark in node.decorator_list)]): node for node in _functions(tree)}
    found = {}
    while waiting:
        code = waiting.pop()
        node = begins.get(code.co_firstlineno)
        if node is not None and node.name == code.co_name:
            found[code.co_firstlineno, _fingerprint(code)] = node
        waiting.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions within a statement or a module, including nested ones."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        if not isinstance(node, ast.expr):
            yield from _functions(node)


@lru_cache(maxsize=256)
def _unrolled(text: str, names_and_counts: tuple[tuple[str, int], ...]) -> str:
    """A function with its loops over range(name) unrolled."""
    counts = dict(names_and_counts)

    class Loops(ast.NodeTransformer):
        def visit_For(self, node: ast.For) -> Any:
            self.generic_visit(node)
            if not isinstance(node.target, ast.Name):
                return node
            name = ast.unparse(node.iter).removeprefix("range(").removesuffix(")")
            if ast.unparse(node.iter) != f"range({name})" or name not in counts:
                return node
            # A loop without iterations leaves a statement behind: it may be the whole body of a function.
            return [statement for j in range(counts[name]) for statement in _with_number(node, j)] or ast.Pass()

    return ast.unparse(Loops().visit(parsed(text)))


def _with_number(loop: ast.For, number: int) -> list[ast.stmt]:
    """The body of a loop with a number in place of its variable."""

    class Variable(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> Any:
            return ast.Constant(number) if node.id == loop.target.id else node  # type: ignore[attr-defined]

    return [Variable().visit(statement) for statement in copy.deepcopy(loop.body)]


def _fingerprint(code: CodeType) -> tuple[Any, ...]:
    """What a function computes, independent of its position in the file."""
    constants = tuple(_fingerprint(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, code.co_exceptiontable, arguments, names, constants
