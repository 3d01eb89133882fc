#!/usr/bin/env python3
"""Total service across OSDs (DSFQ): f writes to OSD 0 only, g to both; equal token rates, no reservations.

--sharing single: g gets f's service on OSD 0 plus all it wants on OSD 1 (the paper's example 1).
--sharing total: f and g are equal in total, weights 1:2 give 1:2, both within 5 %.
--sharing hybrid: where equality is impossible, g keeps its minimum share on OSD 0.
The same with two mounts, two coordinators of the same class. Hybrid cuts each delay off by itself, and with deep
queues the requests of two mounts come in blocks: one large delay, then small ones, so that g gets more than its
minimum. The paper leaves that open; hybrid-h carries the rest over, and is held to the minimum there.
"""
import os
import time

from servicelog import Stream
from weirtest import Cluster, check, main, result

RATE = 20       # MiB/s, each OSD
ELSEWHERE = 10  # what g wants on OSD 1
SECONDS = 25
SETTLE = 8
FORGIVEN = 6    # seconds: what a class did elsewhere before it was idle here for 5 s does not count


def prepare(lab, mounts, sharing, weights=(1, 1), min_weights=None):
    system = Cluster(lab, osds=2, mounts=mounts, osd_size="2GiB", token_rate=f"{RATE}MiB/s")
    system.osdctl("osd", "set", "all", "--profile", "odis", "--surplus", "dsfq", "--sharing", sharing, "--maximizer",
                  "off", "--token-rate", f"{RATE}MiB/s")
    for pool, osd in (("p0", "0"), ("p1", "1")):
        system.osdctl("pool", "create", pool, "--osds", osd)
    for index, name in enumerate("fg"):
        more = ["--min-weight", str(min_weights[index])] if min_weights else []
        system.osdctl("class", "create", name, "--weight", str(weights[index]), *more)
    for folder, pool, name in (("f0", "p0", "f"), ("g0", "p0", "g"), ("g1", "p1", "g")):
        path = f"{system.mnt}/{folder}"
        os.mkdir(path)
        os.setxattr(path, "user.weir.layout.pool", pool.encode())
        os.setxattr(path, "user.qos.class", name.encode())
    return system


def measure(lab, system, elsewhere, depth=32):
    """Mean MiB/s of (f on OSD 0, g on OSD 0, g on OSD 1) after the start has settled."""
    streams = []
    share = len(system.mounts)
    for index, mount in enumerate(system.mounts):
        rate = f"{elsewhere * 1024 // share}k" if elsewhere else None
        streams.append(("f0", Stream(lab, f"f0.{index}", f"{mount}/f0", "write", SECONDS, block="128k", depth=depth // share)))
        streams.append(("g0", Stream(lab, f"g0.{index}", f"{mount}/g0", "write", SECONDS, block="128k", depth=depth // share)))
        streams.append(("g1", Stream(lab, f"g1.{index}", f"{mount}/g1", "write", SECONDS, block="128k", depth=16 // share,
                                     rate=rate)))
    time.sleep(FORGIVEN)  # or what was laid out on OSD 1 would have to be made up for on OSD 0 first
    for _, stream in streams:
        stream.start()
    start = time.time()
    for _, stream in streams:
        stream.finish()
    return [sum(s.served(start + SETTLE, start + SECONDS - 1) for n, s in streams if n == name)
            for name in ("f0", "g0", "g1")]


def near(value, goal, tolerance=0.05):
    return abs(value / goal - 1) <= tolerance


def of_two(text, mounts):
    """The paper has figures of two coordinators for TOTAL; there they are E6."""
    return f"{text}, OSDs of {RATE} MiB/s" + (", two mounts" if mounts == 2 else "")


def single(lab, mounts=1):
    f0, g0, g1 = measure(lab, prepare(lab, mounts, "single"), ELSEWHERE)
    lab.show(f"        single, {mounts} mount(s): f {f0:.2f}; g {g0:.2f} + {g1:.2f} MiB/s")
    check(near(f0, g0), f"on OSD 0 f got {f0:.2f} and g {g0:.2f}")
    check(near(g1, ELSEWHERE), f"on OSD 1 g got {g1:.2f} of the {ELSEWHERE} it wants")


def total(lab, mounts=1):
    f0, g0, g1 = measure(lab, prepare(lab, mounts, "total"), ELSEWHERE)
    lab.show(f"        total, {mounts} mount(s): f {f0:.2f}; g {g0:.2f} + {g1:.2f} = {g0 + g1:.2f} MiB/s")
    result("E3" if mounts == 1 else "E6", of_two("g's total over f's", mounts), (g0 + g1) / f0, 1, passed=near(g0 + g1, f0))
    check(near(g0 + g1, f0), f"f got {f0:.2f}, g {g0 + g1:.2f} in total")
    check(near(f0 + g0, RATE), f"OSD 0 served {f0 + g0:.2f} of {RATE}")


def total_weighted(lab, mounts=1):
    f0, g0, g1 = measure(lab, prepare(lab, mounts, "total", weights=(1, 2)), ELSEWHERE)
    lab.show(f"        total 1:2, {mounts} mount(s): f {f0:.2f}; g {g0:.2f} + {g1:.2f} = {g0 + g1:.2f} MiB/s")
    result("E4", of_two("weights 1 : 2: g's total over f's", mounts), (g0 + g1) / f0, 2, passed=near((g0 + g1) / f0, 2))
    check(near((g0 + g1) / f0, 2), f"f got {f0:.2f}, g {g0 + g1:.2f}: not 1:2")


def hybrid(lab, mounts=1, sharing="hybrid", depth=32, tolerance=0.10):
    # g takes all of OSD 1, so equality would leave it nothing on OSD 0; its minimum weight is a quarter of f's.
    f0, g0, g1 = measure(lab, prepare(lab, mounts, sharing, min_weights=(0.25, 0.25)), None, depth)
    registered = 7.0  # best-effort, four system.*, f and g, weight 1 each
    factor = (4 - 1) / (1 - 1 / registered)
    lab.show(f"        {sharing}, {mounts} mount(s): f {f0:.2f}; g {g0:.2f} + {g1:.2f}; g/f on OSD 0 {g0 / f0:.3f}, "
             f"minimum {1 / (1 + factor):.3f}")
    result("E7", of_two(f"{sharing}, g has all of OSD 1: g over f on OSD 0", mounts), g0 / f0, 1 / (1 + factor),
           passed=near(g0 / f0, 1 / (1 + factor), tolerance))
    check(near(g0 / f0, 1 / (1 + factor), tolerance), "g is not at its minimum share on OSD 0")
    check(near(g1, RATE), f"on OSD 1 g got {g1:.2f} of {RATE}")


def two_coordinators_single(lab):
    single(lab, 2)


def two_coordinators_total(lab):
    total(lab, 2)


def two_coordinators_weighted(lab):
    total_weighted(lab, 2)


def two_coordinators_hybrid(lab):
    hybrid(lab, 2, depth=2, tolerance=0.15)


def two_coordinators_hybrid_h(lab):
    hybrid(lab, 2, sharing="hybrid-h")


if __name__ == "__main__":
    main("total_service", single, total, total_weighted, hybrid, two_coordinators_single, two_coordinators_total,
         two_coordinators_weighted, two_coordinators_hybrid, two_coordinators_hybrid_h)
