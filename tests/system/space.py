#!/usr/bin/env python3
"""Classes hold no more than their capacity; full disks say so, and removals make room on them at once; purges go on at
their floor; a disk that became slower is noticed."""
import contextlib
import errno
import json
import mmap
import os
import signal
import subprocess

from pages import free_port, samples, troubles
from weirtest import BIN, MIB, Cluster, Embedded, Failure, check, main, run, wait_until


def show(system, name):
    return json.loads(system.osdctl("class", "show", name, "-o", "json").stdout)


def disk_of(system):
    return json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"][0]["disk"]


def tagged(mount, name, class_name):
    path = f"{mount}/{name}"
    os.mkdir(path)
    os.setxattr(path, "user.qos.class", class_name.encode())
    return path


def fill(path, piece=MIB // 4, most=64 * MIB):
    """Writes until there is no room; returns how much there was."""
    data = os.urandom(piece)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    written = 0
    try:
        while written < most:
            written += os.write(fd, data)
        raise Failure(f"{path} took {written} bytes and more")
    except OSError as error:
        check(error.errno == errno.EDQUOT, f"writing {path}: {error}")
    finally:
        os.fsync(fd)
        os.close(fd)
    return written


def capacity_is_kept(lab):
    system = Cluster(lab, osds=2, mounts=2, osd_size="512MiB")
    system.osdctl("class", "create", "gold", "--capacity", "8MiB")
    gold = tagged(system.mnt, "gold", "gold")
    wrote = fill(f"{gold}/a")
    check(wrote == 8 * MIB, f"{wrote} bytes fitted into 8 MiB")
    seen = show(system, "gold")
    check(seen["capacity_bytes"] == 8 * MIB and seen["held_bytes"] == 8 * MIB, f"{seen}")
    # Another mount, another file, a truncation: none finds room; an overwrite needs none.
    other = f"{system.mounts[1]}/gold"
    check(fill(f"{other}/b") == 0 and os.path.getsize(f"{other}/b") == 0, "another file found room")
    try:
        os.truncate(f"{other}/a", 9 * MIB)
        raise Failure("a file grew by truncation")
    except OSError as error:
        check(error.errno == errno.EDQUOT, f"{error}")
    with open(f"{other}/a", "r+b") as file:
        file.write(b"over" * 1024)
    with open(f"{system.mnt}/elsewhere", "wb") as file:
        file.write(b"x" * MIB)
    # Room comes back by cutting and by a larger capacity, also after a restart.
    os.truncate(f"{gold}/a", 6 * MIB)
    check(fill(f"{gold}/c") == 2 * MIB, "what was cut off is not free")
    os.truncate(f"{gold}/a", 0)
    system.dev("kill", "mds.0")
    system.dev("start", "mds.0")
    check(show(system, "gold")["held_bytes"] == 2 * MIB, "the sum did not outlive the MDS")
    system.osdctl("class", "set", "gold", "--capacity", "12MiB")
    check(fill(f"{gold}/d") == 10 * MIB, "a larger capacity is not there")
    status = json.loads(system.osdctl("status", "-o", "json").stdout)
    check(status["capacities"] == [{"class": "gold", "capacity_bytes": 12 * MIB, "held_bytes": 12 * MIB}],
          f"{status['capacities']}")
    done = system.osdctl("class", "set", "gold", "--capacity", "1TiB", ok=(4,))
    check("1TiB" in done.stderr and "largest that fits" in done.stderr, done.stderr)
    # What is removed right after its close gives it back at once.
    os.unlink(f"{gold}/c")
    for index in range(20):
        name = f"{gold}/e{index}"
        wrote = fill(name)
        os.unlink(name)
        check(wrote == 2 * MIB, f"round {index}: {wrote} bytes fitted where 2 MiB were removed")
    system.osdctl("class", "set", "gold", "--capacity", "max")
    with open(f"{gold}/free", "wb") as file:
        file.write(b"x" * 4 * MIB)


def capacity_in_one_process(lab):
    """The kernel's own write-back asks later: whoever syncs hears of it."""
    system = Embedded(lab, "--osd-size", "512MiB", "--token-rate", "1GiB/s")
    system.osdctl("class", "create", "gold", "--capacity", "4MiB")
    gold = tagged(system.mnt, "gold", "gold")
    with open(f"{gold}/fits", "wb") as file:
        file.write(b"x" * 3 * MIB)
        file.flush()
        os.fsync(file.fileno())
    fd = os.open(f"{gold}/much", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.write(fd, b"x" * 4 * MIB)
        os.fsync(fd)
        raise Failure("4 MiB were synced where 1 MiB is free")
    except OSError as error:
        check(error.errno == errno.EDQUOT, f"{error}")
    finally:
        os.close(fd)
    check(show(system, "gold")["held_bytes"] <= 4 * MIB, "more is held than may be")
    for name in ("much", "fits"):
        os.truncate(f"{gold}/{name}", 0)
    wait_until(lambda: show(system, "gold")["held_bytes"] == 0, "emptied files to count no more")


def told(function, *args):
    """The errno it ends with; 0: it does not."""
    try:
        function(*args)
        return 0
    except OSError as error:
        return error.errno


def piece_of(index):
    return index.to_bytes(8, "little") * (MIB // 8)


def reads_back(top, name, length):
    """Whether the OSDs have what write_until_told wrote."""
    fd = os.open(f"{top}/{name}", os.O_RDONLY | os.O_DIRECT)
    piece = mmap.mmap(-1, MIB)
    same = all(os.preadv(fd, [piece], index * MIB) == MIB and piece[:] == piece_of(index)
               for index in range(length // MIB))
    os.close(fd)
    return same


def write_until_told(fd, most):
    """Writes until write(2) says that there is no room; returns how much it took."""
    for index in range(most // MIB):
        code = told(os.write, fd, piece_of(index))
        if code != 0:
            check(code == errno.ENOSPC, f"write: {errno.errorcode[code]}")
            return index * MIB
    raise Failure(f"write(2) took {most} bytes, and more than the disk has")


def a_full_disk_is_told_by_write(lab):
    system = Cluster(lab, osd_size="256MiB", mounts=2)
    info = os.statvfs(system.mnt)
    disk = info.f_blocks * info.f_frsize
    fd = os.open(f"{system.mnt}/big", os.O_WRONLY | os.O_CREAT, 0o644)
    took = write_until_told(fd, disk + 64 * MIB)
    check(took > disk // 2, f"full after {took} bytes of {disk}")
    for _ in range(5):
        check(told(os.write, fd, os.urandom(MIB)) == errno.ENOSPC, "write(2) takes what there is no room for")
    # Whether something was taken before it was known that there is no room depends on who was quicker.
    code = told(os.fsync, fd)
    check(code == errno.ENOSPC or reads_back(system.mounts[1], "big", took), f"fsync tells {code}, and data is lost")
    check(told(os.fsync, fd) == 0, "fsync tells it twice")
    # Another file of the same mount, and one of another mount.
    for number, mount in enumerate(system.mounts):
        other = os.open(f"{mount}/other{number}", os.O_WRONLY | os.O_CREAT, 0o644)
        took = write_until_told(other, 64 * MIB)
        code = told(os.close, other)
        check(code == errno.ENOSPC or reads_back(mount, f"other{number}", took), f"close tells {code}, and data is lost")
    # Where there is room again, all is as before.
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    for _ in range(32):
        check(told(os.write, fd, os.urandom(MIB)) == 0, "write(2) does not see the room")
    check(told(os.fsync, fd) == 0 and told(os.close, fd) == 0, "there is room, and it was not used")


def nearly_fill(top):
    """Leaves some 70 MiB, more than a mount has in memory, and more than where it is near full."""
    info = os.statvfs(top)
    with open(f"{top}/big", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, info.f_bavail * info.f_frsize // MIB * MIB - 72 * MIB)


def stored(path):
    """What the OSDs have, and not the kernel's pages."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.readall()


def fill_with_closed_files(top, size):
    """Until a call says that there is no room; returns how many were closed without an error."""
    for index in range(96 * MIB // size + 1):
        try:
            with open(f"{top}/{size}.{index}", "xb", buffering=0) as file:
                check(file.write(piece_of(index)[:size]) == size, "a short write(2)")
        except OSError as error:
            check(error.errno == errno.ENOSPC, f"filling it: {error}")
            return index
    raise Failure("nothing said that there is no room")


def closed_files_are_there(top, looker, size):
    """What close(2) did not complain about is there for `looker`, though it waited for no disk."""
    count = fill_with_closed_files(top, size)
    check(count > 48 * MIB // size, f"full after {count} files of {size} bytes")
    os.sync()
    lost = [index for index in range(count) if stored(f"{looker}/{size}.{index}") != piece_of(index)[:size]]
    check(not lost, f"{len(lost)} of {count} closed files of {size} bytes are lost")
    for index in range(count):
        os.unlink(f"{top}/{size}.{index}")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{top}/{size}.{count}")


def closed_files_survive_a_full_disk(lab):
    system = Cluster(lab, osd_size="256MiB", mounts=2)
    nearly_fill(system.mnt)
    for size in (64 * 1024, 20_000):
        closed_files_are_there(system.mnt, system.mounts[1], size)


def closed_files_survive_a_full_disk_in_one_process(lab):
    system = Embedded(lab, "--osd-size", "256MiB", "--token-rate", "1GiB/s")
    nearly_fill(system.mnt)
    for size in (64 * 1024, 20_000):
        closed_files_are_there(system.mnt, system.mnt, size)


DIRECTLY = os.O_WRONLY | os.O_CREAT | os.O_DIRECT


def aligned_piece():
    data = mmap.mmap(-1, MIB)
    data[:] = os.urandom(MIB)
    return data


def fill_directly(top, pieces):
    """With files f0, f1 and so on of so many MiB; returns their names."""
    data = aligned_piece()
    names, code = [], 0
    while code == 0:
        names.append(f"f{len(names)}")
        fd = os.open(f"{top}/{names[-1]}", DIRECTLY, 0o644)
        for _ in range(pieces):
            code = code or told(os.write, fd, data)
        os.close(fd)
    check(code == errno.ENOSPC, f"filling it: {errno.errorcode[code]}")
    return names


def rewrite_on_a_full_disk(top, remover, pieces, direct):
    """Whoever removes what fills a disk, in files of so many MiB, may write something else at once."""
    data = aligned_piece()
    names = fill_directly(top, pieces)
    for name in names:
        os.unlink(f"{remover}/{name}")
    fd = os.open(f"{top}/new", DIRECTLY if direct else DIRECTLY & ~os.O_DIRECT, 0o644)
    for index in range(32):
        check(told(os.write, fd, data) == 0, f"{len(names)} files removed: no room for MiB {index} afterwards")
    check(told(os.fsync, fd) == 0, f"{len(names)} files removed: no room for what was written afterwards")
    os.close(fd)
    os.unlink(f"{top}/new")


def removals_make_room_at_once(lab):
    system = Cluster(lab, osd_size="256MiB", mounts=2)
    for remover in system.mounts:
        for pieces, direct in ((1024, True), (2, False)):
            rewrite_on_a_full_disk(system.mnt, remover, pieces, direct)
    # What another mount removes stays for a moment: fallocate waits for it, too.
    fill_directly(system.mnt, 1024)
    wait_until(lambda: os.statvfs(system.mnt).f_bavail * os.statvfs(system.mnt).f_frsize < 32 * MIB, "statfs to know it")
    os.unlink(f"{system.mounts[1]}/f0")
    with open(f"{system.mnt}/kept", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 64 * MIB)


def removals_make_room_at_once_in_one_process(lab):
    system = Embedded(lab, "--osd-size", "256MiB", "--token-rate", "1GiB/s")
    rewrite_on_a_full_disk(system.mnt, system.mnt, 1024, True)


def row(system, name):
    osd = json.loads(system.osdctl("stat", name, "-o", "json").stdout)["osds"][0]
    return osd["classes"][0]


def a_slower_disk_is_noticed_and_purges_go_on(lab):
    web = free_port()
    system = Cluster(lab, disks=("ssd:512MiB,rate=100MB/s",), token_rate="60MiB/s", extra=["--metrics", "--web", web])
    system.osdctl("status")
    system.osdctl("reserve", "system.purge", "--bandwidth", "2MiB/s")
    seen = show(system, "system.purge")
    check(seen["reservation_bytes_per_s"] == 2 * MIB and seen["reservation_scope"] == "osd", f"{seen}")
    large = f"{system.mnt}/large"
    with open(large, "wb") as file:
        for index in range(40):
            os.pwrite(file.fileno(), b"x" * 4096, index * 4 * MIB)
        file.flush()
        os.fsync(file.fileno())
    system.dev("stop", "osd.0")
    state = f"{system.dir}/weir-dev.json"
    with open(state) as file:
        text = file.read()
    check("rate=100MB/s" in text, f"the disk is not in {state}")
    with open(state, "w") as file:
        file.write(text.replace("rate=100MB/s", "rate=15MB/s"))
    system.dev("start", "osd.0")
    os.unlink(large)
    # The load is there when the MDS is old enough to purge, and until the OSD has seen enough seconds of it.
    load = ["fio", "--name=load", f"--directory={system.mnt}", "--rw=write", "--bs=256k", "--size=64m", "--numjobs=2",
            "--direct=1", "--ioengine=libaio", "--iodepth=32", "--time_based", "--runtime=10m", "--fallocate=none", "--thread"]
    with subprocess.Popen(load, cwd=lab.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            # 40 objects: one, then three steps of at most sixteen.
            wait_until(lambda: row(system, "system.purge")["served_ops"] >= 4, "the purge")
            purge = row(system, "system.purge")
            check(purge["guaranteed_bytes"] > 0, f"nothing of the purge was owed to it: {purge}")
            wait_until(lambda: disk_of(system)["slow"], "an alarm", timeout=180)
            check(child.poll() is None, "the load ended by itself")
        finally:
            child.send_signal(signal.SIGINT)
    disk = disk_of(system)
    check(disk["slow"] and disk["alarms"] == 1, f"no alarm, or many: {disk}")
    check(5e6 < disk["bytes_per_s"] < 20e6, f"a disk of 15 MB/s is thought to give {disk}")
    done = system.osdctl("status", ok=(7,))
    check("osd.0 is slower than promised" in done.stdout, done.stdout)
    wait_until(lambda: any(text.startswith("osd.0 is slower than promised") for text in troubles(web)), "the page to say so")
    daemons = json.loads(run(f"{BIN}/weir-dev", "status", "--dir", system.dir, "-o", "json").stdout)["daemons"]
    metrics = next(daemon["metrics"] for daemon in daemons if daemon["name"] == "osd.0")
    check(samples(metrics)['weir_osd_disk_slow{osd="0"}'] == 1, "the metric does not know")
    system.osdctl("release", "system.purge")
    system.osdctl("osd", "set", "0", "--token-rate", "4MiB/s")
    wait_until(lambda: system.osdctl("status", ok=(0, 7)).returncode == 0, "a lower rate to end the alarm")


if __name__ == "__main__":
    main("space", capacity_is_kept, capacity_in_one_process, a_full_disk_is_told_by_write, removals_make_room_at_once,
         removals_make_room_at_once_in_one_process, closed_files_survive_a_full_disk,
         closed_files_survive_a_full_disk_in_one_process, a_slower_disk_is_noticed_and_purges_go_on)
