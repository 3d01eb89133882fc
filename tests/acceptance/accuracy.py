#!/usr/bin/env python3
"""Ten classes, three OSDs: every second each class gets what the oracle says, however its access is spread.

Three OSDs of 24 MiB/s (strict gate), classes with reservations, limits and weights, each backlogged on the OSDs
that a phase names: all of them, then skewed, then shifted. The oracle's allocation of the total is
x = min(limit, max(reservation, weight * lambda)), lambda such that the sum is what the OSDs do; a maximum flow shows that
the phase's spread can carry it. From two seconds after a phase began each class is within 5 % of that in every
second, and no limit is exceeded by more than 2 % over any second of the whole run, start and shifts included.

A reservation is served wherever it is asked for, first; so no phase crowds more of them onto an OSD than leave the
others there their share. Each class has a quarter of a second of its share under way at every OSD: with less, whoever
waits for a processor is not backlogged, and fair queueing rightly gives his turn away. Limited classes read smaller
blocks, 2 % of a second of theirs is some requests then, and each request from a thread of its own: at the end of a job
fio waits for all that a thread has under way and only then logs it, all at that moment, which would look like an excess.
They go before others on the processors: when a phase ends fio's threads write their logs, and a thread that waits for a
processor meanwhile logs an answer later than it had it.
"""
import bisect
import math
import os
import subprocess

from servicelog import LOG_OPTIONS, StolenTime
from weirtest import MIB, Cluster, Failure, check, main, result

OSDS, RATE, PHASE, SETTLE = 3, 24, 12, 2
BLOCK, LIMITED_BLOCK, SIZE = 32, 16, "8m"  # KiB
QUEUE = 0.25  # seconds of its share that a class has under way at an OSD
#         weight, reservation, limit (MiB/s)
CLASSES = {"c0": (1, 16, None), "c1": (1, 10, None), "c2": (1, 4, None), "c3": (4, 0, None), "c4": (2, 0, None),
           "c5": (1, 0, None), "c6": (1, 0, None), "c7": (8, 0, 6), "c8": (4, 2, 4), "c9": (1, 0, 3.2)}
EVERYWHERE = {name: (0, 1, 2) for name in CLASSES}
SKEWED = {**EVERYWHERE, "c0": (0,), "c3": (1, 2), "c5": (0, 1), "c7": (1,), "c8": (2,)}
SHIFTED = {**EVERYWHERE, "c0": (2,), "c1": (0, 1), "c2": (0, 1), "c3": (0, 1), "c6": (1,), "c7": (0, 1), "c9": (2,)}
PHASES = (EVERYWHERE, SKEWED, SHIFTED)


def oracle():
    def at(level):
        return {name: min(limit or 1e9, max(reserved, weight * level))
                for name, (weight, reserved, limit) in CLASSES.items()}
    low, high = 0.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle).values()) < OSDS * RATE else (low, middle)
    return at(low)


def carries(spread, share):
    """Whether a flow of `share` fits into the OSDs: every set of OSDs holds what has nowhere else to go."""
    for mask in range(1, 1 << OSDS):
        chosen = {i for i in range(OSDS) if mask >> i & 1}
        confined = sum(share[name] for name, osds in spread.items() if set(osds) <= chosen)
        if confined > RATE * len(chosen) + 1e-6:
            return False
    return True


def prepare(lab):
    system = Cluster(lab, osds=OSDS, osd_size="2GiB", token_rate="1GiB/s")
    for osd in range(OSDS):
        system.osdctl("pool", "create", f"p{osd}", "--osds", osd)
    layout = ["fio", "--name=global", "--rw=write", "--bs=1m", f"--size={SIZE}", "--direct=1", "--thread"]
    for name in CLASSES:
        system.osdctl("class", "create", name)
        for osd in range(OSDS):
            path = f"{system.mnt}/{name}.{osd}"
            os.mkdir(path)
            os.setxattr(path, "user.weir.layout.pool", f"p{osd}".encode())
            layout += [f"--name={name}.{osd}", f"--filename={path}/data"]
    subprocess.run(layout, check=True, capture_output=True, cwd=lab.dir)
    for name, (weight, reserved, limit) in CLASSES.items():
        for osd in range(OSDS):
            os.setxattr(f"{system.mnt}/{name}.{osd}", "user.qos.class", name.encode())
    system.osdctl("osd", "set", "all", "--gate", "strict", "--token-rate", f"{RATE}MiB/s", "--best-effort-min", "0")
    for name, (weight, reserved, limit) in CLASSES.items():
        system.osdctl("class", "set", name, "--weight", weight, "--limit", f"{limit}MiB/s" if limit else "max")
        if reserved:
            system.osdctl("reserve", name, "--bandwidth", f"{reserved}MiB/s")
    return system


