"""fio processes whose every completed request is logged with its time, and sums over windows of them."""
import bisect
import os
import shutil
import subprocess
import sys
import tempfile
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

    def start(self, user=None):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=self.lab.dir, user=user)
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


class Service:
    """What completed, by (class, place): times from the start, running sums of bytes, latencies."""

    def __init__(self):
        self.rows = {}

    def add(self, key, row):
        self.rows.setdefault(key, []).append(row)

    def finish(self):
        self.series = {}
        for key, rows in self.rows.items():
            rows.sort()
            sums = [0]
            for _, size, _ in rows:
                sums.append(sums[-1] + size)
            self.series[key] = ([r[0] for r in rows], sums)

    def rate(self, class_name, begin, end, where=None):
        """MiB/s at one place, or in all."""
        total = 0
        for (name, place), (times, sums) in self.series.items():
            if name == class_name and where in (None, place):
                total += sums[bisect.bisect_left(times, end)] - sums[bisect.bisect_left(times, begin)]
        return total / (end - begin) / MIB

    def count(self, class_name, begin, end, where=None):
        """Requests completed, a second."""
        found = 0
        for (name, place), (times, _) in self.series.items():
            if name == class_name and where in (None, place):
                found += bisect.bisect_left(times, end) - bisect.bisect_left(times, begin)
        return found / (end - begin)

    def latency(self, class_name, begin, end):
        """Mean, in ms."""
        found = [lat for (name, _), rows in self.rows.items() if name == class_name
                 for at, _, lat in rows if begin <= at < end]
        return sum(found) / len(found) if found else 0.0

    def windows(self, class_name, begin, end, step=0.25):
        """Rates of all seconds that begin `step` apart."""
        count = int((end - begin - 1) / step) + 1
        return [self.rate(class_name, begin + i * step, begin + i * step + 1) for i in range(count)]


def run_logged(lab, common, jobs, timeout):
    """Runs fio jobs, each ((class, place), begin in s, options), and returns their Service."""
    directory = tempfile.mkdtemp(dir=lab.dir)
    argv = ["fio", "--name=global", "--thread", "--time_based", "--eta=never", *LOG_OPTIONS, *common]
    for index, (_, begin, options) in enumerate(jobs):
        argv += [f"--name=j{index}", f"--startdelay={round(1e3 * begin)}ms", f"--write_lat_log={directory}/{index}", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, cwd=lab.dir)
    if done.returncode != 0:
        raise Failure(f"fio: exit {done.returncode}\n{done.stderr[-1500:]}{done.stdout[-500:]}")
    found = []
    for file in os.listdir(directory):
        key, begin, _ = jobs[int(file.split("_")[0])]
        with open(os.path.join(directory, file)) as lines:
            for line in lines:
                at, latency, _, size, *_ = line.split(",")
                found.append((int(at) / 1000, key, begin, int(latency) / 1e6, int(size)))
    shutil.rmtree(directory)
    start = min(at - latency / 1e3 - begin for at, _, begin, latency, _ in found)
    service = Service()
    service.start = start
    for at, key, _, latency, size in found:
        service.add(key, (at - start, size, latency))
    service.finish()
    return service


def timeline(streams, start, seconds):
    """Rows of (second, {name: MiB/s})."""
    return [(s, {x.name: x.served(start + s, start + s + 1) for x in streams}) for s in range(seconds)]


def wait_for(moment):
    time.sleep(max(0.0, moment - time.time()))
