"""Yan and Jiang's virtual disks on daemons: their two disks, emulated, and flows of a given locality.

A block of 4 KiB is the least that an OSD reads (512 bytes there): the fast disk does some 2,000 of them a second in order
and 240 at random. The slow disk moves 12.5 MB/s instead of 10, so that the two are as 4500 to 3410 again. It is an OSD of its own: the
flow of the 75 % disk runs there too, at the same time. What is alike in disks of all speeds is in parts of what the same
flow has on a disk of its own, measured here. Profile `vd`: one request on the disk at a time.
"""
import os
import random
import statistics
import subprocess
import time

from servicelog import run_logged
from stonehenge import Player, bursts
from weirtest import Cluster, check, curve

DISKS = {"fast": "hdd:1GiB,model=st34501n", "slow": "hdd:1GiB,model=st32171w,rate=12.5MB/s"}
CLASSES = ("large", "small", "third")
BLOCK, FILE_MIB = 4096, 24
DEPTH = 8


class VirtualDisks:
    """E13 to E20 share one cluster."""

    def __init__(self, lab, row):
        self.lab, self.row = lab, row
        self.system = Cluster(lab, disks=tuple(DISKS.values()), token_rate="100MiB/s")
        self.osdctl = self.system.osdctl
        self.osdctl("osd", "set", "all", "--profile", "vd", "--best-effort-min", "0")
        layout = ["fio", "--name=global", "--rw=write", "--bs=1m", f"--size={FILE_MIB}m", "--direct=1", "--thread"]
        for osd, disk in enumerate(DISKS):
            self.osdctl("pool", "create", disk, "--osds", osd)
        for name in CLASSES:
            self.osdctl("class", "create", name)
            for disk in DISKS:
                os.mkdir(os.path.dirname(self.path(name, disk)))
                os.setxattr(os.path.dirname(self.path(name, disk)), "user.weir.layout.pool", disk.encode())
                layout += [f"--name={name}.{disk}", f"--filename={self.path(name, disk)}"] + ["--stonewall"] * (disk == "fast")
        subprocess.run(layout, check=True, capture_output=True, cwd=lab.dir)
        for name in CLASSES:
            for disk in DISKS:
                os.setxattr(os.path.dirname(self.path(name, disk)), "user.qos.class", name.encode())
        self.rented(large=75, small=25)
        self.located, self.alone = False, self.peaks()

    def path(self, name, disk):
        return f"{self.system.mnt}/{name}.{disk}/data"

    def rented(self, **peaks):
        """Contracts that are no more first: all of them add up to 100 % at most."""
        for name in CLASSES:
            self.osdctl("class", "set", name, "--type", "best-effort", "--latency", "none")
        for name, peak in peaks.items():
            self.osdctl("class", "set", name, "--type", "rent-a-disk", "--peak", f"{peak}%")

    def flow(self, name, disk, locality, begin, end, *more, depth=DEPTH):
        """Requests of which `locality` percent lie behind the one before them."""
        return ((name, disk), begin, [f"--filename={self.path(name, disk)}", f"--percentage_random={100 - locality}",
                                      f"--iodepth={depth}", f"--runtime={end - begin}", *more])

    def run(self, *flows):
        common = ["--rw=randread", f"--bs={BLOCK}", "--ioengine=libaio", "--direct=1", f"--size={FILE_MIB}m", "--norandommap"]
        return run_logged(self.lab, common, flows, 120)

    def peaks(self):
        """Requests a second that a flow has on a disk of its own, by (disk, locality)."""
        found = {}
        for locality in (100, 0):
            service = self.run(*(self.flow("large", disk, locality, 0, 4) for disk in DISKS))
            found.update({(disk, locality): service.count("large", 1, 4, disk) for disk in DISKS})
        self.lab.show("        on a disk of its own, requests/s: "
                      + ", ".join(f"{disk}, locality {locality} %: {rate:.0f}" for (disk, locality), rate in found.items()))
        return found

    def e13(self):
        """Shares of time by what is served: all requests are random, and cost alike."""
        service = self.run(self.flow("large", "fast", 0, 0, 10), self.flow("small", "fast", 0, 4, 10))
        whole = self.alone["fast", 0]
        self.row("E13", "one disk idle for 4 s, the other has all of the device meanwhile, part", 1,
                 service.count("large", 1, 4) / whole, low=.9, high=1.1)
        self.row("E13", "75 % disk, after ten seconds alone, part of the device", .75, service.count("large", 5, 10) / whole,
                 low=.675, high=.825)
        self.row("E13", "25 % disk, idle meanwhile, part of the device", .25, service.count("small", 5, 10) / whole,
                 low=.225, high=.275)
        self.rented(large=50, small=30)
        service = self.run(*(self.flow(name, "fast", 0, 0, 7) for name in ("large", "small")))
        self.rented(large=75, small=25)
        for name, text, part in (("large", "shares of .5 and .3: the first gets .5 and half of what nobody rented", .6),
                                 ("small", "shares of .5 and .3: the second", .4)):
            self.row("E13", text, part, service.count(name, 1, 7) / whole)

    PHASES = ((35, 0, 5), (85, 5, 10), (100, 10, 15))

    def phases(self, *disks):
        flows = [self.flow("small", "fast", 100, 0, 15)]
        flows += [self.flow("large", disk, *phase) for disk in disks for phase in self.PHASES]
        return self.run(*flows)

    def draw(self, experiment, title, service, end, step=.25):
        for (name, disk), text in ((("large", "fast"), "75 % disk"), (("small", "fast"), "25 % disk"), (("large", "slow"), "slow disk")):
            if (name, disk) in service.series:
                curve(experiment, title, text, [(i * step, service.count(name, i * step, (i + 1) * step, disk))
                                                for i in range(int(end / step))], "s", "requests/s")

    def e14(self):
        self.e15()

    def e15(self):
        """Once for both: the last phase is figure 2."""
        if self.located:
            return
        self.located = True
        service = self.phases("fast", "slow")
        self.draw("E15", "Locality 35, 85, 100 % on the 75 % disk", service, 15)
        whole, row = self.alone["fast", 100], self.row
        large, slow, small = ([service.count(name, begin + 1, end, disk) for _, begin, end in self.PHASES]
                              for name, disk in (("large", "fast"), ("large", "slow"), ("small", "fast")))
        row("E14", "25 % disk, requests/s (text: about 1100)", .25 * whole, small[2], low=.23 * whole, high=.26 * whole)
        row("E14", "75 % disk, requests/s", .75 * whole, large[2], low=.71 * whole, high=.78 * whole)
        row("E14", "75 % disk against the slow disk, requests/s", slow[2], large[2], tolerance=.10)
        row("E14", "both, requests/s", whole, large[2] + small[2], low=.95 * whole, high=1.05 * whole)
        for index, (locality, _, _) in enumerate(self.PHASES):
            row("E15", f"25 % disk, requests/s, locality {locality} %", small[2], small[index], tolerance=.10)
        rises = all(later > 1.2 * earlier for earlier, later in zip(large, large[1:]))
        row("E15", "75 % disk: its rate rises with its locality", 1, int(rises), low=1, high=1)
        row("E15", "75 % disk, requests/s, locality 100 %", slow[2], large[2], tolerance=.10)
        # By the models: .75 of what a request costs there over what it costs here.
        for index, (locality, _, _) in enumerate(self.PHASES[:2]):
            row("E15", f"75 % disk against the slow disk, locality {locality} %", None, large[index] / slow[index], low=1, high=1.35)

    def e16(self):
        self.osdctl("osd", "set", "all", "--cost", "requests")
        service = self.phases("fast")
        self.osdctl("osd", "set", "all", "--profile", "vd")
        self.draw("E16", "Counting requests: locality 35, 85, 100 % on the 75 % disk", service, 15)
        contract = .25 * self.alone["fast", 100]
        small = []
        for locality, begin, end in self.PHASES:
            large, few = (service.count(name, begin + 1, end, "fast") for name in ("large", "small"))
            small.append(few)
            self.row("E16", f"part of the requests that is the 75 % disk's, locality {locality} %", .75, large / (large + few),
                     low=.71, high=.79)
        self.row("E16", "25 % disk against its contract, locality 35 %", None, small[0] / contract, low=.05, high=.5)
        self.row("E16", "25 % disk, requests/s, locality 100 %", contract, small[2], tolerance=.10)

    def mail(self, seconds, rate):
        """Arrivals of openmail's stand-in, nine of ten at random: (when, offset)."""
        dice, blocks, at = random.Random(17), (FILE_MIB << 20) // BLOCK, 0
        found = []
        for moment in bursts(rate, seconds, .8, dice):
            at = dice.randrange(blocks) if dice.random() < .9 else (at + 1) % blocks
            found.append((moment, at * BLOCK))
        return found

    def play(self, arrivals, *disks):
        """The 75 % disk's requests at given times, on each of the disks; (due, completion) by disk."""
        players = {disk: Player([(at, self.path("large", disk), offset, BLOCK) for at, offset in arrivals]) for disk in disks}
        start = time.time() + .5
        threads = [thread for player in players.values() for thread in player.play(start)]

        def finish():
            for thread in threads:
                thread.join(timeout=60)
            for player in players.values():
                check(not player.errors and not player.todo, f"requests were not played to their end: {player.errors}")
            return start, {disk: sorted(player.done) for disk, player in players.items()}
        return finish

    def beside(self, arrivals, seconds, *disks):
        """The same beside a flow on the 25 % disk; also when that completed what, on the same clock."""
        finish = self.play(arrivals, *disks)
        begun = time.time()
        service = self.run(self.flow("small", "fast", 100, 0, seconds))
        start, done = finish()
        shift = begun - start  # fio starts so long after (a few ms more, which windows of a second do not see)
        return done, lambda begin, end: service.count("small", begin - shift, end - shift)

    def e17(self):
        """All are reads: a write is several to a store, of which only one is in the trace."""
        seconds = 16
        done, small = self.beside(self.mail(seconds, 1.1 * .75 * self.alone["fast", 0]), seconds, "fast", "slow")
        contract, kept, busy = .25 * self.alone["fast", 100], [], 0

        def waiting(at):
            return sum(due <= at < end for due, end in done["fast"])
        for second in range(2, seconds - 1):
            if all(waiting(second + .1 * tenth) >= 4 for tenth in range(11)):
                busy += 1
                kept.append(small(second, second + 1) / contract)
        self.row("E17", "seconds in which openmail uses all of its disk", None, busy, low=3, high=seconds)
        within = sum(.84 <= part <= 1.1 for part in kept)
        self.row("E17", "25 % disk: part of those in which it has 950 to 1130 requests/s", 1, within / max(1, busy), low=.9, high=1)
        worst = min(sum(end <= to for _, end in done["fast"]) / max(1, sum(end <= to for _, end in done["slow"]))
                    for to in (4, 8, 12, 16))
        self.row("E17", "openmail done against the slow disk, after 10, 20 ... 60 s, worst", 1, worst, low=.9, high=1.5)
        for name, times in (("openmail on the 75 % disk", done["fast"]), ("openmail on the slow disk", done["slow"])):
            curve("E17", "A mail server's flow on the 75 % disk", name,
                  [(s, sum(s <= end < s + 1 for _, end in times)) for s in range(seconds)], "s", "requests/s")
        curve("E17", "A mail server's flow on the 75 % disk", "25 % disk", [(s, small(s, s + 1)) for s in range(1, seconds - 1)],
              "s", "requests/s")

    LIMIT = .3

    def e18(self):
        """Halves four times: the least locality, to 7 points, at which three of four are in time."""
        steps = 15
        found = {disk: [] for disk in DISKS}
        rates = (200, 400)
        for rate in rates:
            low, high = dict.fromkeys(DISKS, 0), dict.fromkeys(DISKS, steps)
            while any(low[disk] < high[disk] for disk in DISKS):
                middle = {disk: (low[disk] + high[disk]) // 2 for disk in DISKS}
                flows = [self.flow("large", disk, round(100 * middle[disk] / steps), 0, 5, f"--rate_iops={rate}",
                                   "--rate_process=poisson", "--randseed=18", depth=400) for disk in DISKS]
                service = self.run(self.flow("small", "fast", 100, 0, 5), *flows)
                for disk in DISKS:
                    if low[disk] >= high[disk]:
                        continue
                    begun = [at - ms / 1e3 for at, _, ms in service.rows["large", disk]]
                    in_time = sum(1 <= at - ms / 1e3 < 4.5 and ms <= 1e3 * self.LIMIT for at, _, ms in service.rows["large", disk])
                    part = in_time / max(1, sum(1 <= at < 4.5 for at in begun))
                    if part >= .75:
                        high[disk] = middle[disk]
                    else:
                        low[disk] = middle[disk] + 1
            for disk in DISKS:
                found[disk].append(100 * low[disk] / steps)
        worst = max(fast - slow for fast, slow in zip(found["fast"], found["slow"]))
        self.row("E18", "locality that the 75 % disk needs beyond the slow disk's, worst rate, points", None, worst, low=-40, high=2)
        self.row("E18", "area where 75 % are in time, 75 % disk against the slow disk (text: much larger)", None,
                 sum(100 - part for part in found["fast"]) / sum(100 - part for part in found["slow"]), low=1.05, high=1.6)
        falls = sum(later < earlier for places in found.values() for earlier, later in zip(places, places[1:]))
        self.row("E18", "rates at which less locality is needed than at a lower rate", 0, falls, low=0, high=0)
        for disk, name in (("fast", "75 % disk, 75 %"), ("slow", "slow disk, 75 %")):
            curve("E18", "Locality needed for 0.3 s", name, list(zip(rates, found[disk])), "requests/s", "locality, %")

    def e19(self):
        """Half the simulation's times: a request takes 4 ms instead of 8."""
        whole, seconds = self.alone["fast", 0], 12
        bound, dice, arrivals = 25, random.Random(19), []
        for burst in range(0, seconds, 2):
            at = burst + dice.expovariate(1.1 * .75 * whole)
            while at < burst + 1:
                arrivals.append((at, BLOCK * dice.randrange((FILE_MIB << 20) // BLOCK)))
                at += dice.expovariate(1.1 * .75 * whole)
        promised = .8 * .25 * whole
        self.osdctl("class", "set", "large", "--type", "latency", "--peak", "75%", "--latency", f"{bound}ms@75%")
        found = {}
        for name, contract in (("rent-a-disk", ("rent-a-disk",)),
                               ("throughput, tolerance 0", ("throughput", "--throughput", f"{promised * BLOCK / 1024:.0f}KiB/s", "--tolerance", "0%")),
                               ("throughput, tolerance 5 %", ("throughput", "--throughput", f"{promised * BLOCK / 1024:.0f}KiB/s", "--tolerance", "5%"))):
            self.osdctl("class", "set", "small", "--type", contract[0], "--peak", "25%", *contract[1:])
            finish = self.play(arrivals, "fast")
            begun = time.time()
            service = self.run(self.flow("small", "fast", 0, 0, seconds))
            start, done = finish()
            late = sorted(end - due for due, end in done["fast"] if due >= 2)
            rate = min(service.count("small", 0, at / 10) for at in range(20, 10 * seconds - 5))
            found[name] = late, rate
            curve("E19", "Latency of the bursty flow, by what is beside it", name,
                  [(late[len(late) * p // 100], p) for p in range(1, 100, 2)], "s", "% of the requests")
        self.rented(large=75, small=25)
        (rent, least_rent), (none, least_none), (some, least_some) = found.values()
        p99 = [late[len(late) * 99 // 100] for late in (rent, none, some)]
        over = [sum(x > bound / 1e3 for x in late) / len(late) for late in (rent, none, some)]
        row = self.row
        row("E19", "P99 beside a rented disk, in times of that beside a throughput disk", 2.66, p99[0] / p99[1], low=1.5, high=6)
        row("E19", "mean beside a rented disk minus that beside a throughput disk, s", .052,
            statistics.mean(rent) - statistics.mean(none), low=.02, high=.12)
        row("E19", "mean with tolerance 5 % minus that with 0, s", 0, statistics.mean(some) - statistics.mean(none), low=-.02, high=.005)
        row("E19", "part over the bound, rented minus throughput", .41, over[0] - over[1], low=.2, high=.6)
        row("E19", "part over the bound, tolerance 5 % minus 0", 0, over[2] - over[1], low=-.1, high=.05)
        # In the long run it has what the same bursts leave to a rented disk: it lends only for as long as they last.
        row("E19", "tolerance 0: least average rate of the throughput disk after 2 s, requests/s", promised, least_none,
            low=.95 * promised, high=1.1 * least_rent)
        row("E19", "tolerance 5 %: least average rate after 2 s, requests/s", .95 * promised, least_some,
            low=.90 * promised, high=1.1 * least_rent)

    def e20(self):
        self.rented(large=50, small=25, third=25)
        service = self.run(self.flow("large", "fast", 0, 0, 8), self.flow("small", "fast", 100, 0, 8),
                           self.flow("third", "fast", 0, 0, 8))
        order, chance = service.count("small", 1, 8), service.count("third", 1, 8)
        row, peaks = self.row, self.alone
        row("E20", "random flow, part of the device", .25, chance / peaks["fast", 0])
        row("E20", "sequential flow, part of the device", .25, order / peaks["fast", 100], tolerance=.10)
        row("E20", "sequential : random, requests", peaks["fast", 100] / peaks["fast", 0], order / chance, tolerance=.15)
        # One that asks for twice what it rents, beside others that are busy.
        self.osdctl("class", "set", "third", "--type", "throughput", "--peak", "25%", "--throughput",
                    f"{.5 * peaks['fast', 0] * BLOCK / 1024:.0f}KiB/s")
        service = self.run(*(self.flow(name, "fast", 0, 0, 6) for name in CLASSES))
        row("E20", "a throughput disk of 25 % that asks for 50 %, part of the device", .25,
            service.count("third", 1, 6) / peaks["fast", 0])
        self.rented(large=75, small=25)
