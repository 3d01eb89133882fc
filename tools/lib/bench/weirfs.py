"""WeirFS as measured: in one process over one disk, and as a cluster of three OSDs on this machine."""
import contextlib
import os
import subprocess

from .host import BenchError, drop_caches, is_mounted, run, stop, unmount, wait_for_mount
from .systems import System

# What the isolation job sets: a fixed rate and a strict gate, so that the queue is ours and not the disk's.
ISOLATION = ["--profile", "unified", "--surplus", "dsfq", "--gate", "strict", "--maximizer", "off"]
ISOLATION_MIB_PER_S = 200  # of all OSDs together


class WeirFs(System):
    has_classes = True

    def __init__(self, host, file_bytes):
        super().__init__(host, file_bytes)
        self._dir = host.folder(self.name)
        self._mount = host.folder(self.name, "mnt")

    def _osdctl(self, *args):
        return run(self.host.program("osdctl"), "--cluster", self._cluster(), *args)

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


class Embedded(WeirFs):
    """`weirfs --data`: namespace, OSD and mount in one process, on one loop device."""
    name = "weirfs-embedded"
    programs = ("weirfs", "osdctl", "weir-metabench")

    def start(self):
        self._disk = self.host.disk(self.name)
        self._log = os.path.join(self._dir, "log")
        self._child = None
        self.host.undo(self._down)
        self._up()
        self.data = self._mount

    def _cluster(self):
        return os.path.join(self._dir, "data")

    def _up(self):
        self._child = self.host.start(self._log, self.host.program("weirfs"), "-f", "--data", self._cluster(),
                                      "--disk", self._disk, "--force", self._mount)
        wait_for_mount(self._mount, self._child, self._log)

    def _down(self):
        """Unmounting ends the process; by force only when it doesn't."""
        with contextlib.suppress(BenchError):
            unmount(self._mount)
        if self._child is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(60)
        stop(self._child)

    def cold(self):
        self._down()
        drop_caches()
        self._up()


class Cluster(WeirFs):
    """`weir-dev up`: an MDS, three OSDs on a loop device each, and a mount, each a process."""
    name = "weirfs-cluster"
    programs = ("weir-dev", "weir-mds", "weir-osd", "weirfs", "osdctl", "weir-metabench")
    disks = 3

    def start(self):
        disks = [self.host.disk(f"{self.name}-{i}") for i in range(self.disks)]
        self.host.undo(self._end)
        self._dev("up", "--force", *(x for d in disks for x in ("--disk", d)), "--mount", self._mount)
        if not is_mounted(self._mount):
            raise BenchError(f"'weir-dev up' returned, but nothing is mounted on {self._mount}")
        self.data = self._mount

    def _cluster(self):
        return os.path.join(self._dir, "c")

    def _dev(self, verb, *args, env=None):
        return run(self.host.program("weir-dev"), verb, "--dir", self._cluster(), *args, timeout=180, env=env)

    def _end(self):
        with contextlib.suppress(BenchError):
            self._dev("down")
        unmount(self._mount)

    def cold(self):
        """New processes for the mount and the OSDs: their caches go with the old ones."""
        osds = [f"osd.{i}" for i in range(self.disks)]
        for daemon in ["mnt.0", *osds]:
            self._dev("stop", daemon)
        drop_caches()
        for daemon in [*osds, "mnt.0"]:
            self._dev("start", daemon)
