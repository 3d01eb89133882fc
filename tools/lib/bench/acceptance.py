"""What a build is held to beside another one: one table of rows, musts and goals, and the arithmetic of it. Pure.

Rates and latencies of different machines do not compare, so most musts are multiples of the old build's median in the
same sitting; what a design promises by itself (threads, switches over a cluster) is a number.
"""
import dataclasses

EMBEDDED, CLUSTER = "weirfs-embedded", "weirfs-cluster"
PIPELINE = "osd-pipeline"
NEAR = 0.9  # of the raw device: nobody is asked to be much faster than a row that has this much of it


@dataclasses.dataclass(frozen=True)
class Must:
    """A bound, by `how` it is computed, and a goal of the same kind, which is only shown.

    "times": at least so many times the old build's;  "at most times": at most so many times;
    "more": at most so much above the old build's (negative: below it);  "at most", "at least": at most, at least that;
    "share": at least that share of the limit.
    """
    how: str
    value: float
    goal: float = None


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    unit: str
    musts: dict         # {system: Must}
    limit: str = None   # The system whose figure bounds this row.
    aims: dict = dataclasses.field(default_factory=dict)  # {system: in words, what share of the limit to aim at}


def _row(name, unit, embedded=None, cluster=None, limit=None, aims=("", "")):
    musts = {system: must for system, must in ((EMBEDDED, embedded), (CLUSTER, cluster)) if must}
    return Row(name, unit, musts, limit, dict(zip((EMBEDDED, CLUSTER), aims)))


def _times(value, goal=None):
    return Must("times", value, goal)


def _at_most(value, goal=None):
    return Must("at most", value, goal)


def _at_least(value, goal=None):
    return Must("at least", value, goal)


def _share(value, goal=None):
    return Must("share", value, goal)


ROWS = [
    _row("read1.switches", "/request", Must("at most times", 0.95, 0.8), _at_most(12, 9)),
    _row("read16.switches", "/request", Must("at most times", 0.9, 0.7), _at_most(3.5, 2)),
    _row("write16.switches", "/request", Must("at most times", 0.7, 0.5), _at_most(9, 7)),
    _row("threads.mount", "threads", _at_most(20, 12), _at_most(16, 10)),
    _row("threads.osd", "threads", None, _at_most(16, 10)),
    _row("threads.mds", "threads", None, _at_most(16, 10)),
    _row("read16", "IOPS", _times(1.25, 1.5), _times(2, 2.5), "raw", ("75 to 90 %", "50 to 65 %")),
    _row("read1.p50", "us", Must("more", 0, -5), Must("more", -30, -60), "raw", ("+ 15 us", "+ 70 us")),
    _row("write16", "IOPS", _times(2, 3), _times(2, 3), "raw", ("40 to 60 %", "20 to 32 %")),
    _row("write64k", "IOPS", _times(1.7, 2.5), _times(1.7, 2.5), "raw", ("40 to 65 %", "25 to 45 %")),
    _row("write1m", "MB/s", _times(1.1, 1.3), _times(1.2, 1.6), "raw", ("75 to 90 %", "55 to 75 %")),
    _row("coldread1m", "MB/s", _times(1, 1.2), _times(1.2, 1.5), "raw", ("85 to 100 %", "70 to 90 %")),
    _row("creates", "files/s", _times(2.5, 5), _times(2, 4), "passthrough"),
    _row("creates.rename", "files/s", _times(2.5, 5), _times(2, 4), "passthrough"),
    _row("creates.unlink", "files/s", _times(2.5, 5), _times(2, 4), "passthrough"),
    _row("mkdirs", "folders/s", _times(2.5, 5), _times(2, 4), "passthrough"),
    _row("smallfiles", "files/s", _times(4, 6), _times(3.5, 6), "passthrough"),
    _row("hdd.creates", "files/s", _at_least(1500, 4000), _at_least(1500, 4000)),
    _row("hdd.smallfiles", "files/s", _at_least(1500, 4000), _at_least(1500, 4000)),
    _row("together", "files/s", None, _times(1.5, 3)),
    _row("trees.tar", "files/s", _share(1 / 1.6, 1), _share(1 / 2, 1 / 1.3), "passthrough"),
    _row("trees.git", "runs/s", _share(1 / 1.6, 1), _share(1 / 2.2, 1 / 1.4), "passthrough"),
    _row("trees.status", "runs/s", _share(1 / 1.2), _share(1 / 1.2), "passthrough"),
    _row("trees.rm", "files/s", _share(1 / 1.5, 1 / 0.8), _share(1 / 2, 1), "passthrough"),
    _row("coldstat", "files/s", _times(1), _times(1.8, 2.5), "passthrough", ("100 %", "70 to 100 %")),
    _row("postgres.1client", "tps", Must("share", 0.72, 0.9), Must("share", 0.45, 0.6), "ext4"),
    _row("postgres.8clients", "tps", Must("share", 0.78, 1), Must("share", 0.65, 0.9), "ext4"),
    Row("metering.p50-added", "us", {PIPELINE: _at_most(2)}),
    *(Row(f"metering.{job}.loss", "%", {PIPELINE: _at_most(2)})
      for job in ("randread-4k-1job", "randread-4k-16jobs", "randwrite-4k-16jobs", "seqread-1M", "seqwrite-1M")),
]
BY_NAME = {row.name: row for row in ROWS}


