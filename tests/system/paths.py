#!/usr/bin/env python3
"""Every path that a request may take: a reactor on io_uring or on epoll, the kernel's requests by /dev/fuse or by io_uring.

A quick cross-section of what a filesystem does, over the paths that a machine may give a user, pairwise. Each run looks
whether the path was really taken. One that this machine lacks is printed as skipped, and fails where
WEIR_EXPECT_PATHS (a comma-separated list of `reactor`, io_uring itself, and `rings`, FUSE over io_uring) expects it.
"""
import ctypes
import fcntl
import json
import mmap
import os
import signal
import sys

from uring import Child, all_wait, all_wait_for_lock, servers_of, take_away
from weirtest import BIN, MIB, REPO, Cluster, Embedded, check, files_of, main, run, wait_until

sys.path.insert(0, os.path.join(REPO, "tools", "lib"))
import fuse_rings  # noqa: E402  (the path comes first)

IO_URING_SETUP = 425
PATHS = ("reactor", "rings")
WORD_OF_RINGS = "requests come by FUSE over io_uring"


def why_no_io_uring():
    """None, or what the kernel (or a seccomp filter) says to io_uring."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120))
    if fd < 0:
        return os.strerror(ctypes.get_errno())
    os.close(fd)
    return None


def has_ring(pid):
    """Whether a process has io_uring open."""
    return any("io_uring" in file for file in files_of(pid))


def check_path(pid, backend, who):
    check(has_ring(pid) == (backend == "uring"), f"{who} (pid {pid}) does not run on {backend}")


def check_mount(mount, log, backend, rings):
    servers = servers_of(mount)
    check(len(servers) == 1, f"servers of {mount}: {servers}")
    check_path(servers[0], backend, "the mount")

    def told():
        with open(log) as file:
            return WORD_OF_RINGS in file.read()

    # The kernel asks for FUSE_INIT when the mount is there already, and for anything else after that.
    os.statvfs(mount)
    if rings:
        wait_until(told, "the log to say that rings are used")
    else:
        check(not told(), "rings off, and the log says otherwise")


def written_and_read(top):
    for size in (0, 1, 4097, MIB + 1):
        data = os.urandom(size)
        with open(f"{top}/f{size}", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with open(f"{top}/f{size}", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            check(file.read() == data, f"{size} bytes came back as others")
    page = mmap.mmap(-1, 4096)
    page.write(os.urandom(4096))
    fd = os.open(f"{top}/f{MIB + 1}", os.O_RDWR | os.O_DIRECT)
    check(os.pwritev(fd, [page], 8192) == 4096, "a direct write was cut")
    back = mmap.mmap(-1, 4096)
    check(os.preadv(fd, [back], 8192) == 4096 and back[:] == page[:], "a direct write came back as another")
    os.close(fd)


def renamed(top):
    os.mkdir(f"{top}/from")
    os.mkdir(f"{top}/to")
    for name in ("from/a", "to/b"):
        with open(f"{top}/{name}", "w") as file:
            file.write(name)
    os.rename(f"{top}/from/a", f"{top}/to/b")
    os.link(f"{top}/to/b", f"{top}/from/link")
    with open(f"{top}/from/link") as file:
        check(file.read() == "from/a", "a rename put another file in its place")
    check((os.listdir(f"{top}/from"), os.listdir(f"{top}/to")) == (["link"], ["b"]), "names after a rename")
    os.setxattr(f"{top}/to/b", "user.word", b"kept")
    check(os.getxattr(f"{top}/from/link", "user.word") == b"kept", "an attribute by another name")
    os.unlink(f"{top}/from/link")
    check(os.stat(f"{top}/to/b").st_nlink == 1, "links after an unlink")


def mapped(top):
    fd = os.open(f"{top}/f{MIB + 1}", os.O_RDWR)
    with mmap.mmap(fd, MIB) as pages:
        pages[5000:5006] = b"mapped"
        pages.flush()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    check(os.pread(fd, 6, 5000) == b"mapped", "what was mapped and written is not in the file")
    os.close(fd)


def wait_for_lock(path):
    with open(path, "rb+") as own:
        fcntl.lockf(own, fcntl.LOCK_EX)


def wait_until_interrupted(path):
    def stop(_number, _frame):
        raise InterruptedError

    signal.signal(signal.SIGUSR1, stop)
    try:
        wait_for_lock(path)
    except InterruptedError:
        return
    raise OSError(99, "it was granted")


def locked_and_interrupted(top):
    """One who waits for a lock gets it when it is free, leaves at a signal, and goes when he is killed."""
    path = f"{top}/f1"
    with open(path, "rb+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        heir, stopped, killed = (Child(lambda call=call: call(path))
                                 for call in (wait_for_lock, wait_until_interrupted, wait_for_lock))
        all_wait_for_lock([heir, stopped, killed])
        os.kill(stopped.pid, signal.SIGUSR1)
        check(stopped.end() == 0, "a signal did not end the wait for a lock")
        check(os.WIFSIGNALED(killed.kill()), "one who waited for a lock was not killed")
        fcntl.lockf(held, fcntl.LOCK_UN)
        check(heir.end() == 0, "a lock that is free was not granted")


def killed_without_an_answer(cluster, top):
    """A reader, a writer and a maker of names whom nobody will answer: whoever is killed there goes."""
    fd = os.open(f"{top}/f{MIB + 1}", os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    cluster.dev("kill", "osd.0")
    data = [Child(lambda: os.preadv(fd, [page], 0)), Child(lambda: os.pwritev(fd, [page], 4096))]
    all_wait(data)
    cluster.dev("kill", "mds.0")
    name = Child(lambda: os.mkdir(f"{top}/nobody"))
    all_wait([name])
    for child in (*data, name):
        check(os.WIFSIGNALED(child.kill()), "a process that waits for a daemon was not killed")
    for daemon in ("mds.0", "osd.0"):
        cluster.dev("start", daemon)
    check(os.preadv(fd, [page], 0) == 4096, "the mount does not read after its daemons came back")
    os.close(fd)


def cross_section(top):
    written_and_read(top)
    renamed(top)
    mapped(top)
    locked_and_interrupted(top)


class environment:
    """What is started in it has its reactors on that backend."""

    def __init__(self, reactor):
        self._reactor = reactor

    def __enter__(self):
        self._before = os.environ.get("WEIR_REACTOR")
        os.environ["WEIR_REACTOR"] = self._reactor

    def __exit__(self, *_):
        if self._before is None:
            del os.environ["WEIR_REACTOR"]
        else:
            os.environ["WEIR_REACTOR"] = self._before


def options_of(rings):
    return ("-o", f"uring={'on' if rings else 'off'}")


def on_embedded(lab, reactor, rings):
    with environment(reactor):
        system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "1GiB/s", *options_of(rings), name=f"{reactor}-{rings}")
        check_mount(system.mnt, f"{system.dir}/weirfs.log", reactor, rings)
    cross_section(system.mnt)
    system.umount()


def on_cluster(lab, daemons, mounts):
    """One cluster, whose daemons are of one kind, and each mount (reactor, rings) on it in turn."""
    with environment(daemons):
        cluster = Cluster(lab, mounts=0)
        for who, pid in daemons_of(cluster):
            check_path(pid, daemons, who)
        with open(f"{cluster.dir}/endpoint") as file:
            endpoint = file.read().strip()
    for reactor, rings in mounts:
        name = f"{reactor}-{'rings' if rings else 'dev'}"
        top, log = lab.path(f"{name}.mnt"), lab.path(f"{name}.log")
        os.mkdir(top)
        lab.on_exit(take_away, top)
        with environment(reactor):
            run(f"{BIN}/weirfs", endpoint, top, "--log-file", log, *options_of(rings))
        check_mount(top, log, reactor, rings)
        place = f"{top}/{name}"
        os.mkdir(place)
        cross_section(place)
        with environment(daemons):  # of those that come back
            killed_without_an_answer(cluster, place)
        run("umount", top)


def daemons_of(cluster):
    with open(f"{cluster.dir}/weir-dev.json") as file:
        state = json.load(file)
    return [("mds.0", state["mds"]["pid"]), *((f"osd.{i}", osd["process"]["pid"]) for i, osd in enumerate(state["osds"]))]


# (daemons, mount, rings?): each pair of choices is there; rings need io_uring in the process that mounts.
EMBEDDED = [("uring", False), ("uring", True), ("epoll", False)]
CLUSTERS = {"uring": [("uring", True), ("uring", False), ("epoll", False)], "epoll": [("uring", True), ("epoll", False)]}


def needs(reactor, rings):
    """What the machine has to have for it."""
    return {path for path, wanted in (("reactor", reactor == "uring"), ("rings", rings)) if wanted}


def expected():
    words = {word for word in os.environ.get("WEIR_EXPECT_PATHS", "").split(",") if word}
    if unknown := words - set(PATHS):
        print(f"paths: WEIR_EXPECT_PATHS knows {' and '.join(PATHS)}, not {unknown.pop()}", file=sys.stderr)
        sys.exit(2)
    return words


def tests(lacking):
    """What this machine can run, as functions with names."""
    def fits(reactor, rings=False):
        return not needs(reactor, rings) & lacking

    def named(name, function, *args):
        def test(lab):
            function(lab, *args)
        test.__name__ = name
        return test

    found = [named(f"embedded_{reactor}_{'rings' if rings else 'dev'}", on_embedded, reactor, rings)
             for reactor, rings in EMBEDDED if fits(reactor, rings)]
    return found + [named(f"cluster_{daemons}", on_cluster, daemons, [way for way in mounts if fits(*way)])
                    for daemons, mounts in CLUSTERS.items() if fits(daemons)]


def tell(lacking, wanted):
    """Says what is skipped, and ends here if that was expected."""
    for path, why in lacking.items():
        print(f"skipped paths over {path}: {why}", flush=True)
    if missing := sorted(wanted & lacking.keys()):
        print(f"FAILED  paths: WEIR_EXPECT_PATHS expects {', '.join(missing)}")
        sys.exit(1)


if __name__ == "__main__":
    words = expected()
    with fuse_rings.wanted() as no_rings:
        no_reactor = why_no_io_uring()
        reasons = {"reactor": no_reactor, "rings": no_rings or no_reactor}
        lack = {path: why for path, why in reasons.items() if why is not None}
        tell(lack, words)
        main("paths", *tests(lack.keys()))
