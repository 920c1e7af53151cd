"""Records that were tampered with: each must be refused with a FreewalkError or resume as any other, and soon.

    python tests/robustness/records.py 5000 --seed 1

The text and the arrays of good files are changed in one to three places, or the bytes of the file. They are loaded and
resumed in processes of their own, with 6 GB of memory each; a process that dies or is silent for ten seconds counts as
a crash or a hang of the record that it had begun.
"""

import contextlib
import copy
import io
import json
import resource
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import calls

MEMORY = 6 * 2**30
SECONDS = 1.0  # after which a record that resumes is interrupted


def bases(folder):
    """Good files, most of them of interrupted runs: (text, arrays)."""
    import freewalk as fw

    ring = fw.graphs.ring(5)
    angles = np.arange(5) * 2 * np.pi / 5
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    named = fw.Graph(ring.indptr, ring.indices, "sites", ("Aa", "Bb", "Cc", "Dd", "Ee"), places)
    problem = fw.objectives.LeastSquares.synthetic(5, 2, heavy=1, samples=2, seed=1)
    logistic = fw.objectives.Logistic.synthetic(5, 2, ridge=0.1, seed=1)
    jumping = fw.designs.MHLJ(0.3, 0.5, 3).kernel(named, problem.smoothness)
    fading = fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 2), fw.schedules.Exponential(1.0, half_life=20))
    matrix = fw.designs.FromMatrix(fw.designs.Metropolis(power=1).kernel(ring, problem.smoothness).matrix())
    parked, tracking = fw.designs.Stay().kernel(ring), fw.rules.GradientTracking(0.001)
    gossip = fw.exchanges.Gossip(fw.exchanges.Gossip().on(ring), every=2)
    mean = fw.SGD(fw.schedules.Inverse(0.02, scale=50), average=True)
    phases = [
        fw.Phase(30, fading.kernel(ring, problem.smoothness), mean),
        fw.Phase(None, matrix.kernel(ring), fw.SGD(0.01)),
    ]
    run = {"steps": 400, "walks": 3, "every": 9, "seed": 5}

    def again(**changes):
        return run | {"progress": press()} | changes

    records = [
        fw.learn(problem, jumping, mean, runtime="reference", paths=[2, 0], **again()),
        fw.learn(problem, phases, runtime="reference", **again()),
        fw.learn(logistic, jumping, fw.SGD(0.1, local_steps=2, sampled=True), runtime="reference", **again(walks=1)),
        fw.learn(problem, jumping, fw.SGD(0.01), runtime=fw.runtimes.CPU(threads=1), paths=1, **again()),
        fw.learn(problem, phases, runtime="cpu", precision="float32", **again()),
        fw.walk(jumping, runtime="cpu", paths=3, **again()),
        fw.learn(problem, jumping, mean, runtime="cpu", tokens=4, exchange=fw.exchanges.Average(every=3), **again()),
        fw.learn(problem, parked, tracking, tokens="nodes", exchange=gossip, runtime="reference", **again()),
        fw.walk([fw.Phase(10, jumping), fw.Phase(None, fading.kernel(named, np.ones(5)))], **again()),
    ]
    assert all(record.partial for record in records)
    whole = fw.concat([fw.learn(problem, jumping, mean, steps=8, runtime="reference")], ["a"])
    return [contents(record.save(folder / "base.npz")) for record in [*records, whole]]


def press():
    """A function for `progress` that interrupts at the first call from step 15 on."""
    return lambda step, steps: signal.raise_signal(signal.SIGINT) if step >= 15 else None


def contents(path):
    """The text and the arrays of a file."""
    with np.load(path) as file:
        return json.loads(file["header"].tobytes()), {name: file[name] for name in file.files if name != "header"}


