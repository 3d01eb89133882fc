"""The rows that are measured on every system: fio jobs over files, and metadata loads.

The job set and its names follow the figures that the peers were measured with, so rows compare.
"""
import dataclasses
import json
import os

from . import fio
from .host import run

# One pass over the file and no more: a second one would not be cold any more.
COLD = {"rw": "read", "bs": "1M"}
DEEP = {"direct": 1, "ioengine": "io_uring", "iodepth": 4}
MANY = {"bs": "4k", "direct": 1, "ioengine": "psync", "numjobs": 16}


@dataclasses.dataclass(frozen=True)
class FioJob:
    name: str
    about: str
    unit: str      # "MB/s" (10^6) or "IOPS".
    layout: str    # "one" file, "many" (one of each job), "new" (absent at the start).
    options: dict
    cold: bool = False
    timed: bool = True  # Goes on for the whole runtime, not only until the file's end.

    def rows(self):
        return {self.name: self.unit}

    def suits(self, system):
        return system.data is not None or self.layout != "new"

    def prepare(self, system):
        system.lay_out(self.layout)
        if self.cold:
            system.cold()

    def run(self, system, runtime_s, repeat):
        """fio's Result of one run on files that are prepared."""
        timed = {"time_based": 1} if self.timed else {}
        return fio.measure(self.name, {**self.options, **system.target(self.layout), **timed,
                                       "runtime": f"{int(runtime_s * 1000)}ms", "randseed": 1000 + repeat})

    def figure(self, result):
        return result.mb_per_s if self.unit == "MB/s" else result.iops

    def measure(self, system, runtime_s, repeat):
        """{row: value} of one run."""
        self.prepare(system)
        result = self.run(system, runtime_s, repeat)
        if self.layout == "new":
            system.lay_out("new")
        return {self.name: self.figure(result)}


@dataclasses.dataclass(frozen=True)
class MetadataJob:
    name: str
    about: str
    threads: int
    bytes: int = 0
    unit: str = "ops/s"

    # What is measured of the files that were created; the second ones of a kind find warm caches.
    PHASES = ("stat", "stat_again", "list", "list_again", "rename", "unlink")

    def rows(self):
        return {row: self.unit for row in (self.name, *(f"{self.name}.{phase}" for phase in self.PHASES))}

    def suits(self, system):
        return system.data is not None

    def measure(self, system, runtime_s, repeat):
        place = os.path.join(system.data, f"{self.name}.{repeat}")
        os.mkdir(place)
        said = run(system.host.program("weir-metabench"), place, "--threads", self.threads,
                   "--seconds", f"{runtime_s:g}", "--size", self.bytes, timeout=600)
        os.rmdir(place)
        rates = json.loads(said)
        return dict(zip(self.rows(), (rates[f"{phase}_per_s"] for phase in ("create", *self.PHASES))))


JOBS = [
    FioJob("seqwrite-1M-direct", "1 MiB direct writes, depth 4, over a file of full length",
           "MB/s", "one", {"rw": "write", "bs": "1M", **DEEP}),
    FioJob("seqwrite-1M-extend", "the same into a new file (the kernel sends extending writes one by one)",
           "MB/s", "new", {"rw": "write", "bs": "1M", **DEEP}, timed=False),
    FioJob("seqread-1M-cold", "1 MiB direct reads, depth 4, one pass, nothing cached",
           "MB/s", "one", {**COLD, **DEEP}, cold=True, timed=False),
    FioJob("seqread-1M-cold-buffered", "1 MiB buffered reads, one pass, nothing cached",
           "MB/s", "one", {**COLD, "direct": 0, "ioengine": "psync"}, cold=True, timed=False),
    FioJob("randread-4k-16jobs", "4 KiB direct random reads by 16 threads with a file each, cold",
           "IOPS", "many", {"rw": "randread", **MANY}, cold=True),
    FioJob("randwrite-4k-16jobs", "4 KiB direct random writes by 16 threads with a file each",
           "IOPS", "many", {"rw": "randwrite", **MANY}),
    FioJob("randwrite-4k-16jobs-dsync", "the same with O_DSYNC: durable when acked on every system",
           "IOPS", "many", {"rw": "randwrite", "sync": "dsync", **MANY}),
    MetadataJob("creates-1thread", "empty files created by one thread, then stats, listings with a stat of each, renames and unlinks of them", 1),
    MetadataJob("creates-4threads", "the same by four threads in a directory each", 4),
    MetadataJob("smallfiles-4k", "files of 4 KiB created, written and closed by one thread", 1, bytes=4096),
]
