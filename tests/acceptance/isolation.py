#!/usr/bin/env python3
"""What a small reader feels of its neighbours: 4 KiB random reads, one at a time, beside four sequential writers
(1 MiB, four at a time each) and 64 random writers (64 KiB), on the same mount and on another.

`db` has a latency bound, `seq` and `rnd` have nothing but their weights. Latencies are fio's lat, submission included.
What the writers get is what the OSDs served them while the reader was measured. (A fio of both counts for the writers of a
slow disk also the seconds after the reader's end, when nobody holds them back.)
Measured on the same files: the writers alone, the reader alone before and after each time both run together (its mean is
what together is compared with), and both without quality of service (`noqos`), for contrast. Together under profile `unified`
as it is, and under a strict gate that gives all of them 60 % of what they wrote alone, which is what an operator does who
wants a reader to be alone. "disks apart" has the writers on a cluster of their own, with a disk, daemons and a mount that the
reader has nothing to do with: what he feels there is what two processors cost that work for eighty others, and no storage
can take away. A hard disk gains nothing from that, as its head is elsewhere at any rate; it has anticipation
instead, and longer measurements, as a percentile of its few reads needs some time. WEIR_ISOLATION_READER_MIB says how much
the reader reads from: on a hard disk it is compared with a head that moves no further than that when it is alone.
WEIR_ISOLATION_BOUND=none takes the latency bound from `db`: how a reader fares that nobody promised anything (the bounds below
are not his). Bounds of both, as multiples of alone:

              reader's p50   reader's p99   the writers keep
  ssd             1.2            1.5             50 %          emulated, 200 MB/s
  hdd             2.3            2.5             40 %          emulated, 7200 rpm
                  1.2             -               -            the same with `--anticipation on`; what the writers pay is shown
  full             -             3                -            image files, as fast as this machine

`bound`: what writers keep beside a bound of 2, 5, 20 and 100 ms at 99 %. Each is kept, with 2 ms the p99 is at most 3 times alone,
and with 100 ms the writers keep at least 1.2 times what they keep with 2 ms.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import MIB, Cluster, Failure, Lab, check, main

SECONDS = int(os.environ.get("WEIR_ISOLATION_SECONDS", "6"))  # of each measurement
HDD_SECONDS = 7 * SECONDS  # a slow disk answers some 3000 reads in it: the 99th percentile is of 30
RAMP = 2
READER_MIB = int(os.environ.get("WEIR_ISOLATION_READER_MIB", "128"))
BOUND = os.environ.get("WEIR_ISOLATION_BOUND")
WRITER_MIB, WRITERS = 2, 64
DISK_MIB = 4 << 10
PACE = 0.6


class Alone:
    """The reader alone, of two runs."""

    def __init__(self, *runs):
        self.p50, self.p99 = (sum(getattr(r, name) for r in runs) / len(runs) for name in ("p50", "p99"))


class Result:
    """What a measurement showed: of the reader, as its fio says, and of the writers, as the OSDs do."""

    def __init__(self, reader_job, written):
        if reader_job:
            lat = reader_job["read"]["lat_ns"]
            check(lat["N"] > 20, "the reader hardly ran")
            self.p50, self.p99 = (lat["percentile"][p] / 1e3 for p in ("50.000000", "99.000000"))
            self.reads = reader_job["read"]["iops"]
        self.written = written

    @property
    def writers(self):
        return sum(self.written.values())


def reader(mount):
    return ["--name=db", f"--filename={mount}/db/data", "--rw=randread", "--bs=4k", "--ioengine=psync",
            f"--size={READER_MIB}m"]


def writers(mount):
    return ["--name=seq", f"--directory={mount}/seq", "--filename_format=$jobnum", "--rw=write", "--bs=1m",
            "--ioengine=libaio", "--iodepth=4", "--numjobs=4", f"--size={WRITER_MIB * 16}m",
            "--name=rnd", f"--directory={mount}/rnd", "--filename_format=$jobnum", "--rw=randwrite", "--bs=64k",
            "--ioengine=psync", f"--numjobs={WRITERS}", f"--size={WRITER_MIB}m"]


FIO = ["fio", "--name=global", "--output-format=json", "--eta=never", "--thread", "--direct=1", "--norandommap",
       "--clat_percentiles=0", "--lat_percentiles=1", "--percentile_list=50:99"]


def fio(lab, jobs, options=FIO):
    """One fio with these jobs, to its end."""
    done = subprocess.run(options + jobs, capture_output=True, text=True, timeout=300, cwd=lab.dir)
    if done.returncode != 0:
        raise Failure(f"fio: exit {done.returncode}\n{done.stderr[-1500:]}{done.stdout[-500:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])["jobs"]


@contextlib.contextmanager
def in_background(lab, jobs, options=FIO, user=None):
    """A fio that goes on until it is told to stop."""
    child = subprocess.Popen(options + ["--time_based", "--runtime=1h"] + jobs, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, cwd=lab.dir, user=user)
    try:
        yield
        check(child.poll() is None, "the writers' fio ended by itself")
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(120)


class Served:
    """Bytes per second that the OSDs served the writers' classes, from here to `rates`."""

    def __init__(self, system):
        self._system = system
        self._since, self._bytes = self._now()

    def _now(self):
        stat = json.loads(self._system.osdctl("stat", "-o", "json").stdout)
        return time.monotonic(), {name: sum(c["served_bytes"] for osd in stat["osds"] for c in osd["classes"]
                                            if c["class"] == name) for name in ("seq", "rnd")}

    def rates(self):
        until, now = self._now()
        return {name: (now[name] - self._bytes[name]) / MIB / (until - self._since) for name in now}


