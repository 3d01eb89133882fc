"""Three OSDs as the papers' bricks: each moves so many MiB/s behind a strict gate, whatever the machine can do.

Classes and their files: a job names the class it is charged to, the brick that its file lies on (or `s`: striped over
all three, 64 KiB a brick), and how many threads read blocks of 64 KiB at random.
"""
import bisect
import os
import re
import subprocess

from servicelog import LOG_OPTIONS
from weirtest import MIB, Cluster, Failure

BLOCK_KIB, FILE_MIB = 64, 6
OSDS = 3


class Job:
    def __init__(self, class_name, where, threads=8, rate=None, begin=0, end=None, mount=0):
        self.class_name, self.where, self.threads, self.rate = class_name, str(where), threads, rate
        self.begin, self.end, self.mount = begin, end, mount


class Service:
    """What completed, by (class, brick): times from the start, running sums of bytes, latencies."""

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
        """MiB/s on one brick, or in all."""
        total = 0
        for (name, place), (times, sums) in self.series.items():
            if name == class_name and where in (None, place):
                total += sums[bisect.bisect_left(times, end)] - sums[bisect.bisect_left(times, begin)]
        return total / (end - begin) / MIB

    def latency(self, class_name, begin, end):
        """Mean, in ms."""
        found = [lat for (name, _), rows in self.rows.items() if name == class_name
                 for at, _, lat in rows if begin <= at < end]
        return sum(found) / len(found) if found else 0.0

    def windows(self, class_name, begin, end, step=0.25):
        """Rates of all seconds that begin `step` apart."""
        count = int((end - begin - 1) / step) + 1
        return [self.rate(class_name, begin + i * step, begin + i * step + 1) for i in range(count)]


class Bricks:
    def __init__(self, lab, classes, mounts=1):
        self.lab, self.classes, self.runs = lab, classes, 0
        self.system = Cluster(lab, osds=OSDS, mounts=mounts, osd_size="2GiB", token_rate="1GiB/s")
        self.osdctl = self.system.osdctl
        # fio removes a file before it writes it, and the new one lies elsewhere, unless it is of full length and `overwrite`.
        layout = ["fio", "--name=global", "--rw=write", "--overwrite=1", "--bs=1m", f"--size={FILE_MIB}m", "--direct=1",
                  "--thread"]
        for osd in range(OSDS):
            self.osdctl("pool", "create", f"p{osd}", "--osds", osd)
        for name in classes:
            self.osdctl("class", "create", name)
            for where in [*map(str, range(OSDS)), "s"]:
                path = self.path(name, where)
                if where == "s":
                    self._stripe(path)
                else:
                    os.mkdir(path)
                    os.setxattr(path, "user.weir.layout.pool", f"p{where}".encode())
                layout += [f"--name={name}.{where}", f"--filename={path}/data"]
        subprocess.run(layout, check=True, capture_output=True, cwd=lab.dir)
        for name in classes:
            self._check_stripes(self.path(name, "s"))
            for where in [*map(str, range(OSDS)), "s"]:
                os.setxattr(self.path(name, where), "user.qos.class", name.encode())

    @staticmethod
    def _stripe(path):
        """Objects lie where their hash says: makes files until one has an object on each OSD."""
        os.mkdir(path)
        for key, value in (("stripe_count", OSDS), ("stripe_unit", BLOCK_KIB << 10)):
            os.setxattr(path, f"user.weir.layout.{key}", str(value).encode())
        for attempt in range(100):
            name = f"{path}/{attempt}"
            with open(name, "wb") as file:
                file.truncate(FILE_MIB << 20)
            if Bricks._is_everywhere(name):
                os.rename(name, f"{path}/data")
                return
        raise Failure(f"no file of a hundred in {path} lies on all OSDs")

    @staticmethod
    def _is_everywhere(name):
        text = os.getxattr(name, "weir.objects").decode()
        return all(re.search(rf"osd\.{osd}\b", text) for osd in range(OSDS))

    @staticmethod
    def _check_stripes(path):
        if not Bricks._is_everywhere(f"{path}/data"):
            raise Failure(f"{path}/data does not lie on all OSDs any more: fio made it anew")

    def path(self, name, where, mount=0):
        return f"{self.system.mounts[mount]}/{name}.{where}"

    def set(self, rate, *boxes):
        self.osdctl("osd", "set", "all", *boxes, "--gate", "strict", "--maximizer", "off", "--best-effort-min", "0",
                    "--token-rate", f"{rate}MiB/s")

    def weights(self, **weights):
        for name in self.classes:
            weight, least = weights.get(name, 1), None
            if isinstance(weight, tuple):
                weight, least = weight
            self.osdctl("class", "set", name, "--weight", weight, "--min-weight", least or 0.1 * weight)

    def run(self, jobs, seconds):
        """Runs the jobs and returns their Service."""
        self.runs += 1
        argv = ["fio", "--name=global", "--rw=randread", f"--bs={BLOCK_KIB}k", "--ioengine=libaio", "--direct=1",
                "--thread", "--time_based", f"--size={FILE_MIB}m", *LOG_OPTIONS, "--eta=never",
                "--norandommap"]
        for index, job in enumerate(jobs):
            end = seconds if job.end is None else job.end
            log = self.lab.path(f"done.{self.runs}.{index}")
            argv += [f"--name=j{index}", f"--filename={self.path(job.class_name, job.where, job.mount)}/data",
                     f"--iodepth={job.threads}", f"--startdelay={job.begin}", f"--runtime={end - job.begin}",
                     f"--write_lat_log={log}", f"--randseed={index + 1}"]
            argv += [f"--bs={BLOCK_KIB * OSDS}k"] if job.where == "s" else []
            argv += [f"--rate={int(job.rate * 1024)}k"] if job.rate else []
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds + 120, cwd=self.lab.dir)
        if done.returncode != 0:
            raise Failure(f"fio: exit {done.returncode}\n{done.stderr[-1500:]}{done.stdout[-500:]}")
        return self._read(jobs)

    def _read(self, jobs):
        found = []
        for file in os.listdir(self.lab.dir):
            if not file.startswith(f"done.{self.runs}."):
                continue
            job = jobs[int(file.split(".")[2].split("_")[0])]
            with open(self.lab.path(file)) as lines:
                for line in lines:
                    at, latency, _, size, *_ = line.split(",")
                    found.append((int(at) / 1000, job, int(latency) / 1e6, int(size)))
            os.unlink(self.lab.path(file))
        start = min(at - latency / 1e3 - job.begin for at, job, latency, _ in found)
        service = Service()
        for at, job, latency, size in found:
            service.add((job.class_name, job.where), (at - start, size, latency))
        service.finish()
        return service
