"""Times: a change is now whatever was set before, later changes are not older, what reads move, what takes space."""
import contextlib
import ctypes
import mmap
import os
import subprocess
import time

from handles import forget
from harness import ACCESS, CLOCK_REALTIME_COARSE, USER, Child, acl

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


def changes_that_are_not_of_data():
    return {
        "chmod": lambda path: os.chmod(path, 0o604),
        "chown": lambda path: os.chown(path, 7, 7),
        "chown of nothing": lambda path: os.chown(path, -1, -1),
        "utime": lambda path: os.utime(path, ns=(5, 1_000_000_007)),
        "touch": os.utime,
        "atime": lambda path: os.utime(path, ns=(5, os.stat(path).st_mtime_ns)),
        "setxattr": lambda path: os.setxattr(path, "user.x", b"1"),
        "access list": lambda path: os.setxattr(path, ACCESS, acl(6, 4, 4, 6, users=[(USER, 4)])),
        "link": lambda path: os.link(path, f"{path}.link"),
        "rename": lambda path: (os.rename(path, f"{path}.new"), os.rename(f"{path}.new", path)),
        "truncate to the same size": lambda path: os.truncate(path, os.stat(path).st_size),
    }


def times_of(path):
    st = os.stat(path)
    return st.st_mtime_ns, st.st_ctime_ns


def times_stay_when_nothing_is_done(p):
    """Neither when what was changed is stored or forgotten, nor when others look."""
    source = p.file("source", b"s" * PAGE)
    changes = {**kinds_of_change(source), **changes_that_are_not_of_data()}
    seen = {}
    for name, change in changes.items():
        path = p.file(name, b"x" * 4 * PAGE)
        p.tick()
        change(path)
        seen[name] = times_of(path)
        p.tick()
    p.note("moved", [name for name, times in seen.items() if times_of(p / name) != times])
    p.note("other there", [name for name, times in seen.items() if times_of(f"{p.other}/{name}") != times])
    forget(p.top)
    p.note("moved when forgotten", [name for name, times in seen.items() if times_of(p / name) != times])
    p.note("other there then", [name for name, times in seen.items() if times_of(f"{p.other}/{name}") != times])


def times_stay_while_files_are_open(p):
    source = p.file("source", b"s" * PAGE)
    changes = {**kinds_of_change(source), **changes_that_are_not_of_data()}
    for what, store in (("stored", os.fsync), ("closed", lambda fd: None), ("looked at", None)):
        moved = []
        for name, change in changes.items():
            path = p.file(f"{name}.{what}", b"x" * 4 * PAGE)
            with opened(path) as fd:
                os.pwrite(fd, b"own", 0)
                p.tick()
                change(path)
                times = times_of(path)
                p.tick()
                if store is None:
                    moved += [name for top in (p.other, p.top) if times_of(f"{top}/{name}.{what}") != times]
                else:
                    store(fd)
            moved += [name for top in (p.top, p.other) if times_of(f"{top}/{name}.{what}") != times]
        p.note(f"moved when {what}", moved)


def space_is_seen_while_open(p):
    path = p / "f"
    with opened(path, os.O_CREAT | os.O_RDWR) as fd:
        for number in range(1, 5):
            os.write(fd, b"x" * 100_000)
            os.fsync(fd)
            p.note(f"fsync {number}", (os.fstat(fd).st_blocks, os.stat(path).st_blocks,
                                       os.stat(os.path.join(p.other, "f")).st_blocks))
        os.pwrite(fd, b"x" * PAGE, 0)
        os.fdatasync(fd)
        p.note("overwritten", os.stat(path).st_blocks)
        os.ftruncate(fd, 0)
        p.note("cut", os.stat(path).st_blocks)
        os.write(fd, b"y")
        os.pwrite(fd, b"x" * 2 * PAGE, 0)
        os.fdatasync(fd)
        p.note("written again", os.stat(path).st_blocks)
        with Child(lambda child: child.send(os.stat(path).st_blocks)) as child:
            p.note("by another process", child.receive())
    p.note("closed", os.stat(path).st_blocks)
    with opened(p / "g", os.O_CREAT | os.O_RDWR | os.O_DIRECT) as fd:
        os.write(fd, aligned())
        p.note("direct", os.stat(p / "g").st_blocks)
        os.write(fd, aligned())
        p.note("direct again", os.stat(p / "g").st_blocks)


class Watch:
    """Whether acts move the access time of a file."""

    def __init__(self, p, path):
        self.p = p
        self.path = path

    def moves(self, label, act):
        self.p.tick()
        before = os.lstat(self.path).st_atime_ns
        act()
        self.p.note(label, os.lstat(self.path).st_atime_ns > before)


def read_some(path, offset=0, flags=0):
    with opened(path, os.O_RDONLY | flags) as fd:
        os.pread(fd, 100, offset)


