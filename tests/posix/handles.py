"""What reaches files otherwise than by name, and what is left at names: file handles, whiteouts."""
import ctypes
import errno
import os
import stat

from harness import DEFAULT, GROUP, USER, acl, get_acl, outcome
from files import name_it

STRANGER = (USER, GROUP, [])
AT_FDCWD, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = -100, 0x400, 0x1000
AT_HANDLE_CONNECTABLE = 0x2  # Linux 6.13
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
libc = ctypes.CDLL(None, use_errno=True)


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint32), ("type", ctypes.c_int32), ("data", ctypes.c_uint8 * 128)]

    def with_data(self, data, kind=None):
        """One that says something else."""
        other = Handle(len(data), self.type if kind is None else kind)
        other.data[:len(data)] = data
        return other


def handle_of(path, flags=0, at=AT_FDCWD):
    handle, mount = Handle(128), ctypes.c_int()
    if libc.name_to_handle_at(at, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount), flags) != 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    return handle


def open_handle(top, handle, flags=os.O_RDONLY):
    """`top`: anything on the filesystem that the handle is of."""
    mount = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fd = libc.open_by_handle_at(mount, ctypes.byref(handle), flags)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "open_by_handle_at")
        return fd
    finally:
        os.close(mount)


def forget(top):
    """The kernel drops what it knows below `top` and nobody uses: pages, which keep inodes, then names and inodes."""
    for root, _, files in os.walk(top):
        for path in (f"{root}/{name}" for name in files):
            if stat.S_ISREG(os.lstat(path).st_mode):
                fd = os.open(path, os.O_RDONLY)
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
    for _ in range(3):  # what was looked at lately is spared once
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("2")


def note_open(p, label, top, handle, flags=os.O_RDONLY):
    """Notes that it opens, or the errno; returns the descriptor, or None."""
    opened = []
    p.call(label, lambda: opened.append(open_handle(top, handle, flags)))
    return opened[0] if opened else None


def seen(top, handle, flags=os.O_RDONLY):
    """What can be seen of a file by its handle: kind, size, links, and the first bytes or names."""
    fd = open_handle(top, handle, flags)
    try:
        st = os.fstat(fd)
        what = None
        if stat.S_ISDIR(st.st_mode):
            what = sorted(os.listdir(fd))
        elif stat.S_ISLNK(st.st_mode):
            what = os.readlink("", dir_fd=fd)
        elif not flags & os.O_PATH:
            what = os.pread(fd, 100, 0)
        return oct(st.st_mode), st.st_nlink, what
    finally:
        os.close(fd)


def path_of(top, handle, flags=os.O_RDONLY):
    """Where the kernel says that it is, below `top`."""
    fd = open_handle(top, handle, flags)
    try:
        return os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), os.path.realpath(top))
    finally:
        os.close(fd)


