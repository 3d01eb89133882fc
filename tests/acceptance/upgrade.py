#!/usr/bin/env python3
"""A Debian that is upgraded under load from the packages of an earlier commit to those of this build: a mount of its own and one
elsewhere, by the earlier program, go on; both, and one by the new program, find all that was written. As root, with mmdebstrap and
systemd-nspawn; the earlier commit is compiled below build/upgrade, and kept there.

    tests/acceptance/upgrade.py [--from COMMIT]     (default: HEAD~1)
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

import servicelog  # noqa: F401 - makes weirtest known
from debian import NAMES, Debian, Machine, built, field, give_to_disk_group, package
from installed import OtherHost, configure
from weirtest import BIN, MIB, REPO, check, is_mounted, main, run

PROGRAMS = ("osdctl", "weirfs", "weir-dev", "weir-sim", "weir-mds", "weir-osd", "man")
DAEMONS = ("weir-mds", "weir-osd@a")
MOUNT = "/mnt/weir"


def compiled(commit):
    """A checkout of that commit with its programs in build/release/bin."""
    name = run("git", "-C", REPO, "rev-parse", "--short=12", f"{commit}^{{commit}}").stdout.strip()
    top = f"{REPO}/build/upgrade/{name}"
    if not os.path.isdir(top):
        run("git", "clone", "--quiet", "--shared", "--no-checkout", REPO, f"{top}.new")
        run("git", "-C", f"{top}.new", "checkout", "--quiet", "--detach", name)
        os.rename(f"{top}.new", top)
    began = time.monotonic()
    for words in (["--preset", "release", "-DBUILD_TESTING=OFF"], ["--build", "build/release", "--target", *PROGRAMS]):
        subprocess.run(["cmake", *words], cwd=top, check=True, stdout=subprocess.DEVNULL)
    print(f"        {name} is compiled ({time.monotonic() - began:.0f} s)", flush=True)
    return top


def packages_of(lab, top):
    output = lab.path("earlier")
    # By its own tools/package: what it installs is its own, too.
    run(f"{top}/tools/package", "--objects", f"{top}/build/release", "--output", output, timeout=300,
        env={"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"})
    return output


class Table:
    """What was looked at, and what came of it."""

    def __init__(self):
        self.rows = []

    def add(self, what, before, after):
        self.rows.append((what, str(before), str(after)))

    def show(self):
        rows = [("", "before", "after"), *self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for row in rows:
            print("        " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


class Tree:
    """Files of many sizes, which whoever mounts must read as they were written."""

    def __init__(self, machine):
        self.machine = machine
        machine.run("sh", "-c", f"mkdir {MOUNT}/tree && cp -a /usr/share /usr/lib/systemd /var/lib/dpkg {MOUNT}/tree",
                    timeout=300)
        self.sums = self.read_at(machine, MOUNT)

    @staticmethod
    def read_at(machine, mountpoint):
        script = 'cd "$0/tree" && find . -type f -exec sha256sum {} + | sort -k 2 && find . -printf "%p %y %m %U %G %T@ %l\\n" | sort'
        argv = ["sh", "-c", script, mountpoint]
        return (machine.run(*argv, timeout=300) if machine else run(*argv, timeout=300)).stdout

    def __str__(self):
        return f"{self.sums.count(chr(10))} lines"


def upgrade(lab):
    earlier, now = packages_of(lab, compiled(COMMIT)), built()[0]
    debian = Debian(lab, now)
    for name, directory in (("earlier", earlier), ("now", now)):
        os.makedirs(debian.path(name))
        for package_name in NAMES:
            shutil.copy(package(directory, package_name), debian.path(name))
    debian.run("sh", "-c", "dpkg --force-unsafe-io -i /earlier/*.deb")
    os.makedirs(debian.path(MOUNT))
    disk = lab.loop("disk", 2048 * MIB)
    give_to_disk_group(lab, disk)
    port = configure(debian, disk)
    with open(debian.path("etc/fstab"), "a") as file:
        file.write(f"localhost:{port}:/ {MOUNT} weirfs _netdev,nofail,class=best-effort 0 0\n")
    machine = Machine(lab, debian, {os.path.basename(disk): disk})
    machine.run("weir-osd", "--mkfs", "--config", "/etc/weirfs/osd-a.toml", "--token-rate", "500MiB/s")
    machine.run("systemctl", "enable", "--now", "weir-osd@a")
    machine.run("systemctl", "start", "mnt-weir.mount")
    tree = Tree(machine)
    machine.run("sh", "-c", f"exec 9> {MOUNT}/open; echo before >&9; sleep infinity > /dev/null 2>&1 & echo $! > /root/holder")
    other = OtherHost(lab, port, f"{REPO}/build/upgrade/{commit_name()}/build/release/bin/weirfs")

    def seen():
        version = machine.run("sh", "-c", "weir-osd --version | head -n 1").stdout.strip()
        pids = [machine.show(unit, "MainPID") for unit in DAEMONS]
        return version, pids, machine.run("stat", "-c", "%d", MOUNT).stdout.strip()

    before, steps = seen(), other.count()
    began = time.monotonic()
    machine.run("sh", "-c", "dpkg --force-unsafe-io -i /now/*.deb", timeout=300)
    took = time.monotonic() - began
    other.goes_on()
    after = seen()
    table = Table()
    table.add("packages", *(field(package(directory, "weirfs"), "Version") for directory in (earlier, now)))
    table.add("weir-osd --version", before[0], after[0])
    states = machine.states(*DAEMONS, "mnt-weir.mount")
    check(states == ["active"] * 3, f"{DAEMONS} and the mount are {states}")
    check(not set(before[1]) & set(after[1]), f"daemons go on with the old program: {before[1]} {after[1]}")
    check(before[2] == after[2], "the mount was made anew")
    for unit, old, new in zip(DAEMONS, before[1], after[1]):
        table.add(unit, f"process {old}", f"process {new}")
    check(tree.read_at(machine, MOUNT) == tree.sums, "the mount that stays reads something else")
    table.add("its mount, the earlier program", tree, "the same")
    machine.run("sh", "-c", f"echo after >> {MOUNT}/open && grep -qx before {MOUNT}/open && kill $(cat /root/holder)")
    table.add("an open file", "written", "goes on")
    table.add("writes elsewhere while dpkg runs", steps, f"{other.count()} ({took:.1f} s)")
    other.ends_well()
    table.add("what was written elsewhere", "", "all of it, in order")
    mnt = lab.path("now.mnt")
    os.mkdir(mnt)
    lab.on_exit(lambda: is_mounted(mnt) and run("umount", "-l", mnt, ok=None))
    run(f"{BIN}/weirfs", f"127.0.0.1:{port}", mnt)
    check(tree.read_at(None, mnt) == tree.sums, "a mount by the new program reads something else")
    table.add("a mount elsewhere, this program", tree, "the same")
    run("umount", mnt)
    machine.run("umount", MOUNT)
    machine.run("mount", MOUNT)
    check(tree.read_at(machine, MOUNT) == tree.sums, "its mount, made anew, reads something else")
    table.add("its mount, made anew", tree, "the same")
    machine.run("umount", MOUNT)
    machine.run("systemctl", "stop", "weirfs.target")
    run(f"{BIN}/weir-osd", "--fsck=deep", "--disk", disk, timeout=300)
    table.add("fsck of the disk", "", "clean")
    table.show()


def commit_name():
    return run("git", "-C", REPO, "rev-parse", "--short=12", f"{COMMIT}^{{commit}}").stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--from", dest="commit", default="HEAD~1", metavar="COMMIT", help="the earlier one")
    COMMIT = parser.parse_args().commit
    sys.argv[1:] = []
    main("upgrade", upgrade)
