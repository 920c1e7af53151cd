"""Arrays in files: whole or refused, and sent to other processes as a place."""

import json
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from freewalk.errors import FreewalkError, RecordError
from freewalk.storage.mapped import _PRELUDE, SIGNATURE, adopted, is_mapped, opened, reopened, with_checksum, writing

INTS, ROWS = np.arange(10, dtype=np.int32), np.arange(15.0).reshape(5, 3)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arrays.fwmap"
    with writing(path, "pair", {"ints": ("i4", (10,)), "rows": ("f8", (5, 3))}, {"name": "två"}) as sinks:
        sinks["rows"].append(ROWS[:2])
        sinks["ints"].append(INTS)
        sinks["rows"].append(ROWS[2:])
    return path


def test_arrays_come_back_mapped_and_read_only(file):
    found = opened(file, "pair")
    assert found.attributes == {"name": "två"}
    for name, expected in (("ints", INTS), ("rows", ROWS)):
        array = found.arrays[name]
        assert is_mapped(array)
        assert not array.flags.writeable
        assert array.source.offset % 4096 == 0
        np.testing.assert_array_equal(array, expected, strict=False)
        assert array.dtype == expected.dtype
        assert type(array[1:]) is np.ndarray
        assert type(array + 1) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        found.arrays["ints"][0] = 1


def test_a_pickle_holds_the_place_and_another_process_maps_the_same_file(file, tmp_path):
    rows = opened(file, "pair").arrays["rows"]
    data = pickle.dumps({"rows": rows, "part": rows[1:2]})
    assert pickle.dumps(rows).find(ROWS.tobytes()) == -1
    (tmp_path / "sent").write_bytes(data)
    program = (
        "import pickle, sys; from freewalk.storage.mapped import is_mapped\n"
        "got = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "print(is_mapped(got['rows']), is_mapped(got['part']), got['rows'].sum(), got['part'].sum())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "sent")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "False", str(ROWS.sum()), str(ROWS[1].sum())]


def test_every_cut_is_refused(file, tmp_path):
    whole = file.read_bytes()
    cut = tmp_path / "cut.fwmap"
    points = {*range(0, 400, 7), *range(400, len(whole), 1009), 4095, 4096, 4097, len(whole) - 1}
    for size in sorted(points):
        cut.write_bytes(whole[:size])
        with pytest.raises(RecordError, match=r"truncated|begins with b''"):
            opened(cut, "pair", verify=False, check=_checks())


def _checks():
    from freewalk.checks import Checks

    return Checks(RecordError)


def test_every_changed_byte_that_counts_is_refused(file, tmp_path):
    whole = file.read_bytes()
    found = opened(file, "pair").arrays
    begun = json.loads(whole[_PRELUDE.size :][: _PRELUDE.unpack(whole[: _PRELUDE.size])[2]])
    header = _PRELUDE.size + len(json.dumps(begun))
    places = [*range(20), *range(_PRELUDE.size, header, 5)]  # but for the four bytes that mean nothing
    for array in found.values():
        places += range(array.source.offset, array.source.offset + array.source.size, 3)
    changed = tmp_path / "changed.fwmap"
    for place in places:
        data = bytearray(whole)
        data[place] ^= 0x10
        changed.write_bytes(data)
        with pytest.raises(FreewalkError, match=r"chang|version|truncated|begins with|header"):
            opened(changed, "pair")


