#!/usr/bin/env python3
"""Names that one mount moves, replaces and removes while another, or a process beside it, is on its way through them;
and locks whose files are closed on one mount and asked for on the other.
"""
import collections
import errno
import fcntl
import multiprocessing
import os
import random
import signal
import stat
import struct
import sys

from weirtest import REPO, Cluster, Embedded, check, main

sys.path.insert(0, os.path.join(REPO, "tests", "posix"))
from harness import Child, outcome  # noqa: E402


def two_mounts(lab):
    cluster = Cluster(lab, osds=1, mounts=2, osd_size="512MiB")
    return cluster.mounts


def in_processes(*works):
    """Runs each in a process of its own; returns what they return. One that fails fails here."""
    def run(work, out):
        signal.alarm(600)  # none hangs
        out.send(work())
    started = []
    for work in works:
        here, there = multiprocessing.Pipe(False)
        process = multiprocessing.Process(target=run, args=(work, there))
        process.start()
        there.close()
        started.append((process, here))
    results = []
    for process, here in started:
        try:
            results.append(here.recv())
        except EOFError:
            results.append("a process ended without a result")
        process.join()
    return results


def counted(errors, act, *args):
    try:
        return act(*args)
    except OSError as error:
        errors[f"{act.__name__}: {errno.errorcode[error.errno]}"] += 1
    return None


# Directories that another mount has moved

STAGES = ("new", "work", "done")


def make_moved(ours, theirs, name, look=os.stat):
    """Theirs has seen new/NAME, which ours then makes work/NAME."""
    os.mkdir(f"{ours}/new/{name}")
    seen = look(f"{theirs}/new/{name}")
    os.rename(f"{ours}/new/{name}", f"{ours}/work/{name}")
    return seen


def moved_directories_are_renamed(lab):
    """By whoever has seen them elsewhere: as the source and as the target, back again, and below others."""
    ours, theirs = two_mounts(lab)
    for stage in STAGES:
        os.mkdir(f"{ours}/{stage}")
    make_moved(ours, theirs, "a")
    os.rename(f"{theirs}/work/a", f"{theirs}/done/a")
    make_moved(ours, theirs, "back")
    os.rename(f"{theirs}/work/back", f"{theirs}/new/back")
    make_moved(ours, theirs, "target")
    os.mkdir(f"{theirs}/done/x")
    os.rename(f"{theirs}/done/x", f"{theirs}/work/target")
    make_moved(ours, theirs, "listed", lambda path: os.listdir(os.path.dirname(path)))
    os.rename(f"{theirs}/work/listed", f"{theirs}/done/listed")
    for turn in range(5):  # from hand to hand
        os.rename(f"{ours}/done/a", f"{ours}/new/a")
        os.rename(f"{theirs}/new/a", f"{theirs}/work/a")
        os.rename(f"{ours}/work/a", f"{ours}/done/a")
        os.stat(f"{theirs}/done/a")
    make_moved(ours, theirs, "tree")
    os.mkdir(f"{ours}/work/tree/below")
    os.stat(f"{theirs}/work/tree/below")
    os.rename(f"{ours}/work/tree/below", f"{ours}/new/below")
    os.rename(f"{ours}/work/tree", f"{ours}/done/tree")
    os.rename(f"{theirs}/new/below", f"{theirs}/done/tree/below")
    for mount in (ours, theirs):
        found = {stage: sorted(os.listdir(f"{mount}/{stage}")) for stage in STAGES}
        check(found == {"new": ["back"], "work": ["target"], "done": ["a", "listed", "tree"]}, f"found {found}")
        check(os.listdir(f"{mount}/done/tree") == ["below"], "what moved below what moved")


def who_stands_in_a_moved_directory_stays_there(lab):
    """He and who comes by the new path see what each other does at once, though the kernel knows it twice."""
    ours, theirs = two_mounts(lab)
    for stage in STAGES:
        os.mkdir(f"{ours}/{stage}")
    held = make_moved(ours, theirs, "held", lambda path: os.open(path, os.O_RDONLY))
    os.rename(f"{theirs}/work/held", f"{theirs}/done/held")
    there = os.open(f"{theirs}/done/held", os.O_RDONLY)
    check(os.fstat(held).st_ino == os.fstat(there).st_ino, "it has two inode numbers")
    for turn in range(10):
        for number, (one, other) in enumerate(((held, there), (there, held))):
            name = f"{turn}.{number}"
            os.mkdir(name, dir_fd=one)
            os.stat(name, dir_fd=other)
            check(name in os.listdir(other), "a name is not listed")
            os.rename(name, name + "x", src_dir_fd=one, dst_dir_fd=other)
            check(os.listdir(one) == os.listdir(other) == os.listdir(f"{ours}/done/held") == [name + "x"], "listings differ")
            os.rmdir(name + "x", dir_fd=other)
            check(not os.access(name + "x", os.F_OK, dir_fd=one), "a removed name is still there")
            os.chmod(one, 0o700 + turn)
            check(os.fstat(other).st_mode & 0o777 == 0o700 + turn, "an old mode")
    os.close(held)
    os.close(there)


