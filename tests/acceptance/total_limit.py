#!/usr/bin/env python3
"""A limit over three OSDs: every second all mounts together get it, whatever they ask.

20 MiB/s, and one writer with 32 requests of 64 KiB under way on each of n mounts, striped over all OSDs; on three mounts
each of which asks one OSD only; on two, one of which moves from OSD to OSD; on two, one of which dies. From two seconds
after demand has changed every whole second of what they are answered is within 2 % and one request a mount of the limit.
The part of a mount that dies has to run out first (three seconds): until then the others are only to stay below the limit.

A second in which this program itself was kept from the processors may lack what the limit gives in that time.
"""
import os
import threading
import time

from servicelog import Stream, wait_for
from weirtest import MIB, Cluster, check, main

LIMIT, OSDS, SETTLE, SECONDS = 20, 3, 2, 7
BLOCK, DEPTH = 64, 32  # KiB
STAY = 5               # seconds that a writer who moves is at an OSD
RUNS_OUT = 3.1         # seconds after which the part of a mount that is gone is given to others
EARLY = 0.5            # fio may end so much before the next begins


class Pauses:
    """For how much of the time this program, which sleeps, was woken late: between(a, b) in seconds."""
    SLEEP = 0.002

    def __init__(self, lab):
        self.late, self._stop = [], threading.Event()
        threading.Thread(target=self._sample, daemon=True).start()
        lab.on_exit(self._stop.set)

    def _sample(self):
        last = time.time()
        while not self._stop.is_set():
            time.sleep(self.SLEEP)
            now = time.time()
            if now - last > 3 * self.SLEEP:
                self.late.append((now, now - last - self.SLEEP))
            last = now

    def between(self, begin, end):
        return sum(late for when, late in self.late if begin <= when <= end + 0.05)


def prepare(lab, mounts):
    system = Cluster(lab, osds=OSDS, mounts=mounts, osd_size="2GiB", token_rate="1GiB/s")
    system.osdctl("class", "create", "capped", "--limit", f"{LIMIT}MiB/s")
    for osd in range(OSDS):
        system.osdctl("pool", "create", f"p{osd}", "--osds", osd)
    return system


def folder(system, name, pool=None):
    path = f"{system.mnt}/{name}"
    os.mkdir(path)
    if pool:
        os.setxattr(path, "user.weir.layout.pool", pool.encode())
    return path


def writer(lab, system, mount, name, seconds=SECONDS):
    return Stream(lab, f"{name}.{mount}", f"{system.mounts[mount]}/{name}", "write", seconds, block=f"{BLOCK}k",
                  depth=DEPTH, size="24m")


def tag(system, names):
    for name in names:
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", b"capped")
    time.sleep(1)  # every mount has heard of it


def judge(lab, what, streams, mounts, changes, end, pauses):
    """Whole seconds after each of `changes` until the next, or the end, of what all streams together were served."""
    slack = LIMIT * 0.02 + mounts * BLOCK * 1024 / MIB
    failures, rates = [], []
    for begin, until in zip(changes, [*changes[1:], end]):
        at = begin + SETTLE
        while at + 1 <= until - EARLY:
            rate, late = sum(s.served(at, at + 1) for s in streams), pauses.between(at, at + 1)
            rates.append(rate)
            if rate > LIMIT + slack or rate < LIMIT * (1 - late) - slack:
                failures.append(f"{rate:.2f} MiB/s {at - changes[0]:.1f} s after the start (paused: {late * 1000:.0f} ms)")
            at += 1
    lab.show(f"        {what:<34} {sum(rates) / len(rates):6.2f} [{min(rates):6.2f} to {max(rates):6.2f}] MiB/s in "
             f"{len(rates)} seconds")
    check(not failures, f"{what}: " + "; ".join(failures))


def striped(lab):
    system, pauses = prepare(lab, 6), Pauses(lab)
    folder(system, "all")
    rounds = {n: [writer(lab, system, mount, "all") for mount in range(n)] for n in (1, 2, 3, 6)}
    tag(system, ["all"])
    for n, streams in rounds.items():
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.finish()
        start = max(min(at for at, _ in s.done) for s in streams)
        judge(lab, f"{n} mounts, striped", streams, n, [start], start + SECONDS, pauses)


def disjoint(lab):
    system, pauses = prepare(lab, OSDS), Pauses(lab)
    names = [f"d{osd}" for osd in range(OSDS)]
    for osd, name in enumerate(names):
        folder(system, name, f"p{osd}")
    streams = [writer(lab, system, osd, name) for osd, name in enumerate(names)]
    tag(system, names)
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.finish()
    start = max(min(at for at, _ in s.done) for s in streams)
    judge(lab, f"{OSDS} mounts, an OSD each", streams, OSDS, [start], start + SECONDS, pauses)


def moving(lab):
    system, pauses = prepare(lab, 2), Pauses(lab)
    names = [f"d{osd}" for osd in range(OSDS)]
    for osd, name in enumerate(names):
        folder(system, name, f"p{osd}")
    stays = writer(lab, system, 1, "d0", STAY * OSDS)
    moves = [writer(lab, system, 0, name, STAY) for name in names]
    tag(system, names)
    start = time.time() + 0.5
    wait_for(start)
    stays.start()
    for at, stream in enumerate(moves):
        wait_for(start + at * STAY)
        stream.start()
    for stream in [stays, *moves]:
        stream.finish()
    # fio takes its time to begin: a move is over when the next has begun.
    changes = [min(at for at, _ in s.done) for s in moves]
    end = min(changes[-1] + STAY, min(at for at, _ in stays.done) + STAY * OSDS)
    judge(lab, "2 mounts, one moves", [stays, *moves], 2, changes, end, pauses)


def dying(lab):
    system, pauses = prepare(lab, 2), Pauses(lab)
    folder(system, "all")
    stays, dies = (writer(lab, system, mount, "all", 12) for mount in range(2))
    tag(system, ["all"])
    start = time.time()
    for stream in [stays, dies]:
        stream.start()
    wait_for(start + 3)
    dies.process.kill()
    system.dev("kill", "mnt.1")
    died = time.time()
    stays.finish()
    judge(lab, "2 mounts, one dies", [stays], 1, [died + RUNS_OUT], start + 12, pauses)
    most = max(stays.served(died + i * 0.1, died + i * 0.1 + 1) for i in range(int((RUNS_OUT - 1) * 10)))
    check(most <= LIMIT * 1.02 + BLOCK * 1024 / MIB, f"{most:.2f} MiB/s after one died")


if __name__ == "__main__":
    main("total_limit", striped, disjoint, moving, dying)
