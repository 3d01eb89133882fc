#!/usr/bin/env python3
"""Who waits at close(2), who hears of errors, and what is durable when it was answered."""
import ctypes
import os
import signal
import sys
import threading

from weirtest import BIN, MIB, REPO, Cluster, Embedded, check, is_mounted, main, run, wait_until

sys.path.insert(0, os.path.join(REPO, "tests", "posix"))
from harness import Child, outcome  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)


def told(function, *args):
    """ok, or the name of the errno."""
    result = outcome(function, *args)
    return result if isinstance(result, str) else "ok"


def mounted(lab, system, *options):
    mount = lab.path("mnt")
    os.mkdir(mount)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    lab.on_exit(lambda: is_mounted(mount) and run("umount", "-l", mount, ok=None))
    run(f"{BIN}/weirfs", endpoint, mount, "-o", ",".join(options))
    return mount


def a_close_waits_for_no_disk(lab):
    """While the disk is away; fsync does, and what was closed is stored when the disk is back."""
    system = Cluster(lab, osd_size="512MiB")
    data = os.urandom(MIB + 1)
    with open(f"{system.mnt}/known", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    system.dev("kill", "osd.0")
    for name in ("known", "new"):
        with open(f"{system.mnt}/{name}", "r+b" if name == "known" else "wb") as file:
            file.write(data[::-1])
    synced = os.open(f"{system.mnt}/new", os.O_WRONLY)
    ended = threading.Event()
    waiter = threading.Thread(target=lambda: (os.fsync(synced), ended.set()))
    waiter.start()
    check(not ended.is_set(), "fsync did not wait for the disk")
    system.dev("start", "osd.0")
    waiter.join(60)
    check(ended.is_set(), "fsync still waits although the disk is back")
    os.close(synced)
    for name in ("known", "new"):
        with open(f"{system.mnt}/{name}", "rb") as file:
            check(file.read() == data[::-1], f"{name}: what was closed reads back different")


def a_close_waits_for_its_own_writes_only(lab):
    """With sync_close, while the disk is away: not for what others wrote, also not through a descriptor that was inherited."""
    system = Cluster(lab, mounts=0, osd_size="512MiB")
    path = f"{mounted(lab, system, 'sync_close')}/f"
    with Child(lambda child: child.serve(lambda verb: bool(system.dev(verb, "osd.0")))) as disk:  # inherits nothing
        close_beside_a_lost_disk(path, disk)


def close_beside_a_lost_disk(path, disk):
    writer = os.open(path, os.O_CREAT | os.O_RDWR)
    others = [os.open(path, os.O_RDWR), os.open(path, os.O_RDONLY)]
    os.write(writer, b"x" * MIB)
    os.fsync(writer)
    disk.ask(("kill",))
    os.pwrite(writer, b"y" * 5000, 100)
    with Child(lambda child: child.send([told(os.close, fd) for fd in (writer, *others)])) as child:
        check(wait_until(lambda: child.ready(0), "a child to close what it inherited") and child.receive() == ["ok"] * 3,
              "closing what was inherited failed")
    for fd in others:
        os.close(fd)
    # Who wrote waits, and whoever closes last when the writer is gone.
    held = os.open(path, os.O_RDWR)

    def write_and_wait(child):
        os.pwrite(held, b"z" * 5000, 200)
        child.send("written")
        child.receive()
    with Child(write_and_wait) as child:
        child.receive()
        child.kill()
    ends = []
    closers = [threading.Thread(target=lambda fd=fd: (os.close(fd), ends.append(fd))) for fd in (writer, held)]
    for closer in closers:
        closer.start()
    check(not ends, "a close did not wait for what it was to store")
    check(disk.ask(("start",)) is True, "the disk does not come back")
    for closer in closers:
        closer.join(60)
    check(sorted(ends) == sorted((writer, held)), "a close still waits although the disk is back")
    with open(path, "rb") as file:
        data = file.read()
    check(data == b"x" * 100 + b"y" * 100 + b"z" * 5000 + b"x" * (MIB - 5200), "what was closed reads back different")


def errors_go_to_those_who_wrote(lab):
    """Who has only read hears of none at close, and takes it from nobody; at fsync each who had it open hears once."""
    system = Cluster(lab, mounts=0, osd_size="512MiB")
    path = f"{mounted(lab, system, 'timeout=1', 'sync_close')}/f"
    one = os.open(path, os.O_CREAT | os.O_RDWR)
    two, reader = os.open(path, os.O_RDWR), os.open(path, os.O_RDONLY)
    os.write(one, b"x" * 5000)
    os.fsync(one)

    def write_and_wait(child):
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, b"y" * 5000, 0)
        child.send("written")
        child.receive()
    with Child(write_and_wait) as child:
        child.receive()
        system.dev("kill", "osd.0")
        child.kill()
    check(told(os.close, reader) == "ok", "a reader heard at close what befell the data of a writer that was killed")
    reader = os.open(path, os.O_RDONLY)
    check(told(os.fsync, two) != "ok", "one that had it open did not hear at fsync")
    check("ok" not in (told(os.fsync, one), told(os.fsync, reader)), "others that had it open did not hear of it")
    check([told(os.fsync, fd) for fd in (one, two, reader)] == ["ok"] * 3, "somebody heard of it twice")
    os.pwrite(one, b"z" * 5000, 0)
    check(told(os.fsync, two) != "ok", "a later failure was not told")
    check(told(os.close, reader) == "ok", "a reader heard at close of a failure")
    check(told(os.close, two) == "ok", "one that wrote nothing heard at close of a failure")
    with Child(lambda child: child.send(told(os.close, one))) as child:
        check(child.receive() == "ok", "a child that wrote nothing heard at close")
    check(told(os.close, one) != "ok", "the writer did not hear at close")
    system.dev("start", "osd.0")


