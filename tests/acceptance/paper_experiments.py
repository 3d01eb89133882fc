#!/usr/bin/env python3
"""The papers' experiments on real processes, in one table: what the paper (or the fluid model) says beside what was
measured here. Durations and rates are scaled down; bounds are twice those of the simulation, never below 10 %.

DSFQ and the unified pipeline run on three bricks of 20 MiB/s (dsfq.py), Yan and Jiang on their two disks (yan_jiang.py), BAA on an
OSD of two emulated disks (baa.py), AQuA on one OSD, Stonehenge on emulated disks (stonehenge.py).
`paper_experiments.py [E2] [E3] …` runs some of them.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

import aqua_figure9
import baa
import stonehenge
from dsfq import Dsfq
from servicelog import Stream, run_logged
from weirtest import BIN, MIB, Cluster, Failure, Lab, check, curve, end_on_signals, result, wait_until
from yan_jiang import VirtualDisks

REPLAYED = 100_000  # Requests of a daemon that E48 decides once more.
ROWS = []


def row(experiment, what, expected, measured, tolerance=0.10, low=None, high=None):
    """Keeps a line of the table. Bounds default to `expected` +- the tolerance, relative; without one nothing is asserted."""
    if low is None and high is None and tolerance is not None:
        low, high = expected * (1 - tolerance), expected * (1 + tolerance)
    passed = (low is None or measured >= low) and (high is None or measured <= high) if low is not None or high is not None else None
    # An indented row belongs to the last one that is not.
    above = next((r[1] for r in reversed(ROWS) if r[0] == experiment and not r[1].startswith(" ")), None)
    ROWS.append((experiment, what, expected, measured, low, high, passed))
    full = f"{above}: {what.strip()}" if what.startswith(" ") and above else what
    result(experiment, full, measured, expected, low=low, high=high, passed=passed)


def together(make, *names):
    """Experiments that share what `make` starts, in this order."""
    def run(lab):
        shared = make(lab, row)
        for name in names:
            if wanted(name.upper()):
                getattr(shared, name)()
    return run


def e41(lab):
    attained = 43e6 / MIB
    system = Cluster(lab, disks=("ssd:2GiB,rate=43MB/s",), token_rate="43MB/s")
    system.osdctl("osd", "set", "all", "--profile", "noqos")
    streams = []
    for name in ("w1", "w2", "w3"):
        os.mkdir(f"{system.mnt}/{name}")
        system.osdctl("class", "create", name)
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
        streams.append(Stream(lab, name, f"{system.mnt}/{name}", "write", 10, depth=4, size="16m"))
    start = time.time()
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.finish()
    rates = [s.served(start + 3, start + 9.5) for s in streams]
    for index, rate in enumerate(rates):
        row("E41", f"no QoS, three writers: number {index + 1}, MiB/s", attained / 3, rate)
    row("E41", "  all of them (at most 20 % lost)", attained, sum(rates), low=0.8 * attained)


def e42(lab):
    one, two, three = aqua_figure9.phases(lab, "write")
    row("E42", "5/15/20 of 40, W1 alone, MiB/s", 40, one)
    row("E42", "  W1 and W2", 40, sum(two))
    for rate, got in zip((5, 15, 20), three):
        row("E42", f"  three: reserved {rate}", rate, got)


def e43(lab):
    worst, late = aqua_figure9.maximizer(lab)
    for name, part in worst.items():
        row("E43", f"maximizer: worst 2 s of {name} over its promise", 1, part, low=0.94)
    row("E43", "  all at the end (paper: 1.2 x 40 at least)", 48, late, low=48)


class Sampled(threading.Thread):
    """Hands what the first OSD tells to `take`, every fifth of a second."""

    def __init__(self, system, take):
        super().__init__(daemon=True)
        self.system, self.take, self.ended, self.failed = system, take, threading.Event(), None

    def run(self):
        try:
            while not self.ended.wait(.2):
                self.take(json.loads(self.system.osdctl("stat", "-o", "json").stdout)["osds"][0])
        except Exception as error:  # noqa: BLE001 - told by stop()
            self.failed = error

    def stop(self):
        self.ended.set()
        self.join()
        if self.failed is not None:
            raise self.failed


def sample_g(system):
    """G of the first OSD as (wall clock, MiB/s), from now on until it is stopped."""
    found = []
    sampled = Sampled(system, lambda osd: found.append((time.time(), osd["token_rate_bytes_per_s"] / MIB)))
    sampled.start()
    return sampled, found


def e46(lab):
    """Users of a class as its transactions: 8 and 4 of 20 MiB/s, and one who was promised nothing; another class has 20, too."""
    system = Cluster(lab, disks=("ssd:1GiB,rate=63MB/s",), token_rate="40MiB/s", extra=["-o", "allow_other"])
    system.osdctl("osd", "set", "all", "--profile", "odis", "--best-effort-min", "0", "--maximizer", "off", "--depth", "4")
    os.chmod(lab.dir, 0o777)  # for their logs
    depths = {1001: 8, 1002: 4, 1003: 16}
    streams = {}
    for name, users in (("parts", depths), ("other", {0: 16})):
        os.mkdir(f"{system.mnt}/{name}")
        system.osdctl("class", "create", name)
        system.osdctl("reserve", name, "--bandwidth", "20MiB/s")
        for user, depth in users.items():
            streams[user] = Stream(lab, f"u{user}", f"{system.mnt}/{name}", "write", 12 if user else 6, block="256k", depth=depth,
                                   size="16m")
        for file in os.listdir(f"{system.mnt}/{name}"):
            os.chmod(f"{system.mnt}/{name}/{file}", 0o666)
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
    for user, rate in ((1001, 8), (1002, 4)):
        system.osdctl("reserve", "parts", "--user", user, "--bandwidth", f"{rate}MiB/s")
    start = time.time()
    for user, stream in streams.items():
        stream.start(user)
    for stream in streams.values():
        stream.finish()

    def rate(user, begin, end):
        return streams[user].served(start + begin, start + end)

    row("E46", "user promised 8 of 20 MiB/s", 8, rate(1001, 2, 6), low=7.76, high=11)
    row("E46", "  user promised 4", 4, rate(1002, 2, 6), low=3.88, high=7)
    row("E46", "  the class", 20, sum(rate(user, 2, 6) for user in depths))
    row("E46", "  the other class", 20, rate(0, 2, 6))
    row("E46", "  the class when the other rests", 40, sum(rate(user, 8, 12) for user in depths))


def e44(lab):
    """A disk that reads 60 MiB/s and writes 30: those who write have less than G = 40. The last run is E43's disk that is cut."""
    system = Cluster(lab, disks=("ssd:1GiB,read-rate=63MB/s,write-rate=31.5MB/s,buffer=1MiB",), token_rate="40MiB/s")
    system.osdctl("osd", "set", "all", "--profile", "odis", "--best-effort-min", "0", "--maximizer", "off", "--depth", "4")
    promised = {"w1": 5, "w2": 15, "w3": 20}
    layout = ["fio", "--name=global", "--rw=write", "--overwrite=1", "--bs=1m", "--size=32m", "--direct=1", "--thread"]
    for name, rate in promised.items():
        os.mkdir(f"{system.mnt}/{name}")
        system.osdctl("class", "create", name)
        system.osdctl("reserve", name, "--bandwidth", f"{rate}MiB/s")
        layout += [f"--name={name}", f"--filename={system.mnt}/{name}/data"]
    subprocess.run(layout, check=True, capture_output=True, cwd=lab.dir)
    for name in promised:
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())

    def stream(name, rw, begin, end, *more):
        return ((name, rw), begin, [f"--filename={system.mnt}/{name}/data", f"--rw={rw}", f"--runtime={end - begin}", *more])

    def run_streams(*streams):
        return run_logged(lab, ["--bs=512k", "--size=32m", "--overwrite=1", "--ioengine=libaio", "--direct=1", "--iodepth=16"], streams, 150)

    def total(service, begin, end):
        return sum(service.rate(name, begin, end) for name in promised)

    demands = {"w1": 5, "w2": 7, "w3": 8}
    time.sleep(1)
    service = run_streams(*(stream(n, "read", 0, 8, f"--rate={rate}m", "--iodepth=1") for n, rate in demands.items()))
    why = json.loads(system.osdctl("why", "w1", "-o", "json").stdout)
    row("E44", "(1) demand 20 below G and A: served", 20, total(service, 1, 8), low=19, high=21)
    row("E44", "(1) wait for tokens, ms", 0, why["mean_us"]["token_wait"] / 1e3, low=0, high=.5)

    system.osdctl("osd", "set", "all", "--maximizer", "on")
    sampled, found = sample_g(system)
    service = run_streams(stream("w1", "write", 0, 14), stream("w2", "write", 0, 7), stream("w3", "write", 0, 14))
    sampled.stop()
    rates = [rate for at, rate in found if service.start + 1 <= at <= service.start + 14]
    row("E44", "(2) A = 30 below G: served", 30, total(service, 2, 7), low=26, high=31)
    row("E44", "(2) G stays, MiB/s", 40, max(rates), low=39.9, high=40.1)
    row("E44", "(2) writer 1 when writer 2 rests", 5, service.rate("w1", 9, 14), low=4.85, high=15)
    row("E44", "(2) writer 3 when writer 2 rests", 20, service.rate("w3", 9, 14), low=19.4, high=30)

    # By the default profile the device takes all that there is, unless a promise leaves no room for it.
    system.osdctl("osd", "set", "all", "--profile", "unified", "--maximizer", "off", "--depth", "auto")
    service = run_streams(stream("w1", "write", 0, 6, "--iodepth=4"), stream("w3", "write", 0, 6, "--iodepth=4"))
    row("E44", "(2) writers 1 and 3 by `unified`, depth auto: writer 3, MiB/s", 20, service.rate("w3", 1, 6), tolerance=None)
    system.osdctl("osd", "set", "all", "--profile", "odis", "--best-effort-min", "0", "--maximizer", "off", "--depth", "4")

    service = run_streams(*(stream(name, "read", 0, 8) for name in promised))
    row("E44", "(3) A = 60 above G, without maximizer", 40, total(service, 2, 8), low=38.8, high=41.2)
    row("E44", "(3) most in any second, MiB (G and the buckets)", 44.5, max(total(service, 2 + i / 4, 3 + i / 4) for i in range(20)),
        low=38.8, high=54.5)

    system.osdctl("osd", "set", "all", "--maximizer", "on")
    sampled, found = sample_g(system)
    cut, end = 24, 46
    service = run_streams(*(stream(name, rw, begin, until) for name in promised for rw, begin, until in (("read", 0, cut), ("write", cut, end))))
    sampled.stop()
    rates = [(at - service.start, rate) for at, rate in found]
    row("E44", "(3) A = 60 above G, with maximizer", 60, total(service, cut - 6, cut), low=52, high=61)
    row("E43", "disk cut from 60 to 30 MiB/s: G before, MiB/s", 60, max(rate for at, rate in rates if at < cut), low=52, high=72)
    back = next((at - cut for at, rate in rates if at >= cut and rate <= 40.1), end)
    row("E43", "  G is back at 40 after, s", None, back, low=0, high=20)
    row("E43", "  G never below, MiB/s", 40, min(rate for _, rate in rates), low=39.9, high=40.1)
    curve("E43", "The disk is cut to 30 MiB/s", "G", rates, "s", "MiB/s")
    for name in promised:
        curve("E43", "The disk is cut to 30 MiB/s", name, [(s, service.rate(name, s, s + 1)) for s in range(end)], "s", "MiB/s")


