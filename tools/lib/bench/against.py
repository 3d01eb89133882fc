"""Two builds in one sitting: each row with the old one and with this one in turns, held to the table in acceptance.py."""
import fnmatch
import os
import statistics
import sys
import time

from . import acceptance, commit, cost, creations, jobs, metering, postgres, report, trees
from .host import BenchError, Host, say
from .systems import Ext4, Passthrough, Raw
from .weirfs import Build, Cluster, Embedded

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fuse_rings  # noqa: E402  (the path comes first)

REPO = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
COMPARED = [Embedded, Cluster]
SYSTEMS = [Raw, Passthrough, Ext4, *COMPARED]
BUSY = 0.5  # the load of a machine on which something else works
FILES_PER_S = 2000  # of the runtime, that are looked at cold


class IoRow:
    """fio's job as rows: its rate, the median latency, and context switches per request."""

    def __init__(self, job):
        self.name, self._job = job.name, job

    def rows(self):
        return {self.name: self._job.unit, f"{self.name}.p50": "us", f"{self.name}.switches": "/request"}

    def suits(self, system):
        return self._job.suits(system)

    def measure(self, system, runtime_s, repeat):
        self._job.prepare(system)
        before = cost.switches()
        result = self._job.run(system, runtime_s, repeat)
        switches = (cost.switches() - before) / result.requests
        return {self.name: self._job.figure(result), f"{self.name}.p50": result.p50_us, f"{self.name}.switches": switches}


class NamesRow:
    """Rates of a metadata job: the first, and of those phases."""

    def __init__(self, job, *phases):
        self.name, self._job = job.name, job
        self._rows = (job.name, *(f"{job.name}.{phase}" for phase in phases))

    def rows(self):
        return dict.fromkeys(self._rows, "files/s")

    def suits(self, system):
        return self._job.suits(system)

    def measure(self, system, runtime_s, repeat):
        measured = self._job.measure(system, runtime_s, repeat)
        return {row: measured[row] for row in self._rows}


class ColdStat:
    """stat(2) of files that are in nobody's cache but the MDS's."""
    name = "coldstat"

    def rows(self):
        return {self.name: "files/s"}

    def suits(self, system):
        return system.data is not None

    def measure(self, system, runtime_s, _repeat):
        place = os.path.join(system.data, self.name)
        paths = [os.path.join(place, f"f{i}") for i in range(max(100, int(FILES_PER_S * runtime_s)))]
        if not os.path.exists(place):
            os.mkdir(place)
            for path in paths:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        system.cold()
        start = time.monotonic()
        for path in paths:
            os.stat(path)
        return {self.name: len(paths) / (time.monotonic() - start)}


def loads():
    """What measures which rows of the table, in the order of measuring."""
    many, one = {"bs": "4k", "direct": 1, "ioengine": "psync"}, jobs.DEEP
    write16 = jobs.FioJob("write16", "", "IOPS", "many", {"rw": "randwrite", **jobs.MANY})
    return [
        IoRow(jobs.FioJob("read1", "", "IOPS", "many", {"rw": "randread", **many}, cold=True)),
        IoRow(jobs.FioJob("read16", "", "IOPS", "many", {"rw": "randread", **jobs.MANY}, cold=True)),
        IoRow(write16),
        cost.Threads(write16),
        IoRow(jobs.FioJob("write64k", "", "IOPS", "one", {"rw": "randwrite", "bs": "64k", **one})),
        IoRow(jobs.FioJob("write1m", "", "MB/s", "one", {"rw": "write", "bs": "1M", **one})),
        IoRow(jobs.FioJob("coldread1m", "", "MB/s", "one", {**jobs.COLD, **one}, cold=True, timed=False)),
        NamesRow(jobs.MetadataJob("creates", "", 1), "rename", "unlink"),
        trees.Folders(),
        NamesRow(jobs.MetadataJob("smallfiles", "", 1, bytes=4096)),
        creations.OnHdd(),
        creations.Together(),
        trees.Trees(REPO),
        ColdStat(),
        postgres.Postgres(),
    ]


def names(patterns):
    """The rows of the table that the patterns choose, in its order. A pattern may leave out what follows a dot."""
    chosen = set()
    for pattern in patterns or ["*"]:
        found = [name for name in acceptance.BY_NAME
                 if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name.split(".")[0], pattern)]
        if not found:
            raise ValueError(f"no row '{pattern}'; there are: {', '.join(acceptance.BY_NAME)}")
        chosen.update(found)
    return [name for name in acceptance.BY_NAME if name in chosen]


def bring_up(system):
    for name in system.programs:
        system.program(name)
    system.start()
    return True


def turns(systems, repeat):
    """The systems of one round. Who of two builds comes first changes from round to round."""
    return systems if repeat % 2 == 0 else systems[::-1]


