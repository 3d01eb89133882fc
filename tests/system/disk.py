#!/usr/bin/env python3
"""Emulated disks keep data and time; background I/O is a class that shows and can be set."""
import json
import os
import time

from weirtest import BIN, MIB, Cluster, Embedded, check, fio, main, read_from_disk, run, wait_until


def osds_of(system):
    return json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"]


def class_of(osd, name):
    return next(c for c in osd["classes"] if c["class"] == name)


def write_synced(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def emulated_disks(lab):
    system = Cluster(lab, disks=("hdd:512MiB", "ssd:512MiB,rate=50MB/s"))
    data = os.urandom(64 * MIB)
    started = time.monotonic()
    write_synced(f"{system.mnt}/file", data)
    # At least a quarter of it is on the SSD, whose buffer holds 4 MiB: so long at least, however fast this machine is.
    took = time.monotonic() - started
    check(took > (16 - 4) * MIB / 50e6, f"64 MiB were written in {took:.2f} s: faster than the model allows")
    for osd in ("osd.0", "osd.1"):
        system.dev("kill", osd)
        system.dev("start", osd)
    check(read_from_disk(f"{system.mnt}/file") == data, "an emulated disk lost data when its OSD was killed")
    state = run(f"{BIN}/weir-dev", "status", "--dir", system.dir).stdout
    check("hdd:" in state and "ssd:" in state, f"status does not name the disks: {state}")


def emulated_in_one_process(lab):
    system = Embedded(lab, "--disk", "hdd:300MiB,model=6y080p0", "--token-rate", "40MiB/s")
    write_synced(f"{system.mnt}/file", b"x" * MIB)
    system.umount()
    system.mount()
    with open(f"{system.mnt}/file", "rb") as file:
        check(file.read() == b"x" * MIB, "data is gone after a remount")
    for disk, word in (("hdd:", "size"), ("hdd:1GiB,model=no", "sata-7200"), ("ssd:1GiB,iops=-1", "iops"),
                       ("hdd:1MiB", "256MiB")):
        for argv in ([f"{BIN}/weirfs", "--data", lab.path("new"), "--disk", disk, lab.path("new")],
                     [f"{BIN}/weir-dev", "up", "--dir", lab.path("new"), "--disk", disk]):
            done = run(*argv, ok=None)
            check(done.returncode == 2 and word in done.stderr, f"{argv}: exit {done.returncode} {done.stderr}")


def background_is_a_class(lab):
    system = Cluster(lab, osd_size="512MiB", token_rate="200MiB/s")
    system.osdctl("class", "set", "system.compaction", "--weight", "3")
    shown = system.osdctl("class", "show", "system.compaction", "-o", "json").stdout
    check('"weight":3' in shown.replace(" ", ""), f"the weight is not shown: {shown}")
    for argv in (("class", "rm", "system.compaction"), ("class", "create", "system.mine"),
                 ("class", "set", "system.purge", "--weight", "0")):
        done = system.osdctl(*argv, ok=None)
        check(done.returncode == 2, f"{argv}: exit {done.returncode} {done.stderr}")
    # Small writes go through RocksDB's log, then its tables, and in the end to their places.
    fio(lab, {"name": "small"}, directory=system.mnt, rw="randwrite", bs="4k", size="64m", io_size="24m", direct=1,
        ioengine="libaio", iodepth=4, fallocate="none")
    osd = osds_of(system)[0]
    check(osd["background_bytes"] > 4 * MIB, f"no background I/O was seen: {osd['background_bytes']}")
    check(osd["unmetered_bytes"] == 0, f"{osd['unmetered_bytes']} bytes went past the pipeline")
    check(class_of(osd, "system.compaction")["served_bytes"] >= osd["background_bytes"] - MIB,
          f"the class was not charged: {class_of(osd, 'system.compaction')} of {osd['background_bytes']}")
    check(osd["background_floor_bytes_per_s"] == 200 * MIB // 16, f"floor {osd['background_floor_bytes_per_s']}")
    os.unlink(f"{system.mnt}/small.0.0")
    wait_until(lambda: class_of(osds_of(system)[0], "system.purge")["served_ops"] > 0,
               "a deleted file to be purged as system.purge")


def a_disk_is_measured(lab):
    system = Cluster(lab, disks=("ssd:1GiB,rate=40MB/s",), token_rate="1GiB/s", mounts=0)
    measured = json.loads(system.osdctl("profile", "0", "--pattern", "write:512KiB", "--apply", "-o", "json").stdout)
    # No faster than the model, whatever memory the image lies in; what a loaded machine takes away is not bounded.
    check(measured["mean_bytes_per_s"] < 1.3 * 40e6, f"faster than the disk: {measured}")
    check(measured["token_rate_bytes_per_s"] == measured["proposed_token_rate_bytes_per_s"], f"not applied: {measured}")
    check(osds_of(system)[0]["base_token_rate_bytes_per_s"] == measured["proposed_token_rate_bytes_per_s"],
          "the OSD has another rate")
    check(osds_of(system)[0]["objects"] == 0, "the measurement left objects behind")
    done = system.osdctl("profile", "0", "--pattern", "random", ok=None)
    check(done.returncode == 2 and "mixed" in done.stderr, f"exit {done.returncode} {done.stderr}")


if __name__ == "__main__":
    main("disk", emulated_disks, emulated_in_one_process, background_is_a_class, a_disk_is_measured)
