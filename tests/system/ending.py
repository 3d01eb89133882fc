#!/usr/bin/env python3
"""A mount ends soon, whatever its classes are held back to."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from weirtest import MIB, Embedded, check, main, run  # noqa: E402


def umount_does_not_wait_for_a_limit(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "1GiB/s")
    folder = f"{system.mnt}/slow"
    os.mkdir(folder)
    system.osdctl("class", "create", "slow", "--limit", "64KiB/s")
    os.setxattr(folder, "user.qos.class", b"slow")
    data = os.urandom(8 * MIB)
    with open(f"{folder}/file", "wb") as file:  # two minutes of the limit
        file.write(data)
    row = json.loads(system.osdctl("stat", "slow", "-o", "json").stdout)["osds"][0]["classes"][0]
    check(row["served_bytes"] < MIB, f"nothing was left in the page cache: {row}")
    run("umount", system.mnt, timeout=60)
    system.umount()
    system.mount()
    with open(f"{folder}/file", "rb") as file:
        check(file.read() == data, "what was in the page cache is not in the file")
    check(os.getxattr(f"{folder}/file", "qos.effective_class").startswith(b"slow"), "the file has lost its class")


if __name__ == "__main__":
    main("ending", umount_does_not_wait_for_a_limit)
