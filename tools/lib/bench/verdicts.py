"""Judged rows of a comparison as a table for people, as JSON for scripts, and as what keeps a check from being green."""
import json

from . import acceptance
from .report import aligned, figure

HEAD = ["row", "system", "unit", "old", "new", "new/old", "of the limit", "by", "must", "", "goal"]
LEFT = {0, 1, 2, 7, 8, 9, 10}


def share(judged):
    """The share of the limit, and what to aim at; of a latency the difference says more."""
    row = judged.row
    if judged.limit is None or judged.new is None:
        return "-"
    measured = f"{judged.new - judged.limit:+.0f} us" if row.unit == "us" else f"{100 * judged.share:.0f} %"
    aim = row.aims.get(judged.system)
    return f"{measured} {row.limit}" + (f" ({aim})" if aim else "")


def ways(judged):
    """How requests came, once where both builds took the same way."""
    old, new = judged.over
    return old if old == new else f"{old} -> {new}"


def verdict(judged):
    return {True: "ok", False: "MISSED", None: "?"}[judged.passed]


def goal(judged):
    if not judged.has_goal:
        return ""
    return f"[{acceptance.words(judged.must, judged.must.goal)}]" + (" ok" if judged.goal_reached else "")


def to_table(table):
    lines = [HEAD]
    for j in table:
        lines.append([j.row.name, j.system, j.row.unit, figure(j.old), figure(j.new),
                      f"{j.ratio:.2f}" if j.ratio is not None else "-", share(j), ways(j),
                      acceptance.words(j.must, j.must.value), verdict(j), goal(j)])
    return aligned(lines, LEFT)


def to_json(table, failures, settings):
    def rounded(value):
        return round(value, 3) if isinstance(value, float) else value

    rows = [{"row": j.row.name, "system": j.system, "unit": j.row.unit, "old": j.old, "new": j.new, "ratio": j.ratio,
             "limit": j.limit, "limit_system": j.row.limit, "share": j.share, "over": {"old": j.over[0], "new": j.over[1]},
             "must": acceptance.words(j.must, j.must.value), "pass": j.passed,
             "goal": acceptance.words(j.must, j.must.goal) if j.has_goal else None, "goal_reached": j.goal_reached or False}
            for j in table]
    rows = [{key: rounded(value) for key, value in row.items()} for row in rows]
    return json.dumps({"version": 1, "settings": settings, "rows": rows, "failures": failures}, indent=1)


def shortfalls(table, failures):
    """In words, what a check fails for. Goals are nobody's failure."""
    bad = [f"{j.row.name} on {j.system}: {figure(j.new)} {j.row.unit}, was {figure(j.old)}: "
           f"{'not measured' if j.passed is None else 'must be ' + acceptance.words(j.must, j.must.value)}"
           for j in table if j.passed is not True]
    if not table:
        bad.append("no row was measured")
    return bad + [f"{f['job']} on {f['system']}: {f['error']}" for f in failures]
