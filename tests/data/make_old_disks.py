#!/usr/bin/env python3
"""Makes tests/data/NAME.tar.xz with programs of an older version: a data directory of weirfs that was shut down cleanly, and what is in it.

    make_old_disks.py BIN NAME     BIN: the folder with weirfs and osdctl of that version
"""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "system"))


def fill(top):
    """Something of everything, small, the same bytes each time; mostly such as compress well."""
    chance = random.Random(1)
    os.makedirs(f"{top}/d/deep/deeper")
    for i in range(12):
        with open(f"{top}/d/f{i}", "wb") as file:
            file.write(bytes([65 + i]) * (700 * i) + chance.randbytes(20))
    os.link(f"{top}/d/f1", f"{top}/d/deep/hard link")
    os.rename(f"{top}/d/f2", f"{top}/d/deep/deeper/moved")
    os.unlink(f"{top}/d/f3")
    os.symlink("../f4", f"{top}/d/deep/symlink")
    os.setxattr(f"{top}/d/f4", "user.colour", b"green")
    os.chmod(f"{top}/d/f5", 0o640)
    with open(f"{top}/large", "wb") as file:  # several objects, with holes and ragged ends
        for at in (0, 5 << 20, (9 << 20) + 123):
            file.seek(at)
            file.write(bytes(range(256)) * 300)
        file.truncate((12 << 20) + 7)
    with open(f"{top}/large", "r+b") as file:  # overlays and partial blocks
        file.seek(1000)
        file.write(b"in the middle of a block")
    with open(f"{top}/kept", "wb") as file:  # space that is kept
        file.write(b"start")
        file.flush()
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
    subprocess.run(["cp", "--reflink=auto", f"{top}/d/f9", f"{top}/copy"], check=True)


def main():
    os.environ["WEIR_BIN"] = os.path.abspath(sys.argv[1])
    from old_disks import contents, images  # the same question as the test's
    from weirtest import Embedded, Lab, run

    lab = Lab("make-old-disks")
    try:
        old = Embedded(lab, "--osds", "1", "--osd-size", "256MiB", "--token-rate", "1GiB/s", name="old")
        old.osdctl("class", "create", "gold", "--weight", "3")
        old.osdctl("reserve", "gold", "--bandwidth", "10MiB/s")
        fill(old.mnt)
        old.umount()
        old.mount()
        listed = contents(old)
        old.umount()
        with open(f"{old.dir}/contents.json", "w") as file:
            json.dump(listed, file, indent=1, sort_keys=True)
        for image in images(old.dir) + [f"{old.dir}/mds.img"]:
            run("fallocate", "--dig-holes", image)
        archive = os.path.join(HERE, sys.argv[2] + ".tar.xz")
        run("tar", "--sparse", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--exclude=*.sock", "--exclude=*.log",
            "-C", old.dir, "-cf", lab.path("old.tar"), ".")
        with open(archive, "wb") as out:
            subprocess.run(["xz", "-9", "-c", lab.path("old.tar")], stdout=out, check=True)
        print(f"{archive}: {os.path.getsize(archive)} bytes, {len(listed['files'])} files")
    finally:
        lab.close()


if __name__ == "__main__":
    main()