def handles_of_each_kind(p):
    p.file("file", b"content")
    deep = "one/two/three"
    os.makedirs(p / deep)
    p.file(f"{deep}/below", b"deep content", 0o600)
    os.symlink("file", p / "symlink")
    os.mkfifo(p / "fifo")
    os.mknod(p / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    names = {"file": os.O_RDONLY, f"{deep}/below": os.O_RDWR, "one/two": os.O_RDONLY, deep: os.O_RDONLY,
             "symlink": os.O_PATH, "fifo": os.O_PATH, "device": os.O_PATH, ".": os.O_RDONLY}
    handles = {name: handle_of(p / name) for name in names}
    numbers = {name: os.lstat(p / name).st_ino for name in names}
    p.note("the same each time", all(bytes(handle_of(p / name)) == bytes(handles[name]) for name in names))
    p.note("one each", len({bytes(handle) for handle in handles.values()}))
    for state in ("names in use", "names forgotten"):
        for name, flags in names.items():
            if state == "names forgotten":
                forget(p.top)
            p.call(f"{name}, {state}", seen, p.top, handles[name], flags)
            fd = note_open(p, f"{name}, {state}, again", p.top, handles[name], flags)
            if fd is not None:
                p.note(f"{name}, {state}: number", os.fstat(fd).st_ino == numbers[name])
                os.close(fd)
    forget(p.top)
    p.call("path of a directory", path_of, p.top, handles[deep])
    p.call("path of the top", path_of, p.top, handles["."])
    for name, flags in names.items():
        p.call(f"{name}, of the second mount", seen, p.other, handle_of(p / name), flags)
        p.call(f"{name}, by the second mount", seen, p.top, handle_of(os.path.join(p.other, name)), flags)


def handles_write(p):
    folder = p.dir("d", 0o755)
    path = p.file("d/file", b"before", 0o640)
    handle = handle_of(path)
    forget(p.top)
    fd = note_open(p, "open to write", p.top, handle, os.O_RDWR)
    if fd is not None:
        os.pwrite(fd, b"AFTER and more", 0)
        os.fsync(fd)
        p.note("through the handle", os.pread(fd, 100, 0))
        p.call("chmod", os.fchmod, fd, 0o604)
        p.call("chown", os.fchown, fd, USER, GROUP)
        p.call("xattr", os.setxattr, fd, "user.note", b"kept")
        p.call("link", name_it, fd, f"{folder}/second")
        os.close(fd)
    with open(path, "rb") as file:
        p.note("by name", file.read())
    st = os.stat(path)
    p.note("attributes", (oct(st.st_mode), st.st_nlink, st.st_uid, st.st_gid, st.st_size))
    forget(p.top)
    fd = note_open(p, "open to cut", p.top, handle, os.O_WRONLY | os.O_TRUNC)
    if fd is not None:
        os.close(fd)
    p.note("cut", os.stat(path).st_size)
    forget(p.top)
    made = note_open(p, "open the directory", p.top, handle_of(folder), os.O_RDONLY)
    if made is not None:
        fd = p.call("create at it", os.open, "new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600, dir_fd=made)
        if fd is not None:
            os.close(fd)
        p.call("up from it", lambda: sorted(os.listdir(os.open("..", os.O_RDONLY, dir_fd=made)))[:1])
        os.close(made)
    p.note("names", sorted(os.listdir(folder)))


def handles_follow_the_file(p):
    a, b = p.dir("a"), p.dir("b")
    moved = handle_of(p.file("a/moved", b"moved"))
    os.rename(f"{a}/moved", f"{b}/elsewhere")
    linked = handle_of(p.file("a/linked", b"linked"))
    os.link(f"{a}/linked", f"{b}/linked")
    os.unlink(f"{a}/linked")
    os.mkdir(f"{a}/sub")
    folder = handle_of(f"{a}/sub")
    os.rename(f"{a}/sub", f"{b}/sub2")
    parent = handle_of(a)
    os.rename(a, f"{b}/a")
    forget(p.top)
    p.call("renamed", seen, p.top, moved)
    p.call("another link", seen, p.top, linked)
    p.call("renamed directory", path_of, p.top, folder)
    forget(p.top)
    p.call("its renamed parent", path_of, p.top, parent)
    forget(p.top)
    p.call("elsewhere", seen, p.other, moved)


def handles_of_what_is_gone(p):
    gone = handle_of(p.file("gone", b"gone"))
    os.unlink(p / "gone")
    p.call("removed", seen, p.top, gone)
    p.call("removed, elsewhere", seen, p.other, gone)
    replaced = handle_of(p.file("replaced", b"old"))
    os.rename(p.file("new", b"new"), p / "replaced")
    p.call("replaced", seen, p.top, replaced)
    folder = p.dir("folder")
    removed = handle_of(folder)
    os.rmdir(folder)
    p.call("removed directory", seen, p.top, removed)
    held = os.open(p.file("held", b"held"), os.O_RDONLY)
    handle = handle_of(p / "held")
    os.unlink(p / "held")
    p.call("removed and open", seen, p.top, handle)
    os.close(held)
    p.call("removed and closed", seen, p.top, handle)
    unnamed = os.open(p.top, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(unnamed, b"unnamed")
    handle = p.call("of an unnamed file", lambda: bool(handle_of("", AT_EMPTY_PATH, unnamed))) and \
        handle_of("", AT_EMPTY_PATH, unnamed)
    p.call("unnamed and open", seen, p.top, handle)
    name_it(unnamed, p / "named")
    os.close(unnamed)
    forget(p.top)
    p.call("named and closed", seen, p.top, handle)
    # Numbers are given anew or not: another file is not the old one.
    for i in range(20):
        p.file(f"another.{i}", b"another")
    for label, old in (("removed", gone), ("replaced", replaced), ("removed directory", removed)):
        p.call(f"{label}, later", seen, p.top, old)


def wrong_handles(p):
    handle = handle_of(p.file("file", b"content"))
    data = bytes(handle.data)[:handle.bytes]
    forget(p.top)
    p.call("right", seen, p.top, handle)
    p.call("another generation", seen, p.top, handle.with_data(data[:-1] + bytes([data[-1] ^ 0x55])))
    p.call("no such number", seen, p.top, handle.with_data(b"\x7f\xff\xff\x7f" * 2 + data[8:]))
    p.call("zeros", seen, p.top, handle.with_data(bytes(len(data))))
    p.call("too short", seen, p.top, handle.with_data(data[:4]))
    p.call("nothing", seen, p.top, handle.with_data(b""))
    p.call("a kind that nobody has", seen, p.top, handle.with_data(data, 0x77))
    p.call("a directory by a file's", open_handle, p.top, handle, os.O_RDONLY | os.O_DIRECTORY)
    p.call("write into a directory", open_handle, p.top, handle_of(p.dir("d")), os.O_WRONLY)
    os.symlink("file", p / "link")
    p.call("a symbolic link", open_handle, p.top, handle_of(p / "link"), os.O_RDONLY)
    os.chmod(p / "file", 0o777)
    p.call_as("a user", STRANGER, open_handle, p.top, handle)
    p.call_as("a user asks for one", STRANGER, lambda: bool(handle_of(p / "file")))


def connectable_handles(p):
    os.makedirs(p / "a/b")
    p.file("a/b/file", b"content")
    handle = p.call("asked for", lambda: bool(handle_of(p / "a/b/file", AT_HANDLE_CONNECTABLE))) and \
        handle_of(p / "a/b/file", AT_HANDLE_CONNECTABLE)
    if handle is None:
        return
    forget(p.top)
    p.call("its path", path_of, p.top, handle)
    os.rename(p / "a/b", p / "b2")
    forget(p.top)
    p.call("its path when its directory moved", path_of, p.top, handle)


def rename_at(old, new, flags):
    if libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def shown(path):
    try:
        st = os.lstat(path)
    except OSError as error:
        return errno.errorcode[error.errno]
    return oct(st.st_mode), st.st_rdev, st.st_uid, st.st_gid, st.st_nlink if not stat.S_ISDIR(st.st_mode) else "dir", \
        os.listxattr(path, follow_symlinks=False)


def whiteouts_by_rename(p):
    a, b = p.dir("a"), p.dir("b")
    p.file("a/file", b"content", 0o644)
    number = os.stat(f"{a}/file").st_ino
    before = os.stat(a).st_mtime_ns
    p.tick()
    p.call("file", rename_at, f"{a}/file", f"{b}/file", WHITEOUT)
    p.note("left", shown(f"{a}/file"))
    p.note("moved", (os.stat(f"{b}/file").st_ino == number, os.stat(a).st_mtime_ns > before))
    p.note("elsewhere", (shown(f"{p.other}/a/file"), sorted(os.listdir(f"{p.other}/a")), os.listdir(f"{p.other}/b")))
    p.call("over a whiteout", rename_at, f"{b}/file", f"{a}/file", WHITEOUT)
    p.note("both", (shown(f"{a}/file"), shown(f"{b}/file")))
    os.mkdir(f"{a}/sub")
    p.file("a/sub/below")
    p.call("directory", rename_at, f"{a}/sub", f"{b}/sub", WHITEOUT)
    p.note("links of the directories", (os.stat(a).st_nlink, os.stat(b).st_nlink))
    p.note("instead of the directory", (shown(f"{a}/sub"), os.listdir(f"{b}/sub"), outcome(os.listdir, f"{a}/sub")))
    p.call("within a directory", rename_at, f"{b}/sub", f"{b}/sub2", WHITEOUT)
    p.note("links after that", (os.stat(b).st_nlink, sorted(os.listdir(b))))
    p.file("a/old", b"old")
    p.file("b/new", b"new")
    p.call("no replacing", rename_at, f"{a}/old", f"{b}/new", WHITEOUT | NOREPLACE)
    p.call("no replacing, free", rename_at, f"{a}/old", f"{b}/free", WHITEOUT | NOREPLACE)
    p.call("replacing", rename_at, f"{b}/free", f"{b}/new", WHITEOUT)
    p.note("replaced", (shown(f"{b}/free"), os.stat(f"{b}/new").st_size))
    p.call("exchange", rename_at, f"{b}/new", f"{a}/file", WHITEOUT | EXCHANGE)
    p.call("a directory over a file", rename_at, f"{b}/sub2", f"{b}/new", WHITEOUT)
    p.call("of a whiteout", rename_at, f"{b}/free", f"{b}/moved", WHITEOUT)
    os.link(f"{b}/new", f"{b}/link")
    p.call("of two links", rename_at, f"{b}/new", f"{b}/link", WHITEOUT)
    p.note("two links", (shown(f"{b}/new"), shown(f"{b}/link")))
    p.call("nothing there", rename_at, f"{b}/absent", f"{b}/x", WHITEOUT)
    p.note("in the end", (sorted(os.listdir(a)), sorted(os.listdir(b))))
    p.call("remove", os.unlink, f"{b}/free")
    for entry in os.scandir(b):
        p.note(f"listed {entry.name}", (entry.is_dir(), entry.is_file(follow_symlinks=False), entry.is_symlink()))


def whiteouts_of_users(p):
    mine = p.dir("mine", 0o755, (USER, GROUP))
    theirs = p.dir("theirs", 0o755)
    sticky = p.dir("sticky", 0o1777)
    grouped = p.dir("grouped", 0o2777)
    p.file("sticky/foreign", b"x", 0o666)
    for name in ("mine/file", "sticky/own", "grouped/file"):
        p.file(name, b"x", 0o644, (USER, GROUP))
    device = stat.S_IFCHR | 0o644
    p.call_as("made", STRANGER, os.mknod, f"{mine}/made", device, os.makedev(0, 0))
    p.note("what was made", shown(f"{mine}/made"))
    p.call_as("another device", STRANGER, os.mknod, f"{mine}/device", device, os.makedev(0, 1))
    p.call_as("a block device", STRANGER, os.mknod, f"{mine}/block", stat.S_IFBLK | 0o644, os.makedev(0, 0))
    p.call_as("left in my own", STRANGER, rename_at, f"{mine}/file", f"{mine}/file2", WHITEOUT)
    p.note("whose", shown(f"{mine}/file"))
    p.call_as("out of a sticky one", STRANGER, rename_at, f"{sticky}/foreign", f"{mine}/foreign", WHITEOUT)
    p.call_as("mine out of a sticky one", STRANGER, rename_at, f"{sticky}/own", f"{mine}/own", WHITEOUT)
    p.call_as("in a directory of others", STRANGER, rename_at, f"{mine}/file2", f"{theirs}/file2", WHITEOUT)
    p.call_as("in a directory that gives its group", STRANGER, rename_at, f"{grouped}/file", f"{mine}/g", WHITEOUT)
    p.note("whose is that", shown(f"{grouped}/file"))
    os.setxattr(mine, DEFAULT, acl(7, 5, 0, 5, users=[(USER + 1, 6)]))
    p.call_as("with a default list", STRANGER, rename_at, f"{mine}/file2", f"{mine}/file3", WHITEOUT)
    p.note("its mode", shown(f"{mine}/file2"))
    p.call("its list", get_acl, f"{mine}/file2")
    p.note("in the end", [sorted(os.listdir(one)) for one in (mine, theirs, sticky, grouped)])


CASES = (handles_of_each_kind, handles_write, handles_follow_the_file, handles_of_what_is_gone, wrong_handles,
         connectable_handles, whiteouts_by_rename, whiteouts_of_users)
