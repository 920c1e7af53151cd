"""Compiled code on disk: nobody else's is run, damage is repaired, and a folder that will not do leads to another."""

import errno
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import pytest

from freewalk.compiled import cache
from freewalk.compiled.cache import cache_folder
from freewalk.compiled.compiler import compile_functions
from freewalk.errors import CacheWarning

NOBODY = 65534
POSIX = hasattr(os, "geteuid")
pytestmark = pytest.mark.skipif(not POSIX, reason="owners and modes are those of a POSIX system")
as_root = pytest.mark.skipif(POSIX and os.geteuid() != 0, reason="only root can give a file to another user")
with_proc = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="has no folder in which nobody can write")


def triple(x):
    return 3.0 * x


def run():
    """Compile, call and forget a function, as a process of its own would; whether it was found on disk."""
    function = compile_functions({"triple": triple}, "triple")
    try:
        assert function(2.0) == 6.0
    finally:
        del sys.modules[function.py_func.__module__]
    return sum(function.stats.cache_hits.values()) == 1


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A temporary folder of its own; nothing was reported yet, no write has failed."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(cache, "_reported", set())
    monkeypatch.setattr(cache, "_unwritable", {})
    for name in ("FREEWALK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file with compiled code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FREEWALK_CACHE", str(tmp_path_factory.mktemp("made")))
        assert not run()
        (file,) = cache_folder().iterdir()
    return file


@pytest.fixture
def kept(tmp_path, monkeypatch, made):
    """A copy of that file, in a folder that the user chose."""
    folder = tmp_path / "chosen"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("FREEWALK_CACHE", str(folder))
    file = folder / made.name
    file.write_bytes(made.read_bytes())
    file.chmod(0o600)
    return file


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def evil(tmp_path, kept):
    """Code of an attacker, who knows how the checksum is made, in place of the file; the trace it leaves when run."""
    trace = tmp_path / "trace"
    content = pickle.dumps(Evil(trace))
    kept.write_bytes(cache._digest(kept, content) + content)
    return trace


def mode(path):
    return path.stat().st_mode & 0o7777


def folders(where):
    return sorted(path.name for path in where.iterdir())


FIRST, SECOND = (f"freewalk-{os.geteuid() if POSIX else 'user'}{end}" for end in ("", "-1"))


# What is found there.


def test_compiled_code_is_found_again(kept):
    assert run()
    assert folders(kept.parent) == [kept.name]


def test_code_that_was_never_checked_would_be_run(kept, evil):
    """The attack that the next tests make is a real one: from a file of the user's own it succeeds."""
    assert not run()
    assert evil.exists()


def test_files_that_others_can_write_are_not_read(kept, evil):
    for bits in (0o666, 0o660, 0o606, 0o622):
        attack = kept.read_bytes()
        kept.chmod(bits)
        assert not run()
        assert mode(kept) == 0o600  # replaced
        assert run()
        kept.write_bytes(attack)
    assert not evil.exists()


@as_root
def test_files_of_another_user_are_not_read(kept, evil):
    os.chown(kept, NOBODY, NOBODY)
    assert not run()
    assert run()
    assert kept.stat().st_uid == 0
    assert not evil.exists()


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_are_not_followed(kept, evil, tmp_path, link):
    elsewhere = kept.rename(tmp_path / "elsewhere")
    attack = elsewhere.read_bytes()
    link(elsewhere, kept)
    assert not run()
    assert run()
    assert not kept.is_symlink()
    assert elsewhere.read_bytes() == attack  # nor written through
    assert not evil.exists()


def test_a_pipe_is_not_waited_for(kept):
    kept.unlink()
    os.mkfifo(kept)
    assert not run()
    assert run()


def test_a_file_does_not_count_under_the_name_of_another(kept, evil):
    attack = kept.read_bytes()
    other = kept.with_name("freewalk_0-0.code")
    kept.write_bytes(cache._digest(other, attack[32:]) + attack[32:])
    assert not run()
    assert not evil.exists()


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 1000, -1])
def test_a_truncated_file_is_rebuilt(kept, made, length):
    kept.write_bytes(made.read_bytes()[:length])
    assert not run()
    assert run()


