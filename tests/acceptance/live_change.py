#!/usr/bin/env python3
"""A thousand random changes of classes, tags, rules and policies under load: nothing is lost, stuck, broken, or leaks.

Two OSDs, two mounts, clients that write and verify what they read, and others that only keep the queues full. Meanwhile
osdctl changes weights, limits, reservations, bounds, virtual disks, rules, profiles and single boxes, and files are
tagged and untagged, twenty times a second. Two classes nobody changes: `still` is promised 2 MiB/s, `capped` is
limited to 4 MiB/s, and both ask for more all the time. Rounds take turns: in one the OSDs have any profile; in the next
only those that keep promises (`unified`, `odis`), with any gate, depth, dispatch order and maximizer, and there
`still` is never violated. The limit of `capped` holds throughout. At the end every client has ended well and all its
data verify, nothing waits in any queue, and the OSDs are no larger than early on.
"""
import json
import os
import random
import subprocess
import time

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import MIB, Cluster, Failure, check, main, wait_until

CHANGES = int(os.environ.get("WEIR_CHANGES", "1000"))
SEED = int(os.environ.get("TEST_SEED", "1"))
NAMES = [f"c{i}" for i in range(6)]
ROUNDS, PAUSE, CAP = 10, 0.03, 4 * MIB
KEEPING = ("--profile", "unified", "--depth", "auto")
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


def box_change(dice, profiles):
    kind = dice.randrange(6)
    if kind < 3:
        return ["osd", "set", "all", "--profile", dice.choice(profiles)]
    if kind == 3:
        return ["osd", "set", dice.choice(["0", "1"]), "--dispatch", dice.choice(["fifo", "cscan", "cvc"])]
    if kind == 4:
        return ["osd", "set", "all", "--depth", dice.choice(["auto", "1", "4", "32"])]
    return ["osd", "set", "all", "--gate", dice.choice(["strict", "conserving"]), "--maximizer", dice.choice(["on", "off"])]


class Changes:
    """Random changes of everything but `still` and `capped`."""

    def __init__(self, system, folders, dice):
        self.system, self.folders, self.dice = system, folders, dice
        self.done = self.refused = 0
        self.rules = []

    def one(self, profiles):
        kind = self.dice.random()
        if kind < 0.15:
            folder, name = self.dice.choice(self.folders)
            os.setxattr(folder, "user.qos.class", self.dice.choice([name, self.dice.choice(NAMES)]).encode())
        elif kind < 0.25:
            self._rule()
        else:
            self._osdctl(class_change(self.dice) if kind < 0.8 else box_change(self.dice, profiles))
        self.done += 1

    def _osdctl(self, change):
        self.refused += self.system.osdctl(*change, ok=(0, 2, 4, 5)).returncode != 0

    def _rule(self):
        if self.rules and self.dice.random() < 0.5:
            self._osdctl(["rule", "rm", self.rules.pop()])
            return
        self._osdctl(["rule", "add", "--uid", self.dice.choice(["0", "4711"]), "--class", self.dice.choice(NAMES)])
        found = json.loads(self.system.osdctl("rule", "ls", "-o", "json").stdout)["rules"]
        self.rules = [rule["rule"] for rule in found]


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


def of(system, name, key):
    return sum(c[key] for o in stat(system) for c in o["classes"] if c["class"] == name)


def prepare(system):
    """The folders of each mount with their classes; that of nobody's class comes last."""
    system.osdctl("class", "create", "still")
    system.osdctl("reserve", "still", "--bandwidth", "2MiB/s")
    system.osdctl("class", "create", "capped", "--limit", f"{CAP // MIB}MiB/s")
    for name in NAMES:
        system.osdctl("class", "create", name)
    folders = [(f"{system.mounts[i // 3]}/{name}", name) for i, name in enumerate(NAMES)]
    folders += [(f"{system.mounts[0]}/{name}", name) for name in ("still", "capped", "nobody")]
    for folder, name in folders:
        os.mkdir(folder)
        if name != "nobody":
            os.setxattr(folder, "user.qos.class", name.encode())
    return folders


