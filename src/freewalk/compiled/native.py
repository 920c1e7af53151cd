"""Help numba generate fast code for processors: a compiler with one additional pass, and five intrinsics.

Each intrinsic replaces a plain function in `runtimes/step/` that defines what it computes.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.compiler import Compiler
from numba.extending import intrinsic

SOURCE = Path(__file__).read_bytes()  # as imported: the names of compiled modules depend on it


class Vectorizing(Compiler):  # type: ignore[misc]
    """Compile with LLVM's SLP vectorizer, which numba omits: four coordinates in one instruction.

    numba holds its compiler lock meanwhile, so no other code is compiled with it. It makes a great many objects and
    keeps nearly all: the collector of garbage, which would look through them again and again, would take a sixth of the
    time, so it waits.
    """

    def compile_extra(self, func: Any) -> Any:
        """Compile a function, as numba does."""
        before, collects = config.SLP_VECTORIZE, gc.isenabled()
        config.SLP_VECTORIZE = 1
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            config.SLP_VECTORIZE = before
            if collects:
                gc.enable()


@intrinsic  # type: ignore[untyped-decorator]
def choose(context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes` if the condition holds, else `no`; replaces `choose`.

    Whether a walk accepts a move is unpredictable, and a mispredicted branch discards work already begun for the other
    walks. Compilers generate a branch anyway, unless told otherwise.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Instruction:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return yes(types.boolean, yes, yes), generate


@intrinsic  # type: ignore[untyped-decorator]
def scaled(context: Any, draw: Any, count: Any) -> Any:
    """The upper half of a product of 128 bits, one instruction; replaces `rng.scaled`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Instruction:
        wide = [builder.zext(argument, ir.IntType(128)) for argument in arguments]
        upper = builder.lshr(builder.mul(*wide), ir.Constant(ir.IntType(128), 64))
        return builder.trunc(upper, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def read(context: Any, features: Any, sample: Any, j: Any) -> Any:
    """features[sample, j]; replaces `read`.

    Told that features never change, the compiler may read several before it writes the model: several coordinates in
    one instruction.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Instruction:
        pointer = _row(context, builder, signature.args[0], arguments[0], arguments[1])
        loaded = builder.load(builder.gep(pointer, [arguments[2]]))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    _check_rows(features)
    return features.dtype(features, sample, j), generate


@intrinsic  # type: ignore[untyped-decorator]
def predict(context: Any, features: Any, sample: Any, models: Any, walk: Any, dim: Any) -> Any:
    """aᵀx; replaces `predict`.

    The order of the sum depends only on the number of coordinates: blocks of four vectors of 32 bytes, then single
    vectors, half a vector, and the rest one by one. The vectors are added and folded in half until one number remains.
    They are as wide as those that the compiler writes: reading data that was written with another width is slow.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Instruction:
        left = _row(context, builder, signature.args[0], arguments[0], arguments[1])
        right = _row(context, builder, signature.args[2], arguments[2], arguments[3])
        return _dot(builder, left, right, arguments[4])

    _check_rows(features, models)
    return features.dtype(features, sample, models, walk, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def fetch(context: Any, array: Any, row: Any) -> Any:
    """Prefetch a row of a matrix, or an element of a vector, into the cache; replaces `fetch`.

    Only two cache lines of it: the processor prefetches the following ones itself.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Constant:
        if array.ndim == 2:
            place = _row(context, builder, signature.args[0], arguments[0], arguments[1])
        else:
            vector = context.make_array(array)(context, builder, arguments[0])
            place = builder.gep(vector.data, [arguments[1]])
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for offset in (0, 64)[: array.ndim]:
            line = builder.gep(builder.bitcast(place, byte), [ir.Constant(ir.IntType(64), offset)])
            builder.call(prefetch, [line, *(ir.Constant(flag, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.none(array, row), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def walk_at(context: Any, address: Any, words: Any, count: Any, path: Any, stretch: Any) -> Any:
    """Call the walking half, compiled once for all objectives and rules, at its address; replaces `walk_at`."""
    kinds = (types.containers.UniTuple(types.uint64, count.literal_value), path, stretch)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Constant:
        first = context.make_array(words)(context, builder, arguments[1]).data
        loaded = [builder.load(cgutils.gep_inbounds(builder, first, index)) for index in range(count.literal_value)]
        kind = context.call_conv.get_function_type(types.none, kinds).as_pointer()
        function = builder.inttoptr(arguments[0], kind)
        given = cgutils.pack_array(builder, loaded), *arguments[3:]
        context.call_conv.call_function(builder, function, types.none, kinds, given)
        return context.get_dummy_value()

    return types.none(address, words, count, path, stretch), generate


def words_of(part: Any) -> list[int]:
    """What numba passes for an argument of a function, which may be a tuple: words of 64 bits, several for an array."""
    if isinstance(part, np.ndarray):
        return [0, 0, part.size, part.itemsize, part.ctypes.data, *part.shape, *part.strides]
    return [word for one in part for word in words_of(one)] if isinstance(part, tuple) else [int(part)]


def _check_rows(*kinds: Any) -> None:
    for kind in kinds:
        if kind.layout != "C":
            raise TypeError(f"got an array of layout {kind.layout}, expected contiguous rows")


def _row(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: ir.Value) -> ir.Value:
    """The address of a row of a matrix with contiguous rows."""
    matrix = context.make_array(kind)(context, builder, array)
    width = cgutils.unpack_tuple(builder, matrix.shape, 2)[1]
    return builder.gep(matrix.data, [builder.mul(index, width)])


def _dot(builder: ir.IRBuilder, left: ir.Value, right: ir.Value, dim: ir.Value) -> ir.Value:
    number = left.type.pointee
    whole = dim.type

    def load(pointer: ir.Value, j: ir.Value, width: int) -> ir.Value:
        place = builder.bitcast(builder.gep(pointer, [j]), ir.VectorType(number, width).as_pointer())
        loaded = builder.load(place)
        loaded.align = 8 if isinstance(number, ir.DoubleType) else 4
        return loaded

    def add_products(total: ir.Value, j: ir.Value, width: int) -> None:
        product = builder.fmul(load(left, j, width), load(right, j, width))
        builder.store(builder.fadd(builder.load(total), product), total)

    def total_of(width: int) -> ir.Value:
        # Adding to -0.0 changes no number at all, so the compiler can omit the first addition.
        kind = ir.VectorType(number, width)
        total = cgutils.alloca_once(builder, kind)
        builder.store(ir.Constant(kind, [-0.0] * width), total)
        return total

    def up_to(multiple: int) -> ir.Value:
        return builder.and_(dim, ir.Constant(whole, -multiple))

    def loop(start: ir.Value, stop: ir.Value, step: int, body: Callable[[ir.Value], None]) -> None:
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(whole, step), whole) as (j, _):
            body(j)

    def block(j: ir.Value) -> None:
        for index, total in enumerate(totals):
            add_products(total, builder.add(j, ir.Constant(whole, full * index)), full)

    full = 4 if isinstance(number, ir.DoubleType) else 8
    totals = [total_of(full) for _ in range(4)]
    half, rest = total_of(full // 2), total_of(1)
    loop(ir.Constant(whole, 0), up_to(4 * full), 4 * full, block)
    loop(up_to(4 * full), up_to(full), full, lambda j: add_products(totals[0], j, full))
    loop(up_to(full), up_to(full // 2), full // 2, lambda j: add_products(half, j, full // 2))
    loop(up_to(full // 2), dim, 1, lambda j: add_products(rest, j, 1))
    first, second, third, fourth = (builder.load(total) for total in totals)
    folded = _fold(builder, builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth)))
    folded = builder.fadd(folded, builder.load(half))
    while folded.type.count > 1:
        folded = _fold(builder, folded)
    return builder.extract_element(builder.fadd(folded, builder.load(rest)), ir.Constant(ir.IntType(32), 0))


def _fold(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """The lower half of a vector plus its upper half."""
    width = vector.type.count // 2
    index = ir.VectorType(ir.IntType(32), width)
    halves = (ir.Constant(index, list(range(first, first + width))) for first in (0, width))
    return builder.fadd(*(builder.shuffle_vector(vector, vector, half) for half in halves))
