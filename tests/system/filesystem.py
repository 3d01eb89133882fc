#!/usr/bin/env python3
"""It is a filesystem: applications and fio verification on a real multi-process cluster of three OSDs."""
import contextlib
import errno
import mmap
import os
import sqlite3
import subprocess
import threading

from weirtest import MIB, Cluster, Embedded, Failure, check, fio, main, run, wait_until


def one_byte(lab):
    for system in (Embedded(lab), Cluster(lab, token_rate=None)):
        path = f"{system.mnt}/byte"
        with open(path, "wb") as file:
            file.write(b"x")
        with open(path, "rb") as file:
            check(file.read() == b"x", "one byte written, another one read")
        check(os.stat(path).st_size == 1, f"size {os.stat(path).st_size} after one byte")


def embedded_remount_keeps_everything(lab):
    system = Embedded(lab)
    os.makedirs(f"{system.mnt}/a/b")
    payload = os.urandom(3_000_001)
    with open(f"{system.mnt}/a/b/file", "wb") as file:
        file.write(payload)
    os.symlink("b/file", f"{system.mnt}/a/link")
    os.chmod(f"{system.mnt}/a/b/file", 0o640)
    system.umount()
    system.mount()
    with open(f"{system.mnt}/a/link", "rb") as file:
        check(file.read() == payload, "the file came back different")
    check(os.stat(f"{system.mnt}/a/b/file").st_mode & 0o7777 == 0o640, "the mode was lost")


def a_layout_is_for_empty_files(lab):
    """What a file holds that is not stored nor reported yet, or only in the kernel's pages, counts."""
    def tried(system):
        data = os.urandom(20 * MIB)
        for name, size in (("large", len(data)), ("small", 1)):
            path = f"{system.mnt}/{name}"
            with open(path, "wb") as file:
                file.write(data[:size])
            try:
                os.setxattr(path, "user.weir.layout.object_size", b"64KiB")
                raise Failure(f"{path} has data and got a layout")
            except OSError as error:
                check(error.errno == errno.EINVAL, f"{path}: {error}")
        path = f"{system.mnt}/empty"
        with open(path, "wb") as file:
            os.setxattr(path, "user.weir.layout.object_size", b"64KiB")
            file.write(data)
        return data

    embedded = Embedded(lab, "--osd-size", "512MiB", "--token-rate", "1GiB/s")
    data = tried(embedded)
    embedded.umount()
    embedded.mount()
    for name, size in (("large", len(data)), ("small", 1), ("empty", len(data))):
        with open(f"{embedded.mnt}/{name}", "rb") as file:
            check(file.read() == data[:size], f"'{name}' holds something else")
    cluster = Cluster(lab, mounts=2)
    data = tried(cluster)
    for name, size in (("large", len(data)), ("small", 1), ("empty", len(data))):
        with open(f"{cluster.mounts[1]}/{name}", "rb") as file:
            check(file.read() == data[:size], f"the other mount finds something else in '{name}'")


def fio_verifies(lab):
    system = Cluster(lab, osds=3)
    for direct in (0, 1):
        for pattern in ("write", "randwrite"):
            for block in ("4k", "64k", "1m", "4m"):
                size = {"4k": "8m"}.get(block, "48m")
                job = {"name": f"{pattern}-{block}-{direct}", "rw": pattern, "bs": block, "size": size,
                       "direct": direct, "verify": "crc32c", "directory": system.mnt, "ioengine": "libaio",
                       "iodepth": 8, "do_verify": 1, "verify_fatal": 1, "end_fsync": 1, "unlink": 1}
                result = fio(lab, job)[job["name"]]
                check(result["error"] == 0, f"{job['name']}: fio error {result['error']}")


def fio_verifies_eight_jobs(lab):
    """Reads and writes of mixed sizes at once, each job verifying what it wrote; buffered, direct and mapped."""
    for system in (Cluster(lab, osds=3), Embedded(lab)):
        for engine, direct in (("libaio", 0), ("libaio", 1), ("mmap", 0)):
            job = {"name": f"{engine}-{direct}", "rw": "randrw", "bssplit": "4k/40:16k/30:64k/20:256k/10", "size": "8m",
                   "numjobs": 8, "group_reporting": 1, "direct": direct, "ioengine": engine, "iodepth": 4,
                   "verify": "crc32c", "verify_backlog": 64, "do_verify": 1, "verify_fatal": 1, "end_fsync": 1,
                   "unlink": 1, "directory": system.mnt}
            result = fio(lab, job)[job["name"]]
            check(result["error"] == 0, f"{job['name']}: fio error {result['error']}")