def jobs_of(index, spread, goal):
    """fio's jobs of a phase: (name, class, OSD, block size and how much at once)."""
    for name, osds in spread.items():
        limited = CLASSES[name][2] is not None
        block = LIMITED_BLOCK if limited else BLOCK
        depth = math.ceil(QUEUE * goal[name] / len(osds) * 1024 / block)
        ways = (["--ioengine=psync", f"--numjobs={depth}", "--nice=-15"] if limited
                else ["--ioengine=libaio", f"--iodepth={depth}"])
        for osd in osds:
            yield f"{name}.{osd}.{index}", name, osd, [f"--bs={block}k", *ways]


def run_load(lab, system, goal):
    """One fio for all phases. Returns when each began and, per class, sorted times and running sums of what completed."""
    argv = ["fio", "--name=global", "--rw=randread", "--direct=1", "--thread",
            "--time_based", f"--runtime={PHASE}", f"--size={SIZE}", *LOG_OPTIONS,
            "--eta=never", "--norandommap"]
    for index, spread in enumerate(PHASES):
        for job, name, osd, ways in jobs_of(index, spread, goal):
            argv += [f"--name={job}", *ways, f"--filename={system.mnt}/{name}.{osd}/data",
                     f"--startdelay={index * PHASE}", f"--write_lat_log={lab.path('iolog.' + job)}"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=lab.dir)
    lab.on_exit(process.kill)
    out, err = process.communicate(timeout=300)
    if process.returncode != 0:
        raise Failure(f"fio: exit {process.returncode}\n{err[-1500:]}{out[-500:]}")
    done = {name: [] for name in CLASSES}
    starts = [float("inf")] * len(PHASES)
    for file in os.listdir(lab.dir):
        if file.startswith("iolog."):
            name, index = file.split(".")[1], int(file.split(".")[3].split("_")[0])
            with open(lab.path(file)) as lines:
                rows = [(int(at) / 1000, int(size)) for at, _, _, size, *_ in (line.split(",") for line in lines)]
            done[name] += rows
            starts[index] = min([starts[index], *(at for at, _ in rows)])
            os.unlink(lab.path(file))
    series = {}
    for name, rows in done.items():
        rows.sort()
        sums = [0]
        for _, size in rows:
            sums.append(sums[-1] + size)
        series[name] = ([at for at, _ in rows], sums)
    return starts, series


def served(series, begin, end):
    times, sums = series
    return (sums[bisect.bisect_left(times, end)] - sums[bisect.bisect_left(times, begin)]) / (end - begin) / MIB


def ten_classes(lab):
    goal = oracle()
    for spread in PHASES:
        check(carries(spread, goal), "a phase cannot carry the oracle's allocation: the test is wrong")
    system = prepare(lab)
    stolen = StolenTime(lab)
    starts, series = run_load(lab, system, goal)
    failures = []
    lab.show("        class weight reserved limit  oracle   phase: mean [worst second]")
    for name, (weight, reserved, limit) in CLASSES.items():
        text = f"        {name:>5} {weight:>6} {reserved:>8} {limit or 'max':>5} {goal[name]:>7.2f}  "
        for index in range(len(PHASES)):
            begin, end = starts[index] + SETTLE, starts[index] + PHASE - 0.3
            mean = served(series[name], begin, end)
            steps = int((end - begin - 1) / 0.1)
            worst, when = max(((served(series[name], begin + i * 0.1, begin + i * 0.1 + 1) / goal[name] - 1, i * 0.1)
                               for i in range(steps + 1)), key=lambda found: abs(found[0]))
            result("accuracy.py", f"{name}, phase {index + 1}: mean, MiB/s", mean, goal[name])
            result("accuracy.py", f"{name}, phase {index + 1}: worst second over the oracle's", 1 + worst, 1, low=.95, high=1.05,
                   passed=abs(worst) <= .05)
            text += f" {mean:6.2f} [{worst:+.1%} at {SETTLE + when:.1f} s]"
            if abs(worst) > 0.05:
                taken = stolen.between(begin + when, begin + when + 1)
                failures.append(f"{name} in phase {index + 1}: {worst:+.1%} in a second (stolen: {taken:.0f} ms)")
        lab.show(text)
    for index in range(len(PHASES)):
        begin, end = starts[index] + SETTLE, starts[index] + PHASE - 0.3
        total = sum(served(s, begin, end) for s in series.values())
        taken = stolen.between(begin, end)
        lab.show(f"        phase {index + 1}: total {total:.2f} of {OSDS * RATE} MiB/s, stolen {taken:.0f} ms of the processors")
    for name, (_, _, limit) in CLASSES.items():
        if limit is None:
            continue
        most, when = max((served(series[name], at, at + 1), at) for at in series[name][0])
        worst = most / limit - 1
        lab.show(f"        limit of {name}: at most {worst:+.2%} over any second (from {when - starts[0]:.2f} s on)")
        if worst > 0.02:
            failures.append(f"the limit of {name} was exceeded by {worst:.2%} in a second")
    check(not failures, "; ".join(failures))


if __name__ == "__main__":
    main("accuracy", ten_classes)
