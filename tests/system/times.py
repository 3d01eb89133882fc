#!/usr/bin/env python3
"""Access times on mounts with options, which a remount changes, beside a bind mount of the local filesystem with the same
options; and what a mount that is not to write tells the MDS."""
import ctypes
import mmap
import os
import subprocess
import sys

from weirtest import BIN, REPO, Cluster, Embedded, check, is_mounted, main, run

sys.path.insert(0, os.path.join(REPO, "tests", "posix"))
from harness import Place  # noqa: E402

MS_RDONLY, MS_NODIRATIME, MS_REMOUNT, MS_BIND = 1, 2048, 32, 4096
MS_NOATIME, MS_RELATIME, MS_STRICTATIME = 1024, 1 << 21, 1 << 24
PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)

# In this order one after the other, so that each is also left again.
FLAGS = {
    "relatime": MS_RELATIME,
    "noatime": MS_NOATIME,
    "strictatime": MS_STRICTATIME,
    "nodiratime": MS_NODIRATIME | MS_RELATIME,
    "strictatime,nodiratime": MS_NODIRATIME | MS_STRICTATIME,
    "ro": MS_RDONLY | MS_STRICTATIME,
    "relatime again": MS_RELATIME,
}


def remount(where, flags):
    if libc.mount(None, os.fsencode(where), None, MS_REMOUNT | MS_BIND | flags, None) != 0:
        raise OSError(ctypes.get_errno(), f"remount of {where}")


def read(path, flags=0):
    fd = os.open(path, os.O_RDONLY | flags)
    os.pread(fd, 100, 0)
    os.close(fd)


def read_mapped(path):
    fd = os.open(path, os.O_RDONLY)
    with mmap.mmap(fd, PAGE, prot=mmap.PROT_READ) as area:
        area.read(10)
    os.close(fd)


def acts(top):
    """By name: what is read, and how."""
    return {
        "file": (f"{top}/file", lambda: read(f"{top}/file")),
        "O_NOATIME": (f"{top}/file", lambda: read(f"{top}/file", os.O_NOATIME)),
        "O_DIRECT": (f"{top}/file", lambda: os.system(f"dd if={top}/file of=/dev/null iflag=direct status=none")),
        "mapped": (f"{top}/file", lambda: read_mapped(f"{top}/file")),
        "large file": (f"{top}/large", lambda: read(f"{top}/large")),
        "directory": (f"{top}/dir", lambda: os.listdir(f"{top}/dir")),
        "readlink": (f"{top}/link", lambda: os.readlink(f"{top}/link")),
        "followed": (f"{top}/link", lambda: os.stat(f"{top}/link")),
        "program": (f"{top}/program", lambda: subprocess.run([f"{top}/program"], check=True)),
        "opened only": (f"{top}/file", lambda: os.close(os.open(f"{top}/file", os.O_RDONLY))),
    }


def furnish(top):
    os.mkdir(f"{top}/dir")
    os.symlink("file", f"{top}/link")
    for name, size in (("file", 3 * PAGE), ("large", 1 << 20), ("dir/x", 1)):
        with open(f"{top}/{name}", "wb") as file:
            file.write(b"x" * size)
    run("cp", "/bin/true", f"{top}/program")


def facts(top, where):
    """Under each of the flags: what moves the access time of what was just written, or was read, or set back."""
    place = Place(top, top)
    for name, flags in FLAGS.items():
        for state in ("changed", "read", "set back"):
            remount(where, MS_RELATIME)
            for label, (path, act) in acts(top).items():
                if state == "changed":
                    os.chmod(path, 0o755, follow_symlinks=True)
                    if label in ("readlink", "followed"):
                        os.lchown(path, 0, 0)
                elif state == "set back":
                    os.utime(path, ns=(7, 7), follow_symlinks=False)
            if state == "read":
                place.tick()
                for _, act in acts(top).values():
                    act()
            place.tick()
            remount(where, flags)
            for label, (path, act) in acts(top).items():
                before = os.lstat(path).st_atime_ns
                place.tick()
                act()
                place.note(f"{name}, {state}, {label}", os.lstat(path).st_atime_ns > before)
    remount(where, MS_RELATIME)
    return place.notes


def compare(lab, mnt):
    local = lab.path("local")
    os.makedirs(local, exist_ok=True)
    run("mount", "--bind", local, local)
    lab.on_exit(lambda: is_mounted(local) and run("umount", "-l", local, ok=None))
    results = []
    for top, where in ((f"{mnt}/t", mnt), (f"{local}/t", local)):
        os.mkdir(top)
        furnish(top)
        results.append(facts(top, where))
    run("umount", local)
    here, there = results
    wrong = [f"{label}: {here[label]}, locally {there[label]}" for label in there if here[label] != there[label]]
    check(not wrong, f"{len(wrong)} of {len(there)} differ:\n" + "\n".join(wrong))
    check(any(there.values()) and not all(there.values()), "nothing was tried")


def remounts_of_an_embedded_mount(lab):
    compare(lab, Embedded(lab).mnt)


def remounts_of_a_cluster_mount(lab):
    compare(lab, Cluster(lab, osd_size="512MiB").mnt)


def options_are_the_mounts(lab):
    """What was asked for with -o is in the kernel's table, from where a remount takes it."""
    for options, words in (("rw", "relatime"), ("noatime", "noatime"), ("strictatime", ""), ("nodiratime", "nodiratime"),
                           ("noatime,relatime", "relatime"), ("strictatime,nodiratime", "nodiratime")):
        embedded = Embedded(lab, "-o", options, "--osd-size", "512MiB", name="options")
        with open("/proc/self/mounts") as mounts:
            shown, = [line.split(" ")[3].split(",") for line in mounts if line.split(" ")[1] == embedded.mnt]
        for word in ("relatime", "noatime", "nodiratime"):
            check((word in shown) == (word in words.split() or (word == "relatime" and options == "nodiratime")),
                  f"-o {options} is shown as {shown}")
        embedded.umount()


def a_mount_that_is_not_to_write_does_not(lab):
    """Neither reads on a mount that is ro or noatime nor their end write, whatever the rule was when it was mounted."""
    system = Cluster(lab, mounts=1, osd_size="512MiB")
    furnish(system.mnt)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    for options, flags in (("ro", MS_RELATIME | MS_RDONLY), ("rw", MS_NOATIME), ("rw", MS_RDONLY | MS_RELATIME)):
        mount = lab.path(f"other.{options}.{flags}")
        os.makedirs(mount)
        lab.on_exit(lambda mount=mount: is_mounted(mount) and run("umount", "-l", mount, ok=None))
        run(f"{BIN}/weirfs", endpoint, mount, "-o", options)
        remount(mount, flags)
        before = {path: os.lstat(path).st_atime_ns for path, _ in acts(system.mnt).values()}
        for _, act in acts(mount).values():
            act()
        run("umount", mount)  # after it the MDS knows all that it will ever know of this mount
        after = {path: os.lstat(path).st_atime_ns for path in before}
        check(before == after, f"reads of a mount with {options}, {flags}: {before}, then {after}")


if __name__ == "__main__":
    main("times", remounts_of_an_embedded_mount, remounts_of_a_cluster_mount, options_are_the_mounts,
         a_mount_that_is_not_to_write_does_not)