def syncfs_of_what_was_removed(lab):
    """The kernel brings times of files that are gone by then: no error, and none for the next who asks."""
    mnt = Embedded(lab, "--osd-size", "512MiB", "--token-rate", "1GiB/s").mnt
    ended = threading.Event()

    def churn(name):
        for i in range(400):
            path = f"{mnt}/{name}.{i}"
            with open(path, "wb") as file:
                file.write(b"x" * 5000)
            os.rename(path, path + "r")
            os.unlink(path + "r")
    threads = [threading.Thread(target=churn, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    fd, codes = os.open(mnt, os.O_RDONLY), {}
    while any(thread.is_alive() for thread in threads):
        code = ctypes.get_errno() if libc.syncfs(fd) else 0
        codes[code] = codes.get(code, 0) + 1
        ended.wait(0.001)
    os.close(fd)
    check(list(codes) == [0], f"syncfs: errno and how often: {codes}")


def what_was_synced_is_durable(lab):
    """On an embedded mount, with its size, name and what stands in the same file; not, maybe, what was only closed."""
    system = Embedded(lab, "--osd-size", "512MiB", "--token-rate", "1GiB/s", "--pid-file", lab.path("pid"))
    paths = {f"{system.mnt}/f{i}": os.urandom(100_000 * i + 1) for i in range(1, 6)}
    for path, data in paths.items():
        with open(path, "wb") as file:
            file.write(data)
    for turn, (path, data) in enumerate(paths.items()):
        fd = os.open(path, os.O_RDWR)  # not the one it was written by
        if turn % 2:
            os.pwrite(fd, data[:100] * 2, len(data))
            paths[path] = data + data[:100] * 2
        os.fsync(fd)
        os.close(fd)
    with open(lab.path("pid")) as file:
        os.kill(int(file.read()), signal.SIGKILL)
    run("umount", "-l", system.mnt)
    wait_until(lambda: run("flock", "-n", f"{system.dir}/lock", "true", ok=None).returncode == 0, "weirfs to end")
    system.mount()
    for path, data in paths.items():
        with open(path, "rb") as file:
            check(file.read() == data, f"{path} has lost what was written")


if __name__ == "__main__":
    main("close_and_sync", a_close_waits_for_no_disk, a_close_waits_for_its_own_writes_only, errors_go_to_those_who_wrote,
         syncfs_of_what_was_removed, what_was_synced_is_durable)
