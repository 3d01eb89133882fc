"""The metering rows: what the QoS pipeline costs when there is nothing to decide.

One cluster of one OSD, started as usual (profile `unified`, best effort only) and with `weir-osd --metering false`,
which lets every request go past the pipeline: the same files at the same places of the same disk. Each repeat runs one
job after the other, each in eight short turns, metered, bypassed, bypassed, metered and then the other way round, so
that a machine that grows faster or slower meanwhile does it to both. A row is what the median of the metered turns
loses against that of the others. A negative loss is noise.
"""
import statistics

from . import fio
from .host import run, say
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
TURNS = (True, False, False, True, False, True, True, False)  # half a job's time each


def rows():
    """{row: unit} in the order of printing."""
    return {f"{NAME}.p50-added": "us", **{f"{NAME}.{job}.loss": "%" for job in JOBS}}


class Switched(Cluster):
    """A cluster of one OSD that meters or doesn't."""
    name = "metering"
    disks = 1
    metered = True

    def _dev(self, verb, *args):
        return run(self.host.program("weir-dev"), verb, "--dir", self._cluster(), *args, timeout=180,
                   env={"WEIR_OSD_METERING": str(self.metered).lower()})

    def meter(self, on):
        self.metered = on
        self._dev("stop", "osd.0")
        self._dev("start", "osd.0")


class Metering:
    """The cluster, ready to be compared with itself."""

    def __init__(self, host, file_bytes, runtime_s):
        self._system = Switched(host, file_bytes)
        self._runtime_s = runtime_s

    def start(self):
        self._system.start()
        for layout in ("many", "one"):
            self._system.lay_out(layout)

    def measure(self, repeat):
        """{row: value} of one round."""
        values = {}
        for job, (layout, options) in JOBS.items():
            runs = {True: [], False: []}
            for turn in TURNS:
                self._system.meter(turn == (repeat % 2 == 0))
                runs[self._system.metered].append(self._run(job, layout, options, repeat))
            metered, bypassed = ({"iops": statistics.median(r.iops for r in runs[m]),
                                  "p50": statistics.median(r.p50_us for r in runs[m])} for m in (True, False))
            values[f"{NAME}.{job}.loss"] = 100 * (1 - metered["iops"] / bypassed["iops"])
            if job == "randread-4k-1job":
                values[f"{NAME}.p50-added"] = metered["p50"] - bypassed["p50"]
            say(f"  {job}: metered {metered['iops']:,.0f}/s p50 {metered['p50']:.1f} us, "
                f"bypassed {bypassed['iops']:,.0f}/s p50 {bypassed['p50']:.1f} us")
        return values

    def _run(self, job, layout, options, repeat):
        return fio.measure(job, {**options, **self._system.target(layout), "direct": 1, "time_based": 1, "ramp_time": "1s",
                                 "runtime": f"{int(self._runtime_s * 500)}ms", "randseed": 3000 + repeat})