def e45(lab):
    system = Cluster(lab, token_rate="40MiB/s", osd_size="1GiB")
    system.osdctl("osd", "set", "all", "--best-effort-min", "0.4MiB/s")
    for name in ("a", "b", "c"):
        system.osdctl("class", "create", name)

    def code(name, rate, *more):
        return system.osdctl("reserve", name, "--bandwidth", f"{rate}MiB/s", *more, ok=None).returncode
    for name, rate, expected in (("a", 5, 0), ("b", 15, 0), ("c", 20, 4), ("c", 19.6, 0), ("b", 10, 0)):
        row("E45", f"reserve {rate:g} of what is left: exit code", expected, code(name, rate), low=expected, high=expected)
    row("E45", "reserve 5 again after another gave 5 back", 0, code("a", 10), low=0, high=0)


PROFILES = ("noqos", "odis", "sfq", "dsfq-total", "dsfq-hybrid", "dsfq-hybrid-h", "vd", "vc", "cscan", "cvc", "baa", "unified")


def e48(_, profiles=PROFILES):
    """A mixed load under every profile, written down by the daemon, decided once more by weir-sim."""
    for profile in profiles:
        lab = Lab("papers")
        try:
            replay_of(lab, profile)
        finally:
            lab.close()


def replay_of(lab, profile):
    log = f"{lab.dir}/decisions"
    os.environ["WEIR_OSD_DECISION_LOG"] = log
    lab.on_exit(os.environ.pop, "WEIR_OSD_DECISION_LOG")
    system = Cluster(lab, token_rate="300MiB/s")
    system.osdctl("osd", "set", "all", "--profile", profile)
    jobs = []
    for name, limits, what in (("web", (), ("--rw=randrw", "--bs=4k")), ("bulk", ("--limit", "100MiB/s"), ("--rw=write", "--bs=64k")),
                               ("rest", ("--weight", "2"), ("--rw=randread", "--bs=16k"))):
        os.mkdir(f"{system.mnt}/{name}")
        system.osdctl("class", "create", name, *limits)
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
        jobs += [f"--name={name}", f"--filename={system.mnt}/{name}/data", *what]
    system.osdctl("reserve", "web", "--bandwidth", "20MiB/s")
    load = subprocess.Popen(["fio", "--name=global", "--thread", "--direct=1", "--size=100m", "--time_based", "--runtime=1h",
                             "--iodepth=8", "--ioengine=libaio", "--eta=never", *jobs], stdout=subprocess.DEVNULL, cwd=lab.dir)
    lab.on_exit(load.kill)
    wait_until(lambda: load.poll() is not None or served_requests(system) >= REPLAYED, f"{REPLAYED} requests", timeout=600)
    check(load.poll() is None, "fio ended before it had made enough requests")
    load.send_signal(signal.SIGINT)
    load.wait(60)
    system.down()
    done = subprocess.run([f"{BIN}/weir-sim", "replay", log], capture_output=True, text=True)
    requests = int(done.stdout.split()[0]) if done.stdout else 0
    row("E48", f"{profile}: exit code of a replay", 0, done.returncode, low=0, high=0)
    row("E48", "  of so many requests", REPLAYED, requests, low=REPLAYED)


