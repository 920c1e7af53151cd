"""The processes of Ray that this one has started, directly or not."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path


def descendants(of=None):
    """By number: the command lines of all processes below this one."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            commands[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):  # it has gone
            continue
    found, wanted = {}, {os.getpid() if of is None else of}
    while wanted:
        wanted = {child for child, parent in parents.items() if parent in wanted}
        found |= {child: commands.get(child, "") for child in wanted}
    return found


def at_work(of=None):
    """The workers that are busy with a task of ours."""
    return [number for number, command in descendants(of).items() if command.startswith("ray::work")]


@contextmanager
def killing(times, pause=0.05, of=None):
    """Kill workers in the middle of their tasks, so many times; yields the list of those that were killed."""
    killed, done = [], threading.Event()

    def kill():
        while len(killed) < times and not done.wait(pause):
            for number in at_work(of)[:1]:
                os.kill(number, signal.SIGKILL)
                killed.append(number)
                time.sleep(0.3)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()
