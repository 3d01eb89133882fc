"""The scheduler rows: what a decision costs, from the scheduler's Google Benchmark program."""
import json
import re

from .host import BenchError, run

NAME = "scheduler"
ABOUT = "CPU time of one request in the OSD's scheduler: 1,000 and 10,000 backlogged classes, best effort alone, BAA"
PROGRAM = "scheduler_bench"
# Ten classes are measured for the growth from there to ten thousand.
WANTED = "Decide/.*/(10|1000|10000)$|BestEffort|SolveTiers/.*/1000$"
DECIDE = re.compile(r"Decide/(.*)/(\d+)")
TO_NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def unit(row):
    return "x" if row.startswith(f"{NAME}.growth/") else "ns"


def parse(text):
    """{row: ns} of what has a bound, and growth/PROFILE: 10,000 classes over 10."""
    try:
        runs = json.loads(text[text.index("{"):])["benchmarks"]
    except (ValueError, KeyError):
        raise BenchError(f"{PROGRAM} did not print a report: {text.strip()[:200]}") from None
    cost = {b["name"]: b["cpu_time"] * TO_NS[b["time_unit"]] for b in runs
            if b.get("run_type") == "iteration" and not b.get("error_occurred")}
    found = {}
    for name, ns in cost.items():
        decide = DECIDE.fullmatch(name)
        if not decide or decide[2] != "10":
            found[f"{NAME}.{name}"] = ns
        elif f"Decide/{decide[1]}/10000" in cost:
            found[f"{NAME}.growth/{decide[1]}"] = cost[f"Decide/{decide[1]}/10000"] / ns
    if not any(DECIDE.fullmatch(name) and name.endswith("/1000") for name in cost):
        raise BenchError(f"{PROGRAM} has no benchmark of 1000 classes among {list(cost)}")
    return found


def measure(host):
    return parse(run(host.program(PROGRAM), "--benchmark_format=json", "--benchmark_min_time=0.2",
                     f"--benchmark_filter={WANTED}", timeout=300))
