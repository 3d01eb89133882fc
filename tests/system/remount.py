#!/usr/bin/env python3
"""Mounts that die, are mounted again, and are replaced while files are open; many open files; options of access times; what a
throttled class has waiting when its mount ends."""
import errno
import json
import os
import resource
import signal
import subprocess
import sys

from weirtest import BIN, MIB, Cluster, Failure, check, is_mounted, main, run, wait_until


def endpoint_of(system):
    with open(f"{system.dir}/endpoint") as file:
        return file.read().strip()


def weirfs(lab, system, place, *options):
    """Mounts; returns the pid of the process that serves, and what weirfs said."""
    if not is_mounted(place):
        os.makedirs(place, exist_ok=True)
    pid_file = lab.path("pid")
    lab.on_exit(lambda: is_mounted(place) and run("umount", "-l", place, ok=None))
    done = run(f"{BIN}/weirfs", endpoint_of(system), place, "--pid-file", pid_file, *options)
    with open(pid_file) as file:
        return int(file.read()), done.stderr


def mounts_at(place):
    with open("/proc/self/mounts") as mounts:
        return sum(line.split(" ")[1] == place for line in mounts)


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def put(path, text):
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def get(path):
    with open(path) as file:
        return file.read()


def a_dead_mount_is_taken_again(lab, system):
    place = lab.path("dead")
    pid, _ = weirfs(lab, system, place)
    put(f"{place}/kept", "before")
    held = os.open(f"{place}/kept", os.O_RDONLY)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid), "weirfs to die")
    dead = subprocess.run(["stat", place], capture_output=True, text=True, check=False)
    check("not connected" in dead.stderr, f"a killed weirfs leaves no dead mount: {dead.stderr}")
    _, said = weirfs(lab, system, place)
    check("took away the dead mount" in said, f"weirfs does not say what it did: {said}")
    check(mounts_at(place) == 1 and get(f"{place}/kept") == "before", "what was synced is not on the new mount")
    put(f"{place}/after", "after")
    for act in (lambda: os.pread(held, 1, 0), lambda: os.close(held)):
        try:
            act()
        except OSError as error:
            check(error.errno == errno.ENOTCONN, f"a file of the dead mount: {error}")
        else:
            raise Failure("a file of the dead mount still answers")
    run("umount", place)


def a_mount_is_replaced_under_open_files(lab, system):
    place = lab.path("live")
    old, _ = weirfs(lab, system, place)
    refused = run(f"{BIN}/weirfs", endpoint_of(system), place, ok=None)
    check(refused.returncode != 0 and "--replace" in refused.stderr, f"a second mount: {refused.stderr}")
    with open(f"{place}/open", "w+b", buffering=0) as file:
        file.write(b"unsynced ")
        new, _ = weirfs(lab, system, place, "--replace")
        check(mounts_at(place) == 1, "both mounts are in the table")
        check(not gone(old), "the old process left its open file")
        file.write(b"and more")
        put(f"{place}/young", "young")
        file.flush()
        os.fsync(file.fileno())
        check(get(f"{place}/open") == "unsynced and more", "the new mount does not see what the old one wrote")
        file.seek(0)
        check(file.read() == b"unsynced and more", "the old mount lost its file")
    wait_until(lambda: gone(old), "the old process to end with its last file")
    check(not gone(new) and get(f"{place}/young") == "young", "the new mount ended with the old one")
    data = run(f"{BIN}/weirfs", "--replace", "--data", lab.path("data"), place, ok=(2,))
    check("--data" in data.stderr, f"--replace with --data: {data.stderr}")
    run("umount", place)


def many_open_files(lab, system):
    place = lab.path("many")
    os.mkdir(place)
    lab.on_exit(lambda: is_mounted(place) and run("umount", "-l", place, ok=None))
    run("prlimit", "--nofile=256:256", f"{BIN}/weirfs", endpoint_of(system), place)
    count = 3000
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 500, max(before[1], count + 500)))
    files = []
    try:
        for number in range(count):
            files.append(os.open(f"{place}/{number}", os.O_CREAT | os.O_RDWR))
        os.write(files[0], b"first")
        os.write(files[-1], b"last")
        check(os.pread(files[0], 9, 0) == b"first" and os.pread(files[-1], 9, 0) == b"last", "data of open files")
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    check(len(os.listdir(place)) >= count, "files are missing")
    run("umount", place)