def junk(random, old):
    """A value that does not belong there, sometimes near the one that does."""
    if isinstance(old, int) and random.random() < 0.4:
        return old + random.choice([-1, 1, -old - 1, 2**31, 2**62, 2**63, 10**30])
    return random.choice(
        [
            *(None, True, False, 0, 1, -1, 3, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0),
            *(1e-320, 1e308, float("nan"), float("inf"), "", "x", "\0", "\ud800", "a0", "Kernel", [], {}, [0], [[]]),
            *([0] * 5, {"a": 1}, {"array": "a0"}, {"array": 3}, {"array": "none"}, {"type": "SGD"}, {"texts": "a1"}),
            *({"given": "graph"}, {"given": []}, {"csr": ["a0", "a1", "a2"], "shape": [5, 5]}),
            *({"type": "SGD", "fields": {"step": 0.1}}, {"type": "own Popen", "fields": {"args": "true"}}),
            *({"type": "Graph", "fields": {}}, {"type": [], "fields": 3}, nested(100), nested(5000)),
        ]
    )


def nested(depth):
    """A list in a list in a list."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def places(tree):
    """Every place of a tree, as the mapping or list that holds it and the key."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        keys = item if isinstance(item, dict) else range(len(item))
        for key in keys:
            yield item, key
            if isinstance(item[key], (dict, list)):
                waiting.append(item[key])


def change_text(random, header):
    """One change of the text."""
    part = random.choice(["continuation"] * 4 + ["graph", "attrs", "dims", "", ""])
    tree = header[part] if isinstance(header.get(part), (dict, list)) and header[part] else header
    item, key = random.choice(list(places(tree)))
    kind = random.choice(["replace"] * 6 + ["drop", "add", "swap"])
    if kind == "drop":
        del item[key]
    elif kind == "add" and isinstance(item, dict):
        item[random.choice(["array", "type", "csr", "given", "texts", "marks", "x", "step"])] = junk(random, None)
    elif kind == "swap":
        other, place = random.choice(list(places(tree)))
        item[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(item[key])
    else:
        item[key] = junk(random, item[key])


def change_array(random, arrays):
    """One change of an array."""
    names = sorted(arrays)
    name = random.choice([one for one in names if one.startswith("continuation")] or names)
    name = random.choice([name, name, random.choice(names)])
    array = arrays[name]
    kind = random.choice(["values"] * 5 + ["type"] * 3 + ["shape"] * 4 + ["drop", "other", "object", "structure"])
    if kind == "drop":
        del arrays[name]
    elif kind == "other":
        arrays[name] = arrays[random.choice(names)]
    elif kind == "object":
        arrays[name] = np.array([{"a": 1}, None], dtype=object)
    elif kind == "structure":
        arrays[name] = np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])
    elif kind == "type":
        kinds = "i1 i2 i4 i8 >i4 >i8 u8 f2 f4 f8 >f8 c16 b1 U5 S3"
        to = random.choice(kinds.split())
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(to)
    elif kind == "shape":
        longer = np.concatenate([array, array]) if array.ndim else array
        shapes = [array.ravel(), array[..., None], array.T, longer, np.zeros((0, 3)), np.zeros(()), array.ravel()[:-1]]
        arrays[name] = random.choice([*shapes, array[:0] if array.ndim else array])
    else:
        changed = np.array(array)
        extremes = [-1, 5, 2**31 - 1, -(2**31)] if changed.dtype.kind in "iu" else [np.nan, np.inf, 1e308, -1e-320, -1]
        extremes += [2**62, -(2**63)] if changed.dtype == "i8" else []
        if changed.dtype.kind not in "iuf" or not changed.size:
            return
        with np.errstate(all="ignore"):
            value = np.array(random.choice(extremes)).astype(changed.dtype)
        one = random.randrange(changed.size)
        changed.flat[random.choice([slice(None), one, one])] = value
        arrays[name] = changed


def written(header, arrays):
    """A file, as bytes."""
    parts = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in parts.items():
            with archive.open(f"{name}.npy", "w") as part:
                np.lib.format.write_array(part, array, allow_pickle=True)
    return file.getvalue()


