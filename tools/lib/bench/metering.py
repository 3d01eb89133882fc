"""The metering rows: what the QoS pipeline costs when there is nothing to decide.

One cluster of one OSD, started as usual (profile `unified`, best effort only). While a job of fio runs, its OSD is told
to let requests go past the pipeline and to meter them again (`weir-osd --metering-switch true`), every half second and in
balanced order (metered, bypassed, bypassed, metered, ...), so that the same processes with the same caches do both and
a machine that grows faster or slower meanwhile does it to both. fio's histograms say what happened in each tenth of a
second; those in which the switch moved count for neither. A negative loss is noise.
"""
import glob
import os
import signal
import tempfile
import time

from . import fio
from .host import BenchError, say
from .weirfs import Cluster

NAME = "metering"
ABOUT = "what the pipeline takes from one best-effort class, against an OSD that bypasses it"
SYSTEM = "osd-pipeline"
MANY = {"bs": "4k", "ioengine": "psync", "numjobs": 16}
DEEP = {"bs": "1M", "ioengine": "io_uring", "iodepth": 4}
JOBS = {"randread-4k-1job": ("many", {"rw": "randread", "bs": "4k", "ioengine": "psync"}),
        "randread-4k-16jobs": ("many", {"rw": "randread", **MANY}),
        "randwrite-4k-16jobs": ("many", {"rw": "randwrite", **MANY}),
        "seqread-1M": ("one", {"rw": "read", **DEEP}),
        "seqwrite-1M": ("one", {"rw": "write", **DEEP})}
RUNTIMES = 4  # of a job, in those of other benchmarks
TURN_S = 0.5
TURNS = (True, False, False, True, False, True, True, False)
SETTLED_MS = 100  # after a switch; what was asked for before it is answered by then
LOG_MS = 100


def rows():
    """{row: unit} in the order of printing."""
    return {f"{NAME}.p50-added": "us", **{f"{NAME}.{job}.loss": "%" for job in JOBS}}


class Mode:
    """What fio saw while the OSD metered, or while it did not."""

    def __init__(self):
        self._seconds = 0.0  # of all of the job's threads together
        self._bins = {}

    def add(self, seconds, bins):
        self._seconds += seconds
        for index, count in bins.items():
            self._bins[index] = self._bins.get(index, 0) + count

    def _completions(self):
        if not self._bins:
            raise BenchError("fio's histograms have nothing of one of the two modes")
        return sum(self._bins.values())

    @property
    def iops(self):
        """Of one thread."""
        return self._completions() / self._seconds

    @property
    def p50_us(self):
        below = self._completions() / 2
        for index, count in sorted(self._bins.items()):
            if below <= count:
                break
            below -= count
        low, width = fio.histogram_bin_ns(index)
        return (low + width * below / count) / 1e3


def mode_of(switches, start_ms, end_ms):
    """Metered (True), bypassed (False), or None if the switch moved in or just before that time. `switches`: (when, on)
    in order."""
    mode = None
    for when, on in switches:
        if when >= end_ms:
            break
        mode = on if when + SETTLED_MS <= start_ms else None
    return mode


def split(switches, logs):
    """{metered?: Mode} of a job's histogram logs, each [(end in ms, {bin: count})]."""
    modes = {True: Mode(), False: Mode()}
    for log in logs:
        for (start, _), (end, bins) in zip(log, log[1:]):
            if (mode := mode_of(switches, start, end)) is not None:
                modes[mode].add((end - start) / 1e3, bins)
    return modes


class Switched(Cluster):
    """A cluster of one OSD that can be told to meter or not to."""
    name = "metering"
    disks = 1

    def _dev(self, verb, *args):
        return super()._dev(verb, *args, env={"WEIR_OSD_METERING_SWITCH": "true"})

    def osd_pid(self):
        return self.processes()["osd"][0]


class Metering:
    """The cluster, ready to be compared with itself."""

    def __init__(self, host, file_bytes, runtime_s, build=None):
        self._system = Switched(host, file_bytes, build)
        self._runtime_s = RUNTIMES * runtime_s

    def start(self):
        self._system.start()
        for layout in ("many", "one"):
            self._system.lay_out(layout)

    def measure(self, repeat):
        """{row: value} of one round."""
        values = {}
        for job, (layout, options) in JOBS.items():
            modes = self._run(job, layout, options, repeat)
            metered, bypassed = modes[True], modes[False]
            values[f"{NAME}.{job}.loss"] = 100 * (1 - metered.iops / bypassed.iops)
            if job == "randread-4k-1job":
                values[f"{NAME}.p50-added"] = metered.p50_us - bypassed.p50_us
            say(f"  {job}: metered {metered.iops:,.0f}/s and thread, p50 {metered.p50_us:.1f} us, "
                f"bypassed {bypassed.iops:,.0f}/s, p50 {bypassed.p50_us:.1f} us")
        return values

    def _run(self, job, layout, options, repeat):
        with tempfile.TemporaryDirectory() as logs:
            options = {**options, **self._system.target(layout), "direct": 1, "time_based": 1,
                       "runtime": f"{self._runtime_s + 30}s", "randseed": 3000 + repeat, "write_hist_log": f"{logs}/job",
                       "log_hist_msec": LOG_MS, "log_unix_epoch": 1, "clat_percentiles": 1}
            with fio.Background(job, options):
                switches = self._switch(repeat % 2 == 0)
            return split(switches, [fio.read_histograms(path) for path in glob.glob(f"{logs}/job_clat_hist.*.log")])

    def _switch(self, first):
        """Moves the switch for the job's time and leaves the OSD metering: [(when in ms since 1970, on)]."""
        osd = self._system.osd_pid()
        switches = []

        def switch(on):
            switches.append((time.time() * 1e3, on))
            os.kill(osd, signal.SIGUSR2 if on else signal.SIGUSR1)
        try:
            for turn in range(max(len(TURNS), round(self._runtime_s / TURN_S))):
                switch(TURNS[turn % len(TURNS)] == first)
                time.sleep(TURN_S)
        finally:
            switch(True)
        return switches