def all_clients_end_well(lab, clients):
    for process in clients:
        process.terminate()  # fio ends in good order: what is under way completes, what failed shows
    for process in clients:
        code = process.wait(timeout=60)
        check(code in (0, 128), f"{process.args[1]} ended with {code}")
    for name in os.listdir(lab.dir):
        if name.startswith("fio."):
            with open(lab.path(name)) as text:
                for line in text:
                    if "verify:" in line or "error=" in line and "Interrupted" not in line:
                        raise Failure(f"{name}: {line}")


def every_queue_moves(system):
    system.osdctl("osd", "set", "all", *KEEPING)
    for name in NAMES:  # nobody is held back any more
        system.osdctl("class", "set", name, "--limit", "max")
    before = {(o["id"], c["class"]): c["served_bytes"] for o in stat(system) for c in o["classes"]}
    wait_until(lambda: all(c["served_bytes"] > before[o["id"], c["class"]] or c["queued_ops"] == 0
                           for o in stat(system) for c in o["classes"]), "every queue to move")


def nothing_is_lost_stuck_or_broken(lab):
    system = Cluster(lab, osds=2, mounts=2, token_rate="60MiB/s")
    folders = prepare(system)
    # Loops that verify every block they wrote, one pass after the other; the others only keep the queues full.
    verified = ["--rw=randwrite", "--bs=16k", "--iodepth=4", "--verify=crc32c", "--verify_fatal=1", "--loops=10000"]
    load = ["--rw=randrw", "--bs=32k", "--iodepth=4", "--time_based", "--runtime=3600", "--exitall_on_error=1"]
    clients = [start(lab, name, folder, *(verified if name in NAMES[3:] else load)) for folder, name in folders]
    wait_until(lambda: of(system, "capped", "served_bytes") > MIB and of(system, "still", "served_bytes") > MIB, "load")
    changes = Changes(system, folders[:len(NAMES)], random.Random(SEED))
    broken, early, begun, capped = [], 0, time.monotonic(), of(system, "capped", "served_bytes")
    for index in range(ROUNDS):
        keeps = index % 2 == 1
        if keeps:
            system.osdctl("osd", "set", "all", *KEEPING)
            time.sleep(2)  # what had queued under the others' rules is served
        before = of(system, "still", "violation_seconds")
        for _ in range(CHANGES // ROUNDS):
            changes.one(("unified", "odis") if keeps else PROFILES)
            check(all(p.poll() is None for p in clients), f"a client ended after {changes.done} changes")
            time.sleep(PAUSE)
        if keeps:
            broken.append(of(system, "still", "violation_seconds") - before)
        if index == ROUNDS // 4:
            early = resident(system)
    seconds = time.monotonic() - begun
    over = (of(system, "capped", "served_bytes") - capped) / (CAP * seconds) - 1
    late = resident(system)
    every_queue_moves(system)
    all_clients_end_well(lab, clients)
    wait_until(lambda: all(c["queued_ops"] == 0 for o in stat(system) for c in o["classes"]), "the queues to run empty")
    lab.show(f"        seed {SEED}: {changes.done} changes in {seconds:.0f} s, {changes.refused} of them refused; OSDs "
             f"{early / MIB:.0f} MiB after a quarter, {late / MIB:.0f} at the end; seconds of a broken promise in the "
             f"rounds that keep them: {broken}; 'capped' got {over:+.1%} of its limit")
    check(sum(broken) == 0, f"a class that nobody changed had its promise broken: {broken} s")
    check(over <= 0.02, f"a class that nobody changed exceeded its limit by {over:.1%}")
    check(late <= early * 1.15 + 8 * MIB, f"the OSDs grew from {early / MIB:.0f} to {late / MIB:.0f} MiB")


if __name__ == "__main__":
    main("live_change", nothing_is_lost_stuck_or_broken)
