#!/usr/bin/env python3
"""fsck and scrub on a real cluster: clean after kill -9, and damage is found, named and told by the exit code."""
import json
import mmap
import os
import re

from weirtest import BIN, Cluster, MIB, check, main, run

MARK = b"a block that will be damaged".ljust(4096, b".")


def fill(mnt):
    """Something of everything, all of it durable."""
    os.makedirs(f"{mnt}/d/sub")
    for i in range(20):
        with open(f"{mnt}/d/f{i}", "wb") as file:
            file.write(os.urandom(1000 * i))
            file.flush()
            os.fsync(file.fileno())
    os.link(f"{mnt}/d/f1", f"{mnt}/d/sub/link")
    os.rename(f"{mnt}/d/f2", f"{mnt}/d/sub/moved")
    os.unlink(f"{mnt}/d/f3")
    os.setxattr(f"{mnt}/d/f4", "user.a", b"1")
    with open(f"{mnt}/big", "wb") as file:
        file.write(os.urandom(MIB) + MARK + os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())


def damage(image):
    """Flips one bit of the marked block, wherever it lies."""
    with open(image, "r+b") as file, mmap.mmap(file.fileno(), 0) as bytes_of:
        at = bytes_of.find(MARK[:64])
        check(at > 0 and at % 4096 == 0, f"the marked block is not in {image}")
        bytes_of[at + 100] ^= 1
        bytes_of.flush()


def fsck_osd(image, *options, how="--fsck", ok):
    return run(f"{BIN}/weir-osd", how, "--disk", image, *options, ok=ok)


def clean_after_kill_and_damage_is_found(lab):
    system = Cluster(lab, osds=1, osd_size="256MiB")
    image, data = f"{system.dir}/osd.0.img", f"{system.dir}/mds"
    fill(system.mnt)
    run("sync", "-f", system.mnt)

    # In use: refused, and the cluster does not notice.
    busy = fsck_osd(image, ok=(1,))
    check("in use" in busy.stderr, busy.stderr)
    busy = run(f"{BIN}/weir-mds", "--fsck", "--data", data, ok=(1,))
    check("in use" in busy.stderr, busy.stderr)
    scrub = json.loads(system.osdctl("osd", "scrub", "0", "--wait", "-o", "json").stdout)
    check(scrub["state"] == "done" and scrub["objects"] >= 19 and scrub["damaged_blocks"] == 0, str(scrub))

    for daemon in ("osd.0", "mds.0"):
        system.dev("kill", daemon)
    report = json.loads(fsck_osd(image, "-o", "json", how="--fsck=deep", ok=(0,)).stdout)
    check(report["clean"] and report["objects"] >= 19 and report["leaked_bytes"] == 0, str(report))
    check(report["verified_bytes"] >= MIB, str(report))
    names = json.loads(run(f"{BIN}/weir-mds", "--fsck=deep", "--data", data, "-o", "json").stdout)
    check(names["clean"] and names["names"] == 23, str(names))

    damage(image)
    fsck_osd(image, ok=(0,))  # does not read the data
    found = fsck_osd(image, how="--fsck=deep", ok=(7,)).stdout
    check(re.search(r"! checksum: object \d+\.0: block 256 at device offset \d+", found), found)
    check(found.endswith("1 found, 0 repaired: 1 checksum\n"), found)

    for daemon in ("mds.0", "osd.0"):
        system.dev("start", daemon)
    scrub = json.loads(system.osdctl("osd", "scrub", "0", "--wait", "-o", "json", ok=(7,)).stdout)
    check(scrub["damaged_blocks"] == 1, str(scrub))
    status = system.osdctl("status", ok=(7,)).stdout
    check("damaged blocks" in status, status)
    system.osdctl("osd", "scrub", "7", ok=(5,))


def wrong_use_is_refused(lab):
    missing = lab.path("nothing")
    for argv in (["weir-osd", "--fsck", "--disk", missing], ["weir-mds", "--fsck", "--data", missing]):
        check("nothing" in run(f"{BIN}/{argv[0]}", *argv[1:], ok=(1,)).stderr, "the error names no path")
        check(not os.path.exists(missing), f"{argv[0]} --fsck made {missing}")
    run(f"{BIN}/weir-osd", "--fsck=quick", "--disk", missing, ok=(2,))
    run(f"{BIN}/weir-osd", "--repair", "--disk", missing, ok=(2,))
    run(f"{BIN}/weir-osd", "--fsck", ok=(2,))


if __name__ == "__main__":
    main("fsck", clean_after_kill_and_damage_is_found, wrong_use_is_refused)
