"""Files: made without a name, when they were born, and what reading moves."""
import ctypes
import os
import struct
import time

from harness import GROUP, OTHER, PATIENCE, THIRD, USER, acl, DEFAULT, get_acl, outcome

STRANGER = (OTHER, THIRD, [])
STATX_BTIME = 0x800
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW = -100, 0x100, 0x400
libc = ctypes.CDLL(None, use_errno=True)


def birth(path):
    """When it was made, in ns; None when the filesystem does not tell."""
    data = ctypes.create_string_buffer(256)
    if libc.statx(AT_FDCWD, os.fsencode(path), AT_SYMLINK_NOFOLLOW, STATX_BTIME, data) != 0:
        raise OSError(ctypes.get_errno(), "statx")
    mask, = struct.unpack_from("<I", data, 0)
    seconds, nanoseconds = struct.unpack_from("<qI", data, 80)
    return seconds * 10**9 + nanoseconds if mask & STATX_BTIME else None


def atime(path):
    return os.lstat(path).st_atime_ns


def name_it(fd, path):
    source = os.fsencode(f"/proc/self/fd/{fd}")
    if libc.linkat(AT_FDCWD, source, AT_FDCWD, os.fsencode(path), AT_SYMLINK_FOLLOW) != 0:
        raise OSError(ctypes.get_errno(), "linkat")


def state(fd):
    st = os.fstat(fd)
    return st.st_nlink, st.st_size, oct(st.st_mode), st.st_uid, st.st_gid


def unnamed_files(p):
    old = os.umask(0o027)
    try:
        folder = p.dir("d", 0o2777, (USER, GROUP))
        before = os.stat(folder).st_mtime_ns
        fd = p.call("open", os.open, folder, os.O_TMPFILE | os.O_RDWR, 0o4666)
        p.note("new", state(fd))
        p.note("mtime of the directory moved", os.stat(folder).st_mtime_ns != before)
        os.pwrite(fd, b"data" * 1000, 10000)
        os.fsync(fd)
        p.note("written", (state(fd), os.pread(fd, 8, 9998)))
        os.setxattr(fd, "user.note", b"kept")
        p.note("listed", os.listdir(folder))
        p.call("first name", name_it, fd, f"{folder}/named")
        p.note("named", (state(fd), os.listdir(folder), os.getxattr(f"{folder}/named", "user.note")))
        with open(f"{p.other}/d/named", "rb") as file:
            p.note("elsewhere", file.read()[9998:10006])
        p.call("second name", name_it, fd, f"{folder}/twice")
        p.note("named twice", state(fd))
        os.unlink(f"{folder}/named")
        os.unlink(f"{folder}/twice")
        p.note("without its names", state(fd))
        p.call("name after the last went", name_it, fd, f"{folder}/late")
        os.close(fd)
    finally:
        os.umask(old)


def unnamed_files_refused(p):
    folder = p.dir("d", 0o755, (USER, GROUP))
    p.file("d/there")
    p.call("to be read only", os.open, folder, os.O_TMPFILE | os.O_RDONLY)
    p.call("below a file", os.open, f"{folder}/there", os.O_TMPFILE | os.O_RDWR)
    p.call("below nothing", os.open, f"{folder}/absent", os.O_TMPFILE | os.O_RDWR)
    p.call_as("by a stranger", STRANGER, lambda: os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR)))
    fd = p.call("for ever", os.open, folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL)
    p.call("name of such", name_it, fd, f"{folder}/name")
    os.close(fd)
    fd = p.call("write only", os.open, folder, os.O_TMPFILE | os.O_WRONLY)
    p.call("a name that exists", name_it, fd, f"{folder}/there")
    p.call("read it", os.pread, fd, 1, 0)
    os.close(fd)
    os.setxattr(folder, DEFAULT, acl(7, 5, 0, 5, users=((OTHER, 7),)))
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    p.note("inherits", (state(fd), get_acl(fd)))
    os.close(fd)


def births(p):
    start = time.time_ns()
    p.tick()
    path = p.file("f", b"x")
    born = birth(path)
    p.note("is known", born is not None)
    p.note("is now", start - 10**9 <= born <= time.time_ns() + 10**9)
    p.tick()
    os.chmod(path, 0o600)
    os.utime(path, ns=(1, 1))
    with open(path, "ab") as file:
        file.write(b"more")
    os.link(path, p / "g")
    os.rename(path, p / "h")
    p.note("stays", (birth(p / "h") == born, birth(p / "g") == born))
    p.file("h2")
    p.note("of a younger one", birth(p / "h2") > born)
    os.mkdir(p / "d")
    os.symlink("x", p / "l")
    os.mkfifo(p / "p")
    p.note("of every kind", [birth(p / name) is not None for name in ("d", "l", "p")])
    p.note("of the top", birth(p.top) <= born)
    for name in ("h", "d"):
        made = birth(p / name)
        p.note(f"{name} elsewhere", birth(os.path.join(p.other, name)) == made)


def cold(path, data=None):
    """The kernel holds no pages of it: a read reaches the filesystem."""
    fd = os.open(path, os.O_RDWR)
    if data is not None:
        os.pwrite(fd, data, 0)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def read(path, flags=0):
    fd = os.open(path, os.O_RDONLY | flags)
    os.read(fd, 10)
    os.close(fd)


def reads_move_atime(p):
    path = p.file("f", b"data")

    def moves(label, act, place=path):
        p.tick()
        before = atime(place)
        act()
        p.note(label, atime(place) > before)
        if place == path:
            cold(path)

    cold(path)
    moves("O_NOATIME", lambda: read(path, os.O_NOATIME))
    moves("first", lambda: read(path))
    moves("second", lambda: read(path))
    cold(path, b"new ")
    moves("after a write", lambda: read(path))
    moves("again", lambda: read(path))
    os.chmod(path, 0o600)
    moves("after chmod", lambda: read(path))
    future = time.time_ns() + 3600 * 10**9
    os.utime(path, ns=(future, 1))
    moves("set ahead", lambda: read(path))
    p.note("stays ahead", atime(path) == future)
    os.utime(path, ns=(10**9, 10**9))
    p.note("set back", atime(path))
    moves("after it was set back", lambda: read(path))
    folder = p.dir("d")
    moves("first listing", lambda: os.listdir(folder), folder)
    moves("second listing", lambda: os.listdir(folder), folder)
    p.tick()
    os.mkdir(f"{folder}/sub")
    moves("listing after a new name", lambda: os.listdir(folder), folder)
    os.symlink("f", p / "l")
    moves("first readlink", lambda: os.readlink(p / "l"), p / "l")
    moves("second readlink", lambda: os.readlink(p / "l"), p / "l")


def reads_elsewhere_move_atime(p):
    path = p.file("f", b"data")
    cold(path)
    p.tick()
    before = atime(path)
    read(os.path.join(p.other, "f"))
    seen = atime(os.path.join(p.other, "f"))
    p.note("there", seen > before)
    end = time.monotonic() + PATIENCE
    while atime(path) == before and time.monotonic() < end:
        time.sleep(0.02)
    p.note("here, in the end", abs(atime(path) - seen) < 10**9 and atime(path) > before)
    os.utime(path, ns=(5, 5))
    p.note("set back", (atime(path), atime(os.path.join(p.other, "f"))))
    p.note("no name", outcome(atime, p / "absent"))


CASES = (unnamed_files, unnamed_files_refused, births, reads_move_atime, reads_elsewhere_move_atime)
