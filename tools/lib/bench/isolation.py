"""The isolation rows: what a small reader keeps of its rate beside 64 writers on the same mount.

Per repeat: the reader alone, beside one kind of noise, alone again, beside the next, and so on, always
with the same files and settings. A "kept" row is the reader's IOPS in per cent of its IOPS alone just
before and just after (their mean: a disk that others share is another one a minute later), a "p99" row
the ratio of the 99th percentiles of its latency, submission included, since a wait can hide there.
Where a system has
classes, reader and noise are in two of equal weight, without reservations.
"""
import os
from statistics import mean

from . import fio
from .host import BenchError, say

NAME = "isolation"
ABOUT = "a 4 KiB reader's rate and p99 beside 64 writers on the same mount, against the same alone"
MIB = 1 << 20
READER_BYTES = 256 * MIB
RAMP_S = 1.5  # The reader's figures start after this much noise.

READER = {"rw": "randread", "bs": "4k", "direct": 1, "ioengine": "psync"}
SHAPES = {"1M": {"rw": "write", "bs": "1M"}, "64k": {"rw": "randwrite", "bs": "64k"}}
ENGINES = {"libaio": {"ioengine": "libaio", "iodepth": 16, "numjobs": 4},
           "psync": {"ioengine": "psync", "numjobs": 64}}


def variants():
    return [(shape, engine) for shape in SHAPES for engine in ENGINES]


def rows():
    """{row: unit} in the order of printing."""
    result = {f"{NAME}.alone": "IOPS", f"{NAME}.alone-p99": "us"}
    for shape, engine in variants():
        row = f"{NAME}-{shape}-{engine}"
        result |= {f"{row}.kept": "%", f"{row}.p99": "x", f"{row}.noise": "MB/s"}
    return result


class Isolation:
    def __init__(self, system, runtime_s):
        self._system = system
        self._runtime_s = runtime_s
        self._noise_bytes = system.file_bytes
        self._reader_bytes = min(READER_BYTES, system.file_bytes)

    def prepare(self):
        """Tagged directories with all files at full length, cold caches, then the settings."""
        system = self._system
        if system.data is not None:
            system.forget_all()
            classes = {os.path.join(system.data, name): name for name in ("reader", "noise")}
            for path in classes:
                os.mkdir(path)
            system.set_up_classes(classes)
            fill = {"rw": "write", "bs": "1M", "ioengine": "psync", "end_fsync": 1}
            fio.measure("layout", {**fill, **self._reader_files()})
            for engine in ENGINES:
                fio.measure("layout", {**fill, **self._noise_files(engine),
                                       "numjobs": ENGINES[engine]["numjobs"]})
        system.cold()
        system.isolate()

    def measure(self, repeat):
        """{row: value} of one round."""
        alone = [self._alone(repeat)]
        values = {}
        for shape, engine in variants():
            reader, noise = self._beside(shape, engine, repeat)
            alone.append(self._alone(repeat))
            values |= self._compare(f"{NAME}-{shape}-{engine}", reader, noise, alone[-2:])
        return values | {f"{NAME}.alone": mean(a.iops for a in alone), f"{NAME}.alone-p99": mean(a.p99_us for a in alone)}

    def _alone(self, repeat):
        alone = self._read(repeat)
        say(f"  {self._system.name}: alone {alone.iops:,.0f} IOPS, p99 {alone.p99_us:,.0f} us")
        return alone

    def _beside(self, shape, engine, repeat):
        """The results of reader and noise."""
        row = f"{NAME}-{shape}-{engine}"
        noise = fio.Background(row, {**SHAPES[shape], **ENGINES[engine], **self._noise_files(engine),
                                     "direct": 1, "time_based": 1, "runtime": "1h"})
        with noise:
            reader = self._read(repeat)
        if noise.result.seconds < reader.seconds:
            raise BenchError(f"{row}: the noise lasted {noise.result.seconds:.1f} s, the reader {reader.seconds:.1f} s")
        return reader, noise.result

    def _compare(self, row, reader, noise, alone):
        kept = 100 * reader.iops / mean(a.iops for a in alone)
        slower = reader.p99_us / mean(a.p99_us for a in alone)
        say(f"  {self._system.name}: {row}: {reader.iops:,.0f} IOPS = {kept:.1f} % kept, "
            f"p99 {slower:.1f} x, noise {noise.mb_per_s:,.0f} MB/s")
        return {f"{row}.kept": kept, f"{row}.p99": slower, f"{row}.noise": noise.mb_per_s}

    def _read(self, repeat):
        return fio.measure("reader", {**READER, **self._reader_files(), "time_based": 1,
                                      "ramp_time": f"{int(RAMP_S * 1000)}ms",
                                      "runtime": f"{int(self._runtime_s * 1000)}ms", "randseed": 2000 + repeat})

    def _reader_files(self):
        if self._system.data is None:
            return {"filename": self._system.device, "size": self._reader_bytes}
        return {"filename": os.path.join(self._system.data, "reader", "data"), "size": self._reader_bytes}

    def _noise_files(self, engine):
        part = self._noise_bytes // ENGINES[engine]["numjobs"]
        if self._system.data is None:
            return {"filename": self._system.device, "offset": self._reader_bytes, "offset_increment": part,
                    "size": part}
        return {"directory": os.path.join(self._system.data, "noise"), "filename_format": f"{engine}.$jobnum",
                "size": part}
