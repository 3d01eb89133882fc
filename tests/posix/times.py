"""Times: a change is now whatever was set before, and later changes are not older."""
import contextlib
import ctypes
import mmap
import os
import time

from harness import CLOCK_REALTIME_COARSE

PAGE = 4096
HOUR = 3600 * 10**9
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16
libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def aligned(byte=b"d"):
    block = mmap.mmap(-1, PAGE)
    block.write(byte * PAGE)
    return block


@contextlib.contextmanager
def opened(path, flags=os.O_RDWR, mode=0o644):
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def write_at(path, offset=0, flags=os.O_WRONLY, data=b"new"):
    with opened(path, flags) as fd:
        os.pwrite(fd, data, offset)


def map_and_sync(path):
    with opened(path) as fd, mmap.mmap(fd, PAGE) as area:
        area[0:3] = b"map"
        area.flush()


def copy_into(path, source):
    with opened(path) as out, opened(source, os.O_RDONLY) as data:
        os.copy_file_range(data, out, PAGE, 0, 0)


def send_into(path, source):
    with opened(path) as out, opened(source, os.O_RDONLY) as data:
        os.sendfile(out, data, 0, 100)


def change_range(path, mode, offset, length):
    with opened(path) as fd:
        fallocate(fd, mode, offset, length)


def kinds_of_change(source):
    """By name, what changes a file of four pages. Each is a function of its path."""
    return {
        "write": write_at,
        "write behind the end": lambda path: write_at(path, 9 * PAGE),
        "O_DIRECT": lambda path: write_at(path, 0, os.O_WRONLY | os.O_DIRECT, aligned()),
        "O_DIRECT behind the end": lambda path: write_at(path, 16 * PAGE, os.O_RDWR | os.O_DIRECT, aligned()),
        "O_SYNC": lambda path: write_at(path, 0, os.O_WRONLY | os.O_SYNC),
        "append": lambda path: write_at(path, 0, os.O_WRONLY | os.O_APPEND),
        "append O_DIRECT": lambda path: write_at(path, 0, os.O_WRONLY | os.O_APPEND | os.O_DIRECT, aligned()),
        "truncate shorter": lambda path: os.truncate(path, 100),
        "truncate longer": lambda path: os.truncate(path, 40 * PAGE),
        "ftruncate": lambda path: with_fd(path, lambda fd: os.ftruncate(fd, 200)),
        "O_TRUNC": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
        "allocate": lambda path: change_range(path, 0, 0, 50 * PAGE),
        "allocate, same size": lambda path: change_range(path, FALLOC_KEEP_SIZE, 0, 60 * PAGE),
        "punch": lambda path: change_range(path, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 0, PAGE),
        "zero": lambda path: change_range(path, FALLOC_ZERO_RANGE, 0, PAGE),
        "copy_file_range": lambda path: copy_into(path, source),
        "sendfile": lambda path: send_into(path, source),
        "mmap and msync": map_and_sync,
    }


def with_fd(path, act):
    with opened(path) as fd:
        act(fd)


def is_now(stamp, began):
    """`began`: of the coarse clock, which kernels stamp with."""
    return began <= stamp <= time.clock_gettime_ns(time.CLOCK_REALTIME)


def coarse_now():
    return time.clock_gettime_ns(CLOCK_REALTIME_COARSE)


def changes_are_now(p):
    """An mtime that lies ahead does not outlive a change."""
    source = p.file("source", b"s" * PAGE)
    elsewhere = os.path.join(p.other, "f")
    for name, act in kinds_of_change(source).items():
        for what, ahead in (("ahead", HOUR), ("little ahead", 2 * 10**9), ("back", -HOUR)):
            path = p.file("f", b"x" * 4 * PAGE)
            os.utime(path, ns=(5, time.time_ns() + ahead))
            began = coarse_now()
            p.call(f"{name}, {what}", act, path)
            p.note(f"{name}, {what}: now", is_now(os.stat(path).st_mtime_ns, began))
            p.note(f"{name}, {what}: there", is_now(os.stat(elsewhere).st_mtime_ns, began))
            p.note(f"{name}, {what}: changed now", is_now(os.stat(path).st_ctime_ns, began))
            os.unlink(path)


def changes_through_open_files(p):
    """The same where the file stays open, and what is set after a write stays."""
    for name, flags in (("buffered", 0), ("O_DIRECT", os.O_DIRECT), ("append", os.O_APPEND)):
        path = p.file(f"f.{name}", b"x" * 4 * PAGE)
        elsewhere = os.path.join(p.other, os.path.basename(path))
        with opened(path, os.O_RDWR | flags) as fd:
            os.write(fd, aligned())
            for ahead in (HOUR, -HOUR):
                stamp = time.time_ns() + ahead
                os.utime(fd, ns=(5, stamp))
                p.note(f"{name} {ahead}: set after a write", os.fstat(fd).st_mtime_ns == stamp)
                os.fsync(fd)
                p.note(f"{name} {ahead}: stays over fsync", (os.fstat(fd).st_mtime_ns == stamp,
                                                             os.stat(elsewhere).st_mtime_ns == stamp))
                began = coarse_now()
                os.write(fd, aligned())
                p.note(f"{name} {ahead}: written", is_now(os.fstat(fd).st_mtime_ns, began))
                p.note(f"{name} {ahead}: written, there", is_now(os.stat(elsewhere).st_mtime_ns, began))
                os.fsync(fd)
                p.note(f"{name} {ahead}: stored", is_now(os.fstat(fd).st_mtime_ns, began))
                p.note(f"{name} {ahead}: stored, there", is_now(os.stat(elsewhere).st_mtime_ns, began))
            os.write(fd, aligned())
            os.utime(path, ns=(5, 1_000_000_007))
        p.note(f"{name}: set before the close", (os.stat(path).st_mtime_ns, os.stat(elsewhere).st_mtime_ns))
        os.truncate(path, 5 * PAGE)
        os.utime(path, ns=(5, 1_000_000_007))
        os.chmod(path, 0o600)
        p.note(f"{name}: chmod leaves it", os.stat(path).st_mtime_ns)


