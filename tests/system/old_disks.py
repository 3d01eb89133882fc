#!/usr/bin/env python3
"""Disks of older versions: everything in them is there, they become disks of this version once, and the checkers find nothing."""
import hashlib
import json
import os
import re
import stat

from weirtest import BIN, REPO, Embedded, check, main, run

DATA = os.path.join(REPO, "tests", "data")


def describe(path):
    info = os.lstat(path)
    said = {"mode": oct(info.st_mode), "size": info.st_size if not stat.S_ISDIR(info.st_mode) else 0, "links": info.st_nlink}
    if stat.S_ISLNK(info.st_mode):
        return {**said, "target": os.readlink(path)}
    said["xattrs"] = {name: os.getxattr(path, name).hex() for name in os.listxattr(path) if name.startswith("user.")}
    if stat.S_ISREG(info.st_mode):
        with open(path, "rb") as file:
            said["sha256"] = hashlib.sha256(file.read()).hexdigest()
        said["blocks"] = info.st_blocks
    return said


def contents(system):
    """Every file of a mount with its bytes, and the classes with what is reserved for them."""
    files = {}
    for root, folders, names in os.walk(system.mnt):
        for name in folders + names:
            path = os.path.join(root, name)
            files[os.path.relpath(path, system.mnt)] = describe(path)
    gold = json.loads(system.osdctl("class", "show", "gold", "-o", "json").stdout)
    return {"files": files, "class": {key: gold[key] for key in ("weight", "reservation_bytes_per_s", "reservation_scope")}}


def unpack(lab, name):
    directory = lab.path("old")
    os.makedirs(directory)
    run("tar", "-xJf", os.path.join(DATA, name + ".tar.xz"), "-C", directory)
    with open(os.path.join(directory, "contents.json")) as file:
        return json.load(file)


def images(directory):
    return sorted(os.path.join(directory, name) for name in os.listdir(directory) if re.fullmatch(r"osd.*\.img", name))


def life_of(image):
    with open(image, "rb") as file:
        block = file.read(4096)
    return int.from_bytes(block[12:16], "little"), int.from_bytes(block[200:208], "little")


def fsck(lab, directory):
    for image in images(directory):
        run(f"{BIN}/weir-osd", "--fsck=deep", "--disk", image, ok=(0,))


def opens_with_everything_in_it(lab, old):
    expected = unpack(lab, f"disk_format_{old}")
    directory = lab.path("old")
    check(images(directory), "no image in the archive")
    check(all(life_of(image)[0] == old for image in images(directory)), f"the archive is not of format {old}")
    fsck(lab, directory)  # by the checker of this version, which does not write
    check(all(life_of(image)[0] == old for image in images(directory)), "a checker has changed a disk")
    system = Embedded(lab, name="old")
    found = contents(system)
    for path in sorted({*found["files"], *expected["files"]}):
        ours, theirs = found["files"].get(path), expected["files"].get(path)
        check(ours == theirs, f"{path}: {ours}, in the old disk {theirs}")
    check(found == expected, f"{found} differs from {expected}")
    # Old objects are changed, and new ones stand beside them.
    with open(f"{system.mnt}/large", "r+b") as file:
        file.seek(1010)
        file.write(b"newer bytes")
    with open(f"{system.mnt}/new", "wb") as file:
        file.write(b"x" * 5000)
    os.unlink(f"{system.mnt}/d/f7")
    changed = contents(system)
    system.umount()
    for image in images(directory):
        version, life = life_of(image)
        check(version == 4 and life >= 1, f"{image} is of format {version}, life {life}")
    fsck(lab, directory)
    lives = [life_of(image)[1] for image in images(directory)]
    system.mount()
    check(contents(system) == changed, "what was changed is not there after a remount")
    system.umount()
    check([life_of(image)[1] for image in images(directory)] == [life + 1 for life in lives], "a start is a life more")


def format_2(lab):
    opens_with_everything_in_it(lab, 2)


def format_3(lab):
    opens_with_everything_in_it(lab, 3)


if __name__ == "__main__":
    main("old_disks", format_2, format_3)
