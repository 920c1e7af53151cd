"""What this machine can do on one core, measured: python benchmarks/limits.py

Clock and issue rate, arithmetic, bandwidth and random lines by the size of what is read. `growth.py` holds the package
against them. Every figure is the best of several, so that a busy machine does not pass for a slow one.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

LINE = 64  # bytes
ROUNDS = 9
STREAM_SIZES = (2**14, 2**16, 2**18, 2**19, 2**21, 2**23, 2**25, 2**27, 2**28)
LINE_SIZES = (2**15, 2**17, 2**18, 2**19, 2**20, 2**21, 2**22, 2**23, 2**24, 2**25, 2**26, 2**27, 2**28, 2**29, 2**30)


def best(run: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds of the fastest of several runs, the first of which compiles and is not timed."""
    run()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


@njit
def chain(count: int, x: int, mask: int, more: int) -> int:
    """Two operations an iteration, each waiting for the one before: two cycles."""
    for _ in range(count):
        x = (x ^ mask) + more
    return x


@njit
def eight_chains(count: int, table: np.ndarray, mask: int) -> int:
    """Eight chains side by side, each fed from memory: for each an exclusive or and an addition that loads."""
    a, b, c, d, e, f, g, h = mask, mask, mask, mask, mask, mask, mask, mask
    for _ in range(count):
        a = (a ^ mask) + table[0]
        b = (b ^ mask) + table[1]
        c = (c ^ mask) + table[2]
        d = (d ^ mask) + table[3]
        e = (e ^ mask) + table[4]
        f = (f ^ mask) + table[5]
        g = (g ^ mask) + table[6]
        h = (h ^ mask) + table[7]
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h


def clock() -> float:
    """Cycles a second, from a chain of dependent integer operations."""
    count = 20_000_000
    x, mask, more = np.uint64(1), np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
    return 2 * count / best(lambda: chain(count, x, mask, more))


def issue() -> float:
    """Instructions a second of independent integer operations: 16 an iteration, those of the loop not counted."""
    count, table = 5_000_000, np.arange(8, dtype=np.uint64)
    return 16 * count / best(lambda: eight_chains(count, table, np.uint64(0x9E3779B97F4A7C15)))


def _multiply_adds(width: int, kind: Any, number: Any, fused: bool) -> Callable[..., Any]:
    """A loop over twelve vectors of numbers that stay in registers: x ← x · a + a."""

    @intrinsic
    def loop(context: Any, count: Any, a: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
            vector, flags = ir.VectorType(kind, width), ("contract",) if fused else ()
            a = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[1], ir.IntType(32)(0))
            a = builder.shuffle_vector(a, a, ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width))
            rooms = [cgutils.alloca_once(builder, vector) for _ in range(12)]
            for room in rooms:
                builder.store(a, room)
            with cgutils.for_range(builder, arguments[0]):
                for room in rooms:
                    x = builder.load(room)
                    x = builder.fadd(builder.fmul(x, a, flags=flags), a, flags=flags)
                    builder.store(x, room)
            total = builder.load(rooms[0])
            for room in rooms[1:]:
                total = builder.fadd(total, builder.load(room))
            return builder.extract_element(total, ir.IntType(32)(0))

        return number(types.intp, number), generate

    @njit
    def run(count: int, a: float) -> float:
        return loop(count, a)

    return run