def copies_a_tree(lab):
    system = Cluster(lab, osds=3)
    source = os.environ.get("WEIR_COPY_TREE", "/usr/include/linux")
    run("cp", "-a", source, f"{system.mnt}/tree", timeout=300)
    run("diff", "-r", "--no-dereference", source, f"{system.mnt}/tree", timeout=300)
    listing = run("find", ".", "-printf", "%p %y %m %s %l %TY-%Tm-%Td %TH:%TM:%TS\n", cwd=source).stdout
    copy = run("find", ".", "-printf", "%p %y %m %s %l %TY-%Tm-%Td %TH:%TM:%TS\n", cwd=f"{system.mnt}/tree").stdout
    strip = lambda text: sorted(line for line in text.splitlines() if " d " not in line)  # noqa: E731
    check(strip(listing) == strip(copy), "cp -a lost a mode, a size, a link or a time")


def git_and_build(lab):
    system = Cluster(lab, osds=3)
    source = lab.path("project")
    os.makedirs(source)
    for index in range(40):
        with open(f"{source}/part{index}.c", "w") as file:
            file.write(f"int part{index}(int x) {{ return x + {index}; }}\n")
    with open(f"{source}/main.c", "w") as file:
        file.write("#include <stdio.h>\n" + "".join(f"int part{i}(int);\n" for i in range(40)))
        file.write("int main(void) { int s = 0; " + "".join(f"s = part{i}(s);" for i in range(40)))
        file.write(' printf("%d\\n", s); return 0; }\n')
    with open(f"{source}/Makefile", "w") as file:
        file.write("OBJS := $(patsubst %.c,%.o,$(wildcard *.c))\nsum: $(OBJS)\n\tcc -o $@ $^\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "safe.directory=*"]
    run(*git, "init", "-q", cwd=source)
    run(*git, "add", "-A", cwd=source)
    run(*git, "commit", "-qm", "a project", cwd=source)
    clone = f"{system.mnt}/clone"
    run(*git, "clone", "-q", source, clone)
    run(*git, "fsck", "--full", "--strict", cwd=clone)
    run("make", "-s", "-j2", cwd=clone, timeout=300)
    check(run("./sum", cwd=clone).stdout == "780\n", "the built program is wrong")
    check(run(*git, "status", "--porcelain", "--untracked-files=no", cwd=clone).stdout == "", "git sees changes")


def sqlite_transactions(lab):
    system = Cluster(lab, osds=3)
    count = int(os.environ.get("WEIR_SQLITE_TX", "1000"))
    database = sqlite3.connect(f"{system.mnt}/test.db", isolation_level=None)
    database.execute("create table t(id integer primary key, v blob)")
    for index in range(count):
        database.execute("begin")
        database.execute("insert into t values(?, ?)", (index, os.urandom(200)))
        database.execute("commit")
    check(database.execute("pragma integrity_check").fetchone()[0] == "ok", "integrity_check failed")
    check(database.execute("select count(*) from t").fetchone()[0] == count, "rows are missing")
    database.close()


def large_directory(lab):
    system = Cluster(lab, osds=3)
    count = int(os.environ.get("WEIR_DIR_FILES", "10000"))
    folder = f"{system.mnt}/many"
    os.mkdir(folder)

    def make(part):
        for index in range(part, count, 4):
            os.close(os.open(f"{folder}/f{index:06}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))

    workers = [threading.Thread(target=make, args=(p,)) for p in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    names = os.listdir(folder)
    check(len(names) == count and len(set(names)) == count, f"{len(names)} of {count} names listed")
    run("rm", "-r", folder, timeout=600)
    check(not os.path.exists(folder), "rm -r left the directory")


def large_files_go_at_once(lab):
    """Unlink of 4 GiB is a matter of the namespace: nobody waits for the OSDs that hold the data."""
    system = Cluster(lab, osds=2)
    path = f"{system.mnt}/large"
    with open(path, "wb") as file:
        for index in range(1024):
            os.pwrite(file.fileno(), b"x" * 4096, index << 22)
        file.flush()
        os.fsync(file.fileno())
    for osd in ("osd.0", "osd.1"):
        system.dev("kill", osd)
    os.unlink(path)
    check(os.listdir(system.mnt) == [], "the name is still there")
    for osd in ("osd.0", "osd.1"):
        system.dev("start", osd)
    with open(path, "wb") as file:  # another one, of which nothing was purged
        file.write(b"young")
    with open(path, "rb") as file:
        check(file.read() == b"young", "the file that took the name came back different")


def two_mounts_agree(lab):
    system = Cluster(lab, osds=3, mounts=2)
    a, b = system.mounts
    for index in range(50):
        with open(f"{a}/f{index}", "wb") as file:
            file.write(b"first %d" % index)
        with open(f"{b}/f{index}", "rb") as file:
            check(file.read() == b"first %d" % index, "a closed write is not seen by the other mount")
        with open(f"{b}/f{index}", "r+b") as file:
            file.write(b"SECOND")
        with open(f"{a}/f{index}", "rb") as file:
            check(file.read().startswith(b"SECOND"), "an overwrite is not seen by the first mount")
        os.rename(f"{b}/f{index}", f"{b}/g{index}")
        check(os.path.exists(f"{a}/g{index}") and not os.path.exists(f"{a}/f{index}"), "a rename is not seen")
        os.truncate(f"{a}/g{index}", 3)
        check(os.stat(f"{b}/g{index}").st_size == 3, "a truncation is not seen")
    os.mkdir(f"{a}/d")
    check(os.listdir(f"{b}/d") == [], "a new directory is not seen")
    os.rmdir(f"{b}/d")
    check(not os.path.exists(f"{a}/d"), "a removed directory is still there")


def leases_give_way(lab):
    """One mount may answer looks into a directory by itself; what the other one does there is seen all the same."""
    system = Cluster(lab, osds=1, mounts=2)
    a, b = system.mounts
    for index in range(6):
        folder = f"d{index}"
        os.makedirs(f"{a}/{folder}/sub")
        for name in ("x", "y", "z"):
            check(not os.path.exists(f"{a}/{folder}/{name}"), f"{name} exists in a new directory")
        change, seen = [
            (lambda: os.close(os.open(f"{b}/{folder}/x", os.O_CREAT | os.O_EXCL)),
             lambda: os.path.exists(f"{a}/{folder}/x")),
            (lambda: os.mkdir(f"{b}/{folder}/y"), lambda: os.path.isdir(f"{a}/{folder}/y")),
            (lambda: os.rmdir(f"{b}/{folder}/sub"), lambda: not os.path.exists(f"{a}/{folder}/sub")),
            (lambda: os.rename(f"{b}/{folder}/sub", f"{b}/{folder}/z"),
             lambda: os.path.isdir(f"{a}/{folder}/z") and not os.path.exists(f"{a}/{folder}/sub")),
            (lambda: os.rename(f"{b}/{folder}", f"{b}/moved"),
             lambda: os.path.isdir(f"{a}/moved/sub") and not os.path.exists(f"{a}/{folder}")),
            (lambda: os.symlink("sub", f"{b}/{folder}/z"), lambda: os.readlink(f"{a}/{folder}/z") == "sub"),
        ][index]
        change()
        check(seen(), f"change {index} of the other mount is not seen")
    os.mkdir(f"{a}/rights")
    os.mkdir(f"{a}/rights/in")
    os.chmod(f"{b}/rights", 0o711)
    check(os.stat(f"{a}/rights").st_mode & 0o777 == 0o711, "a chmod of the other mount is not seen")


def pid_of_mount(system):
    with open(f"{system.dir}/run/mnt.0.pid") as file:
        return int(file.read())


def stat_of(pid, task=None):
    """Fields of /proc/PID/stat behind the name, the state first."""
    with open(f"/proc/{pid}/task/{task}/stat" if task else f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def large_writes_use_buffers_again(lab):
    """A mount that gives its buffers back to the kernel gets every page of the next ones anew: 256 faults a MiB."""
    system = Cluster(lab)
    pid = pid_of_mount(system)
    data = mmap.mmap(-1, MIB)
    fd = os.open(f"{system.mnt}/file", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    for i in range(100):
        os.pwrite(fd, data, i % 50 * MIB)
    before = int(stat_of(pid)[7])
    for i in range(200):
        os.pwrite(fd, data, i % 50 * MIB)
    os.close(fd)
    faults = int(stat_of(pid)[7]) - before
    check(faults < 200 * 256 / 4, f"{faults} page faults while 200 MiB were written")


def requests_are_taken_off_first(lab):
    system = Cluster(lab)
    pid = pid_of_mount(system)

    def urgent():  # a mount answers before each of its threads has begun
        found = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                with open(f"/proc/{pid}/task/{task}/comm") as name:
                    takes_requests = name.read().startswith("mount/")
                if takes_requests and stat_of(pid, task)[16] == "-20":
                    found.append(task)
        return found

    wait_until(lambda: len(urgent()) == 2, "the mount's two reactors, which take requests off, to have a nice value of -20")
    first = urgent()

    def run_ahead(how_many):
        os.statvfs(system.mnt)  # it finds out with a request
        return sum(stat_of(pid, task)[38] == str(os.SCHED_FIFO) for task in first) == how_many

    system.osdctl("class", "create", "db", "--latency", "5ms@95%", "--max-pending", 0)
    wait_until(lambda: run_ahead(1), "the thread that takes requests off to run ahead of turns, as a class has a bound")
    system.osdctl("class", "rm", "db")
    wait_until(lambda: run_ahead(0), "it to take turns again")


def unlinked_but_open(lab):
    system = Cluster(lab, osds=1, mounts=2)
    path = f"{system.mnt}/ghost"
    with open(path, "w+b") as file:
        file.write(b"before")
        file.flush()
        os.unlink(path)
        check(not os.path.exists(f"{system.mounts[1]}/ghost"), "unlinked but still visible")
        file.write(b" and after")
        file.seek(0)
        check(file.read() == b"before and after", "an open file lost data when it was unlinked")


def permissions_hold(lab):
    system = Embedded(lab, "-o", "allow_other")
    os.chmod(lab.dir, 0o755)
    os.chmod(system.mnt, 0o755)
    secret = f"{system.mnt}/secret"
    with open(secret, "w") as file:
        file.write("root only")
    os.chmod(secret, 0o600)
    done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", secret, ok=None)
    check(done.returncode != 0 and "Permission denied" in done.stderr, "nobody could read a 0600 file of root")
    done = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "touch", f"{system.mnt}/x", ok=None)
    check(done.returncode != 0, "nobody could create a file in a 0755 directory of root")


def classes_follow_tags(lab):
    system = Cluster(lab, osds=1)
    system.osdctl("class", "create", "gold")
    os.mkdir(f"{system.mnt}/db")
    with open(f"{system.mnt}/db/file", "wb") as file:
        file.write(b"x")
        effective = lambda: os.getxattr(f"{system.mnt}/db/file", "qos.effective_class").decode()  # noqa: E731
        check(effective().startswith("best-effort"), f"untagged file is in {effective()}")
        os.setxattr(f"{system.mnt}/db", "user.qos.class", b"gold")
        wait_until(lambda: effective() == "gold (from /db)", "the tag to hold for an open file", timeout=10)
        try:
            os.setxattr(f"{system.mnt}/db", "user.qos.class", b"no-such-class")
            raise Failure("a class that does not exist was accepted as a tag")
        except OSError as error:
            check(error.errno == 22, f"tagging with an unknown class: errno {error.errno}")
        os.removexattr(f"{system.mnt}/db", "user.qos.class")
        wait_until(lambda: effective().startswith("best-effort"), "the tag to go", timeout=10)


if __name__ == "__main__":
    main("filesystem", one_byte, embedded_remount_keeps_everything, a_layout_is_for_empty_files, fio_verifies, fio_verifies_eight_jobs, copies_a_tree, git_and_build,
         sqlite_transactions, large_directory, large_files_go_at_once, two_mounts_agree, leases_give_way,
         large_writes_use_buffers_again, requests_are_taken_off_first, unlinked_but_open, permissions_hold, classes_follow_tags)
