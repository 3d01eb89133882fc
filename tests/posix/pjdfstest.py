#!/usr/bin/env python3
"""Runs pjdfstest over mounts of WeirFS: pjdfstest.py DIR, where DIR holds its sources or what was built of them.

It is built outside DIR when it is not built yet. Exit 1 when a file of it fails on a mount.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from weirtest import BIN, Cluster, Embedded, Failure, Lab, check, run  # noqa: E402


def built(lab, suite):
    """A copy of the suite with its program."""
    copy = lab.path("pjdfstest")
    shutil.copytree(suite, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    check(os.path.isdir(f"{copy}/tests"), f"{suite} holds no 'tests': it is no pjdfstest")
    if os.access(f"{copy}/pjdfstest", os.X_OK) and not os.path.isdir(f"{copy}/pjdfstest"):
        return copy
    check(os.path.exists(f"{copy}/configure.ac"), f"{suite} holds neither the program 'pjdfstest' nor its sources")
    if not os.path.exists(f"{copy}/configure"):
        run("autoreconf", "-ifs", cwd=copy, timeout=600)
    run("./configure", cwd=copy, timeout=600)
    run("make", "pjdfstest", cwd=copy, timeout=600)
    return copy


def prove(suite, mount):
    folder = os.path.join(mount, "pjdfstest")
    os.mkdir(folder)
    return subprocess.run(["prove", "-r", f"{suite}/tests"], cwd=folder, check=False).returncode


def cluster_mount(lab):
    system = Cluster(lab)
    mount = lab.path("mount")
    os.makedirs(mount)
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    lab.on_exit(lambda: run("umount", "-l", mount, ok=None))
    run(f"{BIN}/weirfs", endpoint, mount, "-o", "allow_other,dev,suid")
    return mount


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    codes = {}
    for name, make in (("cluster", cluster_mount), ("embedded", lambda lab: Embedded(lab, "-o", "allow_other,dev,suid").mnt)):
        lab = Lab("pjdfstest")
        os.chmod(lab.dir, 0o755)
        try:
            suite = built(lab, sys.argv[1])
            print(f"==> {name}", flush=True)
            codes[name] = prove(suite, make(lab))
        except Failure as error:
            sys.exit(f"pjdfstest: {error}")
        finally:
            lab.close()
    print("pjdfstest: " + ", ".join(f"{name} {'passed' if code == 0 else 'FAILED'}" for name, code in codes.items()))
    sys.exit(any(codes.values()))


if __name__ == "__main__":
    main()
