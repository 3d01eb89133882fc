"""The metering rows: what the QoS pipeline costs when there is nothing to decide.

Two clusters of one OSD side by side, one as usual (profile `unified`, best effort only), one whose OSD lets every
request go past the pipeline (`weir-osd --metering false`). Each repeat runs a job on both, one after the other and
in turns first, and a row is what the first loses against the second in that repeat, so that whatever else the
machine does hits both alike. A negative loss is noise.
"""
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


def rows():
    """{row: unit} in the order of printing."""
    return {f"{NAME}.p50-added": "us", **{f"{NAME}.{job}.loss": "%" for job in JOBS}}


class Metered(Cluster):
    name = "metered"
    disks = 1
    environment = {"WEIR_OSD_METERING": "true"}

    def _dev(self, verb, *args):
        return run(self.host.program("weir-dev"), verb, "--dir", self._cluster(), *args, timeout=180,
                   env=self.environment)


class Bypassed(Metered):
    name = "bypassed"
    environment = {"WEIR_OSD_METERING": "false"}


class Metering:
    """Both clusters, ready to be compared."""

    def __init__(self, host, file_bytes, runtime_s):
        self._systems = [Metered(host, file_bytes), Bypassed(host, file_bytes)]
        self._runtime_s = runtime_s

    def start(self):
        for system in self._systems:
            system.start()
            for layout in ("many", "one"):
                system.lay_out(layout)

    def measure(self, repeat):
        """{row: value} of one round."""
        values = {}
        for job, (layout, options) in JOBS.items():
            order = self._systems if repeat % 2 == 0 else self._systems[::-1]
            got = {system.name: self._run(system, job, layout, options, repeat) for system in order}
            metered, bypassed = got["metered"], got["bypassed"]
            values[f"{NAME}.{job}.loss"] = 100 * (1 - metered.iops / bypassed.iops)
            if job == "randread-4k-1job":
                values[f"{NAME}.p50-added"] = metered.p50_us - bypassed.p50_us
            say(f"  {job}: metered {metered.iops:,.0f}/s p50 {metered.p50_us:.1f} us, "
                f"bypassed {bypassed.iops:,.0f}/s p50 {bypassed.p50_us:.1f} us")
        return values

    def _run(self, system, job, layout, options, repeat):
        return fio.measure(job, {**options, **system.target(layout), "direct": 1, "time_based": 1, "ramp_time": "300ms",
                                 "runtime": f"{int(self._runtime_s * 1000)}ms", "randseed": 3000 + repeat})
