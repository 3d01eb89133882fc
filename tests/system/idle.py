#!/usr/bin/env python3
"""A mount, an OSD and an MDS that nobody uses: together they wake under 20 times a second and take under 0.3 % of a core.

Counted are voluntary context switches of all threads: timers and messages cause them, whatever else the machine does,
while involuntary ones come from its load. Their number is the figure to compare over time: it is shown beside the aim
of 10. What one costs is the machine's, too: processor time is that of their threads alone (schedstat), and where a
bare wake takes longer than BARE_WAKE, so may theirs.
"""
import os
import time

from weirtest import BIN, Cluster, check, main, wait_until

WAKES_MAX = 20  # a second
WAKES_AIM = 10  # shown beside; no failure
CORE_MAX = 0.003
BARE_WAKE = 20e-6  # seconds of a core for a thread that only sleeps again
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
    """Of its threads, to the nanosecond: /proc/PID/stat counts whole ticks of whoever runs at one, which timers may meet."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                nanoseconds += int(file.read().split()[0])
        except OSError:  # It has ended.
            continue
    return nanoseconds / 1e9


def watch(pids, seconds):
    """Wakes a second by thread, the part of a core of all of them, and how much more than BARE_WAKE a wake costs."""
    before = {pid: (wakes(pid), core_seconds(pid)) for pid in pids.values()}
    begun, slept, own = time.monotonic(), 0, time.thread_time()
    while time.monotonic() < begun + seconds:
        time.sleep(0.05)
        slept += 1
    took = time.monotonic() - begun
    slower = max(1.0, (time.thread_time() - own) / slept / BARE_WAKE)
    rows, core = [], 0.0
    for program, pid in pids.items():
        old, used = before[pid]
        core += (core_seconds(pid) - used) / took
        for thread, (name, count) in wakes(pid).items():
            rows.append(((count - old.get(thread, (name, 0))[1]) / took, program, name))
    return sorted(rows, reverse=True), core, slower


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
        rows, core, slower = watch(pids, WATCHED)
        total = sum(row[0] for row in rows)
        seen.append(f"{total:.1f}/s (aim {WAKES_AIM}, at most {WAKES_MAX}), "
                    f"{100 * core:.2f} % of a core, a bare wake {slower:.1f} x: " +
                    ", ".join(f"{program}'s {name} {count:.1f}/s" for count, program, name in rows if count >= 0.5))
        return total < WAKES_MAX and core < CORE_MAX * slower

    try:
        wait_until(quiet, "idleness", timeout=60)
    finally:
        for line in seen:
            lab.show(line)


if __name__ == "__main__":
    main("idle", nobody_uses_them)
