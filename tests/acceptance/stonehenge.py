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

from servicelog import LOG_OPTIONS
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


class OpenLoop:
    """Three classes of .2, .3 and .5 of what is promised read 8 KiB at random from an emulated disk, in an open loop."""

    PROMISED, COMING = 85, 82  # requests a second of all three: the disk does some 95 in the order of arrival
    PARTS = {"a": .2, "b": .3, "c": .5}

    def __init__(self, lab):
        self.lab, self.runs = lab, 0
        self.system = Cluster(lab, disks=(DISK,), token_rate="30MiB/s")
        self.common = ["fio", "--name=global", "--direct=1", "--thread", "--size=200m", "--eta=never", "--ioengine=libaio",
                       "--norandommap"]
        layout = []
        for name in self.PARTS:
            os.mkdir(f"{self.system.mnt}/{name}")
            layout += [f"--name={name}", f"--filename={self.system.mnt}/{name}/data"]
            self.system.osdctl("class", "create", name)
            self.system.osdctl("reserve", name, "--iops", round(self.PARTS[name] * self.PROMISED))
        subprocess.run(self.common + ["--rw=write", "--bs=1m"] + layout, check=True, capture_output=True, cwd=lab.dir)
        for name in self.PARTS:
            os.setxattr(f"{self.system.mnt}/{name}", "user.qos.class", name.encode())

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
        done = self.fio(seconds, {name: [f"--rate_iops={part * self.COMING:g}", "--rate_process=poisson", "--iodepth=128"]
                                  for name, part in self.PARTS.items()})
        on_disk = late = count = served = 0.0
        for name, part in self.PARTS.items():
            why = json.loads(self.system.osdctl("why", name, "-o", "json").stdout)
            on_disk += why["mean_us"]["device"] * why["served_ops_per_s"] / 1e3
            served += why["served_ops_per_s"]
            finish, rate = 0.0, round(part * self.PROMISED)
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
    NODES, DEPTH, SETTLE, SECONDS = 3, 2, 4, 28
    BOUND, PENDING = .120, 3  # 14 waiting there
    FINANCIAL, WEBSEARCH, WEBSEARCH_COMES = 128 * PART, 675 * PART, 690 * PART
    WEBSEARCH_THREADS, TPCC_THREADS = 24, 42  # TPC-C's leave WebSearch 85 to 92 % under C-SCAN
    MIB = {"tpcc": 20, "financial": 34, "websearch": 216}  # of an OSD, for 9, 15 and 96 GB

    def __init__(self, lab):
        self.lab, self.runs = lab, 0
        self.system = Cluster(lab, disks=(DISK,) * self.NODES, token_rate="30MiB/s")
        osdctl = self.system.osdctl
        osdctl("osd", "set", "all", "--iops-max", "105", "--best-effort-min", "0")
        for node in range(self.NODES):
            osdctl("pool", "create", f"p{node}", "--osds", node)
        osdctl("class", "create", "tpcc")
        osdctl("class", "create", "financial", "--latency", f"{round(1e3 * self.BOUND)}ms@95%", "--max-pending", self.PENDING)
        osdctl("class", "create", "websearch")
        for name, leeway, rate in (("financial", 2.5, self.FINANCIAL), ("websearch", 1.2, self.WEBSEARCH)):
            osdctl("reserve", name, "--iops", round(leeway * rate / self.NODES), "--scope", "osd")
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

    def paths(self, name):
        return [f"{self.system.mnt}/{name}.{node}/data" for node in range(self.NODES)]

    def trace(self):
        """Financial's stand-in: small and bursty, the same in all runs."""
        dice, found = random.Random(32), []
        for at in bursts(self.FINANCIAL, self.SECONDS, .75, dice):
            size = 512 * dice.randint(1, 12)
            offset = 512 * dice.randrange(((self.MIB["financial"] << 20) - size) // 512)
            found.append((at, dice.choice(self.paths("financial")), offset, size))
        return found

    def measure(self, profile):
        """Completions per half second by class, and the part of Financial's reads that kept their bound."""
        self.runs += 1
        self.system.osdctl("osd", "set", "all", "--profile", profile, "--depth", self.DEPTH)
        argv = ["fio", "--name=global", "--direct=1", "--thread", "--ioengine=libaio", "--norandommap", "--time_based",
                "--rw=randread", f"--runtime={self.SECONDS}", "--file_service_type=random", *LOG_OPTIONS,
                "--eta=never", "--randseed=32"]
        for name, what in (("tpcc", ("--bs=8k", f"--iodepth={self.TPCC_THREADS}")),
                           ("websearch", ("--bs=16k", f"--iodepth={self.WEBSEARCH_THREADS}",
                                          f"--rate_iops={round(self.WEBSEARCH_COMES)}"))):
            argv += [f"--name={name}", "--filename=" + ":".join(self.paths(name)), *what,
                     f"--size={self.MIB[name] * self.NODES}m", f"--write_lat_log={self.lab.path(f'striped.{self.runs}.{name}')}"]
        player, start = Player(self.trace()), time.time()
        threads = player.play(start)
        subprocess.run(argv, check=True, capture_output=True, cwd=self.lab.dir, timeout=self.SECONDS + 60)
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
        counts = [0] * (2 * (self.SECONDS - self.SETTLE))
        for at in times:
            if self.SETTLE <= at < self.SECONDS:
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