def served_requests(system):
    """By all OSDs and for all classes, since they started."""
    osds = json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"]
    return sum(c["served_ops"] for osd in osds for c in osd["classes"])


def turns(values, least):
    """How often a series turns round by more than the part `least`."""
    found = direction = 0
    low = high = values[0]
    for value in values:
        low, high = min(low, value), max(high, value)
        falls, rises = direction >= 0 and value < high * (1 - least), direction <= 0 and value > low * (1 + least)
        if falls or rises:
            found, direction, low, high = found + (direction != 0), 1 if rises else -1, value, value
    return found


def e52(lab):
    """Maximizer, BAA and the measured estimate of CVC at constant load, on an OSD of two disks; half a minute for the paper-less 190 s."""
    system = Cluster(lab, tiers=("hdd=ssd:512MiB,read-rate=31.5MB/s,ssd=ssd:512MiB,read-rate=42MB/s",), token_rate="24MiB/s")
    system.osdctl("osd", "set", "all", "--profile", "odis", "--surplus", "dsfq", "--sharing", "hybrid-h", "--dispatch", "cvc", "--depth", "4",
                  "--allocation", "baa", "--allocation-period", "2s", "--maximizer", "on", "--best-effort-min", "0")
    writers, jobs = {"w1": (3, 3), "w2": (6, 5), "w3": (9, 8)}, []  # MiB/s promised, tenths of the files on the fast disk
    layout = ["fio", "--name=global", "--rw=write", "--overwrite=1", "--bs=1m", "--size=4m", "--direct=1", "--thread"]
    for name, (rate, fast) in writers.items():
        system.osdctl("class", "create", name)
        system.osdctl("reserve", name, "--bandwidth", f"{rate}MiB/s")
        for tier in ("ssd", "hdd"):
            os.makedirs(f"{system.mnt}/{name}/{tier}")
            os.setxattr(f"{system.mnt}/{name}/{tier}", "user.weir.layout.tier", tier.encode())
        paths = [f"{system.mnt}/{name}/{'ssd' if i < fast else 'hdd'}/{i}" for i in range(10)]
        for path in paths:
            layout += [f"--name={name}", f"--filename={path}"]
        jobs.append(((name, "all"), 0, [f"--filename={':'.join(paths)}", "--runtime=40"]))
    subprocess.run(layout, check=True, capture_output=True, cwd=lab.dir)
    for name in writers:
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
    found = []
    sampled = Sampled(system, lambda osd: found.append((
        time.time(), {t["tier"]: t["token_rate_bytes_per_s"] / MIB for t in osd["tiers"]}, {c["class"]: c["weight"] for c in osd["allocation"]})))
    sampled.start()
    service = run_logged(lab, ["--rw=randread", "--bs=512k", "--size=40m", "--ioengine=libaio", "--direct=1", "--iodepth=32", "--norandommap",
                               "--file_service_type=random"], jobs, 150)
    sampled.stop()
    settled = [(g, weights) for at, g, weights in found if service.start + 18 <= at <= service.start + 40]
    for tier, attains in (("hdd", 30), ("ssd", 40)):
        rates = [g[tier] for g, _ in settled]
        curve("E52", "Control loops at constant load", f"G of {tier}", [(at - service.start, g[tier]) for at, g, _ in found], "s", "MiB/s")
        row("E52", f"most turns of G at constant load, {tier}", 0, turns(rates, 0), low=0, high=3)
        row("E52", f"G never below G0, {tier}, MiB/s", 24, min(g[tier] for _, g, _ in found), low=23.9, high=1.2 * attains)
        row("E52", f"highest G at the end, {tier}, MiB/s", attains, rates[-1], low=23.9, high=1.2 * attains)
    for name, (rate, _) in writers.items():
        weights = [w[name] for _, w in settled if name in w]
        row("E52", f"most turns of its weight by 5 % or more, {name}", 0, turns(weights, .05), low=0, high=3)
        least = min(service.windows(name, 18, 40))
        row("E52", f"least part of its promise in any second, {name}", 1, least / rate, low=.97, high=10)