def measure(lab, system, seconds, reads=None, writes=None, written_to=None):
    """The reader's jobs, the writers', or both, for so long after a ramp; the writers begin a ramp earlier. `written_to`:
    the cluster that serves the writers, if it is another."""
    with in_background(lab, writes) if writes else contextlib.nullcontext():
        if writes:
            time.sleep(RAMP)
        served = Served(written_to or system)
        jobs = fio(lab, ["--time_based", f"--runtime={seconds}", f"--ramp_time={RAMP}"] + reads) if reads else time.sleep(seconds)
        written = served.rates()
    return Result(jobs and jobs[0], written)


def images(lab, kind, count):
    """Emulated disks in memory, every page of them touched: a machine that gets its memory from a host as it
    needs it copies into a new page as slowly as a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else lab.dir
    folder = tempfile.mkdtemp(prefix="weir-isolation-", dir=memory)
    lab.on_exit(lambda: shutil.rmtree(folder, ignore_errors=True))
    disks = []
    for i in range(count):
        with open(f"{folder}/{i}.img", "wb") as image:
            for _ in range(DISK_MIB):
                image.write(bytes(MIB))
        disks.append(f"{kind}:{image.name}")
    return disks


def prepare(lab, disks, osds, rate, bound):
    system = Cluster(lab, osds=osds, mounts=2, osd_size="8GiB", token_rate=rate, disks=disks)
    system.osdctl("class", "create", "db", *(() if BOUND == "none" else ("--latency", BOUND or bound, "--max-pending", 0)))
    for name in ("seq", "rnd"):
        system.osdctl("class", "create", name)
    for name in ("db", "seq", "rnd"):
        os.mkdir(f"{system.mnt}/{name}")
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
    for jobs in (reader(system.mnt), writers(system.mnt)):  # apart: else the reader's data lies between the writers'
        layout = [a.replace("randread", "write").replace("randwrite", "write") for a in jobs if not a.startswith("--bs=")]
        fio(lab, ["--bs=1m", "--direct=0", "--end_fsync=1"] + layout)
    return system


def show(lab, text, now, alone, hogs):
    lab.show(f"        {text:<22} reader {now.reads:7.0f}/s  p50 {now.p50:8.0f} us ({now.p50 / alone.p50:6.2f} x)  "
             f"p99 {now.p99:8.0f} us ({now.p99 / alone.p99:6.2f} x)  writers {now.writers:6.1f} MiB/s "
             f"({now.writers / hogs.writers:4.0%}; seq {now.written['seq']:.1f}, rnd {now.written['rnd']:.1f})")


def compare(lab, disks, osds, rate, bound, p50, p99, kept, anticipated_p50=None, seconds=SECONDS, apart=None):
    system = prepare(lab, disks, osds, rate, bound)
    hogs = measure(lab, system, seconds, writes=writers(system.mnt))
    before = measure(lab, system, seconds, reader(system.mnt))
    lab.show(f"        alone on {osds} OSD(s)      reader {before.reads:7.0f}/s  p50 {before.p50:8.0f} us            "
             f"p99 {before.p99:8.0f} us            writers {hogs.writers:6.1f} MiB/s")
    failures = []

    def together(text, mount, p50=None, p99=None, kept=None, written_to=None):
        nonlocal before
        now = measure(lab, system, seconds, reader(system.mnt), writers(mount), written_to)
        after = measure(lab, system, seconds, reader(system.mnt))
        alone, before = Alone(before, after), after
        show(lab, text, now, alone, hogs)
        for name, value, bound_x in (("p50", now.p50 / alone.p50, p50), ("p99", now.p99 / alone.p99, p99)):
            if bound_x and value > bound_x:
                failures.append(f"{text}: {name} is {value:.2f} x alone, not {bound_x}")
        if kept and now.writers < kept * hogs.writers:
            failures.append(f"{text}: the writers keep {now.writers / hogs.writers:.0%}, not {kept:.0%}")

    together("one mount", system.mnt, p50, p99, kept)
    together("two mounts", system.mounts[1], p50, p99, kept)
    if apart:
        other = prepare(apart, images(apart, "ssd", osds), osds, rate, bound)
        together("disks apart", other.mnt, written_to=other)
        apart.close()
    if anticipated_p50:
        system.osdctl("osd", "set", "all", "--anticipation", "on")
        together("one, anticipation", system.mnt, anticipated_p50)
        together("two, anticipation", system.mounts[1], anticipated_p50)
    else:
        each = int(PACE * hogs.writers / osds)
        system.osdctl("osd", "set", "all", "--gate", "strict", "--maximizer", "off", "--token-rate", f"{each}MiB/s")
        together(f"one, {each} MiB/s each", system.mnt, p50, p99, kept)
        together(f"two, {each} MiB/s each", system.mounts[1], p50, p99, kept)
    system.osdctl("osd", "set", "all", "--profile", "noqos")
    together("one, noqos", system.mnt)
    check(not failures, "; ".join(failures))


def ssd(lab, osds=1):
    apart = None
    if osds == 1:  # there is no memory for more disks
        apart = Lab("isolation-apart")
        lab.on_exit(apart.close)
    compare(lab, images(lab, "ssd", osds), osds, "180MiB/s", "5ms@95%", 1.2, 1.5, 0.5, apart=apart)


def ssd_three(lab):
    ssd(lab, 3)


def hdd(lab, osds=1):
    compare(lab, images(lab, "hdd", osds), osds, "100MiB/s", "50ms@95%", 2.3, 2.5, 0.4, anticipated_p50=1.2,
            seconds=HDD_SECONDS)


def hdd_three(lab):
    hdd(lab, 3)


def full(lab, osds=1):
    compare(lab, (), osds, "600MiB/s", "2ms@99%", None, 3, None)


def full_three(lab):
    full(lab, 3)


def bound(lab):
    system = prepare(lab, (), 1, "600MiB/s", "2ms@99%")
    hogs = measure(lab, system, SECONDS, writes=writers(system.mnt))
    failures, kept = [], {}
    for ms in (2, 20, 2, 5, 20, 100):
        system.osdctl("class", "set", "db", "--latency", f"{ms}ms@99%")
        alone = measure(lab, system, SECONDS, reader(system.mnt))
        now = measure(lab, system, 2 * SECONDS, reader(system.mnt), writers(system.mnt))
        show(lab, f"bound of {ms} ms", now, alone, hogs)
        kept.setdefault(ms, []).append(now.writers)
        if now.p99 > 1000 * ms:
            failures.append(f"the bound of {ms} ms is broken: p99 is {now.p99:.0f} us")
        if ms == 2 and now.p99 > 3 * alone.p99:
            failures.append(f"with 2 ms the p99 is {now.p99 / alone.p99:.2f} x alone, not 3")
    if not sum(kept[100]) > 1.2 * sum(kept[2]) / len(kept[2]):
        failures.append(f"100 ms cost the writers as much as 2 ms: {kept}")
    check(not failures, "; ".join(failures))


if __name__ == "__main__":
    main("isolation", ssd, ssd_three, hdd, hdd_three, full, full_three, bound)
