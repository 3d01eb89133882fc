#!/usr/bin/env python3
"""A mount, an OSD and an MDS that nobody uses: together they wake under 20 times a second and take under 0.3 % of a core.

Counted are voluntary context switches of all threads: timers and messages cause them, whatever else the machine does,
while involuntary ones come from its load.
"""
import os
import time

from weirtest import BIN, Cluster, check, main, wait_until

WAKES_MAX = 20  # a second
CORE_MAX = 0.003
WATCHED = 10  # seconds


def daemons(lab):
    """The pids of those that work in this lab, by program."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        program = os.path.basename(words[0])
        if program in ("weirfs", "weir-osd", "weir-mds") and any(word.startswith(lab.dir) for word in words):
            found[program] = int(pid)
    return found


def wakes(pid):
    """By thread: its name and how often it has slept. Those that end meanwhile are not counted."""
    counts = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/status") as file:
                lines = dict(line.split(":", 1) for line in file)
        except OSError:
            continue
        counts[thread] = (lines["Name"].strip(), int(lines["voluntary_ctxt_switches"]))
    return counts


def core_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(pids, seconds):
    """Wakes a second by thread, and the part of a core, of all of them."""
    before = {pid: (wakes(pid), core_seconds(pid)) for pid in pids.values()}
    begun = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begun
    rows, core = [], 0.0
    for program, pid in pids.items():
        old, used = before[pid]
        core += (core_seconds(pid) - used) / took
        for thread, (name, count) in wakes(pid).items():
            rows.append(((count - old.get(thread, (name, 0))[1]) / took, program, name))
    return sorted(rows, reverse=True), core


def nobody_uses_them(lab):
    """They settle when what they were last asked for is over; how long that takes is theirs, so the quietest of some
    spans counts."""
    cluster = Cluster(lab)
    with open(f"{cluster.mnt}/file", "w") as file:
        file.write("something")
        file.flush()
        os.fsync(file.fileno())
    pids = daemons(lab)
    check(len(pids) == 3, f"found {pids} of {BIN}")
    seen = []

    def quiet():
        rows, core = watch(pids, WATCHED)
        total = sum(row[0] for row in rows)
        seen.append(f"{total:.1f}/s, {100 * core:.2f} % of a core: " +
                    ", ".join(f"{program}'s {name} {count:.1f}/s" for count, program, name in rows if count >= 0.5))
        return total < WAKES_MAX and core < CORE_MAX

    try:
        wait_until(quiet, "idleness", timeout=60)
    finally:
        for line in seen:
            lab.show(line)


if __name__ == "__main__":
    main("idle", nobody_uses_them)
