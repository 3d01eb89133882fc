#!/usr/bin/env python3
"""A mount outlives the process that serves it (-o supervise): kill -9 under load, and upgrades, while files, locks and
directories are in use."""
import errno
import fcntl
import mmap
import os
import random
import signal
import threading

from weirtest import BIN, MIB, Cluster, check, is_mounted, main, run, wait_until


class Supervised:
    """A mount with a holder."""

    def __init__(self, lab, system, name="held", program=f"{BIN}/weirfs"):
        self.place = lab.path(name)
        self.program = program
        os.mkdir(self.place)
        with open(f"{system.dir}/endpoint") as file:
            endpoint = file.read().strip()
        lab.on_exit(self.end)
        self.holder = None
        run(program, endpoint, self.place, "-o", "supervise", "--pid-file", lab.path(f"{name}.pid"),
            "--log-file", lab.path(f"{name}.log"))
        with open(lab.path(f"{name}.pid")) as file:
            self.holder = int(file.read())

    def server(self):
        """The process that serves now; None between two."""
        with open(f"/proc/{self.holder}/task/{self.holder}/children") as file:
            children = file.read().split()
        return int(children[0]) if children else None

    def end(self):
        """Also with files open, which would wait for the cluster when that is gone."""
        if is_mounted(self.place):
            for pid in reversed(self.alive() if self.holder else []):
                os.kill(pid, signal.SIGKILL)
            run("umount", "-l", self.place, ok=None)

    def kill(self):
        """Returns when another one has been started."""
        before = wait_until(self.server, "a process to serve")
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.server() not in (None, before), "a successor")

    def alive(self):
        return [pid for pid in (self.server(), self.holder) if pid is not None]


class Load:
    """Threads that use the mount until they are stopped, and what they ran into."""

    def __init__(self):
        self.stopping = threading.Event()
        self.errors = []
        self.rounds = {}
        self.threads = []

    def start(self, name, step):
        def work():
            try:
                while not self.stopping.is_set():
                    step(self.rounds.get(name, 0))
                    self.rounds[name] = self.rounds.get(name, 0) + 1
            except Exception as error:  # noqa: BLE001 - told by stop()
                self.errors.append(f"{name}, round {self.rounds.get(name, 0)}: {error!r}")

        self.threads.append(threading.Thread(target=work, name=name))
        self.threads[-1].start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        check(not self.errors, "; ".join(self.errors))


def synced_writer(place, losses):
    """Records that are counted once fsync has said so; what fsync says is lost is written again."""
    fd = os.open(f"{place}/records", os.O_CREAT | os.O_RDWR)

    def step(index):
        while True:
            os.pwrite(fd, b"%08d" % index * 512, index * 4096)
            try:
                os.fsync(fd)
                return
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                losses.append(index)

    return fd, step


