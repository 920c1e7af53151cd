"""Counter-based random draws: a step of a walk has the same randomness wherever and whenever it is computed.

A draw is a pure function of (seed, stream, walk, step, index): Philox4x32-10 (Salmon et al., *Parallel random numbers:
as easy as 1, 2, 3*, 2011), key = seed, counter = (stream and block, walk, step). Every runtime replays the same draws.
Which word decides what is a public contract and never changes:

- stream `MOVE`, word 0: which move is made, and whether its end is accepted; word k: the k-th hop. With a memory: word
  0 decides whether a walk remembers where it came from and whether it accepts another outcome than stepping back (or,
  if history-driven, its proposal); word 1 draws from the row of outcomes, neighbours ascending, then the stay, without
  the node that the walk came from, if it remembers that;
- stream `SAMPLE`, word k: the local sample of the k-th local step;
- stream `START`, word 0 of step 0: the start node of the walk;
- stream `MORE`: 128 uses, each a stream of its own (`word_of_use`): the first word of the counter has two bits for the
  stream, seven for the use and 23 for the block of two words. `GRAPH`, use 0, draws the edges of preferential graphs
  (walk 0, step = node), `INITIAL`, use 1, initial models, `EXCHANGE`, use 2, the draws of exchanges (walk = replica),
  `BATCH`, use 3, the samples of a minibatch, `SEED`, use 4, word k: the seed of anything else random in the k-th local
  step, such as dropout, and `SWEEP`, use 5, the values of a sweep. The others are free; none ever changes its meaning.

The functions on words are plain arithmetic on unsigned 64-bit integers. They accept numpy scalars and arrays, and numba
compiles the same source. A decision compares integers, or at most one correctly rounded product of floats, so no
compiler can change it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks
from freewalk.errors import FreewalkError

MOVE, SAMPLE, START, MORE = (np.uint64(stream) for stream in range(4))
GRAPH, INITIAL, EXCHANGE, BATCH, SEED, SWEEP = (np.uint64(use) for use in range(6))  # uses of MORE

LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
STREAM = np.uint64(30)
USE = np.uint64(23)
WORDS = 2**24  # words of each use of `MORE` at one step
HALF = np.uint64(32)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)
_TWO_64 = 18446744073709551616.0
_BELOW_TWO_64 = 18446744073709549568.0  # the largest float below 2^64
ROUNDS = 10
LAST = np.uint64(0xFFFFFFFFFFFFFFFF)

# Words are unsigned integers of numpy or numba, scalars or arrays: one source serves all.
Word = Any


def philox(c0: Word, c1: Word, c2: Word, c3: Word, k0: Word, k1: Word) -> tuple[Word, Word, Word, Word]:
    """Philox4x32-10: encrypt the counter (c0, c1, c2, c3) with the key (k0, k1), all of them 32-bit values."""
    for _ in range(ROUNDS):
        first = MULTIPLIER_0 * c0
        second = MULTIPLIER_1 * c2
        c0 = (second >> HALF) ^ c1 ^ k0
        c1 = second & LOW
        c2 = (first >> HALF) ^ c3 ^ k1
        c3 = first & LOW
        k0 = (k0 + WEYL_0) & LOW
        k1 = (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


def word_pair(seed: Word, stream: Word, walk: Word, step: Word, block: Word) -> tuple[Word, Word]:
    """The words 2·block and 2·block + 1 of a stream at one step of one walk."""
    a, b, c, d = philox((stream << STREAM) | block, walk, step & LOW, step >> HALF, seed & LOW, seed >> HALF)
    return (a << HALF) | b, (c << HALF) | d


def word(seed: Word, stream: Word, walk: Word, step: Word, index: Word) -> Word:
    """The word `index` of a stream at one step of one walk."""
    even, odd = word_pair(seed, stream, walk, step, index >> _ONE)
    return odd if index & _ONE else even


def word_of_use(seed: Word, use: Word, walk: Word, step: Word, index: Word) -> Word:
    """The word `index`, below 2^24, of one of the 128 uses of the stream `MORE`."""
    return word(seed, MORE, walk, step, (use << (USE + _ONE)) | index)


def words_of_use(seed: int, use: Word, walk: int, step: int, count: int) -> NDArray[np.uint64]:
    """The first words of one of the 128 uses of the stream `MORE`, as an array."""
    blocks = (use << USE) | np.arange((count + 1) // 2, dtype=np.uint64)
    pairs = word_pair(np.uint64(seed), MORE, np.uint64(walk), np.uint64(step), blocks)
    return np.stack(pairs, axis=-1).reshape(-1)[:count]


def pick(draw: Word, count: Word) -> Word:
    """One of 0..count-1, uniformly: the integer part of draw · count / 2^64, for count below 2^32."""
    return ((draw >> HALF) * count + (((draw & LOW) * count) >> HALF)) >> HALF


def scaled(draw: Word, count: Word) -> Word:
    """One of 0..count-1, uniformly: the integer part of draw · count / 2^64, for any count."""
    upper, lower = count >> HALF, count & LOW
    middle = (draw & LOW) * upper + (((draw & LOW) * lower) >> HALF)
    other = (draw >> HALF) * lower + (middle & LOW)
    return (draw >> HALF) * upper + (middle >> HALF) + (other >> HALF)


def accepts(offset: Word, width: Any, start: Any, end: Any) -> Any:
    """Whether a draw at `offset` in an interval of the given `width` accepts with probability min(1, end / start).

    The quotient, its product with the width and the offset as a float are each rounded once, as IEEE 754 prescribes, so
    the result is the same everywhere. An offset of 0 is always accepted, so no probability is rounded down to zero.
    """
    return np.float64(offset) <= width * (end / start)


def largest_accepted(width: float, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.uint64]:
    """The largest offset that `accepts` takes, by start and end: an integer to compare with instead.

    `accepts` compares the offset as a float, so it also takes offsets above the bound that are rounded down to it.
    """
    bound = np.minimum(width * (end / start), _TWO_64)
    whole = np.minimum(bound, _BELOW_TWO_64).astype(np.uint64)
    gap = np.maximum(np.spacing(bound), 1.0).astype(np.uint64)  # floats above 2^53 skip integers
    rounded_down = gap // np.uint64(2) - (whole // gap & _ONE & np.uint64(gap > _ONE))  # a tie goes to the even float
    return np.where(bound >= _TWO_64, LAST, whole + rounded_down)


def widths(probabilities: ArrayLike) -> NDArray[np.uint64]:
    """Divide the 2^64 - 1 words in proportion to probabilities along the last axis.

    Each width is exact to the last bit of its probability, however small; the largest takes the rounding remainder, so
    a probability of 1e-18 still owns 18 words.
    """
    shares = np.asarray(probabilities, dtype=np.float64)
    largest = np.expand_dims(np.argmax(shares, axis=-1), -1)
    others = shares.copy()
    np.put_along_axis(others, largest, 0.0, axis=-1)
    result = (others * _TWO_64).astype(np.uint64)
    rest = LAST - result.sum(axis=-1, keepdims=True, dtype=np.uint64)
    np.put_along_axis(result, largest, rest, axis=-1)
    return result


def ends(probabilities: ArrayLike) -> NDArray[np.uint64]:
    """The end of each outcome's interval of words: outcome k is drawn if ends[k-1] <= word < ends[k]."""
    return np.cumsum(widths(probabilities), axis=-1, dtype=np.uint64)


def generator(seed: int, purpose: int = 0) -> np.random.Generator:
    """A numpy generator for graphs and data sets, where no runtime replays single draws; one for each purpose."""
    key = Checks(FreewalkError).seed("draws", seed), purpose
    return np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))
