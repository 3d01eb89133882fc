#!/usr/bin/env python3
"""A storm of flushes and compactions beside a reserved class, with background I/O metered and not.

One OSD on an emulated SSD of 40 MB/s. `gold` is reserved 20 MiB/s and asks for it with 64 KiB random writes (its reads
would pass the disk's own programs). Best-effort writes halves of 4 KiB blocks at random as fast as it can: each goes
through RocksDB's log, its tables and back to its place, so that most of what the disk moves is background.
Printed for both: the part of gold's promise that was served per second, its p99, the storm, what background I/O took,
and what went past the pipeline. Metered, gold must get its promise in the median second, and nothing goes past; without
it gold's worst second and its p99 must be worse.
"""
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from weirtest import MIB, Cluster, Lab, check, fio, main  # noqa: E402

SECONDS = int(os.environ.get("WEIR_STORM_SECONDS", "15"))
PROMISED = 20 * MIB


def storm(lab, metered):
    os.environ["WEIR_OSD_METER_BACKGROUND"] = "true" if metered else "false"
    system = Cluster(lab, disks=("ssd:2GiB,rate=40MB/s",), token_rate="30MiB/s")
    gold = f"{system.mnt}/gold"
    os.makedirs(gold)
    os.makedirs(f"{system.mnt}/storm")
    system.osdctl("class", "create", "gold", "--weight", "0.1")
    os.setxattr(gold, "user.qos.class", b"gold")
    for directory, name in ((gold, "gold"), (f"{system.mnt}/storm", "storm")):
        fio(lab, {"name": name}, directory=directory, rw="write", bs="512k", size="64m", direct=1, end_fsync=1)
    system.osdctl("reserve", "gold", "--bandwidth", "20MiB/s")
    system.osdctl("stat", "--reset")
    jobs = fio(lab,
               {"name": "gold", "directory": gold, "rw": "randwrite", "bs": "64k", "iodepth": 32, "rate": PROMISED,
                "write_bw_log": lab.path("gold")},
               {"name": "storm", "directory": f"{system.mnt}/storm", "rw": "randwrite", "bs": "2k", "iodepth": 64},
               timeout=SECONDS + 120, direct=1, ioengine="libaio", time_based=1, runtime=SECONDS, size="64m",
               log_avg_msec=1000)
    osd = json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"][0]
    with open(lab.path("gold_bw.1.log")) as log:
        seconds = [int(line.split(",")[1]) * 1024 / PROMISED for line in log]
    result = {"served/promised": statistics.median(seconds), "worst second": min(seconds),
              "p99 ms": jobs["gold"]["write"]["clat_ns"]["percentile"]["99.000000"] / 1e6,
              "storm MiB/s": jobs["storm"]["write"]["bw_bytes"] / MIB,
              "background MiB": osd["background_bytes"] / MIB, "past pipeline MiB": osd["unmetered_bytes"] / MIB}
    lab.show(("metered    " if metered else "unmetered  ") + "  ".join(f"{k} {v:.2f}" for k, v in result.items()))
    return result


def in_a_lab_of_its_own(metered):
    lab = Lab("storm")
    try:
        return storm(lab, metered)
    finally:
        lab.close()


def beside_a_promise(_):
    past = in_a_lab_of_its_own(False)
    check(past["past pipeline MiB"] > 0, "the contrast is none: nothing went past the pipeline")
    result = in_a_lab_of_its_own(True)
    check(result["past pipeline MiB"] == 0, f"{result['past pipeline MiB']} MiB went past the pipeline")
    check(result["background MiB"] > 0, "there was no background I/O")
    check(result["served/promised"] > 0.97, f"gold got {result['served/promised']:.2f} of its promise")
    check(past["p99 ms"] > 1.5 * result["p99 ms"] and past["worst second"] < result["worst second"],
          "metering the background does not help gold")


if __name__ == "__main__":
    main("compaction_storm", beside_a_promise)
