import hashlib
import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from freewalk.errors import PeerError
from freewalk.peers.protocol.payload import LONGEST, SMALL, Form, Incoming, Payload, discard

LARGE = np.arange(SMALL, dtype=np.float64)  # eight times what is small
FORM = Form(("x", "velocity"), ((3,), (3,)), np.float64)


def vectors(**more):
    return {"x": np.arange(3.0), "velocity": np.ones(3), **more}


def made(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return Payload.holding(len(text).to_bytes(8, "little") + text + data)


def test_small_ones_stay_in_memory(tmp_path):
    payload = Payload.of(vectors(), tmp_path)
    assert payload.path is None
    assert not list(tmp_path.iterdir())
    assert payload.digest == hashlib.blake2b(payload.data, digest_size=32).hexdigest()
    arrays = payload.arrays()
    arrays["x"][0] = 7.0  # a copy
    np.testing.assert_array_equal(payload.arrays()["x"], [0, 1, 2])
    assert payload == Payload.of(vectors(), tmp_path)
    assert hash(payload) == hash(Payload.of(vectors(), tmp_path))
    assert payload != Payload.of(vectors(x=np.zeros(3)), tmp_path)


def test_large_ones_are_files_that_are_mapped(tmp_path):
    payload = Payload.of({"x": LARGE, "empty": np.zeros((0, 2))}, tmp_path)
    assert payload.data is None
    assert [path.name for path in tmp_path.iterdir()] == [f"{payload.digest}.safetensors"]
    arrays = payload.arrays()
    np.testing.assert_array_equal(arrays["x"], LARGE)
    assert arrays["empty"].shape == (0, 2)
    assert not arrays["x"].flags.writeable
    assert b"".join(payload.chunks(1000)) == payload.path.read_bytes()


def test_arrays_that_are_not_contiguous_and_scalars(tmp_path):
    arrays = {"x": np.arange(12.0).reshape(3, 4).T, "y": np.arange(10.0)[::2], "z": np.array(2.0)}
    found = Payload.of(arrays, tmp_path).arrays()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape


def test_a_large_one_takes_no_memory(tmp_path):
    tracemalloc.start()
    payload = Payload.of({"x": np.tile(LARGE, 16)}, tmp_path)
    incoming = Incoming(tmp_path / "..", payload.digest, payload.size)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    Payload.of(payload.arrays(), tmp_path)
    for chunk in payload.chunks():
        incoming.write(chunk)
    incoming.close()
    assert Form(("x",), ((16 * SMALL,),), np.float64).check(payload) is None
    assert tracemalloc.get_traced_memory()[1] - before < 2**23 < payload.size / 3
    tracemalloc.stop()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(PeerError, match="cannot be written"):
        Payload.of({"x": LARGE}, tmp_path / "none")
    with pytest.raises(PeerError, match="cannot be written"):
        Incoming(tmp_path / "none", "0" * 64, SMALL + 1)


def test_what_is_only_announced_has_no_arrays():
    payload = Payload("0" * 64, 10**10)
    assert not payload.here
    with pytest.raises(PeerError, match="announced"):
        payload.arrays()
    with pytest.raises(PeerError, match="announced"):
        list(payload.chunks())


def test_pieces_become_the_same_payload(tmp_path):
    (tmp_path / "there").mkdir()
    payload = Payload.of({"x": LARGE}, tmp_path)
    incoming = Incoming(tmp_path / "there", payload.digest, payload.size)
    for chunk in payload.chunks(12345):
        incoming.write(chunk)
    arrived = incoming.finish()
    assert arrived == payload
    incoming.close()
    np.testing.assert_array_equal(arrived.arrays()["x"], LARGE)


@pytest.mark.parametrize("spoil", ["longer", "shorter", "other"])
def test_pieces_that_are_not_what_was_announced(tmp_path, spoil):
    payload = Payload.of({"x": LARGE}, tmp_path)
    data = payload.path.read_bytes()
    data = {"longer": data + b"!", "shorter": data[:-1], "other": b"!" + data[1:]}[spoil]
    incoming = Incoming(tmp_path, payload.digest, payload.size)

    def receive():
        incoming.write(data[:1000])
        incoming.write(data[1000:])
        incoming.finish()

    with pytest.raises(PeerError, match=r"longer than|not the"):
        receive()
    assert [path.name for path in tmp_path.iterdir()] == [payload.path.name]


@pytest.mark.parametrize(("digest", "size"), [("../" * 20 + "abcd", 2**20), ("0" * 64, SMALL), ("0" * 64, 2**63)])
def test_announcements_that_cannot_be(tmp_path, digest, size):
    with pytest.raises(PeerError, match="announced"):
        Incoming(tmp_path, digest, size)


def test_a_disk_that_fails_leaves_nothing(tmp_path, monkeypatch):
    payload = Payload.of({"x": LARGE}, tmp_path)
    data = payload.path.read_bytes()
    discard(payload.path)
    for name in ("fsync", "replace"):

        def fail(*_):
            raise OSError(28, "No space left on device")

        incoming = Incoming(tmp_path, payload.digest, payload.size)
        incoming.write(data)
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(PeerError, match="No space left"):
                incoming.finish()
            with pytest.raises(PeerError, match="No space left"):
                Payload.of({"x": LARGE + 1}, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [payload.path.name]  # which is in use


def test_files_in_use_are_not_discarded(tmp_path):
    payload = Payload.of({"x": LARGE}, tmp_path)
    again, path = Payload.of({"x": LARGE}, tmp_path), payload.path
    del payload
    assert not discard(path)
    del again
    assert discard(path)
    assert not path.exists()
    incoming = Incoming(tmp_path, "0" * 64, SMALL + 1)
    (temporary,) = tmp_path.iterdir()
    assert not discard(temporary)
    incoming.close()


def test_a_form_accepts_what_it_describes(tmp_path):
    assert FORM.check(Payload.of(vectors(), tmp_path)) is None
    assert FORM.check(Payload.of(dict(reversed(vectors().items())), tmp_path)) is None


@pytest.mark.parametrize(
    ("arrays", "wrong"),
    [
        ({"x": np.zeros(3)}, "its vectors are x;"),
        ({"x": np.zeros(3), "speed": np.zeros(3)}, "its vectors are speed, x"),
        ({"x": np.zeros(2), "velocity": np.zeros(4)}, "of shape"),
        ({"x": np.zeros((3, 1)), "velocity": np.zeros(3)}, "of shape"),
        ({"x": np.zeros(3, np.int64), "velocity": np.zeros(3)}, "int64"),
        ({"x": np.zeros(6, np.float32), "velocity": np.zeros(3)}, "float32"),
        ({"x": np.zeros(3), "velocity": np.array([0, np.inf, 0])}, "finite"),
        ({"x": np.array([np.nan, 0, 0]), "velocity": np.zeros(3)}, "finite"),
        ({"x": np.zeros(1000), "velocity": np.zeros(100_000)}, "bytes, expected 48"),
    ],
)
def test_a_form_says_what_is_wrong(tmp_path, arrays, wrong):
    assert wrong in FORM.check(Payload.of(arrays, tmp_path))


def test_a_form_finds_what_is_not_finite_in_a_large_one(tmp_path):
    spoilt = LARGE.copy()
    spoilt[-1] = np.nan
    form = Form(("x",), (LARGE.shape,), np.float64)
    assert form.check(Payload.of({"x": LARGE}, tmp_path)) is None
    assert "finite" in form.check(Payload.of({"x": spoilt}, tmp_path))


LINE = {"dtype": "F64", "shape": [6], "data_offsets": [0, 48]}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[" * 60_000,
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"x":' + json.dumps(LINE).encode() + b',"x":' + json.dumps(LINE).encode() + b"}",
        {"x": LINE, "__metadata__": {"a": "b"}},
        {"x": {**LINE, "dtype": "F63"}},
        {"x": {**LINE, "dtype": ["F64"]}},
        {"x": {**LINE, "shape": [5]}},
        {"x": {**LINE, "shape": [-6]}},
        {"x": {**LINE, "shape": [True, 6]}},
        {"x": {**LINE, "shape": [2**62, 2**62]}},
        {"x": {**LINE, "shape": 6}},
        {"x": {**LINE, "data_offsets": [8, 56]}},
        {"x": {**LINE, "data_offsets": [0.0, 48.0]}},
        {"x": {**LINE, "data_offsets": [0]}},
        {"x": {**LINE, "more": 1}},
        {"x": LINE, "y": LINE},
        {"x": {**LINE, "shape": [3], "data_offsets": [0, 24]}},
    ],
)
def test_broken_headers(header):
    form = Form(("x",), ((6,),), np.float64)
    assert form.check(made(header, bytes(48))) is not None
    with pytest.raises(PeerError, match="safetensors"):
        made(header, bytes(48)).arrays()


def test_a_header_that_is_too_long():
    form = Form(("x",), ((6,),), np.float64)
    header = json.dumps({"x": LINE}).encode()
    assert form.check(made(header.ljust(1000), bytes(48))) is None
    assert "header" in form.check(made(header.ljust(LONGEST + 1), bytes(47)))
    assert "header" in form.check(Payload.holding((2**63).to_bytes(8, "little") + bytes(100)))


def test_nothing_is_read_of_a_size_that_cannot_be(tmp_path):
    assert "10,000,000,000 bytes" in FORM.check(Payload("0" * 64, 10**10, None, tmp_path / "none"))
    assert not FORM.size_fits(10**10)
    assert not FORM.size_fits(48)


@given(st.data())
def test_a_form_survives_anything(data):
    good = save(vectors())
    spoilt = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        spoilt[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(good)) | st.just(len(good)))
    answer = FORM.check(Payload.holding(bytes(spoilt[:end])))
    assert answer is None or isinstance(answer, str)


def test_bytes_of_any_kind_are_no_payload():
    assert FORM.check(Payload.holding(os.urandom(100))) is not None
    assert Path("x") != Payload.holding(b"")