def _with_header(file: Path, change) -> None:
    data = file.read_bytes()
    length = _PRELUDE.unpack(data[: _PRELUDE.size])[2]
    header = json.loads(data[_PRELUDE.size : _PRELUDE.size + length])
    change(header)
    text = json.dumps(header).encode()
    prelude = _PRELUDE.pack(SIGNATURE, 1, len(text), zlib.crc32(text), 0)
    file.write_bytes((prelude + text).ljust(4096, b"\0") + data[4096:])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda header: header.update(kind="graph"), "holds 'graph', expected 'pair'"),
        (lambda header: header["arrays"]["ints"].update(dtype=">i4"), "byte order differs"),
        (lambda header: header["arrays"]["ints"].update(dtype="O"), "does not describe the arrays"),
        (lambda header: header["arrays"]["ints"].update(offset=4097), "does not describe the arrays"),
        (lambda header: header["arrays"]["ints"].update(shape=[-1]), "does not describe the arrays"),
        (lambda header: header["arrays"]["rows"].update(shape=[2**50]), "is truncated"),
        (lambda header: header.pop("arrays"), "does not describe the arrays"),
    ],
)
def test_a_header_that_says_something_else_is_refused(file, change, said):
    _with_header(file, change)
    with pytest.raises(FreewalkError, match=said):
        opened(file, "pair")


def test_what_is_no_such_file_is_refused(tmp_path):
    (tmp_path / "text").write_text("0 1\n")
    for path, said in (("text", "begins with b'0 1"), ("absent", "cannot be read"), ("", "folder, a pipe or a device")):
        with pytest.raises(FreewalkError, match=said):
            opened(tmp_path / path, "pair")


def test_another_version_is_refused(file):
    data = bytearray(file.read_bytes())
    data[8] = 9
    file.write_bytes(data)
    with pytest.raises(FreewalkError, match="version 9 of its format, expected 1"):
        opened(file, "pair")


def test_something_at_the_end_is_refused(file):
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(FreewalkError, match="something was added"):
        opened(file, "pair")


def test_a_file_is_replaced_under_those_who_read_it(file):
    before = opened(file, "pair").arrays["ints"]
    with writing(file, "pair", {"ints": ("i4", (3,))}, {}) as sinks:
        sinks["ints"].append([7, 8, 9])
    np.testing.assert_array_equal(before, INTS)
    with pytest.raises(FreewalkError, match=r"was changed|truncated"):
        pickle.loads(pickle.dumps(before))


def test_a_file_that_is_not_written_to_the_end_leaves_the_old_one(file):
    with (
        pytest.raises(FreewalkError, match="ints has 4 bytes, expected 12"),
        writing(file, "pair", {"ints": ("i4", (3,))}, {}) as sinks,
    ):
        sinks["ints"].append([7])
    np.testing.assert_array_equal(opened(file, "pair").arrays["ints"], INTS)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_copy_of_the_file_counts_as_the_same_and_a_changed_one_does_not(file):
    rows = opened(file, "pair").arrays["rows"]
    data = file.read_bytes()
    file.unlink()
    with pytest.raises(FreewalkError, match="cannot be read"):
        reopened(rows.source)
    file.write_bytes(data)
    np.testing.assert_array_equal(reopened(rows.source), ROWS)
    file.write_bytes(data[:-1] + b"\x01")
    with pytest.raises(FreewalkError, match="was changed"):
        reopened(rows.source)


def test_what_numpy_has_mapped_is_adopted_also_in_part(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for array, expected in ((mapped, ROWS), (mapped[2:], ROWS[2:]), (mapped[2:][1:], ROWS[3:])):
        found = adopted(array)
        assert is_mapped(found)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)), expected)
        source = with_checksum(found)
        assert source.checksum == f"{zlib.crc32(expected.tobytes()):08x}"
        np.testing.assert_array_equal(reopened(source, verify=True), expected)
    for other in (mapped[:, 1], np.load(tmp_path / "rows.npy", mmap_mode="c"), np.load(tmp_path / "rows.npy")):
        assert not is_mapped(adopted(other))


def test_a_changed_file_of_numpy_is_seen(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    found = adopted(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    np.save(tmp_path / "rows.npy", np.vstack([ROWS, ROWS]))
    with pytest.raises(FreewalkError, match="was changed since"):
        pickle.loads(pickle.dumps(found))
    with pytest.raises(FreewalkError, match="was changed since"):
        with_checksum(found)
