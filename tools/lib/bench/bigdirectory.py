"""The rows of a directory that grows: what it costs with a million names beside what it costs with a hundred.

One thread makes a million empty files in one directory. Each growth says how many times as long an operation takes there:
a creation among the last 10,000, against the first 10,000, also in processor time of the mount, the daemons and the load, on which
what else the machine does tells less; all else against the same in a hundred directories of a hundred
names each. Names are taken at random, the same ones in each run. The million stays: to remove it would take as long as to
make it, and no row comes behind that it would slow down.
"""
import contextlib
import glob
import os
import random
import time

from .host import say

NAME = "bigdirectory"
ABOUT = "a million creations in one directory by one thread, then stats, a listing and unlinks, against directories of 100 names"
NAMES = 1_000_000
SAMPLE = 10_000  # of names, for each rate
SMALL = 100      # names of a small directory
LOOKS = ("stat-cold", "stat-warm", "list-cold", "unlink")


class BigDirectory:
    name, unit = NAME, "x"

    def __init__(self, names=NAMES, sample=SAMPLE):
        self._names, self._sample = names, sample

    def rows(self):
        units = {f"{NAME}.create-growth": "x", f"{NAME}.create-worst": "x", f"{NAME}.create-first": "ops/s", f"{NAME}.create-last": "ops/s",
                 f"{NAME}.create-cpu-growth": "x", f"{NAME}.create-cpu-first": "us", f"{NAME}.create-cpu-last": "us"}
        for look in LOOKS:
            units.update({f"{NAME}.{look}-growth": "x", f"{NAME}.{look}": "ops/s", f"{NAME}.{look}-small": "ops/s"})
        return units

    def suits(self, system):
        return system.data is not None and not system.limit  # The passthrough keeps a descriptor of each file.

    def measure(self, system, _runtime_s, repeat):
        """{row: value}, once: a second million would be made beside the first."""
        if repeat > 0:
            return {}
        small = os.path.join(system.data, f"{NAME}.small")
        big = os.path.join(system.data, f"{NAME}.big")
        small_paths = [os.path.join(small, str(i // SMALL), f"f{i}") for i in range(self._sample)]
        for i in range(0, self._sample, SMALL):
            os.makedirs(os.path.dirname(small_paths[i]))
        create(small_paths)
        os.mkdir(big)
        windows, spent = [], [processor_s(system)]
        for begin in range(0, self._names, self._sample):
            windows.append(create([os.path.join(big, f"f{i}") for i in range(begin, begin + self._sample)]))
            spent.append(processor_s(system))
        chosen = random.Random(1).sample(range(self._names), self._sample)
        looks = {"big": look(system, [big], [os.path.join(big, f"f{i}") for i in chosen], self._names),
                 "small": look(system, [os.path.join(small, name) for name in os.listdir(small)], shuffled(small_paths), self._sample)}
        rows = rows_of(windows, looks["big"], looks["small"])
        rows.update(processor_rows([1e6 * (after - before) / self._sample for before, after in zip(spent, spent[1:])]))
        say(f"  {system.name}: creations/s by tenths of the million: {', '.join(f'{rate:,.0f}' for rate in tenths(windows))}")
        return rows


def create(paths):
    """How many a second."""
    begin = time.monotonic()
    for path in paths:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    return len(paths) / (time.monotonic() - begin)


def processor_s(system):
    """Seconds of processor time so far, of this process and those of the system; of a peer that does not name its own, of this one."""
    nanoseconds = time.process_time_ns()
    for pids in system.processes().values() if hasattr(system, "processes") else ():
        for stat in (path for pid in pids for path in glob.glob(f"/proc/{pid}/task/*/schedstat")):
            with contextlib.suppress(OSError), open(stat, encoding="ascii") as file:  # A thread may have ended.
                nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


def look(system, directories, paths, names):
    """{look: how many a second}; `paths` go in the end. Directories are listed with a stat of each entry, as by ls -l."""
    rates = {}
    system.cold()
    for kind in ("stat-cold", "stat-warm"):
        rates[kind] = each(os.stat, paths)
    system.cold()
    begin = time.monotonic()
    seen = 0
    for directory in directories:
        with os.scandir(directory) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                seen += 1
    if seen != names:
        raise OSError(f"{directories[0]}: {seen} names were listed, there are {names}")
    rates["list-cold"] = seen / (time.monotonic() - begin)
    rates["unlink"] = each(os.unlink, paths)
    return rates


def each(call, paths):
    begin = time.monotonic()
    for path in paths:
        call(path)
    return len(paths) / (time.monotonic() - begin)


def shuffled(paths):
    return random.Random(2).sample(paths, len(paths))


def tenths(windows):
    """The rates of ten parts of the run, one after the other."""
    part = max(len(windows) // 10, 1)
    parts = [windows[i:i + part] for i in range(0, len(windows), part)]
    return [len(rates) / sum(1 / rate for rate in rates) for rates in parts]


def processor_rows(us):
    """`us`: of processor time that one creation took in each window."""
    return {f"{NAME}.create-cpu-growth": us[-1] / us[0], f"{NAME}.create-cpu-first": us[0], f"{NAME}.create-cpu-last": us[-1]}


def rows_of(windows, big, small):
    """The rows: `windows`: creations a second of each SAMPLE of them, in order; `big`, `small`: of look()."""
    rows = {f"{NAME}.create-growth": windows[0] / windows[-1], f"{NAME}.create-worst": windows[0] / min(windows),
            f"{NAME}.create-first": windows[0], f"{NAME}.create-last": windows[-1]}
    for kind in LOOKS:
        rows.update({f"{NAME}.{kind}-growth": small[kind] / big[kind], f"{NAME}.{kind}": big[kind],
                     f"{NAME}.{kind}-small": small[kind]})
    return rows
