"""What is measured: a System has a directory or a device for fio, and knows how to get cold.

start() brings it up and registers its end with the Host. `data` is the directory to work in, or None
for the raw device, whose name is in `device`.
"""
import os

from . import fio
from .host import BenchError, drop_caches, run, stop, unmount, wait_for_mount

JOBS = 16  # The threads of the 16-job rows; each has a file (raw: a region) of its own.


class System:
    name = ""
    disks = 1
    programs = ()        # Of ours, that have to be built.
    bin_dir = None       # Where they are, if not where the Host's are.
    data = None
    device = None
    limit = False        # Is it one of those whose lower is the limit of a row?
    has_owners = False   # Do its files belong to whoever makes them, as a database's server wants it?
    has_classes = False  # Can directories be put into classes of service?

    def __init__(self, host, file_bytes):
        self.host = host
        self.file_bytes = file_bytes
        self._laid_out = set()

    def start(self):
        raise NotImplementedError

    def program(self, name):
        return self.host.program(name, self.bin_dir)

    def cold(self):
        """Nothing of the files is in memory, neither in the kernel nor in the system's own caches."""
        drop_caches()

    def set_up_classes(self, classes):
        """Puts each directory {path: class} into its class; systems without classes do nothing."""

    def isolate(self):
        """Sets what the isolation job asks for; systems without classes do nothing."""

    def target(self, layout):
        """fio options that name the files of a layout: one, many or new."""
        part = self.file_bytes // JOBS if layout == "many" else self.file_bytes
        if self.data is None:
            spread = {"offset_increment": part} if layout == "many" else {}
            return {"filename": self.device, "size": part, **spread}
        if layout == "many":
            return {"directory": self.data, "filename_format": "many.$jobnum", "size": part}
        return {"filename": os.path.join(self.data, f"{layout}.dat"), "size": part}

    def lay_out(self, layout):
        """Writes the files of a layout to their full length, once; `new` instead has to be absent."""
        if self.data is None:
            return
        if layout == "new":
            self.forget("new.dat")
        elif layout not in self._laid_out:
            jobs = JOBS if layout == "many" else 1
            fio.measure("layout", {"rw": "write", "bs": "1M", "ioengine": "psync", "end_fsync": 1,
                                   "numjobs": jobs, **self.target(layout)})
            self._laid_out.add(layout)

    def forget(self, *names):
        for name in names:
            path = os.path.join(self.data, name)
            if os.path.exists(path):
                os.unlink(path)

    def before_each(self):
        """What it needs before a job is measured on it."""

    def forget_all(self):
        """Removes the files of all layouts."""
        if self.data is not None:
            self.forget("one.dat", "new.dat", *(f"many.{i}" for i in range(JOBS)))
        self._laid_out.clear()


class Raw(System):
    """The loop device itself."""
    name = "raw"
    limit = True

    def start(self):
        self.device = self.host.disk(self.name)


class Ext4(System):
    """ext4 on a loop device: what a database has that is not mounted from anybody."""
    name = "ext4"
    limit = True
    has_owners = True

    def start(self):
        self.data = mount_ext4(self.host, self.name)


def mount_ext4(host, name):
    """The mountpoint of a new ext4 on a loop device."""
    device = host.disk(name)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
    place = host.folder(name, "ext4")
    run("mount", device, place)
    host.undo(unmount, place)
    return place


class Passthrough(System):
    """weir-passthrough over an ext4 on a loop device.

    Its handlers block for the disk, so it has a thread for each of the 16 jobs: with fewer, the row
    would show the number of threads (4 reach about 60 % of the random reads of 16), not what FUSE can do.
    """
    name = "passthrough"
    programs = ("weir-passthrough", "weir-metabench")
    limit = True

    def start(self):
        mount_ext4(self.host, self.name)
        mount = self.host.folder(self.name, "mnt")
        root = self.host.folder(self.name, "ext4", "root")
        log = os.path.join(self.host.dir, self.name, "log")
        child = self.host.start(log, self.host.program("weir-passthrough"), root, mount, JOBS)
        self.host.undo(self._end, child, mount)
        wait_for_mount(mount, child, log)
        self.data = mount

    def before_each(self):
        drop_caches()  # It keeps a descriptor of each file that the kernel remembers, and may have too few.

    @staticmethod
    def _end(child, mount):
        unmount(mount)
        stop(child)


class Peer(System):
    """Another filesystem, brought up by the script up-NAME of a directory given by --peers-dir.

    The scripts take PEERS (where they keep their state), DISK_MB and `--mount DIR`; they use the image
    $PEERS/disks/NAME-I.img for disk I if it is there, and may leave a hook $PEERS/NAME/drop that empties
    the system's caches. down-NAME undoes all of it.
    """
    disks = 3

    def __init__(self, host, file_bytes, scripts, peer):
        super().__init__(host, file_bytes)
        self.name = f"peer:{peer}"
        self._peer = peer
        self._scripts = scripts

    def _script(self, verb):
        path = os.path.join(self._scripts, f"{verb}-{self._peer}")
        if not os.access(path, os.X_OK):
            raise BenchError(f"no script {path}: --peers-dir must hold up-{self._peer} and down-{self._peer}")
        return path

    def start(self):
        up, down = self._script("up"), self._script("down")
        self._state = self.host.folder("peers")
        disks = self.host.folder("peers", "disks")
        for i in range(self.disks):
            self.host.image(os.path.join(disks, f"{self._peer}-{i}.img"))
        self._env = {"PEERS": self._state, "DISK_MB": str(self.host.disk_bytes >> 20)}
        mount = self.host.folder("peer-mnt")
        self.host.undo(self._end, down, mount)
        run(up, "--mount", mount, timeout=300, env=self._env)
        self.data = os.path.join(mount, "bench")
        os.mkdir(self.data)

    def _end(self, down, mount):
        run(down, timeout=120, env=self._env)
        unmount(mount)

    def cold(self):
        hook = os.path.join(self._state, self._peer, "drop")
        if os.access(hook, os.X_OK):
            run(hook, env=self._env)
        drop_caches()
