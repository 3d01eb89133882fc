#!/usr/bin/env python3
"""FUSE over io_uring: the way of requests may change nothing for processes.

Needs the kernel's parameter fuse.enable_uring, which is set for as long as this runs. Where the kernel has none, or this
user may not set it, everything is skipped, and says so.
"""
import contextlib
import fcntl
import json
import mmap
import os
import signal
import subprocess
import sys
import time

from weirtest import BIN, MIB, REPO, SIGNALS, Cluster, Embedded, Failure, check, is_mounted, main, run, wait_until

sys.path.insert(0, os.path.join(REPO, "tools", "lib"))
import fuse_rings  # noqa: E402  (the path comes first)

FIRST_ENTRIES = 128  # of a queue, before it grows


def servers_of(mount):
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_server_of(int(pid), mount)]


def take_away(mount):
    """After a failure: whoever still waits for an answer that its daemons will not give hears so, and can end."""
    if is_mounted(mount):
        for pid in servers_of(mount):
            os.kill(pid, signal.SIGKILL)
        run("umount", "-l", mount, ok=None)


def mount_over_uring(lab, system, name, *options):
    mount = lab.path(name)
    os.makedirs(mount)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    lab.on_exit(take_away, mount)
    run(f"{BIN}/weirfs", endpoint, mount, "-o", ",".join(("uring=on",) + options), "--log-file", lab.path(f"{name}.log"))

    def used():
        with open(lab.path(f"{name}.log")) as log:
            return "by FUSE over io_uring" in log.read()

    # The kernel asks for FUSE_INIT when the mount is there already.
    wait_until(used, "the log to say that io_uring is used")
    return mount


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


class Child:
    """A process that does one thing, on one processor if that is said, and may be killed while it does."""

    def __init__(self, function, processor=None):
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            try:
                if processor is not None:
                    os.sched_setaffinity(0, {processor})
                function()
                code = 0
            except BaseException as error:  # noqa: BLE001 - the exit code tells
                code = getattr(error, "errno", None) or 1
            os._exit(code)

    def end(self, timeout=30):
        """How it ended, as os.waitpid says."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.02)
        raise Failure(f"a process did not end in {timeout} s: it is in state {state_of(self.pid)}")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.end()


def stack_of(pid):
    """Where in the kernel it stands."""
    with open(f"/proc/{pid}/stack") as file:
        return file.read()


def waits(pid):
    """Whether it stands in the kernel's FUSE, waiting for an answer."""
    return "fuse" in stack_of(pid)


def all_wait(children):
    wait_until(lambda: all(waits(child.pid) for child in children), "all to wait for an answer")


def waits_for_lock(pid):
    """In the kernel, whether that keeps this mount's locks itself (one process over /dev/fuse) or asks the mount."""
    return "fcntl_setlk" in stack_of(pid)


def all_wait_for_lock(children):
    """Not only for their open(2), which is a request, too."""
    wait_until(lambda: all(waits_for_lock(child.pid) for child in children), "all to wait for the lock")


def refused_with_a_word(lab):
    system = Cluster(lab, mounts=0)
    mount = lab.path("mnt")
    os.makedirs(mount)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    done = run(f"{BIN}/weirfs", endpoint, mount, "-o", "uring=on,supervise", ok=None)
    check(done.returncode != 0 and "uring" in done.stderr + done.stdout and not is_mounted(mount),
          f"uring=on with supervise: {done}")
    done = run(f"{BIN}/weirfs", endpoint, mount, "-o", "uring=on", ok=None, env={"WEIR_REACTOR": "epoll"})
    check(done.returncode != 0 and "io_uring" in done.stderr + done.stdout and not is_mounted(mount),
          f"uring=on without io_uring: {done}")
    run(f"{BIN}/weirfs", endpoint, mount, env={"WEIR_REACTOR": "epoll"})
    lab.on_exit(lambda: is_mounted(mount) and run("umount", "-l", mount, ok=None))
    with open(f"{mount}/file", "w") as file:
        file.write("by /dev/fuse")
    run("umount", mount)
    run(f"{BIN}/weirfs", endpoint, mount, "-o", "supervise")
    with open(f"{mount}/file") as file:
        check(file.read() == "by /dev/fuse", "a supervised mount does not read")
    run("umount", mount)