def names(place, thread):
    def step(index):
        folder = f"{place}/d{thread}.{index}"
        os.mkdir(folder)
        os.close(os.open(f"{folder}/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.symlink("new", f"{folder}/link")
        os.link(f"{folder}/new", f"{folder}/hard")
        os.rename(f"{folder}/new", f"{folder}/old")
        os.setxattr(f"{folder}/old", "user.once", b"1", os.XATTR_CREATE)
        check(sorted(os.listdir(folder)) == ["hard", "link", "old"], f"{folder}: {os.listdir(folder)}")
        for name in ("hard", "link", "old"):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)

    return step


def reader(place):
    content = random.Random(7).randbytes(2 * MIB)
    with open(f"{place}/read", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fd = os.open(f"{place}/read", os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, 65536)

    def step(index):
        at = index * 65536 % len(content)
        check(os.preadv(fd, [memory], at) == 65536 and memory[:] == content[at:at + 65536], f"other bytes at {at}")

    return fd, step


def appender(place, told):
    """Appends that others look at are stored before they are answered: none is gone or there twice."""
    fd = os.open(f"{place}/appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def step(index):
        check(os.write(fd, b"%07d\n" % index) == 8, "a short write")
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            told.append(index)

    return fd, step


LOCKS = {"locked": lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 7),
         "whole": lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)}


def lock_elsewhere(system, name):
    """Whether another mount gets the lock, for a moment."""
    fd = os.open(f"{system.mnt}/{name}", os.O_RDWR)
    try:
        LOCKS[name](fd)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def killed_under_load(lab, system, mount, kills=4):
    place = mount.place
    unlinked = os.open(f"{place}/unlinked", os.O_CREAT | os.O_RDWR)
    os.write(unlinked, b"still here")
    os.fsync(unlinked)
    os.unlink(f"{place}/unlinked")
    locked = os.open(f"{place}/locked", os.O_CREAT | os.O_RDWR)
    fcntl.lockf(locked, fcntl.LOCK_EX, 10, 5)
    whole = os.open(f"{place}/whole", os.O_CREAT | os.O_RDWR)
    fcntl.flock(whole, fcntl.LOCK_EX)
    workdir = os.open(place, os.O_RDONLY)
    losses = []
    load = Load()
    records, step = synced_writer(place, losses)
    load.start("records", step)
    read, step = reader(place)
    load.start("reads", step)
    told = []
    appended, step = appender(place, told)
    watched = os.open(f"{system.mnt}/appended", os.O_RDONLY)
    load.start("appends", step)
    for thread in range(3):
        load.start(f"names {thread}", names(place, thread))
    chance = random.Random(os.environ.get("WEIR_SEED", "1"))
    for _ in range(kills):
        done = dict(load.rounds)
        load.stopping.wait(0.05 + 0.4 * chance.random())
        mount.kill()
        wait_until(lambda done=done: load.errors or all(
            load.rounds.get(thread.name, 0) > done.get(thread.name, 0) + 1 for thread in load.threads),
            "everybody to go on")
    load.stop()
    count = load.rounds["records"]
    for index in range(count):
        check(os.pread(records, 4096, index * 4096) == b"%08d" % index * 512, f"record {index} of {count} is gone")
    os.close(records)
    found = [int(line) for line in os.pread(watched, 1 << 24, 0).split()]
    check(sorted(set(found)) == found, f"appends twice or out of order: {found}")
    missing = set(range(load.rounds["appends"])) - set(found)
    check(missing <= set(told), f"appends {sorted(missing)} are gone, told of {told}")
    check(os.pread(unlinked, 100, 0) == b"still here", "an unlinked file is gone")
    os.pwrite(unlinked, b"written", 0)
    os.fsync(unlinked)
    os.close(unlinked)
    check("read" in os.listdir(workdir), "an open directory cannot be listed")
    for name in LOCKS:
        check(not lock_elsewhere(system, name), f"the lock on '{name}' is gone")
    for fd in (appended, watched, read, locked, whole, workdir):
        os.close(fd)
    for name in LOCKS:
        wait_until(lambda name=name: lock_elsewhere(system, name), f"the lock on '{name}' to end with its file")
    lab.show(f"{kills} kills: {load.rounds}, records written again: {len(losses)}, appends gone: {len(missing)}")


def loss_is_told(lab, system, mount):
    """What was written and not synced is gone with the process: the next fsync or close of each writer says so, once."""
    place = mount.place
    with open(f"{place}/lost", "wb") as file:
        file.write(b"kept" * 1024)
    first = os.open(f"{place}/lost", os.O_RDWR)
    second = os.open(f"{place}/lost", os.O_RDWR)
    idle = os.open(f"{place}/lost", os.O_RDONLY)
    safe = os.open(f"{place}/safe", os.O_CREAT | os.O_RDWR)
    os.pwrite(safe, b"safe", 0)
    os.fsync(safe)
    os.pwrite(first, b"gone" * 1024, 4096)
    mount.kill()
    os.fsync(safe)
    os.close(safe)
    for fd, end in ((first, os.fsync), (second, os.close)):
        try:
            end(fd)
            check(False, f"{end.__name__} does not tell that data is lost")
        except OSError as error:
            check(error.errno == errno.EIO, f"{end.__name__}: {error}")
    os.fsync(first)
    os.close(idle)
    os.pwrite(first, b"anew" * 1024, 4096)
    os.fsync(first)
    os.close(first)
    with open(f"{place}/lost", "rb") as file:
        check(file.read() == b"kept" * 1024 + b"anew" * 1024, "what was synced is not there")


def a_lock_is_waited_for(lab, system, mount):
    """Across a crash and an upgrade."""
    elsewhere = os.open(f"{system.mnt}/wanted", os.O_CREAT | os.O_RDWR)
    fcntl.flock(elsewhere, fcntl.LOCK_EX)
    here = os.open(f"{mount.place}/wanted", os.O_RDWR)
    waiter = threading.Thread(target=fcntl.flock, args=(here, fcntl.LOCK_EX))
    waiter.start()
    mount.kill()
    os.stat(f"{mount.place}/wanted")
    run(f"{BIN}/weirfs", "--upgrade", mount.place)
    check(waiter.is_alive(), "the lock was given to two")
    os.close(elsewhere)
    waiter.join(timeout=60)
    check(not waiter.is_alive(), "a lock that was waited for is never given")
    os.close(here)


def upgraded_under_load(lab, system):
    """The program is replaced on disk and asked to take over: nothing is lost, also what was not synced."""
    program = lab.path("weirfs")
    run("cp", "--reflink=auto", f"{BIN}/weirfs", program)
    mount = Supervised(lab, system, "upgraded", program)
    load = Load()
    fd = os.open(f"{mount.place}/file", os.O_CREAT | os.O_RDWR)
    load.start("writes", lambda index: os.pwrite(fd, b"%08d" % index * 512, index % 2000 * 4096))
    load.start("names", names(mount.place, 0))
    log = os.open(f"{mount.place}/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    load.start("appends", lambda index: os.write(log, b"%07d\n" % index))
    for _ in range(2):
        done = dict(load.rounds)
        wait_until(lambda done=done: load.errors or all(load.rounds.get(t.name, 0) > done.get(t.name, 0) + 20
                                                        for t in load.threads), "some work")
        server = mount.server()
        os.rename(program, f"{program}.old")
        run("cp", "--reflink=auto", f"{BIN}/weirfs", program)
        run(program, "--upgrade", mount.place)
        check(mount.server() not in (None, server), "the same process still serves")
        for pid in mount.alive():
            check(os.readlink(f"/proc/{pid}/exe") == program, f"{os.readlink(f'/proc/{pid}/exe')} runs")
        os.unlink(f"{program}.old")
    load.stop()
    os.fsync(fd)
    count = load.rounds["writes"]
    for index in range(max(0, count - 2000), count):
        check(os.pread(fd, 4096, index % 2000 * 4096) == b"%08d" % index * 512, f"write {index} of {count} is gone")
    os.close(fd)
    os.close(log)
    with open(f"{mount.place}/log", "rb") as file:
        check(file.read() == b"".join(b"%07d\n" % i for i in range(load.rounds["appends"])), "an append is gone or twice")
    lab.show(f"2 upgrades: {load.rounds}")
    # SIGTERM to the holder ends it all.
    alive = mount.alive()
    os.kill(mount.holder, signal.SIGTERM)
    wait_until(lambda: not is_mounted(mount.place) and not any(map(running, alive)), "the mount to end")


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends_with_its_mount(lab, system, mount):
    alive = mount.alive()
    run("umount", mount.place)
    wait_until(lambda: not any(map(running, alive)), "both processes to end")


def refuses(lab, system):
    """What cannot be: an embedded cluster, and a mount that nobody holds."""
    done = run(f"{BIN}/weirfs", "--data", lab.path("data"), lab.dir, "-o", "supervise", ok=(1, 2))
    check("mounts of a cluster" in done.stderr, done.stderr)
    done = run(f"{BIN}/weirfs", "--upgrade", system.mnt, ok=(1, 2))
    check("-o supervise" in done.stderr, done.stderr)
    run(f"{BIN}/weirfs", "--upgrade", lab.dir, ok=(5,))


def on_one_cluster(lab):
    system = Cluster(lab, osds=2)
    mount = Supervised(lab, system)
    killed_under_load(lab, system, mount)
    loss_is_told(lab, system, mount)
    a_lock_is_waited_for(lab, system, mount)
    ends_with_its_mount(lab, system, mount)
    upgraded_under_load(lab, system)
    refuses(lab, system)


if __name__ == "__main__":
    main("takeover", on_one_cluster)