def a_queue_of_directories(lab):
    """Both mounts take directories from stage to stage, whoever comes first, beside renames of others."""
    ours, theirs = two_mounts(lab)
    for stage in STAGES:
        os.mkdir(f"{ours}/{stage}")
    count = 60

    def work(mount, step):
        def run():
            errors, moved = collections.Counter(), 0
            for number in range(count)[::step]:
                name = f"job{number}"
                for left, reached in (("new", "work"), ("work", "done")):
                    try:
                        os.rename(f"{mount}/{left}/{name}", f"{mount}/{reached}/{name}")
                        moved += 1
                    except FileNotFoundError:
                        pass
                    except OSError as error:
                        errors[errno.errorcode[error.errno]] += 1
                    counted(errors, os.listdir, f"{mount}/{left}")
            return errors, moved
        return run

    for number in range(count):
        os.mkdir(f"{ours}/new/job{number}")
        os.stat(f"{theirs}/new/job{number}")
    results = in_processes(work(ours, 1), work(theirs, 1), work(ours, -1), work(theirs, -1))
    check(all(not isinstance(result, str) and not result[0] for result in results), f"{results}")
    check(sum(moved for _, moved in results) == 2 * count, "each moved twice")
    check(len(os.listdir(f"{theirs}/done")) == count, "all are done")


# Names that always exist

def replace(mount, name, number, turns):
    def run():
        errors = collections.Counter()
        for turn in range(turns):
            fresh = f"{mount}/fresh{number}"
            if name == "link":
                counted(errors, os.symlink, f"target{turn}", fresh)
            else:
                with open(fresh, "w") as file:
                    file.write(str(turn))
            counted(errors, os.rename, fresh, f"{mount}/{name}")
        return errors
    return run


def read_all(path):
    with open(path, "rb") as file:
        return file.read()


def look(mount, name, turns):
    acts = (os.readlink, os.lstat) if name == "link" else (read_all, os.stat, os.listxattr)

    def run():
        errors = collections.Counter()
        for _ in range(turns):
            for act in acts:
                counted(errors, act, f"{mount}/{name}")
        return errors
    return run


def always_found(writers, readers, turns):
    for name in ("file", "link"):
        replace(writers[0], name, 9, 1)()
        results = in_processes(*(replace(mount, name, number, turns) for number, mount in enumerate(writers)),
                               *(look(mount, name, 5 * turns) for mount in readers))
        check(not any(results), f"a {name} that always exists: {results}")


def names_that_always_exist(lab):
    ours, theirs = two_mounts(lab)
    always_found([ours] * 4, [ours] * 3, 120)
    always_found([ours] * 2, [theirs] * 3, 60)


def names_that_always_exist_embedded(lab):
    mount = Embedded(lab).mnt
    always_found([mount] * 4, [mount] * 3, 200)


def what_another_mount_removed_is_still_open(lab):
    """Looked up and not opened yet, as by a path walk: on the other mount too, for a while."""
    ours, theirs = two_mounts(lab)
    lost = collections.Counter()
    for turn in range(20):
        path = f"{ours}/f{turn}"
        with open(path, "w") as file:
            file.write("contents")
        held = os.open(f"{theirs}/f{turn}", os.O_PATH)
        os.unlink(path)
        text = counted(lost, read_all, f"/proc/self/fd/{held}")
        check(text in (None, b"contents"), "other contents")
        os.close(held)
    check(not lost, f"{lost}")


# Names that one mount makes while another opens them to make them

NEWS = {"file": lambda path: os.rename(f"{path}.full", path), "link": lambda path: os.symlink("full", path), "fifo": os.mkfifo,
        "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o644)}
# What an open for writing with O_TRUNC gets: the type and the size, or the errno.
FOUND = {"file": (stat.S_IFREG, 0), "link": (stat.S_IFREG, 0), "fifo": (stat.S_IFIFO, 0), "socket": "ENXIO"}


def open_to_make(path):
    held = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_NONBLOCK, 0o644)
    seen = os.fstat(held)
    os.close(held)
    return stat.S_IFMT(seen.st_mode), seen.st_size


def creates_meet(ours, theirs, turns, pause):
    """One mount makes names, the other opens them with O_CREAT a moment before or after; what came out wrong."""
    wrong = collections.Counter()
    with Child(lambda child: child.serve(lambda kind, name: NEWS[kind](f"{ours}/{name}"))) as maker:
        for turn in range(turns):
            for kind, right in FOUND.items():
                name = f"{turn}.{kind}"
                if kind == "file":
                    with open(f"{ours}/{name}.full", "w") as file:
                        file.write("contents")
                maker.send((kind, name))
                maker.ready(pause.uniform(0, 0.006))
                opened = outcome(open_to_make, f"{theirs}/{name}")
                made = maker.receive()
                if opened != right and not (made == "EEXIST" and opened == (stat.S_IFREG, 0)):
                    wrong[f"{kind}: {opened}"] += 1
                os.unlink(f"{theirs}/{name}")
    return wrong


