#!/usr/bin/env python3
"""What a small reader keeps beside 64 writers when nobody has configured anything: no class, no rule, no bound.

4 KiB random reads, one at a time, beside 64 writers: `seq` (1 MiB, sequential) or `rnd` (64 KiB, random), all best effort, at
the full speed of image files. The writers are 64 processes of the reader's user, or 64 threads of one process of another
user; on the reader's mount, or on another. Bounds, over alone:

  the reader keeps 40 % of its requests, its p99 is at most 5 times as long; the writers keep 60 % of their bytes.

The writers' bytes are those that the OSDs served while the reader was measured. WEIR_UNTAGGED_SECONDS says how long each
measurement is.
"""
import contextlib
import json
import os
import time

import isolation
from weirtest import MIB, Cluster, check, main

SECONDS = int(os.environ.get("WEIR_UNTAGGED_SECONDS", "4"))  # of each measurement
RAMP = 1
READER_MIB = 128
WRITERS = 64
OTHER_USER = 1000
KEEPS, TIMES, WRITERS_KEEP = 0.4, 5, 0.6
PROCESSES = [option for option in isolation.FIO if option != "--thread"]


def reader(mount):
    return ["--name=reader", f"--filename={mount}/reader/data", "--rw=randread", "--bs=4k", "--ioengine=psync",
            f"--size={READER_MIB}m"]


def writers(mount, kind):
    shape = {"seq": ["--rw=write", "--bs=1m"], "rnd": ["--rw=randwrite", "--bs=64k"]}[kind]
    return ["--name=writers", f"--directory={mount}/writers", "--filename_format=$jobnum", "--ioengine=psync",
            f"--numjobs={WRITERS}", "--size=8m", *shape]


class Result:
    def __init__(self, job, seconds, served):
        self.reads = self.p50 = self.p99 = 0
        if job:
            lat = job["read"]["lat_ns"]
            self.p50, self.p99 = (lat["percentile"][p] / 1e3 for p in ("50.000000", "99.000000"))
            self.reads = job["read"]["iops"]
        self.written = (served - self.reads * seconds * 4096) / MIB / seconds


def served(system):
    stat = json.loads(system.osdctl("stat", "-o", "json").stdout)
    return sum(c["served_bytes"] for osd in stat["osds"] for c in osd["classes"] if c["class"] == "best-effort")


def measure(lab, system, reads=None, writes=None, threads=False):
    """`threads`: the writers are threads of one process of another user."""
    options, user = (isolation.FIO, OTHER_USER) if threads else (PROCESSES, None)
    with isolation.in_background(lab, writes, options, user) if writes else contextlib.nullcontext():
        time.sleep(RAMP if writes else 0)
        job, before, since = None, served(system), time.monotonic()
        if reads:
            job = isolation.fio(lab, ["--time_based", f"--runtime={SECONDS}"] + reads, PROCESSES)[0]
        else:
            time.sleep(SECONDS)
        return Result(job, time.monotonic() - since, served(system) - before)


def prepare(lab, osds):
    system = Cluster(lab, osds=osds, mounts=2, osd_size="4GiB", extra=["-o", "allow_other"])
    os.chmod(lab.dir, 0o755)  # for the other user
    for name in ("reader", "writers"):
        os.mkdir(f"{system.mnt}/{name}")
    for jobs in (reader(system.mnt), writers(system.mnt, "seq")):
        layout = [a.replace("randread", "write") for a in jobs if not a.startswith("--bs=")]
        isolation.fio(lab, ["--bs=1m", "--direct=0", "--end_fsync=1"] + layout, PROCESSES)
    for name in os.listdir(f"{system.mnt}/writers"):
        os.chmod(f"{system.mnt}/writers/{name}", 0o666)
    return system


def compare(lab, osds):
    system = prepare(lab, osds)
    failures = []
    alone = measure(lab, system, reader(system.mnt))
    lab.show(f"        the reader alone on {osds} OSD(s)   {alone.reads:7.0f}/s  p50 {alone.p50:7.0f} us  p99 {alone.p99:7.0f} us")
    for kind in ("seq", "rnd"):
        for threads in (False, True):
            hogs = measure(lab, system, writes=writers(system.mnt, kind), threads=threads)
            for number, mount in enumerate(system.mounts, 1):
                now = measure(lab, system, reader(system.mnt), writers(mount, kind), threads)
                text = f"{kind}, {'threads of another user' if threads else 'processes of its user'}, {'one mount' if number == 1 else 'two mounts'}"
                lab.show(f"        {text:<42} {now.reads:6.0f}/s ({now.reads / alone.reads:4.0%})  p50 {now.p50:7.0f} us  p99 {now.p99:7.0f} us "
                         f"({now.p99 / alone.p99:5.1f} x)  writers {now.written:6.1f} of {hogs.written:6.1f} MiB/s ({now.written / hogs.written:4.0%})")
                if now.reads < KEEPS * alone.reads:
                    failures.append(f"{text}: the reader keeps {now.reads / alone.reads:.0%}, not {KEEPS:.0%}")
                if now.p99 > TIMES * alone.p99:
                    failures.append(f"{text}: p99 is {now.p99 / alone.p99:.1f} x alone, not {TIMES}")
                if now.written < WRITERS_KEEP * hogs.written:
                    failures.append(f"{text}: the writers keep {now.written / hogs.written:.0%}, not {WRITERS_KEEP:.0%}")
    check(not failures, "; ".join(failures))


def one(lab):
    compare(lab, 1)


def three(lab):
    compare(lab, 3)


if __name__ == "__main__":
    main("untagged", one, three)
