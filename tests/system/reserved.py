#!/usr/bin/env python3
"""What fallocate has kept can be written whatever else fills the disks, and is charged at once: statfs, quotas, capacities."""
import ctypes
import errno
import json
import mmap
import os
import random

from weirtest import MIB, Cluster, Embedded, Failure, check, main, wait_until

KEEP_SIZE, PUNCH = 1, 2
libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def refused(code, what, function, *args):
    try:
        function(*args)
    except OSError as error:
        check(error.errno == code, f"{what}: {errno.errorcode[error.errno]}, expected {errno.errorcode[code]}")
        return
    raise Failure(f"{what}: no error, expected {errno.errorcode[code]}")


def free_bytes(top):
    info = os.statvfs(top)
    return info.f_bavail * info.f_frsize


def fill_up(top):
    """Writes until not even a block finds room."""
    data = os.urandom(4 * MIB)
    for index, size in enumerate((4 * MIB, 256 << 10, 4096)):
        fd = os.open(f"{top}/ballast{index}", os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o644)
        buffer = mmap.mmap(-1, size)
        buffer[:] = data[:size]
        try:
            at = 0
            while True:
                at += os.pwrite(fd, buffer, at)
        except OSError as error:
            check(error.errno == errno.ENOSPC, f"{error}")
        os.close(fd)


def write_in_every_way(path, size):
    expected = bytearray(os.urandom(size))
    with open(path, "r+b") as file:
        file.write(expected)
        file.flush()
        os.fsync(file.fileno())
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    chance = random.Random(7)
    for piece, count in ((4096, 300), (MIB, size // MIB)):
        buffer = mmap.mmap(-1, piece)
        for index in range(count):
            buffer[:] = os.urandom(piece)
            at = (chance.randrange(size // piece) if piece < MIB else index) * piece
            check(os.pwrite(fd, buffer, at) == piece, "a short write")
            expected[at:at + piece] = buffer[:]
    os.close(fd)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        for at in range(0, size, 64 << 10):
            mapped[at:at + 4096] = expected[at:at + 4096] = os.urandom(4096)
        mapped.flush()
        os.fsync(file.fileno())
    with open(path, "rb") as file:
        check(file.read() == expected, f"{path} has other bytes than were written")


def a_full_disk_keeps_its_word(system, restart):
    top = system.mnt
    before = free_bytes(top)
    fd = os.open(f"{top}/kept", os.O_RDWR | os.O_CREAT, 0o644)
    fallocate(fd, 0, 0, 16 * MIB)
    check(before - free_bytes(top) >= 16 * MIB, "statfs does not know at once")
    behind = os.open(f"{top}/behind", os.O_RDWR | os.O_CREAT, 0o644)
    fallocate(behind, KEEP_SIZE, 0, 8 * MIB)
    check(os.fstat(behind).st_size == 0 and os.fstat(behind).st_blocks == 8 * MIB // 512, f"{os.fstat(behind)}")
    os.close(behind)
    fill_up(top)
    other = os.open(f"{top}/other", os.O_RDWR | os.O_CREAT, 0o644)
    refused(errno.ENOSPC, "allocating on a full disk", fallocate, other, 0, 0, MIB)
    check(os.fstat(other).st_size == 0 and os.fstat(other).st_blocks == 0, "a refused allocation left something")
    os.close(other)
    fallocate(fd, 0, 0, 16 * MIB)  # it is there already
    os.close(fd)
    restart()
    write_in_every_way(f"{top}/kept", 16 * MIB)
    with open(f"{top}/behind", "r+b") as file:
        file.write(os.urandom(8 * MIB))
        file.flush()
        os.fsync(file.fileno())
    write_in_every_way(f"{top}/behind", 8 * MIB)
    for name in ("ballast0", "ballast1", "ballast2", "kept", "behind", "other"):
        os.unlink(f"{top}/{name}")
    wait_until(lambda: free_bytes(top) >= before - MIB, "the space to come back")


def on_a_cluster(lab):
    system = Cluster(lab, osds=2, osd_size="256MiB")

    def restart():
        for name in ("osd.0", "osd.1", "mds.0"):
            system.dev("kill", name)
        for name in ("mds.0", "osd.0", "osd.1"):
            system.dev("start", name)

    a_full_disk_keeps_its_word(system, restart)


def in_one_process(lab):
    a_full_disk_keeps_its_word(Embedded(lab, "--osd-size", "256MiB", "--token-rate", "1GiB/s"), lambda: None)


def bounds_hold_at_once(lab):
    system = Cluster(lab, osds=2, mounts=2, osd_size="256MiB")
    tree, other = f"{system.mnt}/tree", f"{system.mounts[1]}/tree"
    os.mkdir(tree)
    os.setxattr(tree, "user.weir.quota.bytes", b"8MiB")
    fd = os.open(f"{tree}/a", os.O_RDWR | os.O_CREAT, 0o644)
    fallocate(fd, KEEP_SIZE, 0, 6 * MIB)
    second = os.open(f"{other}/b", os.O_RDWR | os.O_CREAT, 0o644)
    refused(errno.EDQUOT, "beyond the quota", fallocate, second, 0, 0, 3 * MIB)
    refused(errno.EDQUOT, "beyond the quota, size kept", fallocate, second, KEEP_SIZE, 0, 3 * MIB)
    check(os.fstat(second).st_blocks == 0, "a refused allocation left something")
    os.pwrite(second, bytes(MIB), 0)
    os.pwrite(second, bytes(MIB), MIB)
    refused(errno.EDQUOT, "writing where another file may", os.pwrite, second, bytes(MIB), 2 * MIB)
    os.ftruncate(second, 0)
    check(os.pwrite(fd, os.urandom(6 * MIB), 0) == 6 * MIB, "what was allocated cannot be written")
    os.fsync(fd)
    os.ftruncate(fd, MIB)
    fallocate(second, 0, 0, 3 * MIB)
    os.close(second)
    os.unlink(f"{other}/b")
    fallocate(fd, KEEP_SIZE, 0, 8 * MIB)
    os.ftruncate(fd, MIB)
    fallocate(os.open(f"{other}/c", os.O_RDWR | os.O_CREAT, 0o644), 0, 0, 6 * MIB)
    # The same for a class.
    system.osdctl("class", "create", "gold", "--capacity", "8MiB")
    gold = f"{system.mnt}/gold"
    os.mkdir(gold)
    os.setxattr(gold, "user.qos.class", b"gold")
    fd = os.open(f"{gold}/a", os.O_RDWR | os.O_CREAT, 0o644)
    fallocate(fd, KEEP_SIZE, 0, 6 * MIB)
    held = json.loads(system.osdctl("class", "show", "gold", "-o", "json").stdout)["held_bytes"]
    check(held == 6 * MIB, f"{held} bytes are held")
    second = os.open(f"{system.mounts[1]}/gold/b", os.O_RDWR | os.O_CREAT, 0o644)
    refused(errno.EDQUOT, "beyond the capacity", fallocate, second, KEEP_SIZE, 0, 3 * MIB)
    os.pwrite(fd, os.urandom(6 * MIB), 0)
    os.fsync(fd)
    os.ftruncate(fd, 0)
    fallocate(second, 0, 0, 8 * MIB)


if __name__ == "__main__":
    main("reserved", on_a_cluster, in_one_process, bounds_hold_at_once)