def e51(_):
    done = subprocess.run([f"{BIN}/scheduler_bench", "--benchmark_format=json", "--benchmark_min_time=0.05",
                           "--benchmark_filter=Decide/unified/10000$|Decide/cvc/1000$|SolveTiers/two/.*/1000$|SolveTiers/two/1000$"],
                          check=True, capture_output=True, text=True)
    found = {b["name"]: b["cpu_time"] for b in json.loads(done.stdout[done.stdout.index("{"):])["benchmarks"]}
    for name, ns in found.items():
        limit = 5000 if "unified" in name else 20000 if "cvc" in name else 1e6
        row("E51", f"{name}, ns of processor", limit, ns, high=limit)


def tiers(experiment, *functions):
    def run_them(_):
        for function in functions:
            lab, before = Lab("papers"), len(baa.Table.rows)
            try:
                function(lab)
            except Failure:
                if len(baa.Table.rows) == before:
                    raise
            finally:
                lab.close()
            ROWS.extend((experiment, *row) for row in baa.Table.rows[before:])
    return run_them


def wanted(name):
    names = [a.upper() for a in sys.argv[1:] if not a.startswith("-")]
    return not names or name in names


OF_BRICKS = ("e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11", "e12", "e47", "e50", "e53", "e55")
OF_DISKS = ("e13", "e14", "e15", "e16", "e17", "e18", "e19", "e20")


