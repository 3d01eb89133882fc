#!/usr/bin/env python3
"""How long a daemon is away: an OSD and the MDS are killed and stopped under load, with WEIR_FILES (100000) files and
WEIR_GIB (3) GiB stored. Bound: `weir-dev start` returns, and a write is durable through the mount, within 10 s."""
import os
import stat
import subprocess
import threading
import time

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import MIB, Cluster, check, main

FILES = int(os.environ.get("WEIR_FILES", "100000"))
GIB = int(os.environ.get("WEIR_GIB", "3"))
BOUND = 10
WORKERS = 4


def fill(top):
    def some(worker):
        for number in range(worker, FILES, WORKERS):
            folder = f"{top}/d{number % 100}"
            path = f"{folder}/{number}"
            if number % 10:
                os.mknod(path, stat.S_IFREG | 0o644)
            else:
                with open(path, "wb", buffering=0) as file:
                    file.write(b"x" * (number % 20000))
    for folder in range(100):
        os.makedirs(f"{top}/d{folder}")
    threads = [threading.Thread(target=some, args=(worker,)) for worker in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    block = os.urandom(MIB)
    for number in range(GIB * 16):
        with open(f"{top}/big{number}", "wb", buffering=0) as file:
            for _ in range(64):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())


def durable_write(path):
    with open(path, "wb", buffering=0) as file:
        file.write(b"x" * 4096 * 64)
        file.flush()
        os.fsync(file.fileno())


def restarts(lab):
    system = Cluster(lab, osds=2, mounts=1, osd_size="4GiB")
    start = time.monotonic()
    fill(system.mnt)
    lab.show(f"        {FILES} files and {GIB} GiB in {time.monotonic() - start:.0f} s")
    log = open(lab.path("fio.log"), "w")
    load = subprocess.Popen(["fio", "--name=load", f"--directory={system.mnt}", "--thread", "--ioengine=libaio", "--rw=randrw",
                             "--bs=16k", "--iodepth=8", "--size=64m", "--time_based", "--runtime=3600", "--eta=never",
                             "--direct=1"], stdout=log, stderr=log)
    lab.on_exit(lambda: load.poll() is None and load.kill())
    for daemon in ("osd.0", "mds.0"):
        for verb in ("kill", "stop"):
            time.sleep(2)  # the load is part of what is measured
            system.dev(verb, daemon)
            start = time.monotonic()
            system.dev("start", daemon)
            served = time.monotonic() - start
            durable_write(f"{system.mnt}/after")
            usable = time.monotonic() - start
            lab.show(f"        {daemon} after {verb}: serves after {served:.2f} s, a new file is durable after {usable:.2f} s")
            check(usable < BOUND, f"{daemon} was away for {usable:.1f} s")
            check(load.poll() is None, "the load ended")
    load.terminate()
    check(len(os.listdir(f"{system.mnt}/d0")) == FILES // 100, "files are missing")


if __name__ == "__main__":
    main("restart", restarts)