def change_bytes(random, data):
    """A file that was damaged, or whose lists of entries lie."""
    kind = random.choice(["flip"] * 4 + ["cut", "add", "twice", "directory", "directory", "size"])
    data = bytearray(data)
    if kind == "flip":
        for _ in range(random.choice([1, 2, 20])):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del data[random.randrange(len(data)) :]
    elif kind == "add":
        data += random.randbytes(50)
    elif kind == "twice":
        file = io.BytesIO(bytes(data))
        with warnings.catch_warnings(), zipfile.ZipFile(file, "a") as archive:
            warnings.simplefilter("ignore")
            archive.writestr(random.choice(archive.namelist()), b"again")
        data = bytearray(file.getvalue())
    else:
        starts = [place for place in range(len(data) - 46) if data[place : place + 4] == b"PK\x01\x02"]
        start = random.choice(starts)
        place, size = {"directory": (random.choice([8, 10, 16, 42]), 2), "size": (random.choice([20, 24]), 4)}[kind]
        data[start + place : start + place + size] = random.randbytes(size)
    return bytes(data)


def tampered(random, good):
    """A file made of a good one."""
    header, arrays = copy.deepcopy(random.choice(good))
    if random.random() < 0.15:
        return change_bytes(random, written(header, arrays))
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        with contextlib.suppress(
            TypeError, ValueError, RecursionError
        ):  # names as numbers, and what is too deep for a copy
            if random.random() < 0.5 and arrays:
                change_array(random, arrays)
            else:
                change_text(random, header)
    if random.random() < 0.02:
        header["attrs"] = nested(100_000)
    try:
        return written(header, arrays)
    except RecursionError:  # too deep for our own writer
        text = b'{"format": 1, "dims": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        file = io.BytesIO()
        np.savez(file, header=np.frombuffer(text, dtype=np.uint8))
        return file.getvalue()


def use(path):
    """Load a file, go on with it, save it and load it again."""
    import freewalk as fw

    record = fw.load(path)
    repr(record), record.nbytes
    if not record.partial:
        record.save(path)
        return "loads"
    end = time.monotonic() + SECONDS

    def stop(step, steps):
        if time.monotonic() > end:
            signal.raise_signal(signal.SIGINT)

    resumed = fw.resume(record, progress=stop)
    loaded = fw.load(resumed.save(path))
    assert loaded.data.identical(resumed.data)
    return "resumes"


def work(first, last, seed):
    """Try the files of some numbers, and tell about each before and after it, a line of JSON each time."""
    import random as randomness

    import freewalk as fw

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "record.npz")
        good = bases(Path(name))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number in range(first, last):
            path.write_bytes(tampered(randomness.Random(f"{seed}/{number}"), good))
            print(json.dumps({"number": number, "call": "record", "chosen": []}), flush=True)
            began = time.monotonic()
            try:
                outcome, said = use(path), ""
            except fw.FreewalkError as error:
                outcome, said = "refused", str(error)
            except BaseException as error:
                outcome, said = "wrong", f"{type(error).__name__}: {error}"
            seconds = time.monotonic() - began
            print(json.dumps({"outcome": outcome, "said": said[:2000], "seconds": seconds}), flush=True)


FINE = ("refused", "loads", "resumes")


def main():
    """Try the files, and print what went wrong."""
    found = calls.asked_for(__doc__, work, __file__)
    for one in found:
        if one["outcome"] not in FINE:
            print(one["number"], one["outcome"], one["said"][:300])
    counts = Counter(one["outcome"] for one in found)
    print(f"{len(found)} records:", ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    print(f"the longest took {max(one.get('seconds', 0.0) for one in found):.1f} s")
    print(f"the longest message has {max(len(one['said']) for one in found)} letters")
    sys.exit(any(name not in FINE for name in counts))


if __name__ == "__main__":
    main()