class Against:
    def __init__(self, options, host, builds):
        self._options = options
        self._host = host
        self._builds = builds  # old, new
        self._values = {}    # {(system, build or "", row): [value]}
        self._over = {}
        self.failures = []   # {"system", "job", "error"}
        self._skipped = set()
        self._who = {}       # {system object: (its kind's name, its build's label or "")}

    def run(self, loaded):
        chosen = [load for load in loaded if self._rows_of(load)]
        if (why := postgres.missing()) and any(load.name == postgres.NAME for load in chosen):
            say(f"bench: {postgres.NAME} is skipped: {why}")
            chosen = [load for load in chosen if load.name != postgres.NAME]
            self._skipped.update(postgres.rows())
        systems = self._start(chosen) if chosen else []
        for load in chosen:
            self._measure(load, [system for system in systems if load.suits(system) and self._concerns(load, system)])
        if any(name.startswith(f"{metering.NAME}.") for name in self._options.rows):
            self._metering()

    def _rows_of(self, load):
        return [row for row in load.rows() if row in self._options.rows]

    def _concerns(self, load, system):
        """Whether a system is compared or bounds one of the rows."""
        kind, build = self._who[system]
        return bool(build) or any(acceptance.BY_NAME[row].limit == kind for row in self._rows_of(load))

    def _start(self, chosen):
        rows = [row for load in chosen for row in self._rows_of(load)]
        limits = {acceptance.BY_NAME[row].limit for row in rows}
        made = []
        for kind in self._options.system_types:
            builds = self._builds if kind in COMPARED else [None] if kind.name in limits else []
            for build in builds:
                system = kind(self._host, self._options.file_size, *([build] if build else []))
                self._who[system] = (kind.name, build.label if build else "")
                made.append(system)
        self._host.need_space(sum(system.disks for system in made))
        started = []
        for system in made:
            say(f"bench: starting {system.name}")
            if self._attempt(system.name, "start", lambda s=system: bring_up(s)):
                started.append(system)
        return started

    def _measure(self, load, systems):
        failed = set()
        for repeat in range(self._options.repeats):
            for system in turns(systems, repeat):
                if system in failed:
                    continue
                system.before_each()
                got = self._attempt(system.name, load.name,
                                    lambda s=system, r=repeat: load.measure(s, self._options.runtime, r))
                if got is None:
                    failed.add(system)
                    continue
                kind, build = self._who[system]
                for row, value in got.items():
                    self._values.setdefault((kind, build, row), []).append(value)
                said = ", ".join(f"{row} {report.figure(got[row])}" for row in self._rows_of(load) if row in got)
                say(f"  {repeat + 1}/{self._options.repeats} {system.name}: {said}")
                if build:
                    self._over[kind, build] = system.over()

    def _metering(self):
        trials = []
        if not self._attempt(acceptance.PIPELINE, metering.NAME, lambda: self._host.need_space(2) or True):
            return
        for build in self._builds:
            trial = metering.Metering(self._host, self._options.file_size, self._options.runtime, build)
            say(f"bench: metering of the {build.label} build, on a cluster of one OSD that meters and does not, in turns")
            if self._attempt(f"{acceptance.PIPELINE}.{build.label}", metering.NAME, lambda t=trial: t.start() or True):
                trials.append((build, trial))
        for repeat in range(self._options.repeats):
            for build, trial in turns(trials, repeat):
                got = self._attempt(f"{acceptance.PIPELINE}.{build.label}", metering.NAME,
                                    lambda t=trial, r=repeat: t.measure(r))
                for row, value in (got or {}).items():
                    self._values.setdefault((acceptance.PIPELINE, build.label, row), []).append(value)

    def _attempt(self, system, job, call):
        """One system's failure costs its rows, not the run."""
        try:
            return call()
        except (BenchError, OSError) as error:
            say(f"bench: {job} on {system} failed: {error}")
            self.failures.append({"system": system, "job": job, "error": str(error)})
            return None

    def judged(self):
        medians = {key: statistics.median(values) for key, values in self._values.items()}
        limits = {(kind, row): median for (kind, build, row), median in medians.items() if not build}
        systems = {kind.name for kind in self._options.system_types} | {acceptance.PIPELINE}
        rows = [name for name in self._options.rows if name not in self._skipped]
        return acceptance.judge(rows, systems, medians, limits, self._over)


def measure(options, repo):
    """The judged rows, and what failed."""
    old = commit.programs(repo, options.against)
    host = Host(options.work, options.bin, options.disk_size, options.keep_images)
    try:
        if (load := os.getloadavg()[0]) > BUSY:
            say(f"bench: something else works here (load {load:.1f}): its context switches count as ours, and rates wander")
        if options.uring:
            switch_rings_on(host)
        against = Against(options, host, [Build("old", old), Build("new", options.bin)])
        against.run(loads())
        return against.judged(), against.failures
    finally:
        host.close_undisturbed()


def switch_rings_on(host):
    rings = fuse_rings.Rings()
    try:
        rings.on()
    except OSError as error:
        raise BenchError(f"--uring: FUSE over io_uring is not to be had: {error}") from None
    host.undo(rings.off)
