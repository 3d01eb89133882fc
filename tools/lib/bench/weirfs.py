"""WeirFS as measured: in one process over one disk, and as a cluster of three OSDs on this machine."""
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess

from .host import BenchError, drop_caches, run, stop, unmount, wait_for_mount
from .systems import System

# What the isolation job sets: a fixed rate and a strict gate, so that the queue is ours and not the disk's.
ISOLATION = ["--profile", "unified", "--surplus", "dsfq", "--gate", "strict", "--maximizer", "off"]
ISOLATION_MIB_PER_S = 200  # of all OSDs together
WORD_OF_RINGS = "requests come by FUSE over io_uring"  # of a mount's log


@dataclasses.dataclass(frozen=True)
class Build:
    """Programs to compare with others: a system of theirs is called SYSTEM.LABEL."""
    label: str
    bin: str


def endpoint(place):
    """Where the cluster of that directory is to be found."""
    with open(os.path.join(place, "endpoint"), encoding="utf-8") as file:
        return file.read().strip()


class WeirFs(System):
    has_classes = True
    has_owners = True

    def __init__(self, host, file_bytes, build=None):
        super().__init__(host, file_bytes)
        if build is not None:
            self.name, self.bin_dir = f"{self.name}.{build.label}", build.bin
        self._dir = host.folder(self.name)
        self._mount = host.folder(self.name, "mnt")
        self._log = os.path.join(self._dir, "mnt.log")
        self._child = None

    def _osdctl(self, *args):
        return run(self.program("osdctl"), "--cluster", self._cluster(), *args)

    def _cluster(self):
        """The directory that osdctl finds the cluster by."""
        raise NotImplementedError

    def set_up_classes(self, classes):
        for name in sorted(set(classes.values())):
            self._osdctl("class", "create", name)
        for path, name in classes.items():
            os.setxattr(path, "user.qos.class", name.encode())

    def isolate(self):
        self._osdctl("osd", "set", "all", *ISOLATION, "--token-rate", f"{ISOLATION_MIB_PER_S // self.disks}MiB/s")

    @contextlib.contextmanager
    def _another(self, name, *args):
        """A second `weirfs -f ARGS MOUNT`, until the end of the block."""
        mount, log = self.host.folder(self.name, f"mnt.{name}"), os.path.join(self._dir, f"mnt.{name}.log")
        child = self.host.start(log, self.program("weirfs"), "-o", "allow_other", "-f", *args, mount)
        try:
            wait_for_mount(mount, child, log)
            yield mount
        finally:
            with contextlib.suppress(BenchError):
                unmount(mount)
            stop(child)

    def _mount_up(self, *args):
        # allow_other: a database has a user of its own. In this order, since old programs take a word that follows -o's
        # or --disk's for one more of them, except the mountpoint at the end.
        self._child = self.host.start(self._log, self.program("weirfs"), "-o", "allow_other", "-f", *args, self._mount)
        wait_for_mount(self._mount, self._child, self._log)

    def _mount_down(self):
        """Unmounting ends the process; by force only when it doesn't."""
        with contextlib.suppress(BenchError):
            unmount(self._mount)
        if self._child is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(60)
        stop(self._child)

    def _overwrites(self, program, *verb):
        """--force, which old programs neither know nor need."""
        return ("--force",) if "--force" in run(self.program(program), *verb, "--help") else ()

    def over(self):
        """How the kernel's requests come."""
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return "io_uring" if WORD_OF_RINGS in log.read() else "/dev/fuse"

    def processes(self):
        """{kind: [pid]} of what serves now."""
        return {"mount": [self._child.pid]}


class Embedded(WeirFs):
    """`weirfs --data`: namespace, OSD and mount in one process, on one loop device."""
    name = "weirfs-embedded"
    programs = ("weirfs", "osdctl")

    def start(self):
        self._disk = self.host.disk(self.name)
        self._force = self._overwrites("weirfs")
        self.host.undo(self._mount_down)
        self._up()
        self.data = self._mount

    def _cluster(self):
        return os.path.join(self._dir, "data")

    @contextlib.contextmanager
    def on_disk(self, disk, name):
        """Another one, over a disk as --disk has it: its mountpoint, until the end of the block, which leaves nothing."""
        place = os.path.join(self._dir, f"data.{name}")
        try:
            with self._another(name, "--data", place, "--disk", disk) as mount:
                yield mount
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _up(self):
        self._mount_up("--data", self._cluster(), "--disk", self._disk, *self._force)

    def cold(self):
        self._mount_down()
        drop_caches()
        self._up()


class Cluster(WeirFs):
    """`weir-dev up`: an MDS and three OSDs on a loop device each; and a mount, each a process."""
    name = "weirfs-cluster"
    programs = ("weir-dev", "weir-mds", "weir-osd", "weirfs", "osdctl")
    disks = 3

    def start(self):
        disks = [self.host.disk(f"{self.name}-{i}") for i in range(self.disks)]
        self.host.undo(self._end)
        self._dev("up", *self._overwrites("weir-dev", "up"), *(x for d in disks for x in ("--disk", d)))
        self._up()
        self.data = self._mount

    def _cluster(self):
        return os.path.join(self._dir, "c")

    def _dev(self, verb, *args, env=None, place=None):
        return run(self.program("weir-dev"), verb, "--dir", place or self._cluster(), *args, timeout=180, env=env)

    @contextlib.contextmanager
    def on_disk(self, disk, name):
        """Another cluster, over as many disks as --disk has it: its mountpoint, until the end of the block, which leaves nothing."""
        place = os.path.join(self._dir, f"c.{name}")
        try:
            self._dev("up", *(x for _ in range(self.disks) for x in ("--disk", disk)), place=place)
            try:
                with self._another(name, endpoint(place)) as mount:
                    yield mount
            finally:
                self._dev("down", place=place)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def second_mount(self):
        return self._another("second", endpoint(self._cluster()))

    def _up(self):
        self._mount_up(endpoint(self._cluster()))

    def _end(self):
        self._mount_down()
        with contextlib.suppress(BenchError):
            self._dev("down")

    def cold(self):
        """New processes for the mount and the OSDs: their caches go with the old ones."""
        osds = [f"osd.{i}" for i in range(self.disks)]
        self._mount_down()
        for daemon in osds:
            self._dev("stop", daemon)
        drop_caches()
        for daemon in osds:
            self._dev("start", daemon)
        self._up()

    def processes(self):
        with open(os.path.join(self._cluster(), "weir-dev.json"), encoding="utf-8") as file:
            state = json.load(file)
        return {**super().processes(), "mds": [state["mds"]["pid"]],
                "osd": [osd["process"]["pid"] for osd in state["osds"]]}
