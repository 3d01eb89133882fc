"""Attributes: modes, owners, set-id bits, sticky directories, times, sizes, who may do what."""
import os
import stat

from harness import GROUP, OTHER, THIRD, USER, as_user, open_and_close, outcome

OWNER = (USER, GROUP, [])
MEMBER = (OTHER, THIRD, [GROUP])
STRANGER = (OTHER, THIRD, [])
ROOT = (0, 0, [])
WHO = {"owner": OWNER, "member": MEMBER, "stranger": STRANGER, "root": ROOT}


def mode_of(path):
    return oct(stat.S_IMODE(os.lstat(path).st_mode))


def modes_and_umask(p):
    old = os.umask(0o027)
    try:
        p.file("file")
        os.mkdir(p / "dir")
        os.mkfifo(p / "fifo")
        os.symlink("x", p / "link")
        open_and_close(p / "odd", os.O_CREAT | os.O_WRONLY, 0o7777)
        os.mkdir(p / "odder", 0o7777)
        for name in ("file", "dir", "fifo", "link", "odd", "odder"):
            p.note(name, mode_of(p / name))
    finally:
        os.umask(old)


def chmod_by_everybody(p):
    for who, user in WHO.items():
        for mode in (0o6755, 0o2755, 0o1755, 0o4644, 0o2644):
            path = p.file("f", owner=(USER, GROUP), mode=0o644)
            p.call_as(f"{who} {mode:o}", user, os.chmod, path, mode)
            p.note(f"{who} {mode:o} is", mode_of(path))
    folder = p.dir("d", owner=(USER, THIRD))
    p.call_as("set-gid of a directory by a non-member", OWNER, os.chmod, folder, 0o2755)
    p.note("is", mode_of(folder))
    path = p.file("g", owner=(USER, THIRD), mode=0o644)
    p.call_as("set-gid of a file by a non-member", OWNER, os.chmod, path, 0o2755)
    p.note("is", mode_of(path))


def chown_by_everybody(p):
    for who, user in WHO.items():
        for uid, gid in ((-1, -1), (USER, -1), (OTHER, -1), (-1, GROUP), (-1, THIRD), (USER, GROUP), (0, 0)):
            path = p.file("f", owner=(USER, GROUP), mode=0o6755)
            p.call_as(f"{who} {uid}:{gid}", user, os.chown, path, uid, gid)
            st = os.stat(path)
            p.note(f"{who} {uid}:{gid} is", (st.st_uid, st.st_gid, mode_of(path)))
    folder = p.dir("d", mode=0o6755)
    os.chown(folder, USER, GROUP)
    p.note("directory", mode_of(folder))
    path = p.file("n", mode=0o2644)
    os.chown(path, USER, GROUP)
    p.note("set-gid without execution", mode_of(path))


def set_id_bits_fall(p):
    acts = {"write": lambda path: os.write(os.open(path, os.O_WRONLY), b"x"),
            "append": lambda path: os.write(os.open(path, os.O_WRONLY | os.O_APPEND), b"x"),
            "truncate": lambda path: os.truncate(path, 1), "grow": lambda path: os.truncate(path, 100),
            "ftruncate": lambda path: os.ftruncate(os.open(path, os.O_WRONLY), 2),
            "O_TRUNC": lambda path: open_and_close(path, os.O_WRONLY | os.O_TRUNC),
            "same size": lambda path: os.truncate(path, 4), "read": lambda path: os.read(os.open(path, os.O_RDONLY), 1),
            "nothing written": lambda path: os.write(os.open(path, os.O_WRONLY), b"")}
    for who in ("owner", "member", "root"):
        for name, act in acts.items():
            for mode in (0o6777, 0o2767, 0o4666):
                path = p.file("f", b"data", owner=(USER, GROUP), mode=mode)
                done = as_user(WHO[who], outcome, act, path)
                p.note(f"{who} {name} {mode:o}", (done, mode_of(path)))