def killed_in_every_state(lab):
    """A read, a write, a name and a lock that nobody will answer: whoever is killed there goes."""
    system = Cluster(lab)
    mount = mount_over_uring(lab, system, "mnt.ring")
    with open(f"{mount}/file", "wb") as file:
        file.write(b"x" * MIB)
    fd = os.open(f"{mount}/file", os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    fcntl.lockf(fd, fcntl.LOCK_EX)

    def lock():
        own = os.open(f"{mount}/file", os.O_RDWR)
        fcntl.lockf(own, fcntl.LOCK_EX)

    waiting = Child(lock)
    all_wait_for_lock([waiting])
    status = waiting.kill()
    check(os.WIFSIGNALED(status), f"a waiting lock: {status}")
    system.dev("kill", "osd.0")
    data = [Child(lambda: os.preadv(fd, [page], 0)), Child(lambda: os.pwritev(fd, [page], 0))]
    all_wait(data)
    for child in data:
        check(os.WIFSIGNALED(child.kill()), "a process that waits for an OSD was not killed")
    system.dev("kill", "mds.0")
    names = [Child(lambda: os.mkdir(f"{mount}/a"))]
    all_wait(names)
    names.append(Child(lambda: os.mkdir(f"{mount}/b")))  # behind the other, at their directory's lock
    wait_until(lambda: "filename_create" in stack_of(names[1].pid), "the second to wait behind the first")
    for child in names:
        check(os.WIFSIGNALED(child.kill()), "a process that waits for the MDS was not killed")
    # Many at once, and killed in the moment of asking as well.
    crowd = [Child(lambda: os.preadv(fd, [mmap.mmap(-1, 4096)], 0)) for _ in range(40)]
    for child in crowd:
        os.kill(child.pid, signal.SIGKILL)
    for child in crowd:
        check(os.WIFSIGNALED(child.end()), "one of many was not killed")
    for daemon in ("mds.0", "osd.0"):
        system.dev("start", daemon)
    check(os.preadv(fd, [page], 0) == 4096, "the mount does not read after its daemons came back")
    os.close(fd)
    run("umount", mount)


def interrupted_locks(lab):
    """A signal takes a waiting lock back, whichever way the kernel tells of it."""
    system = Cluster(lab)
    mount = mount_over_uring(lab, system, "mnt.ring")
    with open(f"{mount}/file", "wb") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)

        def wait_for_lock():
            class Stop(Exception):
                pass

            def stop(_number, _frame):
                raise Stop

            signal.signal(signal.SIGUSR1, stop)
            with open(f"{mount}/file", "wb") as own:
                try:
                    fcntl.lockf(own, fcntl.LOCK_EX)
                except Stop:
                    return
            raise OSError(99, "it was granted")

        for _ in range(20):
            child = Child(wait_for_lock)
            all_wait_for_lock([child])
            os.kill(child.pid, signal.SIGUSR1)
            check(child.end() == 0, "a signal did not end the wait for a lock")
    with open(f"{mount}/file", "wb") as again:
        fcntl.lockf(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    run("umount", mount)


def more_locks_than_entries(lab):
    """More wait for a lock on one processor than its queue had entries: he who has it must get through to give it back."""
    system = Cluster(lab)
    mount = mount_over_uring(lab, system, "mnt.ring")
    held = open(f"{mount}/file", "wb")
    fcntl.lockf(held, fcntl.LOCK_EX)

    def lock():
        with open(f"{mount}/file", "wb") as own:
            fcntl.lockf(own, fcntl.LOCK_EX)

    children = [Child(lock, 0) for _ in range(FIRST_ENTRIES + 70)]
    all_wait_for_lock(children)
    os.sched_setaffinity(0, {0})
    try:
        os.stat(f"{mount}/file")
        fcntl.lockf(held, fcntl.LOCK_UN)
        for child in children:
            check(child.end(120) == 0, "a waiting lock was not granted")
    finally:
        os.sched_setaffinity(0, set(range(os.cpu_count())))
    held.close()
    run("umount", mount)


def writers_and_a_reader_on_one_core(lab):
    """Writers that an OSD does not answer hold their entries: a reader on the same processor finds one all the same."""
    system = Cluster(lab)
    mount = mount_over_uring(lab, system, "mnt.ring")
    with open(f"{mount}/file", "wb") as file:
        file.write(b"x" * MIB)
    os.mkdir(f"{mount}/dir")
    fd = os.open(f"{mount}/file", os.O_RDWR | os.O_DIRECT)
    system.dev("kill", "osd.0")

    def write():
        os.pwritev(fd, [mmap.mmap(-1, 65536)], 0)

    for writers in (64, FIRST_ENTRIES):
        children = [Child(write, 0) for _ in range(writers)]
        all_wait(children)
        reader = Child(lambda: [os.listdir(f"{mount}/dir") for _ in range(100)], 0)
        check(reader.end() == 0, f"a reader beside {writers} writers")
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
        for child in children:
            child.end()
    system.dev("start", "osd.0")
    os.close(fd)
    run("umount", mount)


def umount_under_load(lab):
    """Lazily, with readers and writers at it: they hear an error or end well, and so does weirfs."""
    for _ in range(3):
        system = Embedded(lab, "-o", "uring=on", "--osd-size", "1GiB")
        with open(f"{system.mnt}/file", "wb") as file:
            file.write(b"x" * (4 * MIB))

        def work():
            fd = os.open(f"{system.mnt}/file", os.O_RDWR | os.O_DIRECT)
            page = mmap.mmap(-1, 65536)
            end = time.monotonic() + 60
            with contextlib.suppress(OSError):
                while time.monotonic() < end:
                    os.preadv(fd, [page], 0)
                    os.pwritev(fd, [page], MIB)
                    os.close(os.open(f"{system.mnt}/other", os.O_CREAT | os.O_RDWR))
            os.close(fd) if end > time.monotonic() else None

        children = [Child(work) for _ in range(8)]
        wait_until(lambda: os.path.exists(f"{system.mnt}/other"), "all to work")
        run("umount", "-l", system.mnt)
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
        for child in children:
            child.end()
        system.umount()


def killed_server(lab):
    """weirfs killed with requests in its rings: whoever waits hears an error."""
    system = Cluster(lab)
    mount = mount_over_uring(lab, system, "mnt.ring")
    with open(f"{mount}/file", "wb") as file:
        file.write(b"x" * MIB)
    fd = os.open(f"{mount}/file", os.O_RDWR | os.O_DIRECT)
    system.dev("kill", "osd.0")
    children = [Child(lambda: os.preadv(fd, [mmap.mmap(-1, 4096)], 0)) for _ in range(10)]
    all_wait(children)
    servers = servers_of(mount)
    check(len(servers) == 1, f"servers of {mount}: {servers}")
    os.kill(servers[0], signal.SIGKILL)
    for child in children:
        status = child.end()
        check(os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0, f"a read of a dead mount: {status}")
    with contextlib.suppress(OSError):
        os.close(fd)
    system.dev("start", "osd.0")
    run("umount", "-l", mount)


def is_server_of(pid, mount):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            words = file.read().split("\0")
    except OSError:
        return False
    return words[0].endswith("/weirfs") and mount in words


def files_and_pages(lab):
    """Data of every size and kind, read back by another way."""
    system = Embedded(lab, "-o", "uring=on", "--osd-size", "1GiB")
    for size in (0, 1, 4095, 4097, MIB - 1, MIB, MIB + 1, 5 * MIB + 7):
        data = os.urandom(size)
        with open(f"{system.mnt}/f{size}", "wb") as file:
            file.write(data)
        with open(f"{system.mnt}/f{size}", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            check(file.read() == data, f"{size} bytes came back as others")
    names = [f"n{i:04}" * 20 for i in range(2000)]
    os.mkdir(f"{system.mnt}/d")
    for name in names:
        os.close(os.open(f"{system.mnt}/d/{name}", os.O_CREAT | os.O_WRONLY))
    check(sorted(os.listdir(f"{system.mnt}/d")) == sorted(names), "a large directory lists other names")
    os.symlink("/" + "x" * 4000, f"{system.mnt}/link")
    check(os.readlink(f"{system.mnt}/link") == "/" + "x" * 4000, "a long link")
    os.setxattr(f"{system.mnt}/f1", "user.a", b"v" * 60000)
    check(os.getxattr(f"{system.mnt}/f1", "user.a") == b"v" * 60000, "a long xattr")
    system.umount()
    system.mount()
    for size in (1, MIB + 1):
        check(os.stat(f"{system.mnt}/f{size}").st_size == size, "a size was lost over a remount")


def operators_see_the_path(lab):
    """Of each mount osdctl says whether its requests come by io_uring."""
    system = Cluster(lab, mounts=0)
    mounts = {"ring": mount_over_uring(lab, system, "mnt.ring", "client=ring")}
    mounts["device"] = lab.path("mnt.device")
    os.makedirs(mounts["device"])
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    lab.on_exit(lambda: is_mounted(mounts["device"]) and run("umount", "-l", mounts["device"], ok=None))
    run(f"{BIN}/weirfs", endpoint, mounts["device"], "-o", "uring=off,client=device")
    expected = [{"client": "device", "path": "/dev/fuse"}, {"client": "ring", "path": "io_uring"}]

    def listed():
        return json.loads(system.osdctl("status", "-o", "json", ok=None).stdout)["mounts"] == expected

    wait_until(listed, "status to say how the requests of both mounts come")
    text = system.osdctl("status", ok=None).stdout
    check("MOUNT   PATH" in text and "device  /dev/fuse" in text and "ring    io_uring" in text, f"status: {text}")

    def used():
        # What a mount reports first of a class only says where its sums stand.
        for name, mount in mounts.items():
            with open(f"{mount}/{name}", "wb") as file:
                file.write(b"x" * MIB)
                file.flush()
                os.fsync(file.fileno())
        why = json.loads(system.osdctl("why", "best-effort", "-o", "json").stdout)
        return sorted(why["mounts"], key=lambda one: one["client"]) == expected

    wait_until(used, "why to say it of the mounts that used the class")


if __name__ == "__main__":
    if os.environ.get("WEIR_REACTOR") == "epoll":
        print("skipped uring: WEIR_REACTOR=epoll, and rings need reactors on io_uring")
        sys.exit(0)
    with fuse_rings.wanted() as why_not:
        if why_not is not None:
            print(f"skipped uring: FUSE over io_uring is not to be had: {why_not}")
            sys.exit(0)
        main("uring", files_and_pages, refused_with_a_word, killed_in_every_state, interrupted_locks,
             more_locks_than_entries, writers_and_a_reader_on_one_core, umount_under_load, killed_server, operators_see_the_path)
