"""Three OSDs as the papers' bricks: each moves so many MiB/s behind a strict gate, whatever the machine can do.

Classes and their files: a job names the class it is charged to, the brick that its file lies on (or `s`: striped over
all three, 64 KiB a brick), and how many threads read blocks of 64 KiB at random.
"""
import os
import re
import subprocess

from servicelog import run_logged
from weirtest import Cluster, Failure

BLOCK_KIB, FILE_MIB = 64, 6
OSDS = 3


class Job:
    """`where` may name several bricks ("0:1"), between which fio chooses as `more` of its options say."""

    def __init__(self, class_name, where, threads=8, rate=None, begin=0, end=None, mount=0, more=()):
        self.class_name, self.where, self.threads, self.rate = class_name, str(where), threads, rate
        self.begin, self.end, self.mount, self.more = begin, end, mount, more


class Bricks:
    def __init__(self, lab, classes, mounts=1):
        self.lab, self.classes = lab, classes
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
        """Runs the jobs and returns their Service, by (class, brick)."""
        common = ["--rw=randread", f"--bs={BLOCK_KIB}k", "--ioengine=libaio", "--direct=1", f"--size={FILE_MIB}m", "--norandommap"]
        logged = []
        for index, job in enumerate(jobs):
            end = seconds if job.end is None else job.end
            files = ":".join(f"{self.path(job.class_name, where, job.mount)}/data" for where in job.where.split(":"))
            argv = [f"--filename={files}", f"--iodepth={job.threads}", f"--runtime={end - job.begin}", f"--randseed={index + 1}",
                    *job.more]
            argv += [f"--bs={BLOCK_KIB * OSDS}k"] if job.where == "s" else []
            argv += [f"--rate={int(job.rate * 1024)}k"] if job.rate else []
            logged.append(((job.class_name, job.where), job.begin, argv))
        return run_logged(self.lab, common, logged, seconds + 120)
