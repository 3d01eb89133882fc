#!/usr/bin/env python3
"""The POSIX cases of tests/posix on two mounts of a cluster and on an embedded mount, beside the local filesystem;
quotas, and locks whose holder dies, which no local filesystem can be compared with."""
import errno
import fcntl
import os
import subprocess
import sys

from weirtest import BIN, REPO, Cluster, Embedded, Failure, check, is_mounted, main, run, wait_until

sys.path.insert(0, os.path.join(REPO, "tests", "posix"))
from harness import Child, outcome, set_lock  # noqa: E402


def open_to_all(lab):
    os.chmod(lab.dir, 0o755)


def shared_mount(lab, system, name):
    mount = lab.path(name)
    os.makedirs(mount)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    lab.on_exit(lambda: is_mounted(mount) and run("umount", "-l", mount, ok=None))
    run(f"{BIN}/weirfs", endpoint, mount, "-o", "allow_other")
    return mount


def suite(lab, *arguments):
    local = lab.path("local")
    os.mkdir(local)
    done = subprocess.run([sys.executable, f"{REPO}/tests/posix/run.py", "--beside", local, *arguments],
                          capture_output=True, text=True, timeout=600, check=False)
    lines = done.stdout.splitlines()
    lab.show("\n".join("        " + line for line in lines if not line.startswith("ok")))
    check(done.returncode == 0, f"the suite failed: {done.stderr[-2000:]}")


def cases_on_two_mounts(lab):
    open_to_all(lab)
    system = Cluster(lab, mounts=0)
    suite(lab, shared_mount(lab, system, "one"), shared_mount(lab, system, "two"))


def cases_embedded(lab):
    open_to_all(lab)
    suite(lab, "--exclusive", "--case=names", "--case=listings", "--case=attributes", "--case=files", "--case=ranges",
          "--case=mappings", "--case=times", "--case=xattrs",
          Embedded(lab, "-o", "allow_other").mnt)  # locks there are the kernel's own


def expect(code, what, function, *args):
    try:
        function(*args)
    except OSError as error:
        check(error.errno == code, f"{what}: {errno.errorcode[error.errno]}, expected {errno.errorcode[code]}")
        return
    raise Failure(f"{what}: no error, expected {errno.errorcode[code]}")


def the_largest_file(lab):
    path = f"{Cluster(lab).mnt}/file"
    end = 2**63 - 1
    with open(path, "wb") as file:
        file.truncate(end)
    with open(path, "r+b", buffering=0) as file:
        check(os.fstat(file.fileno()).st_size == end, "a file of 8 EiB has another size")
        os.pwrite(file.fileno(), b"end", end - 3)
        file.flush()
        os.fsync(file.fileno())
    with open(path, "rb", buffering=0) as file:
        check(os.pread(file.fileno(), 3, end - 3) == b"end", "the end of a file of 8 EiB reads back different")
        check(os.pread(file.fileno(), 4, end // 2) == bytes(4), "the hole of a file of 8 EiB is not zeros")
    os.unlink(path)


def write_all(path, size):
    with open(path, "wb", buffering=0) as file:
        for _ in range(size >> 16):
            file.write(bytes(1 << 16))


def quotas(lab):
    system = Cluster(lab, mounts=2)
    top, other = (f"{mount}/tree" for mount in system.mounts)
    os.makedirs(f"{top}/sub/deeper")
    write_all(f"{top}/sub/before", 1 << 20)
    with open(f"{top}/sub/before", "rb") as file:
        os.fsync(file.fileno())  # under no quota a close does not wait
    os.setxattr(top, "user.weir.quota.bytes", b"4MiB")
    os.setxattr(top, "user.weir.quota.files", b"6")
    check(os.getxattr(other, "user.weir.quota.bytes") == b"4194304", "a quota is not shown as bytes")
    write_all(f"{other}/sub/deeper/fits", 3 << 20)
    expect(errno.EDQUOT, "a write beyond the quota", write_all, f"{top}/sub/over", 1 << 20)
    expect(errno.EDQUOT, "a truncate beyond the quota", os.truncate, f"{top}/sub/before", 2 << 20)
    os.truncate(f"{top}/sub/deeper/fits", 0)
    write_all(f"{top}/sub/over", 1 << 20)
    os.mkdir(f"{other}/sub/sixth")
    expect(errno.EDQUOT, "one entry too many", os.mkdir, f"{top}/seventh")
    shown = os.getxattr(top, "weir.rstats").decode()
    check(shown == f"bytes={2 << 20} files=3 directories=3 entries=6", f"weir.rstats: {shown}")
    os.removexattr(top, "user.weir.quota.files")
    os.mkdir(f"{top}/seventh")
    expect(errno.EPERM, "a change of weir.rstats", os.setxattr, top, "weir.rstats", b"x")


def lock_worker(path):
    def body(child):
        fd = os.open(path, os.O_RDWR)
        child.serve(lambda kind, command: set_lock(fd, kind, 0, 10, command))
    return Child(body)


def locks_survive_the_mds_and_end_with_their_mount(lab):
    system = Cluster(lab, mounts=2)
    path, elsewhere = (f"{mount}/lock" for mount in system.mounts)
    with open(path, "wb") as file:
        file.write(b"x" * 10)
    with lock_worker(elsewhere) as there:
        check(there.ask((fcntl.F_WRLCK, fcntl.F_SETLK)) == "ok", "a free lock was refused")
        fd = os.open(path, os.O_RDWR)
        check(outcome(set_lock, fd, fcntl.F_RDLCK) == "EAGAIN", "a lock did not reach the other mount")
        system.dev("kill", "mds.0")
        system.dev("start", "mds.0")
        check(outcome(set_lock, fd, fcntl.F_RDLCK) == "EAGAIN", "a lock was lost when the MDS restarted")
        with lock_worker(path) as waiter:
            waiter.send((fcntl.F_WRLCK, fcntl.F_SETLKW))
            check(not waiter.ready(0.3), "a waiting lock was given twice")
            system.dev("kill", "mds.0")
            system.dev("start", "mds.0")
            check(not waiter.ready(0.3), "a waiting lock was given when the MDS restarted")
            check(there.ask((fcntl.F_UNLCK, fcntl.F_SETLK)) == "ok", "unlock failed")
            check(waiter.receive() == "ok", "who waited over a restart was not served")
        check(there.ask((fcntl.F_WRLCK, fcntl.F_SETLK)) == "ok", "an ended process kept its lock")
        if "WEIR_SOAK" in os.environ:  # the lease of a dead mount takes half a minute to end
            system.dev("kill", "mnt.1")
            wait_until(lambda: outcome(set_lock, fd, fcntl.F_RDLCK) == "ok", "a dead mount's locks to end", timeout=90)
            there.kill()
        os.close(fd)


if __name__ == "__main__":
    main("posix_suite", cases_on_two_mounts, cases_embedded, the_largest_file, quotas,
         locks_survive_the_mds_and_end_with_their_mount)