@pytest.mark.parametrize("content", [b"garbage", bytes(10_000), pickle.dumps(None)])
@pytest.mark.parametrize("signed", [False, True])
def test_a_damaged_file_is_rebuilt(kept, content, signed):
    """Also one whose checksum is right, but which is not what was asked for."""
    kept.write_bytes((cache._digest(kept, content) if signed else b"") + content)
    assert not run()
    assert run()


def test_a_single_flipped_bit_is_noticed(kept):
    content = bytearray(kept.read_bytes())
    for place in (5, 100, len(content) // 2, len(content) - 1):
        flipped = content.copy()
        flipped[place] ^= 1
        kept.write_bytes(flipped)
        assert cache._read(kept) is None
    kept.write_bytes(content)
    assert cache._read(kept) is not None


def test_what_another_version_of_numba_made_is_not_read(kept, monkeypatch):
    monkeypatch.setattr(numba, "__version__", "0.1")
    assert not run()
    assert len(folders(kept.parent)) == 2


def test_numbas_own_folders_do_not_matter(kept, tmp_path, monkeypatch):
    """Else its pickles would be read from a folder that nobody has checked."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserWideCacheLocator", raising=False)
    assert run()
    kept.unlink()
    assert not run()
    assert kept.exists()
    assert not (tmp_path / "numba").exists()
    assert not (tmp_path / "home").exists()


# Where it is kept.


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "mine" / "deep"))
    assert cache_folder() == tmp_path / "mine" / "deep"
    assert cache_folder().is_dir()


def test_the_cache_is_in_the_users_cache_folder(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "home" / ".cache" / "freewalk"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "freewalk"


def test_a_user_without_a_home_has_a_cache_as_well(tmp_path, temporary, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert cache_folder() == temporary / FIRST
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_nobody_else_can_write_what_is_made(tmp_path, mask):
    before = os.umask(mask)
    try:
        assert not run()
    finally:
        os.umask(before)
    (file,) = cache_folder().iterdir()
    assert [mode(place) for place in (file, *file.parents[:4])] == [0o600, 0o700, 0o700, 0o700, mode(tmp_path)]


def test_a_link_to_a_folder_of_the_users_is_followed(kept, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(kept.parent)
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "link"))
    assert run()


def test_a_folder_that_cannot_be_written_is_still_read(kept):
    kept.parent.chmod(0o500)
    assert run()


# Folders that will not do.


@pytest.mark.parametrize("bits", [0o1777, 0o777, 0o775, 0o707])
def test_a_folder_that_others_can_write_is_not_used(kept, evil, temporary, bits):
    kept.parent.chmod(bits)
    with pytest.warns(CacheWarning) as caught:
        assert not run()
    (warning,) = caught
    assert str(warning.message) == (
        f"cache: {kept.parent} can be written by others (mode {bits:o}); set FREEWALK_CACHE to a folder of your own, "
        f"or, if it is only used for this, run: chmod 700 {kept.parent}; compiled code is kept in {temporary / FIRST} "
        "instead"
    )
    assert not evil.exists()
    assert mode(kept.parent) == bits  # it may be meant for others
    assert run()  # without a second warning
    assert folders(kept.parent) == [kept.name]


def test_a_folder_of_ours_that_others_could_write_is_repaired(tmp_path, monkeypatch, kept, evil):
    """As made by somebody whose umask is 000; what others may have left in it is not read."""
    monkeypatch.delenv("FREEWALK_CACHE")
    folder = tmp_path / "home" / ".cache" / "freewalk"
    folder.mkdir(parents=True)
    kept.rename(folder / kept.name).chmod(0o666)
    folder.chmod(0o777)
    assert not run()
    assert mode(folder) == 0o700
    assert not evil.exists()
    assert run()


@as_root
@pytest.mark.parametrize("whose", ["folder", "parent", "link"])
def test_a_folder_of_another_user_is_not_used(kept, evil, temporary, monkeypatch, whose):
    place = {"folder": kept.parent, "parent": kept.parent.parent / "parent", "link": kept.parent.parent / "link"}[whose]
    if whose == "parent":
        place.mkdir()
        kept.parent.rename(place / "chosen")
        monkeypatch.setenv("FREEWALK_CACHE", str(place / "chosen"))
    elif whose == "link":
        place.symlink_to(kept.parent)
        monkeypatch.setenv("FREEWALK_CACHE", str(place))
    os.chown(place, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.warns(CacheWarning, match=r"belongs to another user; set FREEWALK_CACHE to a folder of your own"):
        assert not run()
    assert not evil.exists()
    assert folders(temporary) == [FIRST]


@as_root
def test_another_user_cannot_have_code_run(made, monkeypatch):
    """The attack as it is made: another user writes into a folder that is open to all."""
    shared = Path(tempfile.mkdtemp(dir="/tmp"))
    trace = shared / "trace"
    try:
        shared.chmod(0o1777)
        target, content = shared / made.name, pickle.dumps(Evil(trace))
        write = ["/bin/sh", "-c", 'cat > "$0"', str(target)]
        planted = cache._digest(target, content) + content
        subprocess.run(write, input=planted, user=NOBODY, group=NOBODY, check=True)
        monkeypatch.setenv("FREEWALK_CACHE", str(shared))
        with pytest.warns(CacheWarning, match=r"can be written by others \(mode 1777\)"):
            assert not run()
        shared.chmod(0o700)  # as the warning says: what was left there is not read either
        assert run()
        assert not trace.exists()
    finally:
        for path in shared.iterdir():
            path.unlink()
        shared.rmdir()


def test_a_folder_that_everybody_can_replace_is_not_used(kept, evil, temporary, monkeypatch):
    parent = kept.parent.parent / "open"
    parent.mkdir()
    kept.parent.rename(parent / "chosen")
    monkeypatch.setenv("FREEWALK_CACHE", str(parent / "chosen"))
    parent.chmod(0o777)
    with pytest.warns(CacheWarning, match=rf"everybody can write to {parent}; run: chmod o-w {parent}, or"):
        assert not run()
    assert not evil.exists()
    parent.chmod(0o1777)  # nobody can rename the folders of others here
    assert not run()
    assert evil.exists()


OBSTACLES = {
    "a file": lambda path: path.write_text(""),
    "a dangling link": lambda path: path.symlink_to(path.with_name("missing")),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to a file": lambda path: (path.with_name("file").write_text(""), path.symlink_to(path.with_name("file"))),
}


@pytest.mark.parametrize("variable", ["FREEWALK_CACHE", "XDG_CACHE_HOME", "HOME"])
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_folder_that_cannot_be_made_leads_to_a_temporary_one(tmp_path, temporary, monkeypatch, variable, obstacle):
    OBSTACLES[obstacle](tmp_path / "obstacle")
    monkeypatch.setenv(variable, str(tmp_path / "obstacle"))
    with pytest.warns(CacheWarning, match=r"obstacle.* cannot be used \(.*\); set FREEWALK_CACHE to another") as caught:
        assert cache_folder() == temporary / FIRST
    assert len(caught) == 1
    assert cache_folder() == temporary / FIRST
    assert folders(temporary) == [FIRST]


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_in_place_of_the_temporary_folder_leads_to_another(tmp_path, temporary, monkeypatch, obstacle):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "file" / "below"))
    OBSTACLES[obstacle](temporary / FIRST)
    before = folders(temporary)
    with pytest.warns(CacheWarning) as caught:
        assert not run()
    assert len(caught) == 1
    assert cache_folder() == temporary / SECOND
    assert run()  # the next process finds it there
    assert folders(temporary) == sorted([*before, SECOND])


@with_proc
def test_a_folder_in_which_no_file_can_be_made_leads_to_a_temporary_one(temporary, monkeypatch):
    monkeypatch.setenv("FREEWALK_CACHE", "/proc")
    with pytest.warns(CacheWarning, match=r"cache: /proc cannot be written \(.*\); set FREEWALK_CACHE to") as caught:
        assert not run()
    assert len(caught) == 1
    assert [path.suffix for path in (temporary / FIRST).iterdir()] == [".code"]
    monkeypatch.setattr(cache, "_unwritable", {})
    assert run()  # so does the next process, which has nothing to write


def test_a_folder_in_place_of_the_file_leads_to_a_temporary_one(kept, temporary):
    kept.unlink()
    kept.mkdir()
    with pytest.warns(CacheWarning, match=r"chosen cannot be written \(Is a directory\)"):
        assert not run()
    assert folders(kept.parent) == [kept.name]
    assert folders(temporary / FIRST) == [kept.name]


@with_proc
def test_without_any_folder_code_is_compiled_and_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("FREEWALK_CACHE", "/proc/none")
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.warns(CacheWarning, match=r"/proc/none cannot be used .*; compiled code is not kept, so") as caught:
        assert not run()
    assert len(caught) == 1
    assert not run()
    assert cache_folder() is None


# Disks that are full, processes that are killed, and other processes.

SCRIPT = """
import sys
from pathlib import Path

sys.path.insert(0, {folder!r})
from example import double
from freewalk.compiled.compiler import compile_functions

{before}
function = compile_functions({{"double": double}}, "double")
print(function(2.0), sum(function.stats.cache_hits.values()))
"""


def start(folder, before="", *options, **environment):
    """The script in a process of its own, with a cache in this folder."""
    (folder / "example.py").write_text("def double(x):\n    return 2.0 * x\n")
    scope = {name: value for name, value in os.environ.items() if name not in environment}
    scope |= {"FREEWALK_CACHE": str(folder / "cache"), "TMPDIR": str(folder / "temporary")}
    return subprocess.Popen(
        [sys.executable, *options, "-c", SCRIPT.format(folder=str(folder), before=before)],
        env=scope | {name: value for name, value in environment.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_full_disk_leaves_nothing_behind(tmp_path, temporary):
    """No file can have more than 100 bytes here, wherever it is written."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    output, errors = start(tmp_path, limit).communicate()
    assert output == "4.0 0\n"
    assert errors.count("CacheWarning") == 1
    assert f"cache: {tmp_path / 'cache'} cannot be written ({os.strerror(errno.EFBIG)})" in errors
    assert "compiled code is not kept, so every process compiles it again" in errors
    assert [path for path in tmp_path.rglob("*") if path.suffix in (".tmp", ".code")] == []


def test_processes_can_compile_the_same_at_the_same_time(tmp_path):
    """Without a home as well, and with warnings as errors."""
    both = [start(tmp_path, "", "-W", "error", HOME=None, NUMBA_CACHE_DIR=str(tmp_path / "numba")) for _ in range(2)]
    for process in both:
        output, errors = process.communicate()
        assert (output.split()[0], errors) == ("4.0", "")
    output, _ = start(tmp_path, "", "-W", "error").communicate()
    assert output == "4.0 1\n"
    assert len(folders(tmp_path / "cache")) == 1
    assert not (tmp_path / "numba").exists()


WRITER = """
import sys
from pathlib import Path
from freewalk.compiled import cache
while True:
    cache._write(Path(sys.argv[1]), bytes(range(256)) * 2000)
"""
VANDAL = """
import os, sys
while True:
    try:
        os.truncate(sys.argv[1], 1000)
        os.unlink(sys.argv[1])
    except FileNotFoundError:
        pass
"""


def test_no_reader_ever_meets_half_a_file(tmp_path):
    """One process writes, another damages, a third reads: it gets all of it or nothing."""
    path, content = tmp_path / "freewalk_0-0.code", bytes(range(256)) * 2000
    tmp_path.chmod(0o700)
    others = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for code in (WRITER, VANDAL)]
    try:
        seen, end = set(), time.monotonic() + 20.0
        while len(seen) < 2 and time.monotonic() < end:
            seen.add(cache._read(path))
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            seen.add(cache._read(path))
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert seen == {None, content}


def test_what_killed_processes_left_is_removed(kept):
    """But not what may still be written, nor what is none of ours."""
    abandoned, busy, foreign = f".{kept.name}.abandoned.tmp", f".{kept.name}.busy.tmp", "notes.tmp"
    for name in (abandoned, busy, foreign):
        (kept.parent / name).touch()
    for name in (abandoned, foreign):
        os.utime(kept.parent / name, (0, time.time() - 7200))
    kept.unlink()
    assert not run()
    assert folders(kept.parent) == sorted([kept.name, busy, foreign])
