#!/usr/bin/env python3
"""Ten classes, three OSDs: every second each class gets what the oracle says, however its access is spread.

Three OSDs of 30 MiB/s (strict gate), classes with reservations, limits and weights, each backlogged on the OSDs
that a phase names: all of them, then skewed, then shifted. The oracle's allocation of the total is
x = min(limit, max(reservation, weight * lambda)), lambda such that the sum is 90 MiB/s; a maximum flow shows that
the phase's spread can carry it. From two seconds after a phase began each class is within 5 % of that in every
second, and no limit is exceeded by more than 2 % over any second of the whole run, start and shifts included.

A reservation is served wherever it is asked for, first; so no phase crowds more of them onto an OSD than leave the
others there their share. Rates are such that two cores carry fio, the mount and the daemons with room to spare: a class
whose client waits for a processor is not backlogged. Limited classes read smaller blocks: 2 % of a second of theirs is
some requests then.
"""
import bisect
import os
import subprocess

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import MIB, Cluster, Failure, check, main

OSDS, RATE, PHASE, SETTLE = 3, 30, 12, 2
BLOCK, LIMITED_BLOCK, DEPTH, SIZE = 32, 16, 6, "8m"  # KiB
#         weight, reservation, limit (MiB/s)
CLASSES = {"c0": (1, 20, None), "c1": (1, 12.5, None), "c2": (1, 5, None), "c3": (4, 0, None), "c4": (2, 0, None),
           "c5": (1, 0, None), "c6": (1, 0, None), "c7": (8, 0, 7.5), "c8": (4, 2.5, 5), "c9": (1, 0, 4)}
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


def run_load(lab, system):
    """One fio for all phases. Returns its start and, per class, the sorted times and running sums of what completed."""
    argv = ["fio", "--name=global", "--rw=randread", f"--iodepth={DEPTH}", "--ioengine=libaio", "--direct=1", "--thread",
            "--time_based", f"--runtime={PHASE}", f"--size={SIZE}", "--log_unix_epoch=1",
            "--disable_slat=1", "--disable_clat=1", "--eta=never", "--norandommap"]
    for index, spread in enumerate(PHASES):
        for name, osds in spread.items():
            for osd in osds:
                job, block = f"{name}.{osd}.{index}", LIMITED_BLOCK if CLASSES[name][2] else BLOCK
                argv += [f"--name={job}", f"--bs={block}k", f"--filename={system.mnt}/{name}.{osd}/data", f"--startdelay={index * PHASE}",
                         f"--write_lat_log={lab.path('iolog.' + job)}"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=lab.dir)
    lab.on_exit(process.kill)
    out, err = process.communicate(timeout=300)
    if process.returncode != 0:
        raise Failure(f"fio: exit {process.returncode}\n{err[-1500:]}{out[-500:]}")
    done = {name: [] for name in CLASSES}
    for file in os.listdir(lab.dir):
        if file.startswith("iolog."):
            with open(lab.path(file)) as lines:
                for line in lines:
                    fields = line.split(",")
                    done[file.split(".")[1]].append((int(fields[0]) / 1000, int(fields[3])))
            os.unlink(lab.path(file))
    start = min(rows[0][0] for rows in map(sorted, done.values()))
    series = {}
    for name, rows in done.items():
        rows.sort()
        sums = [0]
        for _, size in rows:
            sums.append(sums[-1] + size)
        series[name] = ([at for at, _ in rows], sums)
    return start, series


def served(series, begin, end):
    times, sums = series
    return (sums[bisect.bisect_left(times, end)] - sums[bisect.bisect_left(times, begin)]) / (end - begin) / MIB


def ten_classes(lab):
    goal = oracle()
    for spread in PHASES:
        check(carries(spread, goal), "a phase cannot carry the oracle's allocation: the test is wrong")
    system = prepare(lab)
    start, series = run_load(lab, system)
    failures = []
    lab.show("        class weight reserved limit  oracle   phase: mean [worst second]")
    for name, (weight, reserved, limit) in CLASSES.items():
        text = f"        {name:>5} {weight:>6} {reserved:>8} {limit or 'max':>5} {goal[name]:>7.2f}  "
        for index in range(len(PHASES)):
            begin = start + index * PHASE + SETTLE
            end = start + (index + 1) * PHASE - 0.3
            mean = served(series[name], begin, end)
            steps = int((end - begin - 1) / 0.1)
            worst, when = max(((served(series[name], begin + i * 0.1, begin + i * 0.1 + 1) / goal[name] - 1, i * 0.1)
                               for i in range(steps + 1)), key=lambda found: abs(found[0]))
            text += f" {mean:6.2f} [{worst:+.1%} at {SETTLE + when:.1f} s]"
            if abs(worst) > 0.05:
                failures.append(f"{name} in phase {index + 1}: {worst:+.1%} in a second")
        lab.show(text)
    for index in range(len(PHASES)):
        begin, end = start + index * PHASE + SETTLE, start + (index + 1) * PHASE - 0.3
        total = sum(served(s, begin, end) for s in series.values())
        lab.show(f"        phase {index + 1}: total {total:.2f} of {OSDS * RATE} MiB/s")
    for name, (_, _, limit) in CLASSES.items():
        if limit is None:
            continue
        most, when = max((served(series[name], at, at + 1), at) for at in series[name][0])
        worst = most / limit - 1
        lab.show(f"        limit of {name}: at most {worst:+.2%} over any second (from {when - start:.2f} s on)")
        if worst > 0.02:
            failures.append(f"the limit of {name} was exceeded by {worst:.2%} in a second")
    check(not failures, "; ".join(failures))


if __name__ == "__main__":
    main("accuracy", ten_classes)
