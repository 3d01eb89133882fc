"""The rows of cold onodes: what a small reader feels of others whose objects the OSDs have first to look up.

An OSD answers from memory what it knows of an object (its onode); what it does not know, a thread of its own loads. Eight
readers take 4 KiB of each of many objects, once after the OSDs were started anew and once again, when all is known. The
neighbour reads another file all the while, whose objects are known. Both passes read the same bytes of the disk, so that
what the neighbour's p99 is worse beside the first one is due to the loading.
"""
import os

from . import fio
from .host import MIB, say

NAME = "coldonodes"
ABOUT = "a 4 KiB reader's p99 beside readers of objects that the OSDs do not know yet, against the same when they do"
OBJECT = 4 * MIB
READERS = 8
OBJECTS_PER_S = 5000  # of the runtime
NEIGHBOUR_BYTES = 64 * MIB
READ = {"rw": "randread", "bs": "4k", "direct": 1, "ioengine": "psync"}


class ColdOnodes:
    name, unit = NAME, "us"

    def __init__(self):
        self._laid_out = set()

    def rows(self):
        return {f"{NAME}.beside-cold": "x", f"{NAME}.p99-alone": "us", f"{NAME}.p99-beside-cold": "us",
                f"{NAME}.p99-beside-known": "us", f"{NAME}.cold": "IOPS", f"{NAME}.known": "IOPS"}

    def suits(self, system):
        return system.has_classes  # those that have OSDs

    def measure(self, system, runtime_s, repeat):
        """{row: value} of one round."""
        objects = max(READERS, int(OBJECTS_PER_S * runtime_s) // READERS * READERS)
        passes = each_object(system.data, objects)
        neighbour = {**READ, "filename": os.path.join(system.data, f"{NAME}.neighbour"), "size": NEIGHBOUR_BYTES,
                     "randseed": 4000 + repeat}
        if system not in self._laid_out:
            self._laid_out.add(system)
            fio.measure("layout", {"rw": "write", "bs": "1M", "ioengine": "psync", "end_fsync": 1,
                                   **{key: neighbour[key] for key in ("filename", "size")}})
            for i in range(READERS):
                # At its full length, or fio would fill it up before it reads.
                with open(os.path.join(system.data, f"{NAME}.{i}"), "wb") as file:
                    file.truncate(passes["size"])
            fio.measure("layout", {**passes, "rw": passes["rw"].replace("read", "write")})
        system.cold()
        fio.measure("warm-up", {**neighbour, "rw": "read", "bs": "1M"})
        alone = fio.measure("alone", {**neighbour, "time_based": 1, "runtime": f"{int(runtime_s * 1000)}ms"})
        beside = {}
        for kind in ("cold", "known"):
            reader = fio.Background(f"beside-{kind}", {**neighbour, "time_based": 1, "runtime": "1h"})
            with reader:
                noise = fio.measure(kind, passes)
            beside[kind] = reader.result, noise
            say(f"  {system.name}: p99 {reader.result.p99_us:,.0f} us beside {noise.iops:,.0f} {kind} objects/s, "
                f"alone {alone.p99_us:,.0f} us")
        return rows_of(alone, beside)


def each_object(place, objects):
    """fio's options that read 4 KiB of every object once: a file for each reader, mostly holes."""
    return {"rw": f"read:{OBJECT // 1024 - 4}k", "bs": "4k", "direct": 1, "ioengine": "psync", "numjobs": READERS,
            "directory": place, "filename_format": f"{NAME}.$jobnum", "size": objects // READERS * OBJECT,
            "io_size": objects // READERS * 4096}


def rows_of(alone, beside):
    """The rows of one round: `beside`: {kind: (the neighbour's Result, the readers')}."""
    (cold, cold_load), (known, known_load) = beside["cold"], beside["known"]
    return {f"{NAME}.beside-cold": cold.p99_us / known.p99_us, f"{NAME}.p99-alone": alone.p99_us,
            f"{NAME}.p99-beside-cold": cold.p99_us, f"{NAME}.p99-beside-known": known.p99_us,
            f"{NAME}.cold": cold_load.iops, f"{NAME}.known": known_load.iops}
