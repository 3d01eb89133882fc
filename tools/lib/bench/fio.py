"""Runs fio and reads what it says."""
import dataclasses
import json
import signal
import subprocess

from .host import BenchError, run

COMMON = ["--output-format=json", "--group_reporting", "--thread", "--norandommap", "--fallocate=none",
          "--clat_percentiles=0", "--lat_percentiles=1", "--percentile_list=50:99"]


@dataclasses.dataclass(frozen=True)
class Result:
    """One direction of one job; latencies include the submission (lat, not clat)."""
    mb_per_s: float
    iops: float
    p50_us: float
    p99_us: float
    requests: int
    seconds: float


def command(name, options):
    return ["fio", f"--name={name}", *COMMON, *(f"--{k}={v}" for k, v in options.items())]


def parse(name, text):
    """The Result of fio's JSON, whatever notes it printed before."""
    try:
        job = json.loads(text[text.index("{"):])["jobs"][0]
    except (ValueError, KeyError, IndexError):
        raise BenchError(f"fio said nothing about '{name}': {text.strip()[:200]}") from None
    if job["error"]:
        raise BenchError(f"fio job '{name}' failed with error {job['error']}")
    side = job["write"] if job["write"]["total_ios"] else job["read"]
    if not side["total_ios"]:
        raise BenchError(f"fio job '{name}' moved nothing")
    p50, p99 = (side["lat_ns"].get("percentile", {}).get(f"{p}.000000", 0) / 1e3 for p in (50, 99))
    return Result(side["bw_bytes"] / 1e6, side["iops"], p50, p99, side["total_ios"], side["runtime"] / 1e3)


def measure(name, options, patience_s=300):
    return parse(name, run(*command(name, options), timeout=patience_s))


def histogram_bin_ns(index):
    """(lower end, width) of a bin of fio's histograms: 64 to each power of two."""
    if index < 128:
        return index, 1
    shift = (index >> 6) - 1
    return (64 + index % 64) << shift, 1 << shift


def read_histograms(path):
    """[(end in ms, {bin: count})] of a log that --write_hist_log wrote: completions since the entry before."""
    with open(path, encoding="utf-8") as file:
        rows = [[int(x) for x in line.split(",")] for line in file]
    return [(row[0], {i: n for i, n in enumerate(row[3:]) if n}) for row in rows]


class Background:
    """A fio job that goes on until it is told to stop: `with Background(...) as noise: …`."""

    def __init__(self, name, options):
        self.name = name
        self.result = None  # Set when the with block is left without an exception.
        self._options = options

    def __enter__(self):
        self._child = subprocess.Popen(command(self.name, self._options), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       start_new_session=True)
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self._child.kill()
            self._child.communicate()
            return
        early = self._child.poll()
        if early is None:
            self._child.send_signal(signal.SIGINT)  # fio ends its jobs and reports.
        try:
            out, err = self._child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.communicate()
            raise BenchError(f"fio job '{self.name}' did not stop within 120 s") from None
        if early is not None:
            raise BenchError(f"fio job '{self.name}' ended too early ({early}): {(err or out).strip()[:200]}")
        self.result = parse(self.name, out)
