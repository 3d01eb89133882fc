#!/usr/bin/env python3
"""Ranges of files on real mounts: holes, looking for them, copies inside the OSDs, appends, and many random
operations compared with a model in memory (tests/fsx). WEIR_FSX_OPERATIONS says how many; without it some thousands:
with fewer of them, or with two processes, an embedded mount that waited for itself went unnoticed.
"""
import ctypes
import errno
import json
import os
import subprocess

from weirtest import BIN, MIB, Cluster, Embedded, Failure, check, main, read_from_disk, run

KEEP_SIZE, PUNCH, COLLAPSE, ZERO = 1, 2, 8, 16
libc = ctypes.CDLL(None, use_errno=True)
OPERATIONS = os.environ.get("WEIR_FSX_OPERATIONS")


def expect_errno(code, what, function, *args):
    try:
        function(*args)
    except OSError as error:
        check(error.errno == code, f"{what}: {errno.errorcode[error.errno]}, expected {errno.errorcode[code]}")
        return
    raise Failure(f"{what}: no error, expected {errno.errorcode[code]}")


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def get(path):
    with open(path, "rb") as file:
        return file.read()


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def used_bytes(system):
    return json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"][0]["used_bytes"]


def holes(top):
    data = os.urandom(9 * MIB)
    put(f"{top}/file", data)
    fd = os.open(f"{top}/file", os.O_RDWR)
    fallocate(fd, PUNCH | KEEP_SIZE, MIB + 100, 5 * MIB)
    expected = data[:MIB + 100] + bytes(5 * MIB) + data[6 * MIB + 100:]
    check(get(f"{top}/file") == expected, "a punched file has other bytes")
    check(os.lseek(fd, 0, os.SEEK_HOLE) == MIB + 4096, "the hole is not where it was made")
    check(os.lseek(fd, 2 * MIB, os.SEEK_DATA) == 6 * MIB, "the data behind the hole is not found")
    check(os.lseek(fd, 7 * MIB, os.SEEK_HOLE) == 9 * MIB, "the end of the file is not a hole")
    expect_errno(errno.ENXIO, "a search behind the end", os.lseek, fd, 9 * MIB, os.SEEK_DATA)
    fallocate(fd, ZERO, 8 * MIB, 2 * MIB)
    check(os.fstat(fd).st_size == 10 * MIB, "zeroing behind the end did not make the file longer")
    fallocate(fd, ZERO | KEEP_SIZE, 9 * MIB, 5 * MIB)
    check(os.fstat(fd).st_size == 10 * MIB, "zeroing made the file longer in spite of KEEP_SIZE")
    check(get(f"{top}/file") == expected[:8 * MIB] + bytes(2 * MIB), "a zeroed file has other bytes")
    expect_errno(errno.EOPNOTSUPP, "collapse", fallocate, fd, COLLAPSE, 0, 4096)
    os.close(fd)


def unwritten_data_is_data(top):
    fd = os.open(f"{top}/file", os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, 20 * MIB)
    os.pwrite(fd, b"x" * 4096, 10 * MIB)
    check(os.lseek(fd, 0, os.SEEK_DATA) == 10 * MIB, "what was written a moment ago is not found")
    check(os.lseek(fd, 10 * MIB, os.SEEK_HOLE) == 10 * MIB + 4096, "what was written a moment ago has no end")
    os.close(fd)