def arithmetic(precision: str, fused: bool) -> float:
    """Multiply-adds a second on vectors in registers, of 32 or 64 bytes, whichever is faster."""
    count, double = 2_000_000, precision == "float64"
    kind, number, size = (ir.DoubleType(), types.float64, 8) if double else (ir.FloatType(), types.float32, 4)
    a, rates = np.dtype(precision).type(0.5), []
    for width in (32 // size, 64 // size):
        run = _multiply_adds(width, kind, number, fused)
        rates.append(12 * width * count / best(lambda run=run: run(count, a)))
    return max(rates)


@njit
def read_all(array: np.ndarray, rounds: int) -> int:
    total = np.uint64(0)
    for _ in range(rounds):
        for j in range(array.size):
            total ^= array[j]
        total += np.uint64(1)  # so that rounds do not cancel
    return total


@njit
def update_all(array: np.ndarray, rounds: int) -> None:
    for r in range(rounds):
        for j in range(array.size):
            array[j] ^= np.uint64(r + 1)


def words(size: int) -> np.ndarray:
    """An array that begins where a line does: a read that straddles two lines costs two."""
    room = np.ones(size // 8 + 7, dtype=np.uint64)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + size // 8]


def _by_size(runs: dict[int, Callable[[], Any]]) -> dict[int, float]:
    """Seconds by size, best of rounds in which all sizes take turns."""
    times = {size: float("inf") for size in runs}
    for _ in range(ROUNDS + 1):  # the first compiles
        for size, run in runs.items():
            run()  # brings its own data back into the caches
            began = time.process_time()
            run()
            times[size] = min(times[size], time.process_time() - began)
    return times


def _bandwidth(kernel: Callable[..., Any], volume: int) -> dict[int, float]:
    def runner(size: int) -> Callable[[], Any]:
        array = words(size)
        return lambda: kernel(array, volume // size)

    found = _by_size({size: runner(size) for size in STREAM_SIZES})
    rates = np.maximum.accumulate([volume / found[size] for size in reversed(STREAM_SIZES)])[::-1]
    return dict(zip(STREAM_SIZES, rates.tolist(), strict=True))


def reading() -> dict[int, float]:
    """Bytes a second read one after the other, by the size of the array; a smaller one is no slower."""
    return _bandwidth(read_all, 2**28)


def updating() -> dict[int, float]:
    """Bytes a second that are read, changed and written back, each counted once, by the size of the array."""
    return _bandwidth(update_all, 2**28)


@njit
def random_lines(table: np.ndarray, count: int, shift: int, salt: int) -> int:
    """Read one word of each of `count` random lines; which ones is known without reading any."""
    total = np.uint64(0)
    for j in range(count):
        place = (np.uint64(j) + salt) * np.uint64(0x9E3779B97F4A7C15)
        place = (place ^ (place >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
        total += table[(place >> shift) << np.uint64(3)]
    return total


def lines() -> dict[int, float]:
    """Seconds a random line, by the size of the table: a throughput, many reads are under way at a time."""
    count = 2**19

    def runner(size: int) -> Callable[[], Any]:
        table, shift = words(size), np.uint64(64 - (size // LINE).bit_length() + 1)
        return lambda: random_lines(table, count, shift, np.uint64(time.perf_counter_ns()))

    found = _by_size({size: runner(size) for size in LINE_SIZES})
    seconds = np.minimum.accumulate([found[size] / count for size in reversed(LINE_SIZES)])[::-1]
    return dict(zip(LINE_SIZES, seconds.tolist(), strict=True))


def measure() -> dict[str, Any]:
    """All of it, in hertz, operations per second, bytes per second and seconds."""
    return {
        "clock": clock(),
        "issue": issue(),
        "fused": {precision: arithmetic(precision, True) for precision in ("float64", "float32")},
        "apart": {precision: arithmetic(precision, False) for precision in ("float64", "float32")},
        "read": reading(),
        "update": updating(),
        "line": lines(),
    }


def best_of(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The better of two measurements, figure by figure: rates are better if larger, seconds a line if smaller."""
    result: dict[str, Any] = {}
    for name, value in first.items():
        better = min if name == "line" else max
        if isinstance(value, dict):
            result[name] = {key: better(value[key], second[name][key]) for key in value}
        else:
            result[name] = better(value, second[name])
    return result


def size_name(size: int) -> str:
    """32768 as "32 kB"."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"clock                        {found['clock'] / 1e9:8.2f} GHz")
    print(f"instructions                 {found['issue'] / 1e9:8.2f} billion/s")
    for precision in ("float64", "float32"):
        print(f"multiply-adds, {precision}, fused {found['fused'][precision] / 1e9:8.1f} billion/s")
        print(f"multiply-adds, {precision}, apart {found['apart'][precision] / 1e9:8.1f} billion/s")
    for size, rate in found["read"].items():
        print(f"{size_name(size):>7}  read {rate / 1e9:7.1f} GB/s   updated {found['update'][size] / 1e9:7.1f} GB/s")
    for size, seconds in found["line"].items():
        print(f"{size_name(size):>7}  a random line {seconds * 1e9:7.2f} ns")


if __name__ == "__main__":
    began = time.perf_counter()
    show(measure())
    print(f"{time.perf_counter() - began:.0f} s")
