"""The draws are a public contract: known answers, pinned words, exact integer decisions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freewalk import rng
from freewalk.compiled.compiler import compile_functions
from freewalk.errors import FreewalkError
from freewalk.rng import accepts, pick, word, word_pair

FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=100)
WORDS = st.integers(0, 2**64 - 1)
PROBABILITIES = st.lists(st.one_of(st.floats(1e-18, 1.0), st.just(0.0)), min_size=1, max_size=12).filter(
    lambda values: sum(values) > 0
)


def u64(*values):
    return tuple(np.uint64(value) for value in values)


# Counter, key and answer, from the kat_vectors of Random123, the library of the authors of Philox.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def hexes(text):
    return [int(part, 16) for part in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_known_answers(counter, key, answer):
    assert [int(value) for value in rng.philox(*u64(*hexes(counter)), *u64(*hexes(key)))] == hexes(answer)


def test_philox_known_answers_as_arrays():
    counters = np.array([hexes(counter) + hexes(key) for counter, key, _ in KNOWN_ANSWERS], dtype=np.uint64)
    answers = np.array([hexes(answer) for _, _, answer in KNOWN_ANSWERS], dtype=np.uint64)
    assert np.array_equal(np.stack(rng.philox(*counters.T), axis=1), answers)


def test_word_layout_by_a_published_vector():
    """Key = seed, low half first; counter = (stream and block, walk, low and high half of the step)."""
    c0, c1, c2, c3 = hexes(KNOWN_ANSWERS[2][0])
    k0, k1 = hexes(KNOWN_ANSWERS[2][1])
    assert c0 >> 30 == int(rng.MOVE)
    seed, walk, step = k1 << 32 | k0, c1, c3 << 32 | c2
    even, odd = rng.word_pair(*u64(seed), rng.MOVE, *u64(walk, step, c0))
    assert (int(even), int(odd)) == (0xD16CFE0994FDCCEB, 0x5001E42024126EA1)
    assert int(rng.word(*u64(seed), rng.MOVE, *u64(walk, step, 2 * c0))) == 0xD16CFE0994FDCCEB
    assert int(rng.word(*u64(seed), rng.MOVE, *u64(walk, step, 2 * c0 + 1))) == 0x5001E42024126EA1


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((0, 0, 0, 0, 0), 0x6627E8D5E169C58D),
        ((0, 0, 0, 0, 1), 0xBC57AC4C9B00DBD8),
        ((7, 0, 3, 5, 0), 0x9CDDE37D5031F951),
        ((7, 0, 3, 5, 1), 0x914B033683D2EE37),
        ((7, 0, 3, 5, 2), 0xA94A15EDAC912CFE),
        ((7, 1, 3, 5, 0), 0x1C3F8C56ED86B02D),
        ((7, 2, 3, 0, 0), 0xF89FECC0F44517B8),
        ((2**64 - 1, 0, 2**32 - 1, 2**40 + 1, 9), 0x9A6D2468ECC74A64),
    ],
)
def test_words_never_change(key, expected):
    """A stored path or record can be replayed only as long as these numbers stay."""
    assert int(rng.word(*u64(*key))) == expected


def test_streams_are_pinned():
    assert [int(stream) for stream in (rng.MOVE, rng.SAMPLE, rng.START, rng.MORE)] == [0, 1, 2, 3]
    assert [int(use) for use in (rng.GRAPH, rng.INITIAL)] == [0, 1]


def test_the_uses_of_the_last_stream_have_128_ranges_of_their_own():
    """Two bits for the stream, seven for the use, 23 for the block: no two uses ever meet, and the last one fits."""
    seed, walk, step, last = u64(9, 4, 2**40 + 3, 2**24 - 1)
    for use in (0, 1, 2, 127):
        for index in (0, 1, 2**24 - 1):
            counter = (3 << 30) | (use << 23) | (index >> 1)
            halves = rng.philox(*u64(counter, 4, (2**40 + 3) % 2**32, 2**8, 9, 0))
            expected = [(int(halves[k]) << 32) | int(halves[k + 1]) for k in (0, 2)][index & 1]
            assert int(rng.word_of_use(seed, np.uint64(use), walk, step, np.uint64(index))) == expected
    keys = [(np.uint64(use), index) for use in range(128) for index in (np.uint64(0), last)]
    assert len({int(rng.word_of_use(seed, use, walk, step, index)) for use, index in keys}) == 256
    first = rng.words_of_use(int(seed), rng.EXCHANGE, int(walk), int(step), 5)
    expected = [rng.word_of_use(seed, rng.EXCHANGE, walk, step, np.uint64(index)) for index in range(5)]
    assert first.tolist() == [int(word) for word in expected]


@FIXED
@given(WORDS, st.integers(0, 2), st.integers(0, 2**32 - 1), WORDS, st.integers(0, 2**30 - 1))
def test_word_is_half_of_its_pair(seed, stream, walk, step, block):
    pair = rng.word_pair(*u64(seed, stream, walk, step, block))
    assert tuple(rng.word(*u64(seed, stream, walk, step, 2 * block + half)) for half in (0, 1)) == pair


def test_every_part_of_the_key_counts():
    base = dict(zip(("seed", "stream", "walk", "step", "index"), u64(11, 0, 3, 5, 0), strict=True))
    others = [{**base, name: value + np.uint64(1)} for name, value in base.items()]
    others += [{**base, "seed": np.uint64(11 + 2**32)}, {**base, "step": np.uint64(5 + 2**32)}]
    assert len({int(rng.word(**key)) for key in [base, *others]}) == len(others) + 1


def compiled_decisions(keys, counts, ratios, words, picks, accepted):
    for i in range(keys.shape[0]):
        drawn = word(keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3], keys[i, 4])
        even, odd = word_pair(keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3], keys[i, 4] >> np.uint64(1))
        words[i, 0] = drawn
        words[i, 1] = even
        words[i, 2] = odd
        picks[i] = pick(drawn, counts[i])
        accepted[i] = accepts(drawn >> np.uint64(20), 17592186044416.0, ratios[i, 0], ratios[i, 1])


def test_scalars_arrays_and_compiled_code_agree():
    n = 500
    numbers = np.random.default_rng(1)
    tops = [2**64, 3, 2**32, 2**64, 2**20]
    keys = np.stack(
        [
            numbers.integers(0, top, n, dtype=np.uint64, endpoint=False)
            if top < 2**64
            else numbers.integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True)
            for top in tops
        ],
        axis=1,
    )
    counts = numbers.integers(1, 2**32, n, dtype=np.uint64)
    ratios = np.exp(3 * numbers.standard_normal((n, 2)))
    words, picks, accepted = np.zeros((n, 3), np.uint64), np.zeros(n, np.uint64), np.zeros(n, np.bool_)
    compile_functions({"decisions": compiled_decisions}, "decisions")(keys, counts, ratios, words, picks, accepted)

    even, odd = rng.word_pair(*keys[:, :4].T, keys[:, 4] >> np.uint64(1))
    drawn = np.where(keys[:, 4] & np.uint64(1), odd, even)
    assert np.array_equal(words, np.stack([drawn, even, odd], axis=1))
    assert np.array_equal(picks, rng.pick(drawn, counts))
    shifted = drawn >> np.uint64(20)
    assert np.array_equal(accepted, rng.accepts(shifted, 2.0**44, ratios[:, 0], ratios[:, 1]))
    assert 0 < accepted.sum() < n
    for i in range(0, n, 7):
        assert rng.word(*keys[i]) == drawn[i]
        assert rng.pick(drawn[i], counts[i]) == picks[i]
        assert rng.accepts(shifted[i], 2.0**44, *ratios[i]) == accepted[i]


@FIXED
@given(WORDS, st.integers(1, 2**32 - 1))
@example(0, 1)
@example(2**64 - 1, 1)
@example(2**64 - 1, 2**32 - 1)
@example(0, 2**32 - 1)
def test_pick_is_the_integer_part_of_the_product(draw, count):
    assert int(rng.pick(*u64(draw, count))) == draw * count >> 64 < count


@FIXED
@given(st.integers(2, 2**32 - 1), st.data())
def test_pick_gives_every_outcome_the_same_share(count, data):
    """Outcome k begins at the first word that is at least k 2^64 / count: shares differ by one word at most."""
    k = data.draw(st.integers(1, count - 1))
    first = -(-k * 2**64 // count)
    assert int(rng.pick(*u64(first, count))) == k
    assert int(rng.pick(*u64(first - 1, count))) == k - 1


@FIXED
@given(PROBABILITIES)
def test_widths_share_out_all_words_exactly(values):
    probabilities = np.array(values) / np.sum(values)
    widths = [int(width) for width in rng.widths(probabilities)]
    largest = int(np.argmax(probabilities))
    assert sum(widths) == 2**64 - 1
    for k, (probability, width) in enumerate(zip(probabilities, widths, strict=True)):
        if k != largest:
            assert width == int(Fraction(float(probability)) * 2**64)
    assert [int(end) for end in rng.ends(probabilities)] == [sum(widths[: k + 1]) for k in range(len(widths))]


@pytest.mark.parametrize("tiny", [1e-12, 1e-15, 1e-18, 6e-20])
def test_tiny_probabilities_own_words(tiny):
    widths = rng.widths([tiny, 1 - tiny, 0.0])
    assert int(widths[0]) == int(Fraction(tiny) * 2**64) >= 1
    assert int(widths[2]) == 0


def test_widths_of_equal_probabilities():
    assert [int(width) for width in rng.widths([0.5, 0.5])] == [2**63 - 1, 2**63]
    assert [int(width) for width in rng.widths([1.0])] == [2**64 - 1]


def test_rows_of_probabilities_are_shared_out_one_by_one():
    table = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [1e-18, 0.0, 1.0]])
    assert np.array_equal(rng.ends(table), [rng.ends(row) for row in table])


def test_probabilities_that_add_up_only_roughly_still_use_every_word():
    assert int(rng.ends([0.3, 0.7 + 1e-9])[-1]) == int(rng.ends([0.3, 0.7 - 1e-9])[-1]) == 2**64 - 1


@pytest.mark.parametrize(("ratio", "last"), [(1e-12, 18446744), (1e-18, 18), (1e-25, 0)])
def test_a_small_ratio_accepts_its_share_of_the_words(ratio, last):
    width = float(2**64 - 1)
    assert rng.accepts(np.uint64(0), width, 1.0, ratio)
    assert rng.accepts(np.uint64(last), width, 1.0, ratio)
    assert not rng.accepts(np.uint64(last + 1), width, 1.0, ratio)


@FIXED
@given(WORDS.filter(bool), st.floats(1e-12, 1e12), st.floats(1.0, 1e12))
def test_a_ratio_of_one_or_more_always_accepts(width, start, factor):
    assert rng.accepts(np.uint64(width - 1), float(width), start, start * factor)


@FIXED
@given(WORDS, st.floats(1e-150, 1e150), st.floats(1e-150, 1e150))
def test_the_first_word_of_an_interval_always_accepts(width, start, end):
    assert rng.accepts(np.uint64(0), float(width), start, end)


@FIXED
@given(st.integers(2**40, 2**64 - 1), st.floats(1e-6, 0.999))
def test_the_share_of_accepted_words_is_the_ratio(width, ratio):
    """The threshold is off by no more than a few roundings of the width."""
    slack = width * 2.0**-50 + 2
    assert rng.accepts(np.uint64(int(max(width * ratio - slack, 0))), float(width), 1.0, ratio)
    assert not rng.accepts(np.uint64(int(width * ratio + slack)), float(width), 1.0, ratio)


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1, np.int32(5), np.uint64(2**64 - 1)])
def test_seeds(seed):
    assert rng.generator(seed, 3).bit_generator.state["state"]["key"].tolist() == [int(seed), 3]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, np.float32(2.0), True, "7", None, [1]], ids=repr)
def test_what_is_not_a_seed(seed):
    with pytest.raises(FreewalkError, match=r"seed = .*, expected a whole number from 0 to 2\^64 - 1"):
        rng.generator(seed)


def test_generators_depend_on_seed_and_purpose_alone():
    assert rng.generator(3, 1).random() == rng.generator(3, 1).random()
    assert len({rng.generator(seed, purpose).random() for seed in (3, 4) for purpose in (0, 1)}) == 4


@settings(derandomize=True, deadline=None, database=None, max_examples=500)
@given(
    st.one_of(st.integers(1, 2**64 - 1), st.integers(0, 11).map(lambda shift: 2**64 - 2**shift)),
    st.floats(1e-12, 1e12),
    st.floats(1e-15, 4.0),
)
def test_the_largest_accepted_offset_is_the_last_that_is(width, start, factor):
    """Integers above 2^53 are rounded when they become floats: the limit knows how."""
    ratios = np.array([start]), np.array([start * factor])
    (limit,) = rng.largest_accepted(float(width), *ratios)
    assert rng.accepts(limit, float(width), *ratios)
    assert limit == rng.LAST or not rng.accepts(limit + np.uint64(1), float(width), *ratios)


def test_the_largest_accepted_offset_where_floats_skip_integers():
    """Products at and around powers of two, where a tie is rounded to the even one of two floats."""
    widths = [2.0**power + step * np.spacing(2.0**power) for power in (52, 53, 54, 60, 63) for step in range(-3, 4)]
    shares = np.array([1.0, 1 - 2.0**-53, 1 - 2.0**-52, 0.75, 0.5, 1 / 3])
    for width in [*widths, 2.0**64 - 2048, 2.0**64]:
        limits = rng.largest_accepted(width, np.ones(shares.size), shares)
        assert rng.accepts(limits, width, 1.0, shares).all()
        below = limits < rng.LAST
        assert not rng.accepts(limits[below] + np.uint64(1), width, 1.0, shares[below]).any()