def allocate(top):
    fd = os.open(f"{top}/file", os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(fd, 0, 3 * MIB)
    check(os.fstat(fd).st_size == 3 * MIB, "posix_fallocate did not set the size")
    fallocate(fd, KEEP_SIZE, 0, 9 * MIB)
    check(os.fstat(fd).st_size == 3 * MIB, "fallocate moved the size in spite of KEEP_SIZE")
    expect_errno(errno.ENOSPC, "room for more than there is", fallocate, fd, 0, 0, 1 << 50)
    os.close(fd)
    check(get(f"{top}/file") == bytes(3 * MIB), "allocated bytes are not zeros")


def far_away(top):
    fd = os.open(f"{top}/file", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"end", 1 << 50)
    check(os.lseek(fd, 1, os.SEEK_DATA) // 4096 == (1 << 50) // 4096, "a far end is not found")
    fallocate(fd, PUNCH | KEEP_SIZE, 0, 1 << 51)
    expect_errno(errno.ENXIO, "data in an empty file", os.lseek, fd, 0, os.SEEK_DATA)
    os.close(fd)


def copies(top):
    data = os.urandom(9 * MIB + 1234)
    put(f"{top}/from", data)
    source, target = os.open(f"{top}/from", os.O_RDONLY), os.open(f"{top}/to", os.O_CREAT | os.O_RDWR)
    os.pwrite(target, b"old" * MIB, 0)
    done = 0
    while done < len(data):
        done += os.copy_file_range(source, target, len(data) - done, done, done)
    check(get(f"{top}/to") == data, "a copy has other bytes")
    check(os.copy_file_range(source, target, 4096, len(data), 0) == 0, "a copy from behind the end")
    os.copy_file_range(source, target, 100_000, 777, 5 * MIB + 3)
    data = data[:5 * MIB + 3] + data[777:100_777] + data[5 * MIB + 3 + 100_000:]
    check(get(f"{top}/to") == data, "a ragged copy has other bytes")
    expect_errno(errno.EINVAL, "a copy over itself", os.copy_file_range, target, target, 8192, 0, 4096)
    os.close(source)
    os.close(target)


CASES = (holes, unwritten_data_is_data, allocate, far_away, copies)


def run_cases(system):
    for case in CASES:
        top = f"{system.mnt}/{case.__name__}"
        os.mkdir(top)
        case(top)


def fsx(lab, operations, *mounts):
    """Several at the same time, each with a file and a seed of its own."""
    processes = 8  # with four of them two processors were idle for a quarter of the time
    seeds = [int.from_bytes(os.urandom(4), "little") for _ in range(processes)]
    running = [(seed, subprocess.Popen([f"{BIN}/fsx", *mounts, "--ops", str(int(OPERATIONS or operations) // processes), "--seed", str(seed)],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)) for seed in seeds]
    for _, process in running:
        lab.on_exit(process.wait)
        lab.on_exit(process.kill)
    for seed, process in running:
        out, err = process.communicate()
        check(process.returncode == 0, f"fsx with seed {seed}: exit {process.returncode}\n{err}")
        lab.show("        " + out.strip())


def ranges_embedded(lab):
    run_cases(Embedded(lab))


def ranges_on_a_cluster(lab):
    run_cases(Cluster(lab, osds=3, mounts=2))


def random_operations_embedded(lab):
    fsx(lab, 40_000, Embedded(lab).mnt)


def random_operations_on_two_mounts(lab):
    fsx(lab, 4_000, *Cluster(lab, osds=3, mounts=2).mounts)


def no_room(top, bound):
    """Nothing that grows a file goes beyond `bound` bytes below `top`."""
    fd = os.open(f"{top}/full", os.O_CREAT | os.O_RDWR)
    fallocate(fd, 0, 0, bound)
    other = os.open(f"{top}/other", os.O_CREAT | os.O_RDWR)
    expect_errno(errno.EDQUOT, "allocating", fallocate, other, 0, 0, MIB)
    expect_errno(errno.EDQUOT, "zeros behind the end", fallocate, fd, ZERO, bound, 4096)
    expect_errno(errno.EDQUOT, "a copy", os.copy_file_range, fd, other, MIB)
    end = os.open(f"{top}/full", os.O_WRONLY | os.O_APPEND)
    expect_errno(errno.EDQUOT, "an append", os.write, end, b"x" * 4096)
    fallocate(fd, PUNCH | KEEP_SIZE, 0, bound)  # what moves no size needs no room
    for descriptor in (fd, other, end):
        os.close(descriptor)
    check(os.path.getsize(f"{top}/other") == 0, "what was refused moved the size")


def ranges_need_room(lab):
    system = Cluster(lab, osds=2)
    os.mkdir(f"{system.mnt}/quota")
    os.setxattr(f"{system.mnt}/quota", "user.weir.quota.bytes", b"4MiB")
    no_room(f"{system.mnt}/quota", 4 * MIB)
    system.osdctl("class", "create", "gold", "--capacity", "4MiB")
    os.mkdir(f"{system.mnt}/gold")
    os.setxattr(f"{system.mnt}/gold", "user.qos.class", b"gold")
    no_room(f"{system.mnt}/gold", 4 * MIB)


APPENDER = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for number in range(int(sys.argv[3])):
    os.write(fd, (sys.argv[2] + ' %05d' % number).encode() + bytes([46]) * (number * 37 % 9000) + bytes([10]))
"""


def appends_from_two_mounts(lab):
    system = Cluster(lab, osds=2, mounts=2)
    count = 60
    writers = [subprocess.Popen(["python3", "-c", APPENDER, f"{mount}/log", f"w{who}", str(count)])
               for who, mount in enumerate(system.mounts * 2)]
    for writer in writers:
        check(writer.wait(timeout=120) == 0, "an appending process failed")
    for mount in system.mounts:
        lines = get(f"{mount}/log").decode().split("\n")[:-1]
        check(len(lines) == 4 * count, f"{len(lines)} lines of {4 * count} are there")
        for who in range(4):
            mine = [line for line in lines if line.startswith(f"w{who} ")]
            check(mine == [f"w{who} {n:05d}" + "." * (n * 37 % 9000) for n in range(count)],
                  f"the lines of writer {who} are damaged or out of order")


def copies_take_no_space(lab):
    system = Cluster(lab, osds=1)
    data = os.urandom(64 * MIB)
    put(f"{system.mnt}/one", data)
    before = used_bytes(system)
    source = os.open(f"{system.mnt}/one", os.O_RDONLY)
    for name in ("two", "three"):
        target = os.open(f"{system.mnt}/{name}", os.O_CREAT | os.O_WRONLY)
        done = 0
        while done < len(data):
            done += os.copy_file_range(source, target, len(data) - done, done, done)
        os.close(target)
    os.close(source)
    check(used_bytes(system) - before < 16 * MIB, "copies inside the OSD took space")
    os.unlink(f"{system.mnt}/one")
    system.dev("stop", "osd.0")
    system.dev("start", "osd.0")
    for name in ("two", "three"):
        check(read_from_disk(f"{system.mnt}/{name}") == data, f"copy {name} differs after a restart")


if __name__ == "__main__":
    main("ranges", ranges_embedded, ranges_on_a_cluster, ranges_need_room, appends_from_two_mounts, copies_take_no_space,
         random_operations_embedded, random_operations_on_two_mounts)