def target(must, value, old, limit):
    """(bound in the row's unit, must it be reached from below?): None where what it needs was not measured."""
    base = {"times": old, "at most times": old, "more": old, "share": limit, "at most": 1, "at least": 1}[must.how]
    is_ceiling = must.how not in ("times", "share", "at least")
    if value is None or base is None:
        return None, is_ceiling
    return (old + value if must.how == "more" else base * value), is_ceiling


def reached(must, value, old, new, limit, raw=None):
    """Whether `new` is where that value of a must puts it, or has nearly all of the raw device; None where that cannot be
    said."""
    if new is None:
        return None
    bound, is_ceiling = target(must, value, old, limit)
    if bound is not None and (new <= bound if is_ceiling else new >= bound):
        return True
    if must.how == "times" and raw is not None and new >= NEAR * raw:
        return True
    return None if bound is None else False


@dataclasses.dataclass(frozen=True)
class Judged:
    """One row on one system, of both builds."""
    row: Row
    system: str
    old: float   # Medians; None where it was not measured.
    new: float
    limit: float
    over: tuple  # How the kernel's requests came, old and new.

    @property
    def must(self):
        return self.row.musts.get(self.system)

    @property
    def ratio(self):
        if self.system == PIPELINE:  # Differences: they may be zero or below.
            return None
        return self.new / self.old if self.new is not None and self.old else None

    @property
    def share(self):
        return self.new / self.limit if self.new is not None and self.limit else None

    def _reached(self, value):
        raw = self.limit if self.row.limit == "raw" else None
        return reached(self.must, value, self.old, self.new, self.limit, raw)

    @property
    def passed(self):
        return self._reached(self.must.value)

    @property
    def has_goal(self):
        return self.must.goal is not None

    @property
    def goal_reached(self):
        return self.has_goal and self._reached(self.must.goal)


def judge(names, systems, medians, limits, over):
    """Judged rows in the table's order. `medians`: {(system, build, row): median}, `limits`: {(system, row): median},
    `over`: {(system, build): how the kernel's requests came}."""
    result = []
    for row in ROWS:
        for system in row.musts:
            if row.name not in names or system not in systems:
                continue
            old, new = (medians.get((system, build, row.name)) for build in ("old", "new"))
            ways = tuple(over.get((system, build), "-") for build in ("old", "new"))
            result.append(Judged(row, system, old, new, limits.get((row.limit, row.name)), ways))
    return result


def words(must, value):
    """A must or a goal for people."""
    return {"times": f">= {value:g} x", "at most times": f"<= {value:g} x", "at most": f"<= {value:g}",
            "at least": f">= {value:g}", "share": f">= {value:.0%} of the limit",
            "more": "<= old" if value == 0 else f"<= old {value:+g}"}[must.how]
