#!/usr/bin/env python3
"""What programs expect of a filesystem, call by call, on a real cluster and on the embedded mount.

A case takes an empty directory of a mount and checks one habit of programs. Every case runs on both kinds of
mount, which are made once; the cases that need a cluster of their own follow.
"""
import errno
import fcntl
import mmap
import os
import subprocess
import time

from weirtest import BIN, MIB, Cluster, Embedded, Failure, check, is_mounted, main, run, wait_until


def expect_errno(code, what, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
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


def rename_over_open_file(top):
    put(f"{top}/old", b"old")
    put(f"{top}/new", b"new")
    with open(f"{top}/old", "rb") as held:
        os.rename(f"{top}/new", f"{top}/old")
        check(held.read() == b"old", "an open file changed when another one was renamed over it")
        check(os.fstat(held.fileno()).st_nlink == 0, "a replaced file still has a link")
    check(get(f"{top}/old") == b"new" and os.listdir(top) == ["old"], "rename over a file left something else")


def rename_errors(top):
    os.makedirs(f"{top}/a/b")
    os.mkdir(f"{top}/empty")
    put(f"{top}/file", b"")
    expect_errno(errno.EINVAL, "rename of a directory into itself", os.rename, f"{top}/a", f"{top}/a/b/c")
    expect_errno(errno.ENOTEMPTY, "rename over a full directory", os.rename, f"{top}/empty", f"{top}/a")
    expect_errno(errno.EISDIR, "rename of a file over a directory", os.rename, f"{top}/file", f"{top}/empty")
    expect_errno(errno.ENOTDIR, "rename of a directory over a file", os.rename, f"{top}/a", f"{top}/file")
    expect_errno(errno.ENOENT, "rename of nothing", os.rename, f"{top}/none", f"{top}/x")
    os.rename(f"{top}/a", f"{top}/empty")
    check(os.listdir(f"{top}/empty") == ["b"], "rename over an empty directory")
    expect_errno(errno.ENOTEMPTY, "rmdir of a full directory", os.rmdir, f"{top}/empty")


def hard_links(top):
    put(f"{top}/one", b"1")
    os.link(f"{top}/one", f"{top}/two")
    check(os.stat(f"{top}/one").st_nlink == 2, "two names, but not two links")
    with open(f"{top}/two", "ab") as file:
        file.write(b"2")
    check(get(f"{top}/one") == b"12", "a write by one name is not seen by the other")
    os.unlink(f"{top}/one")
    check(os.stat(f"{top}/two").st_nlink == 1 and get(f"{top}/two") == b"12", "unlink of one name hurt the other")
    os.mkdir(f"{top}/dir")
    expect_errno(errno.EPERM, "hard link of a directory", os.link, f"{top}/dir", f"{top}/dir2")


def append_from_two_handles(top):
    handles = [os.open(f"{top}/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND) for _ in range(2)]
    for number in range(200):
        os.write(handles[number % 2], b"%05d\n" % number)
    for handle in handles:
        os.close(handle)
    check(get(f"{top}/log") == b"".join(b"%05d\n" % n for n in range(200)), "appends of two handles overlap")
    run("dd", "if=/dev/zero", f"of={top}/log", "oflag=append", "conv=notrunc", "bs=100", "count=3")
    check(os.stat(f"{top}/log").st_size == 1500, "dd oflag=append did not append")


def sparse_and_truncate(top):
    fd = os.open(f"{top}/file", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"end", 50 * MIB)
    check(os.pread(fd, 4096, 20 * MIB) == bytes(4096), "a hole is not zeros")
    check(os.pread(fd, 10, 50 * MIB) == b"end", "data behind a hole")
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"a" * (5 * MIB), 0)
    os.ftruncate(fd, 4 * MIB + 1000)
    os.ftruncate(fd, 5 * MIB)
    check(os.pread(fd, MIB, 4 * MIB) == b"a" * 1000 + bytes(MIB - 1000), "truncated data came back")
    os.fsync(fd)
    os.ftruncate(fd, 100)
    os.ftruncate(fd, 5 * MIB)
    os.close(fd)
    check(get(f"{top}/file") == b"a" * 100 + bytes(5 * MIB - 100), "truncated data came back after fsync")


def shared_mapping(top):
    fd = os.open(f"{top}/file", os.O_CREAT | os.O_RDWR)
    os.ftruncate(fd, MIB)
    with mmap.mmap(fd, MIB) as mapped:
        mapped[0:5] = b"first"
        mapped[MIB - 4:] = b"last"
        mapped.flush()
        data = os.pread(fd, MIB, 0)
    os.close(fd)
    check(data[:5] == b"first" and data[-4:] == b"last", "msync did not write the mapping")
    check(get(f"{top}/file") == data, "the mapping was lost after close")


def times_modes_owners(top):
    put(f"{top}/file", b"x")
    os.utime(f"{top}/file", ns=(1_000_000_001, 2_000_000_002))
    stat = os.stat(f"{top}/file")
    check((stat.st_atime_ns, stat.st_mtime_ns) == (1_000_000_001, 2_000_000_002), "utimens lost nanoseconds")
    os.chmod(f"{top}/file", 0o4711)
    os.chown(f"{top}/file", 1001, 1002)
    stat = os.stat(f"{top}/file")
    check((stat.st_uid, stat.st_gid) == (1001, 1002), "chown did not hold")
    check(stat.st_mode & 0o777 == 0o711, "chmod did not hold")
    before = time.time() - 5
    with open(f"{top}/file", "ab") as file:
        file.write(b"y")
    check(os.stat(f"{top}/file").st_mtime > before, "a write did not move mtime")


def names_and_links(top):
    longest = f"{top}/" + "n" * 255
    put(longest, b"long")
    check(get(longest) == b"long" and os.listdir(top) == ["n" * 255], "a name of 255 bytes")
    expect_errno(errno.ENAMETOOLONG, "a name of 256 bytes", put, f"{top}/" + "n" * 256, b"")
    os.symlink("loop2", f"{top}/loop1")
    os.symlink("loop1", f"{top}/loop2")
    expect_errno(errno.ELOOP, "a loop of symlinks", os.stat, f"{top}/loop1")
    os.symlink("t" * 4000, f"{top}/far")
    check(os.readlink(f"{top}/far") == "t" * 4000, "a long symlink came back different")
    expect_errno(errno.EEXIST, "symlink over a name", os.symlink, "x", f"{top}/far")
    expect_errno(errno.ENOTDIR, "a path through a file", os.stat, f"{longest}/x")
    odd = f"{top}/".encode() + b"\xff\xfe \n"
    put(odd, b"odd")
    check(odd.rsplit(b"/", 1)[1] in os.listdir(top.encode()), "a name that is no UTF-8 is not listed")


def directories_fsync(top):
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    put(f"{top}/file", b"x")
    os.fsync(fd)
    os.close(fd)
    expect_errno(errno.EISDIR, "open of a directory for writing", os.open, top, os.O_WRONLY)
    expect_errno(errno.EEXIST, "O_EXCL on a name", os.open, f"{top}/file", os.O_CREAT | os.O_EXCL)


def locks_of_one_mount(top):
    put(f"{top}/lock", b"x" * 100)
    holder = open(f"{top}/lock", "r+b")
    fcntl.flock(holder, fcntl.LOCK_EX)
    check(run("flock", "-n", f"{top}/lock", "true", ok=None).returncode == 1, "flock was given twice")
    fcntl.flock(holder, fcntl.LOCK_UN)
    run("flock", "-n", f"{top}/lock", "true")
    fcntl.lockf(holder, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
    child = ("import fcntl,sys;f=open(sys.argv[1],'r+b');fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,10,20)\n"
             "try: fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,10,5)\nexcept OSError: sys.exit(7)")
    check(run("python3", "-c", child, f"{top}/lock", ok=None).returncode == 7, "a byte range was locked twice")
    holder.close()


def trees_by_tools(top):
    source = f"{top}/source"
    for folder in range(5):
        os.makedirs(f"{source}/d{folder}")
        for index in range(20):
            put(f"{source}/d{folder}/f{index}", bytes([index]) * (index * 777))
    os.setxattr(f"{source}/d0/f1", "user.note", b"kept")
    run("tar", "-C", top, "-cf", f"{top}/all.tar", "source")
    os.mkdir(f"{top}/out")
    run("tar", "-C", f"{top}/out", "-xf", f"{top}/all.tar")
    run("diff", "-r", source, f"{top}/out/source")
    run("cp", "-a", source, f"{top}/copy")
    check(os.getxattr(f"{top}/copy/d0/f1", "user.note") == b"kept", "cp -a lost an xattr")
    check(int(run("du", "-sb", "--apparent-size", source).stdout.split()[0]) > 5 * 777 * 190, "du counts too little")
    check("%" in run("df", top).stdout, "df shows nothing")
    run("find", f"{top}/copy", "-delete")
    check(not os.path.exists(f"{top}/copy"), "find -delete left something")


CASES = (rename_over_open_file, rename_errors, hard_links, append_from_two_handles, sparse_and_truncate,
         shared_mapping, times_modes_owners, names_and_links, directories_fsync, locks_of_one_mount, trees_by_tools)


def run_cases(mount):
    failed = []
    for case in CASES:
        top = f"{mount}/{case.__name__}"
        os.mkdir(top)
        try:
            case(top)
        except Exception as error:  # noqa: BLE001 - every case is heard before the verdict
            failed.append(f"{case.__name__}: {error!r}")
    check(not failed, "; ".join(failed))


def cases_on_a_cluster(lab):
    run_cases(Cluster(lab, osds=3).mnt)


def cases_embedded(lab):
    run_cases(Embedded(lab).mnt)


def another_user_owns_his_files(lab):
    mount = Embedded(lab, "-o", "allow_other").mnt
    os.chmod(lab.dir, 0o755)
    os.chmod(mount, 0o1777)
    put(f"{mount}/of_root", b"")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    run(*user, "touch", f"{mount}/mine")
    run(*user, "chmod", "600", f"{mount}/mine")
    stat = os.stat(f"{mount}/mine")
    check((stat.st_uid, stat.st_mode & 0o777) == (65534, 0o600), "a user does not own what he made")
    for argv in (["chmod", "777", f"{mount}/of_root"], ["chown", "0", f"{mount}/mine"], ["rm", "-f", f"{mount}/of_root"]):
        check(run(*user, *argv, ok=None).returncode != 0, f"nobody may {' '.join(argv)}")
    run(*user, "rm", f"{mount}/mine")


def weirfs_mount(lab, system, name, *options):
    mount = lab.path(name)
    os.makedirs(mount)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    lab.on_exit(lambda: is_mounted(mount) and run("umount", "-l", mount, ok=None))
    run(f"{BIN}/weirfs", endpoint, mount, *options)
    return mount


def read_only_mount(lab):
    system = Cluster(lab)
    put(f"{system.mnt}/file", b"x")
    mount = weirfs_mount(lab, system, "ro", "-o", "ro")
    check(get(f"{mount}/file") == b"x", "a read-only mount does not read")
    expect_errno(errno.EROFS, "a write on a read-only mount", put, f"{mount}/file", b"y")
    run("umount", mount)


def mount_with_a_class(lab):
    system = Cluster(lab)
    system.osdctl("class", "create", "gold")
    mount = weirfs_mount(lab, system, "gold", "-o", "class=gold")
    put(f"{mount}/file", b"x")
    shown = os.getxattr(f"{mount}/file", "qos.effective_class").decode()
    check(shown.startswith("gold"), f"-o class=gold, but the file is in {shown}")


def timeout_is_eio(lab):
    system = Cluster(lab)
    mount = weirfs_mount(lab, system, "hasty", "-o", "timeout=2")
    put(f"{mount}/file", b"x" * 100_000)
    fd = os.open(f"{mount}/file", os.O_RDWR | os.O_DIRECT)
    os.fsync(fd)
    system.dev("kill", "osd.0")
    start = time.monotonic()
    expect_errno(errno.EIO, "a read from a dead OSD", os.readv, fd, [mmap.mmap(-1, 4096)])
    check(time.monotonic() - start >= 1, "gave up before the timeout")
    os.close(fd)
    system.dev("start", "osd.0")
    wait_until(lambda: not _fails(get, f"{mount}/file"), "the mount to serve again")


def _fails(function, *args):
    try:
        function(*args)
        return False
    except OSError:
        return True


def umount_with_dead_daemons(lab):
    system = Cluster(lab, osds=1)
    mount = weirfs_mount(lab, system, "orphan")
    put(f"{mount}/file", b"x" * 100_000)
    for daemon in ("osd.0", "mds.0"):
        system.dev("kill", daemon)
    reader = subprocess.Popen(["cat", f"{mount}/other"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    reader.kill()  # A waiting process must die of it, dead cluster or not.
    reader.wait(timeout=30)
    begun = time.monotonic()
    run("umount", mount, timeout=60)
    lab.show(f"        umount took {time.monotonic() - begun:.1f} s")
    check(not is_mounted(mount), "umount returned, but the mount is there")
    for daemon in ("mds.0", "osd.0"):
        system.dev("start", daemon)


def umount_while_busy(lab):
    system = Embedded(lab)
    held = open(f"{system.mnt}/held", "wb")
    held.write(b"x")
    check(run("umount", system.mnt, ok=None).returncode != 0, "umount of a busy mount succeeded")
    held.close()
    run("fusermount3", "-u", system.mnt)
    system.umount()
    system.mount()
    check(get(f"{system.mnt}/held") == b"x", "a file is gone after a refused umount")


if __name__ == "__main__":
    main("posix", cases_on_a_cluster, cases_embedded, another_user_owns_his_files, read_only_mount, mount_with_a_class,
         timeout_is_eio, umount_with_dead_daemons, umount_while_busy)
