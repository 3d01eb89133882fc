"""fio processes whose every completed request is logged with its time, and sums over windows of them."""
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from weirtest import MIB, Failure  # noqa: E402


# fio logs a time per completed request, and no others. Where its log must grow, it waits for all that the job has under
# way, which looks like a class that is idle: so room for as many as a job completes.
LOG_OPTIONS = ("--log_unix_epoch=1", "--disable_slat=1", "--disable_clat=1", "--log_entries=32768")


class StolenTime:
    """What a host took from the processors of this machine: between(a, b) is in ms, of two wall clock times."""

    def __init__(self, lab):
        self.samples, self._stop = [], threading.Event()
        thread = threading.Thread(target=self._sample, daemon=True)
        thread.start()
        lab.on_exit(self._stop.set)

    def _sample(self):
        tick = 1000 / os.sysconf("SC_CLK_TCK")
        while not self._stop.wait(0.05):
            with open("/proc/stat") as stat:
                self.samples.append((time.time(), int(stat.readline().split()[8]) * tick))

    def between(self, begin, end):
        inside = [ms for when, ms in self.samples if begin - 0.05 <= when <= end + 0.05]
        return inside[-1] - inside[0] if inside else 0


class Stream:
    """One fio process; served(a, b) is in MiB/s of what completed between two wall clock times."""

    def __init__(self, lab, name, directory, rw, runtime, block="512k", depth=8, size="64m", rate=None, layout=True):
        self.lab, self.name = lab, name
        self.log = lab.path(f"log.{name}")
        common = [f"--name={name}", f"--directory={directory}", f"--bs={block}", f"--size={size}", "--direct=1",
                  "--ioengine=libaio", "--thread", f"--iodepth={depth}", "--eta=never", "--output-format=json"]
        if layout:  # a file of full length, so that writes do not extend it and reads have something to read
            subprocess.run(["fio", *common, "--rw=write"], check=True, capture_output=True, cwd=lab.dir)
        argv = ["fio", *common, f"--rw={rw}", "--time_based", f"--runtime={runtime}", f"--write_lat_log={self.log}", *LOG_OPTIONS]
        if rate:
            argv.append(f"--rate={rate}")
        self.argv, self.process, self.done = argv, None, None

    def start(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=self.lab.dir)
        self.lab.on_exit(self._kill)
        return self

    def _kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def finish(self):
        out, err = self.process.communicate(timeout=300)
        if self.process.returncode != 0:
            raise Failure(f"fio {self.name}: exit {self.process.returncode} {err[-800:]} {out[-800:]}")
        self.done = []
        for suffix in ("_lat.1.log",):
            with open(self.log + suffix) as log:
                for line in log:
                    fields = line.split(",")
                    self.done.append((int(fields[0]) / 1000.0, int(fields[3])))
        return self

    def served(self, begin, end):
        return sum(size for at, size in self.done if begin <= at < end) / (end - begin) / MIB


def timeline(streams, start, seconds):
    """Rows of (second, {name: MiB/s})."""
    return [(s, {x.name: x.served(start + s, start + s + 1) for x in streams}) for s in range(seconds)]


def wait_for(moment):
    time.sleep(max(0.0, moment - time.time()))
