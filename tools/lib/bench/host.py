"""The machine we measure on: commands, loop devices, mounts, child processes, and undoing it all.

Whatever Host attaches, and whatever a system starts, registers how to undo it; close() undoes in reverse order and goes
on when one step fails. Only processes that we started are stopped, by their Popen object.
"""
import contextlib
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class BenchError(Exception):
    """Something that a person can act on; the text says what failed and why."""


def say(text):
    """Progress goes to stderr: stdout belongs to the result."""
    print(text, file=sys.stderr, flush=True)


def run(*args, timeout=120, env=None):
    """Runs a command to its end and returns its stdout; a BenchError names the command and why."""
    try:
        done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **(env or {})}, start_new_session=True,
                              stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        raise BenchError(f"'{args[0]}' is not there: build or install it first") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"'{os.path.basename(str(args[0]))}' did not end within {timeout:g} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BenchError(f"'{' '.join(str(a) for a in args[:4])} …' ended with {done.returncode}: "
                         f"{' | '.join(said[-3:]) or 'no message'}")
    return done.stdout


def is_mounted(path):
    """True also for a FUSE mount whose process is dead."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        return any(line.split(" ")[1] == str(path) for line in mounts)


def unmount(path):
    """Unmounts, lazily when somebody still holds on; fine when nothing is mounted."""
    if not is_mounted(path):
        return
    if subprocess.run(["umount", path], capture_output=True, check=False).returncode != 0:
        run("umount", "-l", path)


def drop_caches():
    """Empties the kernel's page, dentry and inode caches."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3\n")


def stop(child, patience_s=20):
    """Ends a child process, by force when it doesn't go by itself."""
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(patience_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def tail(path, lines=3):
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
        return " | ".join(f.read().strip().splitlines()[-lines:]) or "no message"
    return "no message"


def wait_for_mount(path, child, log, patience_s=90):
    """Returns once `path` is a mount that answers; fails when `child` ends or the time is over."""
    end = time.monotonic() + patience_s
    while not is_mounted(path):
        if child.poll() is not None:
            raise BenchError(f"'{child.args[0]}' ended with {child.returncode}: {tail(log)}")
        if time.monotonic() > end:
            raise BenchError(f"'{child.args[0]}' has not mounted {path} within {patience_s} s: {tail(log)}")
        time.sleep(0.02)
    os.statvfs(path)


def write_image(path, size):
    """Makes a file of `size` bytes whose every block is allocated and written: a disk in use.

    The data is seeded noise, so that nothing below can make blocks cheap, and WeirFS is told by --force that it is nobody's;
    the first MiB is zero, as a blank disk's, so that mkfs finds no foreign signature.
    """
    chunk = mmap.mmap(-1, 4 * MIB)  # Page-aligned, as O_DIRECT wants it.
    chunk.write(random.Random(path).randbytes(len(chunk)))
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
        for offset in range(0, size, len(chunk)):
            os.pwrite(fd, memoryview(chunk)[:min(len(chunk), size - offset)], offset)
    finally:
        os.close(fd)
    blank(path, size)


def blank(path, size):
    """Zeroes the first and the last MiB, where superblocks and partition tables live."""
    with open(path, "r+b") as f:
        f.write(bytes(MIB))
        f.seek(size - MIB)
        f.write(bytes(MIB))
        f.flush()
        os.fsync(f.fileno())


class Host:
    def __init__(self, work, bin_dir, disk_bytes, keep_images):
        self.bin_dir = bin_dir
        self.disk_bytes = disk_bytes
        self.keep_images = keep_images
        self._undo = contextlib.ExitStack()
        os.makedirs(work, exist_ok=True)
        self.dir = tempfile.mkdtemp(prefix="weirfs-bench.", dir=work)
        self.undo(shutil.rmtree, self.dir)
        self.images = os.path.join(work, "weirfs-bench-images") if keep_images else self.dir
        os.makedirs(self.images, exist_ok=True)

    def undo(self, call, *args):
        """`call(*args)` will run at close(), before all that was registered earlier."""
        def guarded():
            try:
                call(*args)
            except (BenchError, OSError, subprocess.SubprocessError) as e:
                say(f"bench: while cleaning up: {e}")
        self._undo.callback(guarded)

    def close(self):
        self._undo.close()

    def close_undisturbed(self):
        """The end of a program: cleaning up is not interrupted by another signal."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self.close()

    def program(self, name, bin_dir=None):
        path = os.path.join(bin_dir or self.bin_dir, name)
        if not os.access(path, os.X_OK):
            raise BenchError(f"no program {path}: build it with 'cmake --preset release && "
                             f"cmake --build --preset release', or name another place with --bin")
        return path

    def folder(self, *names):
        path = os.path.join(self.dir, *names)
        os.makedirs(path, exist_ok=True)
        return path

    def need_space(self, disks):
        """Fails early when `disks` images don't fit."""
        need = disks * self.disk_bytes + 256 * MIB
        free = shutil.disk_usage(self.images).free
        if self.keep_images:
            free += sum(e.stat().st_size for e in os.scandir(self.images))
        if need > free:
            raise BenchError(f"{disks} disks need {need // MIB} MiB below {self.images}, which has {free // MIB}: "
                             f"give --work another place or a smaller --disk-size")

    def image(self, path):
        """A written image at `path`, made now unless it is there from an earlier run."""
        if os.path.exists(path) and os.path.getsize(path) == self.disk_bytes:
            blank(path, self.disk_bytes)
            return path
        say(f"bench: writing {path} ({self.disk_bytes // MIB} MiB)")
        if not self.keep_images:
            self.undo(os.unlink, path)
        write_image(path, self.disk_bytes)
        return path

    def disk(self, name):
        """A loop device over an image of that name: direct I/O, no discard, not rotational."""
        image = self.image(os.path.join(self.images, f"{name}.img"))
        device = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
        self.undo(run, "losetup", "--detach", device)
        queue = f"/sys/block/{os.path.basename(device)}/queue"
        # A discard would punch holes, and the next write would pay for filling them.
        for knob in ("discard_max_bytes", "rotational"):
            with contextlib.suppress(OSError), open(f"{queue}/{knob}", "w", encoding="ascii") as f:
                f.write("0\n")
        return device

    def start(self, log, *args):
        """Starts a child that outlives this call. The caller registers how it ends."""
        with open(log, "ab") as out:
            return subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    start_new_session=True)