def groups_of_new_files(p):
    folder = p.dir("plain", 0o777, (USER, GROUP))
    shared = p.dir("shared", 0o2777, (USER, GROUP))
    for who, user in WHO.items():
        for top in (folder, shared):
            for name, make in (("f", lambda path: open_and_close(path, os.O_CREAT | os.O_WRONLY, 0o2775)),
                               ("d", os.mkdir), ("n", lambda path: os.mknod(path, stat.S_IFREG | 0o2775)),
                               ("l", lambda path: os.symlink("x", path)), ("p", os.mkfifo)):
                path = f"{top}/{name}.{who}"
                as_user(user, outcome, make, path)
                st = os.lstat(path)
                p.note(f"{os.path.basename(path)} in {os.path.basename(top)}", (st.st_uid, st.st_gid, oct(st.st_mode)))


def sticky_directories(p):
    tmp = p.dir("tmp", 0o1777, (THIRD, THIRD))
    mine = p.dir("mine", 0o1777, (OTHER, THIRD))
    for top in (tmp, mine):
        for who, user in WHO.items():
            label = f"{who} in {os.path.basename(top)}"
            for name in ("f", "g"):
                p.file(f"{os.path.basename(top)}/{name}", owner=(USER, GROUP))
            os.mkdir(f"{top}/d")
            os.chown(f"{top}/d", USER, GROUP)
            p.call_as(label + " rename", user, os.rename, f"{top}/f", f"{top}/moved")
            p.call_as(label + " replace", user, os.rename, f"{top}/g", f"{top}/moved")
            p.call_as(label + " unlink", user, os.unlink, f"{top}/moved")
            p.call_as(label + " rmdir", user, os.rmdir, f"{top}/d")
            for name in ("f", "g", "moved"):
                outcome(os.unlink, f"{top}/{name}")
            outcome(os.rmdir, f"{top}/d")


def who_may_open(p):
    path = p.file("f", b"#!/bin/true\n", owner=(USER, GROUP))
    for mode in (0o000, 0o400, 0o200, 0o040, 0o020, 0o004, 0o002, 0o111, 0o070, 0o007, 0o100):
        os.chmod(path, mode)
        for who, user in WHO.items():
            found = [as_user(user, outcome, open_and_close, path, flags)
                     for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC)]
            found += [as_user(user, os.access, path, mask) for mask in (os.R_OK, os.W_OK, os.X_OK)]
            p.note(f"{mode:o} {who}", found)


def who_may_pass(p):
    for mode in (0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o700, 0o010, 0o030, 0o070, 0o001, 0o003, 0o007):
        folder = p.dir(f"d{mode:o}", owner=(USER, GROUP))
        p.file(f"d{mode:o}/f", owner=(USER, GROUP), mode=0o666)
        os.chmod(folder, mode)
        for who, user in WHO.items():
            p.note(f"{mode:o} {who}", [
                as_user(user, outcome, lambda: sorted(os.listdir(folder))),
                as_user(user, outcome, open_and_close, folder + "/f", os.O_RDONLY),
                as_user(user, outcome, open_and_close, folder + "/none", os.O_RDONLY),
                as_user(user, outcome, open_and_close, folder + "/f", os.O_CREAT | os.O_WRONLY),
                as_user(user, outcome, os.mkdir, f"{folder}/new.{who}"),
                as_user(user, outcome, os.rmdir, f"{folder}/new.{who}"),
                as_user(user, outcome, os.rename, folder + "/f", folder + "/g"),
                as_user(user, outcome, os.rename, folder + "/g", folder + "/f"),
                as_user(user, outcome, os.chdir, folder)])
        os.chmod(folder, 0o700)