def directories_are_now(p):
    folder, target = p.dir("d"), p.file("t")
    other = p.dir("e")
    acts = {
        "create": lambda: p.file("d/new"),
        "link": lambda: os.link(target, p / "d/link"),
        "rename within": lambda: os.rename(p / "d/link", p / "d/renamed"),
        "rename away": lambda: os.rename(p / "d/renamed", p / "e/away"),
        "rename to": lambda: os.rename(p / "e/away", p / "d/back"),
        "unlink": lambda: os.unlink(p / "d/back"),
        "mkdir": lambda: os.mkdir(p / "d/sub"),
        "rmdir": lambda: os.rmdir(p / "d/sub"),
        "symlink": lambda: os.symlink("x", p / "d/sym"),
        "unlink elsewhere": lambda: os.unlink(os.path.join(p.other, "d/sym")),
        "create elsewhere": lambda: os.mkdir(os.path.join(p.other, "d/sub")),
    }
    for name, act in acts.items():
        for place in (folder, other):
            os.utime(place, ns=(5, time.time_ns() + HOUR))
        began = coarse_now()
        act()
        p.note(name, [is_now(os.stat(place).st_mtime_ns, began) for place in (folder, other)])
        p.note(f"{name}: there", is_now(os.stat(os.path.join(p.other, "d")).st_mtime_ns, began))


def later_is_not_older(p):
    """What make and ninja decide by: of two changes the later one never has the older time."""
    def act_create(name):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644))

    def act_write(name):
        with opened(name, os.O_CREAT | os.O_WRONLY) as fd:
            os.write(fd, b"x")

    def act_direct(name):
        with opened(name, os.O_CREAT | os.O_WRONLY | os.O_DIRECT) as fd:
            os.write(fd, aligned())

    def act_touch(name):
        act_create(name)
        os.utime(name)

    def act_make(name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        act_create(name)

    def act_allocate(name):
        with opened(name, os.O_CREAT | os.O_RDWR) as fd:
            fallocate(fd, 0, 0, PAGE)

    def act_mkdir(name):
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(name + ".d")
        os.mkdir(name + ".d")

    def act_truncate(name):
        act_create(name)
        os.truncate(name, 77)

    acts = {"make": act_make, "write": act_write, "direct": act_direct, "touch": act_touch, "allocate": act_allocate,
            "mkdir": act_mkdir, "truncate": act_truncate}

    def stamp(act, name):
        return os.stat(name + ".d" if act == "mkdir" else name).st_mtime_ns

    for first, do_first in acts.items():
        for second, do_second in acts.items():
            older = 0
            for round_ in range(12):
                one = os.path.join(p.top if round_ % 2 else p.other, "one")
                two = os.path.join(p.top if round_ % 4 < 2 else p.other, "two")
                do_first(one)
                if round_ % 3 == 0:
                    stamp(first, one)
                do_second(two)
                older += stamp(second, two) < stamp(first, one)
            p.note(f"{second} after {first}", older)


def changes_of_one_file_follow(p):
    """mtime and ctime of one file never go back while nobody sets them."""
    path = p.file("f", b"x" * 4 * PAGE)
    elsewhere = os.path.join(p.other, "f")
    source = p.file("source", b"s" * PAGE)
    changes = [*kinds_of_change(source).values(), lambda name: os.chmod(name, 0o640), lambda name: os.chown(name, 0, 0),
               lambda name: os.setxattr(name, "user.x", b"1"), lambda name: os.link(name, f"{name}.link"),
               lambda name: os.unlink(f"{name}.link")]
    seen = []
    with opened(path) as fd:
        for number in range(3):
            for change in changes:
                os.ftruncate(fd, 4 * PAGE)
                change(path if number != 1 else elsewhere)
                os.pwrite(fd, b"own", 0)
                for look in (path, elsewhere):
                    st = os.stat(look)
                    seen.append((st.st_mtime_ns, st.st_ctime_ns))
    p.note("mtime was ahead of ctime", sum(mtime > ctime for mtime, ctime in seen))
    p.note("mtime went back", sum(b[0] < a[0] for a, b in zip(seen, seen[1:])))
    p.note("ctime went back", sum(b[1] < a[1] for a, b in zip(seen, seen[1:])))


CASES = (changes_are_now, changes_through_open_files, directories_are_now, later_is_not_older,
         changes_of_one_file_follow)
