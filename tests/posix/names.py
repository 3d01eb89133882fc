"""Names: create, look, rename, link, unlink, list."""
import ctypes
import os
import socket
import stat

from harness import USER, GROUP, open_and_close

libc = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4


def renameat2(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def lengths_of_names(p):
    p.call("255", open_and_close, p / ("n" * 255), os.O_CREAT | os.O_WRONLY)
    for make in (lambda n: open_and_close(n, os.O_CREAT | os.O_WRONLY), os.mkdir, os.mkfifo, os.stat, os.unlink,
                 os.rmdir, lambda n: os.symlink("x", n), lambda n: os.link(p / ("n" * 255), n),
                 lambda n: os.rename(p / ("n" * 255), n), lambda n: os.rename(n, p / "x")):
        p.call("256", make, p / ("n" * 256))
    p.call("empty", os.stat, "")
    p.call("empty mkdir", os.mkdir, "")
    p.note("listed", os.listdir(p.top))


def deep_paths(p):
    start = os.open(".", os.O_RDONLY)
    os.chdir(p.top)
    for level in range(30):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    open_and_close("deep", os.O_CREAT | os.O_WRONLY)
    p.call("open by a long relative path", open_and_close, ("../" * 1365)[:-1], os.O_RDONLY)
    p.call("beyond PATH_MAX", open_and_close, p.top + ("/" + "d" * 200) * 30, os.O_RDONLY)
    p.call("PATH_MAX slashes", os.stat, "/" * 4096)
    os.fchdir(start)
    os.close(start)
    p.call("4095 bytes", lambda: os.stat(p.top + "/" + "./" * ((4095 - len(p.top) - 1) // 2)) and None)


def symbolic_links(p):
    p.file("file")
    os.mkdir(p / "dir")
    p.call("4095", os.symlink, "t" * 4095, p / "long")
    p.note("read", len(os.readlink(p / "long")))
    p.call("4096", os.symlink, "t" * 4096, p / "longer")
    p.call("empty", os.symlink, "", p / "empty")
    p.call("over a name", os.symlink, "x", p / "file")
    os.symlink("loop2", p / "loop1")
    os.symlink("loop1", p / "loop2")
    os.symlink("nothing", p / "dangling")
    os.symlink("dir", p / "todir")
    p.call("loop", os.stat, p / "loop1")
    p.call("open loop", open_and_close, p / "loop1", os.O_RDONLY)
    p.call("create through loop", open_and_close, p / "loop1", os.O_CREAT | os.O_WRONLY)
    p.call("NOFOLLOW", open_and_close, p / "todir", os.O_RDONLY | os.O_NOFOLLOW)
    p.call("EXCL on dangling", open_and_close, p / "dangling", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    p.call("mkdir on dangling", os.mkdir, p / "dangling")
    p.call("create through dangling", open_and_close, p / "dangling", os.O_CREAT | os.O_WRONLY)
    p.note("made", sorted(os.listdir(p.top)))
    p.call("DIRECTORY on a link", open_and_close, p / "todir", os.O_RDONLY | os.O_DIRECTORY)
    p.call("readlink of a file", os.readlink, p / "file")
    p.call("rmdir of a link", os.rmdir, p / "todir")
    p.call("rmdir of a link/", os.rmdir, p / "todir/")
    p.note("size and mode", (os.lstat(p / "todir").st_size, oct(os.lstat(p / "todir").st_mode)))
    p.call("chmod of a link", os.chmod, p / "dangling", 0o640)
    os.lchown(p / "todir", USER, GROUP)
    p.note("owner", (os.lstat(p / "todir").st_uid, os.stat(p / "dir").st_uid == USER))
    p.call("hard link to a link", os.link, p / "todir", p / "second", follow_symlinks=False)
    p.note("links", os.lstat(p / "todir").st_nlink)


def errors_of_open(p):
    file, folder = p.file("file"), p.dir("dir")
    p.call("absent", open_and_close, p / "none", os.O_RDONLY)
    p.call("directory for writing", open_and_close, folder, os.O_WRONLY)
    p.call("directory with CREAT", open_and_close, folder, os.O_CREAT | os.O_RDONLY)
    p.call("directory with TRUNC", open_and_close, folder, os.O_RDONLY | os.O_TRUNC)
    p.call("file as DIRECTORY", open_and_close, file, os.O_RDONLY | os.O_DIRECTORY)
    p.call("file/", open_and_close, file + "/", os.O_RDONLY)
    p.call("new/", open_and_close, p / "new/", os.O_CREAT | os.O_WRONLY)
    p.call("through a file", open_and_close, file + "/x", os.O_CREAT | os.O_WRONLY)
    p.call("EXCL", open_and_close, file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    p.call("mkdir on a file", os.mkdir, file)
    p.call("mkdir on a directory", os.mkdir, folder)
    p.call("mkdir/", os.mkdir, p / "slash/")
    p.call("rmdir of a file", os.rmdir, file)
    p.call("unlink of a directory", os.unlink, folder)
    p.call("rmdir .", os.rmdir, folder + "/.")
    p.call("rmdir ..", os.rmdir, folder + "/..")
    p.call("unlink file/", os.unlink, file + "/")
    os.mkdir(folder + "/sub")
    p.call("rmdir of a full one", os.rmdir, folder)
    p.call("read of a write-only one", lambda: os.read(os.open(file, os.O_WRONLY), 1))
    p.call("write to a read-only one", lambda: os.write(os.open(file, os.O_RDONLY), b"x"))
    p.call("ftruncate of a read-only one", lambda: os.ftruncate(os.open(file, os.O_RDONLY), 0))
    p.call("negative size", os.truncate, file, -1)
    p.call("truncate of a directory", os.truncate, folder, 0)
    p.call("read of a directory", lambda: os.read(os.open(folder, os.O_RDONLY), 10))
    p.call("pread before the start", lambda: os.pread(os.open(file, os.O_RDONLY), 1, -1))


def rename_every_kind(p):
    kinds = {"file": lambda n: p.file(n), "link": lambda n: os.symlink("x", p / n), "empty": lambda n: p.dir(n),
             "full": lambda n: (p.dir(n), p.dir(n + "/sub")), "fifo": lambda n: os.mkfifo(p / n), "none": lambda n: None}
    count = 0
    for source, make in kinds.items():
        for target, make_target in kinds.items():
            for flags in (0, NOREPLACE, EXCHANGE):
                count += 1
                make(f"a{count}")
                make_target(f"b{count}")
                p.call(f"{source} to {target} flags {flags}", renameat2, p / f"a{count}", p / f"b{count}", flags)
                p.note(f"{source} to {target} flags {flags} leaves",
                       [stat.S_IFMT(os.lstat(p / n).st_mode) if os.path.lexists(p / n) else None
                        for n in (f"a{count}", f"b{count}")])


def rename_errors(p):
    p.dir("a")
    p.dir("a/b")
    p.file("file", b"1")
    os.link(p / "file", p / "same")
    p.call("into itself", os.rename, p / "a", p / "a/b/c")
    p.call("onto its parent", os.rename, p / "a/b", p / "a")
    p.call("exchange with its parent", renameat2, p / "a/b", p / "a", EXCHANGE)
    p.call("onto itself", os.rename, p / "a", p / "a")
    p.call(".", os.rename, p / "a/.", p / "x")
    p.call("..", os.rename, p / "a/b/..", p / "x")
    p.call("to .", os.rename, p / "file", p / "a/.")
    p.call("two links of one file", os.rename, p / "file", p / "same")
    p.note("both stay", sorted(os.listdir(p.top)))
    p.call("exchange of two links", renameat2, p / "file", p / "same", EXCHANGE)
    p.call("file/ to new", os.rename, p / "file/", p / "new")
    p.call("dir to new/", os.rename, p / "a", p / "new/")
    p.call("both flags", renameat2, p / "new", p / "x", NOREPLACE | EXCHANGE)
    p.call("unknown flag", renameat2, p / "new", p / "x", 64)
    p.call("into a removed directory", lambda: in_removed(p, lambda d: os.rename(p / "same", "x", dst_dir_fd=d)))


def in_removed(p, function):
    os.mkdir(p / "removed")
    fd = os.open(p / "removed", os.O_RDONLY)
    os.rmdir(p / "removed")
    try:
        return function(fd)
    finally:
        os.close(fd)


def removed_directories(p):
    p.call("create", lambda: in_removed(p, lambda d: os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=d)))
    p.call("mkdir", lambda: in_removed(p, lambda d: os.mkdir("x", dir_fd=d)))
    p.call("symlink", lambda: in_removed(p, lambda d: os.symlink("y", "x", dir_fd=d)))
    p.call("link", lambda: in_removed(p, lambda d: os.link(p.file("f"), "x", dst_dir_fd=d)))
    p.call("list", lambda: in_removed(p, os.listdir))
    p.call("look", lambda: in_removed(p, lambda d: os.stat("x", dir_fd=d)))
    p.call("links", lambda: in_removed(p, lambda d: os.fstat(d).st_nlink))
    p.call("fchmod", lambda: in_removed(p, lambda d: os.fchmod(d, 0o700)))


def hard_links(p):
    file = p.file("one", b"1")
    before = os.stat(file)
    p.tick()
    os.link(file, p / "two")
    after = os.stat(p / "two")
    p.note("count", (after.st_nlink, after.st_ino == before.st_ino))
    p.note("ctime moves", after.st_ctime_ns > before.st_ctime_ns)
    p.note("mtime stays", after.st_mtime_ns == before.st_mtime_ns)
    p.tick()
    os.unlink(file)
    left = os.stat(p / "two")
    p.note("after unlink", (left.st_nlink, left.st_ctime_ns > after.st_ctime_ns))
    p.call("of a directory", os.link, p.dir("dir"), p / "dir2")
    p.call("over a name", os.link, p / "two", p / "dir")
    p.call("of nothing", os.link, p / "none", p / "x")
    fd = os.open(p / "two", os.O_RDWR)
    os.unlink(p / "two")
    p.note("open and unlinked", (os.fstat(fd).st_nlink, os.read(fd, 9), os.write(fd, b"2")))
    p.call("link of the unlinked", os.link, f"/proc/self/fd/{fd}", p / "again", follow_symlinks=True)
    p.call("fchmod of the unlinked", os.fchmod, fd, 0o600)
    os.close(fd)


def rename_keeps_and_moves(p):
    p.dir("from")
    p.dir("to")
    p.file("from/f", b"old")
    p.file("to/f", b"victim")
    held = os.open(p / "to/f", os.O_RDWR)
    before = os.stat(p / "from/f")
    times = os.stat(p / "from").st_mtime_ns, os.stat(p / "to").st_mtime_ns
    p.tick()
    os.rename(p / "from/f", p / "to/f")
    after = os.stat(p / "to/f")
    p.note("inode stays", before.st_ino == after.st_ino)
    p.note("ctime moves", after.st_ctime_ns > before.st_ctime_ns)
    p.note("mtime stays", after.st_mtime_ns == before.st_mtime_ns)
    p.note("mtimes of both directories move",
           (os.stat(p / "from").st_mtime_ns > times[0], os.stat(p / "to").st_mtime_ns > times[1]))
    p.note("the replaced one", (os.fstat(held).st_nlink, os.read(held, 9)))
    p.call("write to the replaced one", os.write, held, b"x")
    p.call("fsync of the replaced one", os.fsync, held)
    p.call("close of the replaced one", os.close, held)
    p.dir("from/sub")
    os.rename(p / "from/sub", p / "to/sub")
    p.note("..", os.stat(p / "to/sub/..").st_ino == os.stat(p / "to").st_ino)
    p.note("links", (os.stat(p / "from").st_nlink, os.stat(p / "to").st_nlink))


def special_files(p):
    for name, mode in (("fifo", stat.S_IFIFO), ("char", stat.S_IFCHR), ("block", stat.S_IFBLK), ("reg", stat.S_IFREG),
                       ("sock", stat.S_IFSOCK)):
        p.call(name, os.mknod, p / name, mode | 0o640, os.makedev(1, 3))
        st = os.lstat(p / name)
        p.note(name + " is", (oct(st.st_mode), st.st_nlink, st.st_size, os.major(st.st_rdev), os.minor(st.st_rdev)))
    p.call("directory by mknod", os.mknod, p / "d", stat.S_IFDIR | 0o755)
    p.call_as("char by a user", (USER, GROUP, []), os.mknod, p / "x", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    p.call("read the null device", lambda: os.read(os.open(p / "char", os.O_RDONLY), 1))
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        os.chdir(p.top)
        server.bind("bound")
        server.listen(1)
        p.call("connect", client.connect, "bound")
        with socket.socket(socket.AF_UNIX) as another:
            p.call_as("connect as a stranger", (USER, GROUP, []), another.connect, "bound")
        os.chdir("/")
    p.call("open a socket", open_and_close, p / "bound", os.O_RDONLY)
    p.call("truncate a fifo", os.truncate, p / "fifo", 0)
    p.call_as("open a fifo as a stranger", (USER, GROUP, []), open_and_close, p / "fifo", os.O_RDONLY | os.O_NONBLOCK)


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_uint16), ("type", ctypes.c_uint8),
                ("name", ctypes.c_char * 256)]


class Listing:
    """readdir(3) with telldir and seekdir, which Python does not have."""

    def __init__(self, path):
        libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
        self.dir = ctypes.c_void_p(libc.opendir(path.encode()))

    def read(self):
        found = libc.readdir(self.dir)
        return Dirent.from_address(found).name.decode() if found else None

    def rest(self):
        return list(iter(self.read, None))

    def tell(self):
        libc.telldir.restype = ctypes.c_long
        return libc.telldir(self.dir)

    def seek(self, where):
        libc.seekdir(self.dir, ctypes.c_long(where))

    def close(self):
        libc.closedir(self.dir)


def listing_while_it_changes(p):
    names = {f"n{i:04}" for i in range(1200)}
    for name in names:
        os.mknod(p / name, 0o100644)  # more than one buffer of them
    listing = Listing(p.top)
    seen, places = [], []
    for _ in range(150):
        places.append(listing.tell())
        seen.append(listing.read())
    for name in seen[30:60]:
        if name not in (".", ".."):
            os.unlink(p / name)
    for i in range(20):
        p.file(f"later{i}")
    rest = listing.rest()
    both = [name for name in seen + rest if not name.startswith("later") and name not in (".", "..")]
    p.note("each exactly once", sorted(both) == sorted(names))
    listing.seek(places[100])
    p.note("seekdir goes back", listing.read() == seen[100])
    listing.seek(places[0])
    again = listing.rest()
    p.note("from the start", set(again) - {".", ".."} == set(os.listdir(p.top)))
    listing.close()
    p.note("dots", sorted(set(again) - set(os.listdir(p.top))))


def types_in_listings(p):
    p.file("file")
    p.dir("dir")
    os.symlink("x", p / "link")
    os.mkfifo(p / "fifo")
    p.note("types", sorted((e.name, e.is_file(follow_symlinks=False), e.is_dir(follow_symlinks=False), e.is_symlink())
                           for e in os.scandir(p.top)))
    p.note("inodes", all(e.inode() == os.lstat(e.path).st_ino for e in os.scandir(p.top)))
    p.note("links of a directory", os.stat(p.top).st_nlink)


CASES = (lengths_of_names, deep_paths, symbolic_links, errors_of_open, rename_every_kind, rename_errors,
         removed_directories, hard_links, rename_keeps_and_moves, special_files, listing_while_it_changes,
         types_in_listings)