def what_another_mount_makes_is_opened(lab):
    """By O_CREAT, whatever it is, though it was not there a moment before; a file is truncated. The moments are many."""
    ours, theirs = two_mounts(lab)
    with open(f"{ours}/full", "w") as file:
        file.write("contents")
    pause = random.Random(1)
    wrong = sum((creates_meet(ours, theirs, 8, pause) for _ in range(10)), collections.Counter())
    check(not wrong, f"{dict(wrong)}")


# Locks of files that are closed

F_OFD_SETLK, F_OFD_GETLK = 37, 36


def flock_struct(kind):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)


def lock(descriptor, kind):
    if kind == "flock":
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        fcntl.fcntl(descriptor, F_OFD_SETLK if kind == "ofd" else fcntl.F_SETLK, flock_struct(fcntl.F_WRLCK))


def is_free(descriptor):
    return struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, F_OFD_GETLK, flock_struct(fcntl.F_WRLCK)))[0] == fcntl.F_UNLCK


def close_plainly(descriptor):
    os.close(descriptor)


def close_after_reading(descriptor):
    os.read(descriptor, 1000)  # the kernel reads ahead, and says of the close when that is over
    os.close(descriptor)


def close_after_writing(descriptor):
    os.write(descriptor, b"written")
    os.close(descriptor)


def close_both(descriptor):
    other = os.dup(descriptor)
    os.close(descriptor)
    os.close(other)


def close_in_a_child(descriptor):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.close(descriptor)
    os.waitpid(child, 0)


def locks_of_closed_files_are_free(lab):
    ours, theirs = two_mounts(lab)
    with open(f"{ours}/f", "wb") as file:
        file.write(b"x" * 300_000)
    refused = collections.Counter()
    for kind in ("flock", "ofd", "posix"):
        for close in (close_plainly, close_after_reading, close_after_writing, close_both, close_in_a_child):
            for turn in range(40):
                for mount in (ours, theirs, theirs):
                    descriptor = os.open(f"{mount}/f", os.O_RDWR)
                    if kind == "ofd" and not is_free(descriptor):
                        refused["seen"] += 1
                    try:
                        lock(descriptor, kind)
                    except BlockingIOError:
                        refused[f"{kind}, {close.__name__}"] += 1
                    close(descriptor)
    check(not refused, f"refused: {dict(refused)}")


def locks_that_are_held_are_refused(lab):
    """At once, also while the file is open a second time, and when the other mount is silent."""
    ours, theirs = two_mounts(lab)
    open(f"{ours}/f", "w").close()
    for kind in ("flock", "ofd"):
        holder = os.open(f"{ours}/f", os.O_RDWR)
        lock(holder, kind)
        os.close(os.dup(holder))  # a close that releases nothing
        for mount in (ours, theirs):
            asker = os.open(f"{mount}/f", os.O_RDWR)
            for _ in range(5):
                try:
                    lock(asker, kind)
                    check(False, f"{kind} is given twice")
                except BlockingIOError:
                    pass
            os.close(asker)
        os.close(holder)
        asker = os.open(f"{theirs}/f", os.O_RDWR)
        lock(asker, kind)
        os.close(asker)


# Removal beside another mount

def removal_beside_another_mount(lab):
    """One mount makes and removes a tree that the other lists, renames, and works beside."""
    ours, theirs = two_mounts(lab)
    os.mkdir(f"{ours}/beside")
    for turn in range(3):
        os.mkdir(f"{ours}/tree")
        for number in range(250):
            with open(f"{ours}/tree/{number}", "w") as file:
                file.write("x")
        for entry in os.scandir(f"{theirs}/tree"):
            entry.stat()
        os.rename(f"{theirs}/tree", f"{theirs}/moved")

        def remove():
            errors = collections.Counter()
            for name in sorted(os.listdir(f"{ours}/moved")):
                counted(errors, os.lstat, f"{ours}/moved/{name}")
                counted(errors, os.unlink, f"{ours}/moved/{name}")
            counted(errors, os.rmdir, f"{ours}/moved")
            return errors

        def work_beside():
            errors = collections.Counter()
            for number in range(120):
                path = f"{theirs}/beside/{number}"
                with open(path, "w") as file:
                    file.write("x")
                counted(errors, os.rename, path, path + "x")
                counted(errors, os.unlink, path + "x")
            return errors

        results = in_processes(remove, work_beside)
        check(not any(results), f"turn {turn}: {results}")


if __name__ == "__main__":
    main("names_under_change", moved_directories_are_renamed, who_stands_in_a_moved_directory_stays_there,
         a_queue_of_directories, names_that_always_exist, names_that_always_exist_embedded,
         what_another_mount_removed_is_still_open, what_another_mount_makes_is_opened, locks_of_closed_files_are_free, locks_that_are_held_are_refused,
         removal_beside_another_mount)
