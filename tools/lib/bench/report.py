"""From measured values to rows: medians, limits, floors, a table for people and JSON for scripts."""
import dataclasses
import json
import re
import statistics

# What has to be reached. `share` is of the row's limit, `value` in its unit; of both, one is enough.
# `most` is an upper bound. The cluster's values are the best of the peers measured on such a machine.


@dataclasses.dataclass(frozen=True)
class Floor:
    system: str  # A regular expression that the whole name must match.
    row: str     # The same for the row.
    share: float = None
    value: float = None
    most: float = None

    def fits(self, system, row):
        return re.fullmatch(self.system, system) and re.fullmatch(self.row, row)


FLOORS = [
    Floor("weirfs-embedded", "seqwrite-1M-direct", share=0.35),
    Floor("weirfs-embedded", "seqread-1M-cold", share=0.35),
    Floor("weirfs-embedded", "randread-4k-16jobs", share=0.40),
    # Durable when acked; the row without O_DSYNC compares with systems that promise less.
    Floor("weirfs-embedded", "randwrite-4k-16jobs(-dsync)?", share=0.25, value=20_000),
    Floor("weirfs-embedded", "creates-1thread", value=1_000),
    Floor("weirfs-(embedded|cluster)", "creates-4threads", value=5_000),
    Floor("weirfs-(embedded|cluster)", "creates-.*[.](stat|list)_again", share=0.5),
    Floor("weirfs-(embedded|cluster)", "bigdirectory[.]create-growth", most=1.15),
    Floor("weirfs-cluster", "seqwrite-1M-direct", value=86),
    Floor("weirfs-cluster", "randwrite-4k-16jobs(-dsync)?", value=2_429),
    Floor("weirfs-cluster", "creates-1thread", value=1_247),
    Floor("weirfs-cluster", "seqread-1M-cold(-buffered)?", value=508),
    Floor("weirfs-cluster", "randread-4k-16jobs", value=9_565),
    # Of one OSD. A cluster on one small machine is shown beside it: its processes share the cores.
    Floor("weirfs-embedded", "isolation-.*[.]kept", value=50),
    Floor("weirfs-embedded", "isolation-.*[.]p99", most=5),
    # Keeps the rows above honest: without noise, anybody is isolated.
    Floor("weirfs-.*", "isolation-.*[.]noise", value=20),
    # One decision at 1,000 and 10,000 classes (CVC orders four requests of each), O(log n) or better,
    # and next to nothing where there is nothing to decide; BAA's weights of 1,000 clients.
    Floor("osd-scheduler", "scheduler[.]Decide/.*/1000", most=1_000),
    Floor("osd-scheduler", "scheduler[.]Decide/.*/10000", most=5_000),
    Floor("osd-scheduler", "scheduler[.]growth/.*", most=10),
    Floor("osd-scheduler", "scheduler[.]BestEffort/.*", most=500),
    Floor("osd-pipeline", "metering[.]p50-added", most=5),
    Floor("osd-pipeline", "metering[.].*[.]loss", most=3),
    Floor("osd-scheduler", "scheduler[.]SolveTiers/(two|four)/.*", most=1_000_000),
]


@dataclasses.dataclass
class Measured:
    """The values of one row on one system, one of each repeat."""
    system: str
    job: str
    unit: str
    values: list
    bounded: bool = True  # Is a limit of this row more than a comparison of unlike things?


def limits(measured, names):
    """{row: limit}: the lower median of the limiting systems called `names`, of those measured."""
    result = {}
    for m in measured:
        if m.bounded and m.system in names:
            median = statistics.median(m.values)
            result[m.job] = min(result.get(m.job, median), median)
    return result


def judge(floor, median, limit):
    """(floor in the row's unit, ceiling, pass): pass is None where the limit it needs is missing."""
    if floor is None:
        return None, None, None
    if floor.most is not None:
        return None, floor.most, median <= floor.most
    candidates = [floor.value] if floor.value is not None else []
    if floor.share is not None and limit is not None:
        candidates.append(floor.share * limit)
    if not candidates:
        return None, None, None
    least = min(candidates)
    if floor.share is not None and limit is None and median < least:
        return least, None, None  # The share of the limit might have been the lower one.
    return least, None, median >= least


def rows(measured, limit_names):
    limit_of = limits(measured, limit_names)
    result = []
    for m in measured:
        median, limit = statistics.median(m.values), limit_of.get(m.job)
        floor = next((f for f in FLOORS if f.fits(m.system, m.job)), None)
        least, most, passed = judge(floor, median, limit)
        result.append({"system": m.system, "job": m.job, "unit": m.unit, "min": min(m.values), "median": median,
                       "max": max(m.values), "limit": limit, "ratio": median / limit if limit else None,
                       "floor": least, "ceiling": most, "checked": floor is not None, "pass": passed})
    return result


def to_json(table, failures, settings):
    """One document; figures to three decimals, which is finer than any run."""
    table = [{k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()} for row in table]
    return json.dumps({"version": 1, "settings": settings, "rows": table, "failures": failures}, indent=1)


def figure(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def verdict(row):
    if not row["checked"]:
        return ""
    bound = f"<= {figure(row['ceiling'])}" if row["ceiling"] is not None else f">= {figure(row['floor'])}"
    return {True: "ok  ", False: "LOW ", None: "?   "}[row["pass"]] + (bound if row["pass"] is not None else "no limit measured")


def to_table(table):
    head = ["job", "system", "unit", "min", "median", "max", "limit", "ratio", "floor"]
    lines = [head]
    for r in table:
        lines.append([r["job"], r["system"], r["unit"], *(figure(r[k]) for k in ("min", "median", "max", "limit")),
                      f"{100 * r['ratio']:.0f} %" if r["ratio"] is not None else "-", verdict(r)])
    return aligned(lines, {0, 1, 2, 8})


def aligned(lines, left):
    """Lines of cells as text; the columns in `left` are flush left."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) if i in left else c.rjust(w)
                               for i, (c, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def shortfalls(table, failures):
    """What keeps --check from being green, in words."""
    bad = [f"{r['job']} on {r['system']}: {figure(r['median'])} {r['unit']}, {verdict(r).strip()}"
           for r in table if r["checked"] and r["pass"] is not True]
    if not any(r["checked"] for r in table):
        bad.append("no row with a floor was measured")
    return bad + [f"{f['job']} on {f['system']}: {f['error']}" for f in failures]