def named(*names):
    return tuple(name.upper() for name in names)


EXPERIMENTS = ((named(*OF_BRICKS), together(Dsfq, *OF_BRICKS)), (named(*OF_DISKS), together(VirtualDisks, *OF_DISKS)),
               (("E26",), tiers("E26", baa.figure_five)), (("E28",), tiers("E28", baa.figure_six)),
               (("E30B",), tiers("E30b", baa.example_five, baa.table_three, baa.equal_weights)),
               *((named(*names), lambda lab, function=function: function(lab, row)) for names, function in (
                   (("e32",), stonehenge.e32), (("e36",), stonehenge.e36), (("e36",), stonehenge.e36b), (("e37",), stonehenge.e37), (("e38",), stonehenge.e38),
                   (("e39",), stonehenge.e39))),
               (("E41",), e41), (("E42",), e42), (("E43",), e43), (("E44",), e44), (("E45",), e45), (("E46",), e46),
               (("E48",), e48), (("E51",), e51), (("E52",), e52))


def table():
    figure = lambda x: "" if x is None else f"{x:.4g}"  # noqa: E731
    print(f"{'':5} {'':68} {'paper':>9} {'measured':>9} {'low':>9} {'high':>9}")
    for experiment, what, expected, measured, low, high, passed in ROWS:
        print(f"{experiment:5} {what:68} {figure(expected):>9} {figure(measured):>9} {figure(low):>9} {figure(high):>9} "
              f"{'-' if passed is None else 'ok' if passed else 'MISSED'}")


def run():
    end_on_signals()
    failed, ended = [], {}
    for names, function in EXPERIMENTS:
        chosen = [n for n in names if wanted(n)]
        if not chosen:
            continue
        lab, whole = Lab("papers"), False
        try:
            function(lab)
            whole = True
        except Exception as error:  # noqa: BLE001 - one experiment's hiccup is not the table's
            failed.append(f"{'/'.join(chosen)}: {type(error).__name__}: {error}")
        finally:
            lab.close()
        for name in chosen:
            ended[name] = ended.get(name, True) and whole
    for name, whole in ended.items():
        result(name.replace("B", "b"), "ran to its end", int(whole), 1, passed=whole)
    table()
    for text in failed:
        print(f"FAILED  {text}")
    missed, shown = sum(r[-1] is False for r in ROWS), sum(r[-1] is None for r in ROWS)
    print(f"paper_experiments: {len(ROWS) - missed - shown} as in the papers, {shown} shown only, {missed} not, {len(failed)} not run to the end")
    sys.exit(1 if missed or failed else 0)


if __name__ == "__main__":
    run()
