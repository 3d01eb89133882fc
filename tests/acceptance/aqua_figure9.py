#!/usr/bin/env python3
"""AQuA figures 9 and 10 on the mount, by fio.

One OSD, profile odis (strict gate), global token rate 40 MiB/s, best-effort minimum 0; classes reserved
5, 15 and 20 MiB/s, each with a stream of 512 KiB requests in its own tagged directory, started 10 s apart.
Figure 9 (maximizer off): alone, class 1 gets 40; with two, both get at least their reservation and together
40; with three, each its reservation; all within 3 %. Writers and readers. Figure 10: with the bandwidth
maximizer on and a disk that can do more, every class keeps its reservation (-2 %) in every 2-second window
after the first 5 s, and the sum is at least 1.3 x 40 in the last 10 s of 60.
"""
import os
import time

from servicelog import Stream, timeline, wait_for
from weirtest import Embedded, check, curve, main

RATES = {"c1": 5, "c2": 15, "c3": 20}
TOTAL = 40


def prepare(lab, maximizer):
    system = Embedded(lab, "--osd-size", "4GiB", "--token-rate", f"{TOTAL}MiB/s")
    system.osdctl("osd", "set", "all", "--profile", "odis", "--token-rate", f"{TOTAL}MiB/s", "--best-effort-min", "0",
                  "--maximizer", maximizer)
    for name, rate in RATES.items():
        system.osdctl("class", "create", name)
        system.osdctl("reserve", name, "--bandwidth", f"{rate}MiB/s")
        os.mkdir(f"{system.mnt}/{name}")
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
    return system


def show(lab, streams, start, seconds, experiment, title):
    lab.show("        second  " + "".join(f"{name + ' (' + str(rate) + ')':>10}" for name, rate in RATES.items())
             + f"{'sum':>8}   MiB/s")
    rows = timeline(streams, start, seconds)
    for name in (*RATES, "sum"):
        points = [(second, sum(row.values()) if name == "sum" else row[name]) for second, row in rows]
        curve(experiment, title, name, points, "s", "MiB/s")
    for second, row in rows:
        lab.show(f"        {second:>6}  " + "".join(f"{row[n]:>10.2f}" for n in RATES) + f"{sum(row.values()):>8.2f}")


def phases(lab, rw):
    system = prepare(lab, "off")
    streams = [Stream(lab, name, f"{system.mnt}/{name}", rw, 30 - 10 * i) for i, name in enumerate(RATES)]
    time.sleep(1)  # laying out the files spent tokens; the experiment starts with full buckets
    start = time.time()
    for index, stream in enumerate(streams):
        wait_for(start + 10 * index)
        stream.start()
    for stream in streams:
        stream.finish()
    show(lab, streams, start, 30, "E42", f"5, 15, 20 of 40 MiB/s, fio {rw}")
    c1, c2, c3 = streams
    near = lambda value, goal: abs(value / goal - 1) <= 0.03  # noqa: E731
    one = c1.served(start + 2, start + 9.5)
    check(near(one, TOTAL), f"alone, class 1 got {one:.2f} MiB/s, not {TOTAL}")
    two = [s.served(start + 12, start + 19.5) for s in (c1, c2)]
    check(near(sum(two), TOTAL), f"two classes together got {sum(two):.2f} MiB/s, not {TOTAL}")
    check(two[0] >= 5 * 0.97 and two[1] >= 15 * 0.97, f"two classes got {two}, below their reservation")
    three = [s.served(start + 22, start + 29.5) for s in streams]
    for got, (name, rate) in zip(three, RATES.items()):
        check(near(got, rate), f"{name} got {got:.2f} MiB/s of {rate} reserved")
    lab.show(f"        {rw}: alone {one:.2f}; two {two[0]:.2f} + {two[1]:.2f} = {sum(two):.2f}; three "
             + ", ".join(f"{x:.2f}" for x in three))
    return one, two, three


def writers(lab):
    phases(lab, "write")


def readers(lab):
    phases(lab, "read")


def maximizer(lab):
    system = prepare(lab, "on")
    streams = [Stream(lab, name, f"{system.mnt}/{name}", "write", 60) for name in RATES]
    start = time.time()
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.finish()
    show(lab, streams, start, 60, "E43", "5, 15, 20 of 40 MiB/s with the maximizer, fio write")
    worst = {}
    for stream, rate in zip(streams, RATES.values()):
        worst[stream.name] = min(stream.served(start + 5 + w, start + 7 + w) / rate for w in range(0, 52))
        check(worst[stream.name] >= 0.98, f"{stream.name} had a 2 s window at {worst[stream.name]:.3f} of its reservation")
    late = sum(s.served(start + 49.5, start + 59.5) for s in streams)
    check(late >= 1.3 * TOTAL, f"the last 10 s served {late:.1f} MiB/s, less than 1.3 x {TOTAL}")
    lab.show(f"        maximizer: worst window/reservation {worst}, last 10 s {late:.1f} MiB/s")
    return worst, late


if __name__ == "__main__":
    main("aqua", writers, readers, maximizer)