def look_and_close(path):
    with opened(path, os.O_RDONLY) as fd:
        os.fstat(fd)


def map_and_look(path):
    with opened(path, os.O_RDONLY) as fd, mmap.mmap(fd, PAGE, prot=mmap.PROT_READ) as area:
        return area[0]


def fresh(p, name, size=3 * PAGE):
    p.tick()
    return p.file(name, b"x" * size)


def reads_of_what_was_just_written(p):
    for size in (100, 3 * PAGE, 1 << 20):
        path = fresh(p, f"f{size}", size)
        watch = Watch(p, path)
        watch.moves(f"{size}: opened only", lambda: look_and_close(path))
        watch.moves(f"{size}: O_NOATIME", lambda: read_some(path, 0, os.O_NOATIME))
        watch.moves(f"{size}: read", lambda: read_some(path))
        watch.moves(f"{size}: read again", lambda: read_some(path))
        p.tick()
        write_at(path)
        watch.moves(f"{size}: read after a write", lambda: read_some(path))
        watch.moves(f"{size}: and again", lambda: read_some(path))
        p.tick()
        os.chmod(path, 0o600)
        watch.moves(f"{size}: read after chmod", lambda: read_some(path))
        os.utime(path, ns=(7, 7))
        watch.moves(f"{size}: read after it was set", lambda: read_some(path))
        watch.moves(f"{size}: once more", lambda: read_some(path))
        p.tick()
        write_at(path)
        watch.moves(f"{size}: whole", lambda: open(path, "rb").read())
        p.tick()
        write_at(path, size - 10)
        watch.moves(f"{size}: the end", lambda: read_some(path, size - 50))
    path = fresh(p, "mapped")
    watch = Watch(p, path)
    watch.moves("mapped", lambda: map_and_look(path))
    watch.moves("mapped again", lambda: map_and_look(path))
    path = fresh(p, "sent")
    Watch(p, path).moves("sendfile", lambda: send_into(p.file("out"), path))
    path = fresh(p, "copied")
    Watch(p, path).moves("copy_file_range", lambda: copy_into(p.file("out2"), path))
    path = fresh(p, "direct")
    Watch(p, path).moves("O_DIRECT", lambda: read_direct(path))


def read_direct(path):
    with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
        os.preadv(fd, [aligned()], 0)


def executables(p):
    path = p / "program"
    with open("/bin/true", "rb") as binary:
        p.file("program", binary.read(), mode=0o755)
    watch = Watch(p, path)
    watch.moves("executed", lambda: subprocess.run([path], check=True))
    watch.moves("again", lambda: subprocess.run([path], check=True))
    os.utime(path, ns=(7, 7))
    watch.moves("after it was set", lambda: subprocess.run([path], check=True))
    script = p.file("script", b"#!/bin/sh\nexit 0\n", mode=0o755)
    watch = Watch(p, script)
    watch.moves("script", lambda: subprocess.run([script], check=True))
    watch.moves("script again", lambda: subprocess.run([script], check=True))


def links_and_listings(p):
    p.file("f", b"x")
    p.tick()
    os.symlink("f", p / "l")
    watch = Watch(p, p / "l")
    watch.moves("readlink", lambda: os.readlink(p / "l"))
    watch.moves("readlink again", lambda: os.readlink(p / "l"))
    os.utime(p / "l", ns=(7, 7), follow_symlinks=False)
    watch.moves("readlink after it was set", lambda: os.readlink(p / "l"))
    p.tick()
    os.rename(p / "l", p / "m")
    watch = Watch(p, p / "m")
    watch.moves("readlink after rename", lambda: os.readlink(p / "m"))
    os.lchown(p / "m", 1, 1)
    watch.moves("followed after chown", lambda: os.stat(p / "m"))
    watch.moves("followed again", lambda: os.stat(p / "m"))
    folder = p.dir("d")
    p.file("d/x")
    watch = Watch(p, folder)
    watch.moves("opened only", lambda: os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)))
    watch.moves("listed", lambda: os.listdir(folder))
    watch.moves("listed again", lambda: os.listdir(folder))
    os.utime(folder, ns=(7, 7))
    watch.moves("listed after it was set", lambda: os.listdir(folder))
    watch.moves("and again", lambda: os.listdir(folder))
    p.tick()
    os.chmod(folder, 0o700)
    watch.moves("listed after chmod", lambda: os.listdir(folder))
    watch.moves("looked into", lambda: os.stat(f"{folder}/x"))
    p.tick()
    os.unlink(f"{folder}/x")
    watch.moves("listed after unlink", lambda: os.listdir(folder))


CASES = (changes_are_now, changes_through_open_files, directories_are_now, later_is_not_older,
         changes_of_one_file_follow, times_stay_when_nothing_is_done, times_stay_while_files_are_open,
         space_is_seen_while_open, reads_of_what_was_just_written, executables, links_and_listings)
