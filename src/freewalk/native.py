"""What numba has to be told to make good code for a processor. Compiled modules import it; nothing else needs to."""

from typing import Any

from llvmlite import ir
from numba.core import config, types
from numba.core.compiler import Compiler
from numba.extending import intrinsic


class Vectorizing(Compiler):  # type: ignore[misc]
    """Compile with LLVM's vectorizer for straight code, which numba leaves out: four coordinates in one instruction.

    numba holds its compiler lock meanwhile, so that nobody else's code is compiled with it.
    """

    def compile_extra(self, func: Any) -> Any:
        """Compile a function, as numba does."""
        before = config.SLP_VECTORIZE
        config.SLP_VECTORIZE = 1
        try:
            return super().compile_extra(func)
        finally:
            config.SLP_VECTORIZE = before


@intrinsic  # type: ignore[untyped-decorator]
def choose(context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes` if the condition holds, else `no`; takes the place of the engine's `choose`.

    Whether a walk takes a step cannot be foreseen, and a processor that guesses wrong throws away what it has begun
    for the other walks. Compilers make a branch all the same, unless they are told.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Instruction:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return yes(types.boolean, yes, yes), generate