def times_move(p):
    path, folder = p.file("f", b"data"), p.dir("d")

    def moved(label, act, *watched):
        for watch in watched:
            os.utime(watch, ns=(1_000_000_001, 2_000_000_002), follow_symlinks=False)
        before = [os.lstat(watch) for watch in watched]
        p.tick()
        act()
        after = [os.lstat(watch) for watch in watched]
        p.note(label, [(b.st_mtime_ns != a.st_mtime_ns, b.st_ctime_ns != a.st_ctime_ns)
                       for b, a in zip(before, after)])

    fd = os.open(path, os.O_RDWR)
    moved("write", lambda: os.write(fd, b"x"), path)
    moved("write of nothing", lambda: os.write(fd, b""), path)
    moved("ftruncate shorter", lambda: os.ftruncate(fd, 1), path)
    moved("ftruncate same", lambda: os.ftruncate(fd, 1), path)
    moved("truncate same", lambda: os.truncate(path, 1), path)
    moved("truncate longer", lambda: os.truncate(path, 10), path)
    moved("O_TRUNC", lambda: open_and_close(path, os.O_WRONLY | os.O_TRUNC), path)
    moved("O_TRUNC of an empty one", lambda: open_and_close(path, os.O_WRONLY | os.O_TRUNC), path)
    moved("chmod", lambda: os.chmod(path, 0o600), path)
    moved("chmod same", lambda: os.chmod(path, 0o600), path)
    moved("chown", lambda: os.chown(path, 0, 0), path)
    moved("chown of nothing", lambda: os.chown(path, -1, -1), path)
    moved("setxattr", lambda: os.setxattr(path, "user.x", b"1"), path)
    moved("removexattr", lambda: os.removexattr(path, "user.x"), path)
    moved("create", lambda: p.file("d/new"), folder)
    moved("open of what is there", lambda: p.file("d/new"), folder)
    moved("link", lambda: os.link(path, p / "d/link"), path, folder)
    moved("rename", lambda: os.rename(p / "d/link", p / "d/renamed"), path, folder)
    moved("unlink", lambda: os.unlink(p / "d/renamed"), path, folder)
    moved("mkdir", lambda: os.mkdir(p / "d/sub"), folder)
    moved("rmdir", lambda: os.rmdir(p / "d/sub"), folder)
    moved("symlink", lambda: os.symlink("x", p / "d/sym"), folder)
    moved("fifo", lambda: os.mkfifo(p / "d/fifo"), folder)
    os.close(fd)


def set_times(p):
    path = p.file("f", owner=(USER, GROUP), mode=0o644)
    os.symlink("f", p / "l")
    for stamp in (0, 1, 999_999_999, -1, -1_500_000_000, 2**31 * 10**9 + 5, 2**33 * 10**9):
        p.call(f"{stamp}", os.utime, path, ns=(stamp, stamp + 7))
        st = os.stat(path)
        p.note(f"{stamp} is", (st.st_atime_ns, st.st_mtime_ns))
    p.call("of a link", os.utime, p / "l", ns=(5, 6), follow_symlinks=False)
    p.note("is", (os.lstat(p / "l").st_mtime_ns, os.stat(p / "l").st_mtime_ns == 6))
    for who, user in WHO.items():
        for mode in (0o444, 0o666):
            os.chmod(path, mode)
            p.call_as(f"{who} {mode:o} now", user, os.utime, path)
            p.call_as(f"{who} {mode:o} exact", user, os.utime, path, ns=(1, 2))


def sizes(p):
    path = p.file("f", b"12345")
    p.note("size and blocks", (os.stat(path).st_size, os.stat(path).st_blocks > 0))
    for size in (0, 4096, 1 << 20, 1 << 40):
        p.call(f"truncate to {size}", os.truncate, path, size)
        p.note(f"{size} is", os.stat(path).st_size)
    os.truncate(path, 1 << 40)
    fd = os.open(path, os.O_RDWR)
    p.call("write far out", os.pwrite, fd, b"end", (1 << 40) - 3)
    p.call("read far out", os.pread, fd, 10, (1 << 40) - 3)
    p.call("read in the hole", os.pread, fd, 4, 1 << 35)
    p.call("read behind the end", os.pread, fd, 4, 1 << 41)
    os.close(fd)


CASES = (modes_and_umask, chmod_by_everybody, chown_by_everybody, set_id_bits_fall, groups_of_new_files,
         sticky_directories, who_may_open, who_may_pass, times_move, set_times, sizes)
