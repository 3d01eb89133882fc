"""What a request costs besides time: context switches and threads.

Switches are the whole machine's (/proc/stat, the figure of `perf stat -a -e context-switches`), since kernel threads of
loop devices and rings belong to a request's price, too: whatever else runs is in them.
"""
import concurrent.futures
import os

from .host import BenchError

LOAD_S = 1  # while threads are counted
LOOK_S = 0.05


def switches(text=None):
    """Context switches since boot."""
    if text is None:
        with open("/proc/stat", encoding="ascii") as file:
            text = file.read()
    for line in text.splitlines():
        if line.startswith("ctxt "):
            return int(line.split()[1])
    raise BenchError("/proc/stat has no line 'ctxt'")


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


class Threads:
    """The rows of threads: those of each kind of process, of the one that has most, under load."""
    name = "threads"

    def __init__(self, load):
        self._load = load  # a jobs.FioJob

    def rows(self):
        return {f"{self.name}.{kind}": "threads" for kind in ("mount", "osd", "mds")}

    def suits(self, system):
        return hasattr(system, "processes")

    def measure(self, system, _runtime_s, repeat):
        self._load.prepare(system)
        found = {}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            load = pool.submit(self._load.run, system, LOAD_S, repeat)
            while not load.done() or not found:
                for kind, pids in system.processes().items():
                    found[kind] = max(found.get(kind, 0), *(threads(pid) for pid in pids))
                concurrent.futures.wait([load], LOOK_S)
            load.result()  # It fails here if it did.
        return {f"{self.name}.{kind}": count for kind, count in found.items()}