def atime_after_a_read(place, name):
    path = f"{place}/{name}"
    put(path, "data")
    os.utime(path, (1, 1))
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.read(fd, 4)
    os.close(fd)
    return os.stat(path).st_atime


def access_times_by_option(lab, system):
    for options, moves in (("rw", True), ("noatime", False), ("strictatime", True)):
        place = lab.path(f"atime.{options}")
        weirfs(lab, system, place, "-o", options)
        check((atime_after_a_read(place, options) > 1) == moves, f"-o {options}: the access time does not do as it should")
        run("umount", place)
    place = lab.path("atime.again")
    weirfs(lab, system, place, "-o", "ro")
    # What the first mount told is the MDS's, and a mount that is read only leaves it alone.
    check(os.stat(f"{place}/rw").st_atime > 1, "the access time was forgotten with its mount")
    check(os.stat(f"{place}/noatime").st_atime == 1, "noatime moved it later")
    run("umount", place)


def flags_of(place):
    with open("/proc/self/mounts") as table:
        return next(line.split()[3].split(",") for line in table if line.split()[1] == place)


# Prevents: a remount takes away nosuid and nodev, which mount(8) does not say again.
def flags_that_nobody_names_stay(lab, system):
    place = lab.path("flags")
    weirfs(lab, system, place, "-o", "nosuid,nodev,noexec")
    weirfs(lab, system, place, "-o", "remount,ro")
    check({"ro", "nosuid", "nodev", "noexec"} <= set(flags_of(place)), f"after remount,ro: {flags_of(place)}")
    weirfs(lab, system, place, "-o", "remount,rw,exec")
    flags = set(flags_of(place))
    check({"rw", "nosuid", "nodev"} <= flags and "noexec" not in flags, f"after remount,rw,exec: {flags}")
    run("umount", place)


# Says after each 64 KiB how much it has written.
WRITER = ("import os,sys\n"
          "fd=os.open(sys.argv[1],os.O_WRONLY|os.O_CREAT)\n"
          "for i in range(1,1000): print(i*os.write(fd,b'x'*65536),flush=True)\n")


def throttled_data_leaves_with_its_mount(lab, system):
    """No more than two seconds of a class's limit wait in a mount, and umount loses none of it."""
    limit = MIB // 2
    system.osdctl("class", "create", "slow", "--limit", f"{limit}B/s")
    place = lab.path("slow")
    pid, _ = weirfs(lab, system, place)
    os.mkdir(f"{place}/slow")
    os.setxattr(f"{place}/slow", "user.qos.class", b"slow")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, f"{place}/slow/file"], stdout=subprocess.PIPE, text=True)
    lab.on_exit(writer.kill)
    accepted = most = 0
    while accepted < 3 * limit:
        accepted = int(writer.stdout.readline())
        stat = json.loads(system.osdctl("stat", "slow", "-o", "json").stdout)
        most = max(most, accepted - sum(row["served_bytes"] for osd in stat["osds"] for row in osd["classes"]))
    writer.kill()
    writer.wait()
    check(most <= 2 * limit + 65536, f"{most} bytes waited in the mount")
    check(most > limit // 2, f"only {most} bytes were ever buffered: nothing was tried")
    run("umount", place)
    wait_until(lambda: gone(pid), "weirfs to end")
    weirfs(lab, system, place)
    check(get(f"{place}/slow/file") == "x" * os.path.getsize(f"{place}/slow/file"), "the file has holes")
    check(os.path.getsize(f"{place}/slow/file") >= accepted, "what was written is lost")
    run("umount", place)


def mounts(lab):
    system = Cluster(lab, mounts=0)
    for case in (a_dead_mount_is_taken_again, a_mount_is_replaced_under_open_files, many_open_files, access_times_by_option,
                 flags_that_nobody_names_stay, throttled_data_leaves_with_its_mount):
        case(lab, system)


if __name__ == "__main__":
    main("remount", mounts)
