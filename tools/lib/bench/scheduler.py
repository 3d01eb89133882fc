"""The scheduler row: what one request costs the scheduler, from its Google Benchmark program."""
import json
import re

from .host import BenchError, run

NAME = "scheduler"
ABOUT = "CPU time of enqueue + dispatch of one request with 1,000 backlogged classes"
PROGRAM = "scheduler_bench"
CLASSES = re.compile(r"(?:^|[/:])1000(?:$|/)")
TO_NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def parse(text):
    """{row: ns} of the benchmarks over 1,000 classes."""
    try:
        runs = json.loads(text[text.index("{"):])["benchmarks"]
    except (ValueError, KeyError):
        raise BenchError(f"{PROGRAM} did not print a report: {text.strip()[:200]}") from None
    found = {f"{NAME}.{b['name']}": b["cpu_time"] * TO_NS[b["time_unit"]] for b in runs
             if b.get("run_type") == "iteration" and CLASSES.search(b["name"]) and not b.get("error_occurred")}
    if not found:
        raise BenchError(f"{PROGRAM} has no benchmark of 1000 classes among {[b['name'] for b in runs]}")
    return found


def measure(host):
    return parse(run(host.program(PROGRAM), "--benchmark_format=json", "--benchmark_min_time=0.2",
                     "--benchmark_filter=/1000(/|$)", timeout=300))
