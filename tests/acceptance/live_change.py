#!/usr/bin/env python3
"""A thousand random changes of classes, tags and policies under load: nothing is lost, stuck, or leaks.

Two OSDs, two mounts, clients that write and verify what they read, and others that only keep the queues full. Meanwhile
osdctl changes weights, limits, reservations, bounds, virtual disks, profiles and single boxes, and files are tagged
and untagged. At the end every client has ended well and all its data verify, nothing waits in any queue, the OSDs
are no larger than early on, and a class that nobody changed and that is promised little has not been violated.
"""
import json
import os
import random
import subprocess

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import MIB, Cluster, Failure, check, main, wait_until

CHANGES = int(os.environ.get("WEIR_CHANGES", "1000"))
SEED = int(os.environ.get("TEST_SEED", "1"))
NAMES = [f"c{i}" for i in range(6)]
PROFILES = ("unified", "odis", "noqos", "sfq", "dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h", "vd", "vc", "cscan", "cvc")


def class_change(dice):
    name = dice.choice(NAMES)
    kind = dice.randrange(9)
    if kind == 0:
        return ["class", "set", name, "--weight", dice.choice(["0.5", "1", "3"])]
    if kind == 1:
        return ["class", "set", name, "--limit", dice.choice(["max", "max", "20MiB/s"])]
    if kind == 2:
        return ["reserve", name, "--bandwidth", f"{dice.randrange(1, 8)}MiB/s", "--scope", dice.choice(["cluster", "osd"]),
                "--admission", dice.choice(["additive", "measured"])]
    if kind == 3:
        return ["reserve", name, "--iops", dice.randrange(10, 200), "--for", f"{dice.randrange(1, 5)}s"]
    if kind == 4:
        return ["release", name]
    if kind == 5:
        return ["class", "set", name, "--latency", f"{dice.randrange(50, 500)}ms@{dice.randrange(50, 99)}%", "--max-pending",
                dice.randrange(0, 20), "--admission", dice.choice(["additive", "measured"])]
    if kind == 6:
        return ["class", "set", name, "--latency", "none", "--type", "best-effort"]
    if kind == 7:
        return ["class", "set", name, "--type", "throughput", "--peak", "10%", "--throughput", "2MiB/s"]
    return ["class", "set", name, "--type", "latency", "--peak", f"{dice.randrange(1, 20)}%", "--latency", "80ms"]


def box_change(dice):
    kind = dice.randrange(6)
    if kind < 3:
        return ["osd", "set", "all", "--profile", dice.choice(PROFILES)]
    if kind == 3:
        return ["osd", "set", dice.choice(["0", "1"]), "--dispatch", dice.choice(["fifo", "cscan", "cvc"])]
    if kind == 4:
        return ["osd", "set", "all", "--depth", dice.choice(["auto", "1", "4", "32"])]
    return ["osd", "set", "all", "--gate", dice.choice(["strict", "conserving"]), "--maximizer", dice.choice(["on", "off"])]


def resident(system):
    """Bytes of memory of the OSDs."""
    total = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                argv = file.read().split(b"\0")
            if argv[0].endswith(b"weir-osd") and any(system.dir.encode() in a for a in argv):
                with open(f"/proc/{entry}/status") as file:
                    total += next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))
        except (OSError, StopIteration):
            continue
    return total


def stat(system):
    return json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"]


def start(lab, name, directory, *options):
    argv = ["fio", f"--name={name}", f"--directory={directory}", "--thread", "--ioengine=libaio", "--size=16m", "--eta=never",
            "--direct=1", *options]
    log = open(lab.path(f"fio.{name}.log"), "w")
    process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=lab.dir)
    lab.on_exit(lambda: process.poll() is None and process.kill())
    return process


def nothing_is_lost_or_stuck(lab):
    dice = random.Random(SEED)
    system = Cluster(lab, osds=2, mounts=2, token_rate="60MiB/s")
    system.osdctl("class", "create", "still")
    system.osdctl("reserve", "still", "--bandwidth", "2MiB/s")
    for name in NAMES:
        system.osdctl("class", "create", name)
    folders = []
    for i, mount in enumerate(system.mounts):
        for name in NAMES[3 * i:3 * i + 3] + ["still"] * (1 - i):
            folders.append((f"{mount}/{name}", name))
            os.mkdir(folders[-1][0])
            os.setxattr(folders[-1][0], "user.qos.class", name.encode())
    load = [start(lab, f"load.{name}", folder, "--rw=randrw", "--bs=32k", "--iodepth=4", "--time_based", "--runtime=3600",
                  "--exitall_on_error=1") for folder, name in folders[:4]]
    # Loops that verify every block they wrote, one pass after the other.
    verified = [start(lab, f"verified.{name}", folder, "--rw=randwrite", "--bs=16k", "--iodepth=4", "--verify=crc32c",
                      "--verify_fatal=1", "--loops=10000")
                for folder, name in folders[4:]]
    done = refused = 0
    early = 0
    for count in range(CHANGES):
        if dice.random() < 0.15:
            folder, name = dice.choice(folders[:3] + folders[4:])
            os.setxattr(folder, "user.qos.class", dice.choice([name, dice.choice(NAMES)]).encode())
        else:
            change = class_change(dice) if dice.random() < 0.75 else box_change(dice)
            code = system.osdctl(*change, ok=(0, 2, 4, 5)).returncode
            refused += code != 0
        done += 1
        check(all(p.poll() is None for p in load + verified), f"a client ended after {done} changes")
        if count == CHANGES // 4:
            early = resident(system)
    late = resident(system)
    system.osdctl("osd", "set", "all", "--profile", "unified", "--depth", "auto")
    for name in NAMES:  # nobody is held back any more
        system.osdctl("class", "set", name, "--limit", "max")
    before = {(o["id"], c["class"]): c["served_bytes"] for o in stat(system) for c in o["classes"]}
    wait_until(lambda: all(c["served_bytes"] > before[o["id"], c["class"]] or c["queued_ops"] == 0
                           for o in stat(system) for c in o["classes"]), "every queue to move")
    for process in load + verified:
        process.terminate()  # fio ends in good order: what is under way completes, what failed shows
    for process in load + verified:
        code = process.wait(timeout=60)
        check(code in (0, 128), f"{process.args[1]} ended with {code}")
    for name in os.listdir(lab.dir):
        if name.startswith("fio."):
            with open(lab.path(name)) as text:
                for line in text:
                    if "verify:" in line or "error=" in line and "Interrupted" not in line:
                        raise Failure(f"{name}: {line}")
    wait_until(lambda: all(c["queued_ops"] == 0 for o in stat(system) for c in o["classes"]), "the queues to run empty")
    still = [c for o in stat(system) for c in o["classes"] if c["class"] == "still"]
    lab.show(f"        seed {SEED}: {done} changes, {refused} of them refused; OSDs {early / MIB:.0f} MiB after a quarter, "
             f"{late / MIB:.0f} at the end; 'still' broken for {sum(c['violation_seconds'] for c in still)} s")
    check(late <= early * 1.15 + 8 * MIB, f"the OSDs grew from {early / MIB:.0f} to {late / MIB:.0f} MiB")


if __name__ == "__main__":
    main("live_change", nothing_is_lost_or_stuck)
