#!/usr/bin/env python3
"""Each program on each kind of wrong directory, device and image: refused with the right exit code, the thing is named,
and no byte of it has changed. What was interrupted goes on, what was moved opens."""
import contextlib
import errno
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess

from weirtest import BIN, MIB, Failure, check, is_mounted, main, run, wait_until

RATE = ("--token-rate", "500MiB/s")
# Said by who works on a directory, and of no value: who holds the lock, and what happened.
TALK = ("lock", "mds/lock", "weirfs.log", "log/mds.0.log", "log/osd.0.log")
ZEROS = bytes(MIB)


def contents(path):
    """A digest of a file's or device's bytes; holes are skipped, which devices cannot tell."""
    digest = hashlib.blake2b()
    with open(path, "rb", buffering=0) as file:
        at, end = 0, file.seek(0, os.SEEK_END)
        while at < end:
            stop = end
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError as error:
                    check(error.errno == errno.ENXIO, f"{path}: {error}")
                    break
                stop = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            while at < stop:
                file.seek(at)
                piece = file.read(min(MIB, stop - at))
                if piece != ZEROS[:len(piece)]:
                    digest.update(b"%d" % at)
                    digest.update(piece)
                at += len(piece)
    return end, digest.hexdigest()


def snapshot(*paths):
    """Everything below the paths."""
    seen = {}
    for top in paths:
        found = [top] + [os.path.join(root, name) for root, folders, files in os.walk(top) for name in folders + files]
        for path in found:
            if os.path.relpath(path, top) in TALK or not os.path.lexists(path):
                continue
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
                seen[path] = contents(path)
            else:
                seen[path] = os.readlink(path) if stat.S_ISLNK(mode) else stat.S_IFMT(mode)
    return seen


def refused(what, argv, code, *words, same=()):
    """Runs it; it must fail with that code, name the words, and leave all below the paths of `same` as it was."""
    before = snapshot(*same)
    done = run(*argv, ok=None, timeout=60)
    check(done.returncode in (code if isinstance(code, tuple) else (code,)),
          f"{what}: exit {done.returncode}, expected {code}: {done.args}\n{done.stderr}")
    for word in words:
        check(word.lower() in done.stderr.lower(), f"{what}: '{word}' is not named in: {done.stderr}")
    for advice in ("format it anew", "terminate called"):
        check(advice not in done.stderr, f"{what}: {done.stderr}")
    after = snapshot(*same)
    changed = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    check(not changed, f"{what}: changed {changed}: {done.args}")


def weirfs(data, mnt, *options):
    return [f"{BIN}/weirfs", "--data", data, mnt, *options]


def dev(verb, data, *options):
    return [f"{BIN}/weir-dev", verb, "--dir", data, *options]


def umount(mnt, data):
    run("umount", mnt)
    wait_until(lambda: run("flock", "-n", f"{data}/lock", "true", ok=None).returncode == 0, "weirfs to end")


def blank(path, size=64 * MIB):
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def put(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def noise(size):
    return random.Random(1).randbytes(size)


def slim(*images):
    """What is zeros takes no time to read any more."""
    for image in images:
        run("fallocate", "--dig-holes", image)


def copy_of(lab, source, name):
    target = lab.path(name)
    run("rm", "-rf", target)
    run("cp", "-a", "--sparse=always", source, target)
    return target


def edited(path, change):
    with open(path) as file:
        document = json.load(file)
    change(document)
    with open(path, "w") as file:
        json.dump(document, file)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def make_embedded(lab, name, mnt):
    """A whole directory of weirfs --data with a file in it, on a small disk."""
    data = lab.path(name)
    os.makedirs(data)
    blank(f"{data}/disk.img")
    run(*weirfs(data, mnt, "--disk", f"{data}/disk.img", *RATE))
    write(f"{mnt}/file", name)
    umount(mnt, data)
    slim(f"{data}/mds.img", f"{data}/disk.img")
    return data


def make_mds(lab, name):
    data = lab.path(name)
    with serving_mds(data):
        pass
    slim(f"{data}/mds.img")
    return data


@contextlib.contextmanager
def serving_mds(data):
    """A weir-mds, and its endpoint."""
    argv = [f"{BIN}/weir-mds", "--data", data, "--listen", f"ipc://{data}.sock", "--log", "off"]
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{data}/endpoint")
    with subprocess.Popen(argv) as mds:
        try:
            wait_until(lambda: mds.poll() is not None or os.path.exists(f"{data}/endpoint"), "weir-mds to serve")
            check(mds.poll() is None, f"weir-mds ended with {mds.returncode}")
            yield f"ipc://{data}.sock"
        finally:
            mds.terminate()


def mkfs(disk, endpoint, *options):
    return [f"{BIN}/weir-osd", "--mkfs", "--disk", disk, "--mds", endpoint, *RATE, *options]


def unmounted(lab):
    mnt = lab.path("mnt")
    os.makedirs(mnt, exist_ok=True)
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None) if is_mounted(mnt) else None)
    return mnt


# ---- directories

DAMAGE = (  # (what, how, words that must be in the error)
    ("the OSD's disk is zeros", lambda d, o: blank(f"{d}/disk.img"), ("disk.img",)),
    ("its head is gone", lambda d, o: put(f"{d}/disk.img", 0, bytes(MIB)), ("disk.img", "damaged")),
    ("both superblocks are damaged", lambda d, o: [put(f"{d}/disk.img", at, b"x" * 50) for at in (9, (512 << 10) + 9)],
     ("disk.img", "damaged")),
    ("its metadata region is damaged", lambda d, o: put(f"{d}/disk.img", MIB, bytes(8192)), ("disk.img", "superblock")),
    ("its metadata journal is damaged", lambda d, o: put(f"{d}/disk.img", MIB + 8192, bytes(4096)), ("disk.img",)),
    ("it is cut off", lambda d, o: os.truncate(f"{d}/disk.img", 20 * MIB), ("disk.img", "smaller")),
    ("it is empty", lambda d, o: os.truncate(f"{d}/disk.img", 0), ("disk.img", "empty")),
    ("it is an odd number of bytes", lambda d, o: os.truncate(f"{d}/disk.img", 20 * MIB + 7), ("disk.img",)),
    ("it holds noise", lambda d, o: put(f"{d}/disk.img", 0, noise(64 * MIB)), ("disk.img",)),
    ("it holds ext4", lambda d, o: run("mkfs.ext4", "-q", "-F", blank(f"{d}/disk.img")), ("disk.img", "ext2/3/4")),
    ("it is another cluster's", lambda d, o: shutil.copy(f"{o}/disk.img", f"{d}/disk.img"), ("disk.img", "cluster")),
    ("it is an MDS's image", lambda d, o: shutil.copy(f"{d}/mds.img", f"{d}/disk.img"), ("disk.img", "MDS")),
    ("it is missing", lambda d, o: os.unlink(f"{d}/disk.img"), ("disk.img",)),
    ("it is a directory", lambda d, o: (os.unlink(f"{d}/disk.img"), os.mkdir(f"{d}/disk.img")), ("disk.img",)),
    ("mds.img is missing", lambda d, o: os.unlink(f"{d}/mds.img"), ("mds.img", "missing")),
    ("mds.img is empty", lambda d, o: os.truncate(f"{d}/mds.img", 0), ("mds.img", "empty")),
    ("mds.img is zeros", lambda d, o: blank(f"{d}/mds.img", 256 * MIB), ("mds.img",)),
    ("mds.img is cut off", lambda d, o: os.truncate(f"{d}/mds.img", 16 * MIB), ("mds.img", "cut off")),
    ("mds.img has lost its head", lambda d, o: put(f"{d}/mds.img", 0, bytes(8192)), ("mds.img",)),
    ("mds.img's journal has lost its beginning", lambda d, o: put(f"{d}/mds.img", 8192, bytes(4096)), ("mds.img", "journal")),
    ("mds.img's journal has a hole", lambda d, o: put(f"{d}/mds.img", 8192 + 4096, bytes(4096)), ("mds.img", "journal")),
    ("mds.img's tables are damaged", lambda d, o: put(f"{d}/mds.img", os.path.getsize(f"{d}/mds.img") - 8 * MIB, noise(8 * MIB)),
     ("mds.img",)),
    ("mds.img holds noise", lambda d, o: put(f"{d}/mds.img", 0, noise(2 * MIB)), ("mds.img",)),
    ("mds.img is another cluster's", lambda d, o: shutil.copy(f"{o}/mds.img", f"{d}/mds.img"), ("mds.img", "cluster")),
    ("disks.json is missing", lambda d, o: os.unlink(f"{d}/disks.json"), ("disks.json", "missing")),
    ("disks.json and owner.json are missing", lambda d, o: [os.unlink(f"{d}/{n}") for n in ("disks.json", "owner.json")],
     ("weir-mds",)),
    ("owner.json is of a newer version", lambda d, o: edited(f"{d}/owner.json", lambda j: j.update(version=9)),
     ("owner.json", "version 9")),
    ("owner.json is of version 1.9", lambda d, o: edited(f"{d}/owner.json", lambda j: j.update(version=1.9)), ("version 1.9",)),
    ("owner.json is of version 2^32 + 1", lambda d, o: edited(f"{d}/owner.json", lambda j: j.update(version=(1 << 32) + 1)),
     ("version 4294967297",)),
    ("owner.json is a fifo", lambda d, o: (os.unlink(f"{d}/owner.json"), os.mkfifo(f"{d}/owner.json")), ("owner.json",)),
    ("owner.json is endless", lambda d, o: (os.unlink(f"{d}/owner.json"), os.symlink("/dev/zero", f"{d}/owner.json")),
     ("owner.json",)),
    ("owner.json leads nowhere", lambda d, o: (os.unlink(f"{d}/owner.json"), os.symlink(f"{d}/none", f"{d}/owner.json")),
     ("owner.json",)),
    ("disks.json is a fifo", lambda d, o: (os.unlink(f"{d}/disks.json"), os.mkfifo(f"{d}/disks.json")), ("disks.json",)),
    ("disks.json is of 40 GiB", lambda d, o: os.truncate(f"{d}/disks.json", 40 << 30), ("disks.json",)),
    ("disks.json names a path with a zero", lambda d, o: edited(f"{d}/disks.json", lambda j: j["disks"][0].update(path="disk.img\0x")),
     ("disks.json", "zero")),
    ("owner.json names nobody", lambda d, o: edited(f"{d}/owner.json", lambda j: j.update(program="x")), ("owner.json",)),
    ("owner.json is no object", lambda d, o: write(f"{d}/owner.json", "[]"), ("owner.json",)),
    ("owner.json is empty", lambda d, o: write(f"{d}/owner.json", ""), ("owner.json",)),
) + tuple(
    (f"disks.json is {text!r}", lambda d, o, text=text: write(f"{d}/disks.json", text), ("disks.json", "damaged"))
    for text in ("", "[]", "{}", "null", "7", '{"version":1}', '{"disks":[]}', '{"version":1,"disks":[]}', "\0" * 40,
                 '{"version":1,"disks":{}}', '{"version":1,"disks":[{}]}', '{"version":1,"disks":["osd.0.img"]}',
                 '{"version":"1","disks":[{"path":"disk.img","is_image":true}]}',
                 '{"version":1,"disks":[{"path":7,"is_image":true}]}',
                 '{"version":1,"disks":[{"path":"disk.img","is_image":"yes"}]}',
                 '{"version":1,"disks":[{"path":"disk.img"}]}',
                 '{"version":1,"disks":[{"path":"hdd:x,y=1","is_image":true}]}',
                 '{"version":1,"disks":[{"path":"","is_image":false,"tiers":[7]}]}',
                 '{"version":99,"disks":[{"path":"disk.img","is_image":true}]}',
                 '{"version":1,"disks":[{"path":"disk.img","is_image":true}]')
) + tuple(
    (f"disks.json has lost {key!r}", lambda d, o, key=key: edited(f"{d}/disks.json", lambda j: j.pop(key)),
     ("disks.json",)) for key in ("version", "disks", "images")
)


def damaged_embedded_directories(lab):
    mnt = unmounted(lab)
    whole, other = make_embedded(lab, "whole", mnt), make_embedded(lab, "other", mnt)
    for what, how, words in DAMAGE:
        data = copy_of(lab, whole, "work")
        how(data, other)
        refused(what, weirfs(data, mnt), 1, *words, same=[data])
    data = copy_of(lab, whole, "work")
    run(*weirfs(data, mnt))  # a copy at another place opens
    with open(f"{mnt}/file") as file:
        check(file.read() == "whole", "the copy holds something else")
    os.makedirs(lab.path("second"))
    refused("in use", weirfs(data, lab.path("second")), 1, "in use", mnt)
    umount(mnt, data)


def damaged_mds_directories(lab):
    whole, other = make_mds(lab, "whole"), make_mds(lab, "other")
    for what, how, words in DAMAGE:
        if "mds.img" not in what and "owner.json" not in what or "disks.json" in what or "tables" in what:
            continue
        data = copy_of(lab, whole, "work")
        how(data, other)
        mds = [f"{BIN}/weir-mds", "--data", data, "--listen", f"ipc://{data}.sock"]
        refused(what, mds, 1, *words, same=[data])
        if "owner" not in what and "another" not in what:
            refused(what, [f"{BIN}/weir-mds", "--fsck", "--data", data], (1, 7), same=[data])
    data = copy_of(lab, whole, "work")
    with serving_mds(data):
        before = snapshot(data)
        refused("in use", [f"{BIN}/weir-mds", "--data", data, "--listen", f"ipc://{data}.2"], 1, "in use")
        refused("in use", [f"{BIN}/weir-mds", "--fsck=names", "--repair", "--data", data], 1, "in use")
        check(snapshot(data).keys() == before.keys(), "files have come or gone")


def other_options_are_refused(lab):
    mnt = unmounted(lab)
    data = lab.path("data")
    first = ("--osds", "2", "--osd-size", "256MiB", *RATE)
    run(*weirfs(data, mnt, *first))
    umount(mnt, data)
    slim(f"{data}/mds.img", f"{data}/osd.0.img", f"{data}/osd.1.img")
    for options, words in ((("--osds", "3"), ("2", "3")), (("--osds", "1"), ("2", "1")),
                           (("--osd-size", "300MiB"), ("256MiB", "300MiB")),
                           (("--osds", "2", "--osd-size", "300MiB"), ("256MiB", "300MiB")),
                           (("--token-rate", "7MiB/s"), ("500MiB/s", "7MiB/s")),
                           (("--disk", "hdd:256MiB", "--osds", "1"), ("hdd:",)),
                           (("--disk", lab.path("x")), ("osd.0.img", "/x")),
                           (("--tier-disk", "a=hdd:256MiB,b=hdd:256MiB"), ("osd.0.img", "a="))):
        refused(f"{options}", weirfs(data, mnt, *options), 2, *words, same=[data])
    run(*weirfs(data, mnt, *first))  # the same again
    umount(mnt, data)
    refused("--osds 0", weirfs(lab.path("new"), mnt, "--osds", "0"), 2, "--osds")
    refused("--osds 0", dev("up", lab.path("new"), "--osds", "0"), 2, "--osds")
    check(not os.path.exists(lab.path("new")), "--osds 0 made a directory")


def mountpoints_beside_their_data(lab):
    mnt = unmounted(lab)
    data = make_embedded(lab, "data", mnt)
    for name in ("data/below", "around/data", "link"):
        os.makedirs(os.path.dirname(lab.path(name)), exist_ok=True)
    os.makedirs(f"{data}/below")
    os.symlink(data, lab.path("link"))
    os.makedirs(lab.path("around/new"))
    for program in (lambda d, m: weirfs(d, m), lambda d, m: dev("up", d, "--mount", m)):
        for where, at in ((data, data), (data, f"{data}/below"), (data, lab.path("link")),
                          (lab.path("around/new"), lab.path("around")), (lab.path("around/none"), lab.path("around")),
                          (lab.path("around/new"), lab.path("around/new"))):
            refused(f"{where} on {at}", program(where, at), (1, 2), where, at, same=[data, lab.path("around")])


# ---- whose a directory is

def directories_of_others(lab):
    mnt = unmounted(lab)
    embedded, mds, cluster = make_embedded(lab, "embedded", mnt), make_mds(lab, "mds"), lab.path("cluster")
    lab.on_exit(lambda: run(*dev("down", cluster), ok=None))
    run(*dev("up", cluster, "--osds", "1", "--osd-size", "256MiB", *RATE))
    os.makedirs(lab.path("mnt.2"))
    programs = {"embedded": lambda d: weirfs(d, lab.path("mnt.2")), "cluster": lambda d: dev("up", d),
                "mds": lambda d: [f"{BIN}/weir-mds", "--data", d, "--listen", f"ipc://{d}.sock"]}
    says = {embedded: "weirfs --data", cluster: "weir-dev", mds: "weir-mds", f"{cluster}/mds": "weir-mds"}
    owner = {embedded: "embedded", cluster: "cluster", mds: "mds", f"{cluster}/mds": "mds"}

    def try_all(which, same=True):
        for data in which:
            for name, program in programs.items():
                if name != owner[data]:
                    refused(f"{name} on {data}", program(data), 1, data, says[data], same=[data] if same else [])

    # While they run, their images are written to by whom they belong to.
    run(*weirfs(embedded, mnt))
    with serving_mds(mds):
        images = [os.stat(f"{d}/{n}").st_ino for d, n in ((embedded, "disk.img"), (cluster, "osd.0.img"))]
        try_all(says, same=False)
        check(images == [os.stat(f"{d}/{n}").st_ino for d, n in ((embedded, "disk.img"), (cluster, "osd.0.img"))],
              "an image was replaced while it was served")
    with open(f"{mnt}/file") as file:
        check(file.read() == "embedded", "the mount suffered")
    umount(mnt, embedded)
    run(*dev("down", cluster))
    slim(f"{cluster}/mds/mds.img", f"{cluster}/osd.0.img")
    try_all(says)
    # As earlier versions left them, and with half of it lost.
    for data in (embedded, cluster, mds, f"{cluster}/mds"):
        os.unlink(f"{data}/owner.json")
    try_all(says)
    run(*weirfs(embedded, mnt))
    umount(mnt, embedded)
    run(*dev("up", cluster))
    run(*dev("down", cluster))
    with serving_mds(mds):
        pass
    for data, record in ((embedded, "disks.json"), (cluster, "weir-dev.json")):
        os.rename(f"{data}/{record}", lab.path("kept"))
        for program in (programs["embedded"], programs["cluster"]):
            refused(f"without {record}", program(data), 1, data, same=[data])
        os.unlink(f"{data}/owner.json")
        for program in (programs["embedded"], programs["cluster"]):
            refused(f"without {record} and owner.json", program(data), 1, data, same=[data])
        os.rename(lab.path("kept"), f"{data}/{record}")


def foreign_directories(lab):
    mnt = unmounted(lab)
    for name, text in (("photos/a.jpg", "a picture"), ("lock", "my diary\n"), ("endpoint", "north\n"), ("log", "ship's log"),
                       ("osd.0.img", "text"), ("mds.img", "text"), (".hidden", ""), ("weir-dev.json", "{}"),
                       ("disks.json", "{}"), ("owner.json", "{}")):
        data = lab.path("foreign")
        shutil.rmtree(data, ignore_errors=True)
        os.makedirs(os.path.dirname(f"{data}/{name}"))
        write(f"{data}/{name}", text)
        for argv in (weirfs(data, mnt), dev("up", data),
                     [f"{BIN}/weir-mds", "--data", data, "--listen", f"ipc://{data}.sock"]):
            refused(name, argv, 1, data, same=[data])
    data = lab.path("file")
    write(data, "a file")
    for argv in (weirfs(data, mnt), dev("up", data),
                 [f"{BIN}/weir-mds", "--data", data, "--listen", "ipc://" + lab.path("sock")]):
        refused("a file", argv, 1, data, same=[data])
    # A filesystem that cannot be written to.
    data = lab.path("readonly")
    os.makedirs(data)
    run("mount", "-t", "tmpfs", "-o", "ro", "none", data)
    lab.on_exit(lambda: run("umount", data, ok=None))
    for argv in (weirfs(data, mnt), dev("up", data),
                 [f"{BIN}/weir-mds", "--data", data, "--listen", "ipc://" + lab.path("sock")]):
        refused("read-only", argv, 1, data, same=[data])


def files_in_the_way(lab):
    """What programs make, replace, append to or unlink is none of somebody's files, and none of the disks."""
    mnt = unmounted(lab)
    whole, cluster_mds = make_embedded(lab, "whole", mnt), make_mds(lab, "mds")
    letter, image, folder = lab.path("letter"), blank(lab.path("image"), MIB), lab.path("folder")
    write(letter, "dear,")
    os.makedirs(folder)
    os.symlink(letter, lab.path("link"))
    loop = run("losetup", "--find", "--show", image).stdout.strip()
    lab.on_exit(lambda: run("losetup", "-d", loop, ok=None))
    same = [whole, cluster_mds, letter, image, folder, loop]
    with serving_mds(lab.path("mds.2")) as endpoint:
        disk = blank(lab.path("osd"))
        run(*mkfs(disk, endpoint))
        osd = [f"{BIN}/weir-osd", "--disk", disk, "--mds", endpoint]
        for path in (letter, lab.path("link"), image, folder):
            for argv in (weirfs(whole, mnt, "--pid-file", path), [f"{BIN}/weirfs", endpoint, mnt, "--pid-file", path],
                         [*osd, "--pid-file", path], [*osd, "--ready-file", path], [*osd, "--decision-log", path]):
                refused(f"{path} as {argv[-2]}", argv, 1, same=[*same, disk])
    for path in (image, folder, loop, f"{whole}/disk.img", f"{whole}/mds.img"):
        for how in ([], ["-f"]):
            refused(f"{path} as a log", weirfs(whole, mnt, "--log-file", path, *how), 1, f"cannot log to '{path}'", same=same)
    for path in (letter, lab.path("link"), image, folder):
        refused(f"listening at {path}", [f"{BIN}/weir-mds", "--data", cluster_mds, "--listen", f"ipc://{path}"], 1, path,
                same=[letter, image, folder])
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{whole}/mds.sock")
    write(f"{whole}/mds.sock", "dear,")
    refused("a letter named mds.sock", weirfs(whole, mnt), 1, "mds.sock", same=[f"{whole}/mds.sock"])
    # Names that the directory itself has a use for.
    for name in ("owner.json", "disks.json", "endpoint", "lock", "weirfs.log", "mds.img", "mds.sock", "mds/x", "log/x"):
        data = lab.path("new")
        shutil.rmtree(data, ignore_errors=True)
        os.makedirs(os.path.dirname(f"{data}/{name}"))
        blank(f"{data}/{name}")
        for argv in (weirfs(data, mnt, "--disk", f"{data}/{name}", *RATE), dev("up", data, "--disk", f"{data}/{name}", *RATE)):
            refused(f"{name} as a disk", argv, 2, f"{data}/{name}", same=[data])


DEV_DAMAGE = (
    ("osd.0.img is zeros", lambda d: blank(f"{d}/osd.0.img", 256 * MIB), ("osd.0.img",)),
    ("osd.0.img is cut off", lambda d: os.truncate(f"{d}/osd.0.img", 20 * MIB), ("osd.0.img", "smaller")),
    ("osd.0.img is missing", lambda d: os.unlink(f"{d}/osd.0.img"), ("osd.0.img",)),
    ("osd.0.img is osd.1", lambda d: shutil.copy(f"{d}/osd.1.img", f"{d}/osd.0.img"), ("osd.1.img",)),
    ("mds.img is missing", lambda d: os.unlink(f"{d}/mds/mds.img"), ("mds.img",)),
    ("mds.img is cut off", lambda d: os.truncate(f"{d}/mds/mds.img", 16 * MIB), ("mds.img",)),
    ("mds.img is zeros", lambda d: blank(f"{d}/mds/mds.img", 256 * MIB), ("mds.img",)),
    ("mds is missing", lambda d: shutil.rmtree(f"{d}/mds"), ("mds.img",)),
    ("weir-dev.json is missing", lambda d: os.unlink(f"{d}/weir-dev.json"), ("weir-dev.json",)),
    ("weir-dev.json is another version's", lambda d: edited(f"{d}/weir-dev.json", lambda j: j.update(version=9)),
     ("weir-dev.json", "9")),
    ("weir-dev.json has no OSD", lambda d: edited(f"{d}/weir-dev.json", lambda j: j.update(osds=[])), ("weir-dev.json",)),
    ("weir-dev.json has a strange OSD", lambda d: edited(f"{d}/weir-dev.json", lambda j: j.update(osds=[7])),
     ("weir-dev.json",)),
    ("weir-dev.json has a negative pid", lambda d: edited(f"{d}/weir-dev.json", lambda j: j["mds"].update(pid=-7)),
     ("weir-dev.json",)),
) + tuple((f"weir-dev.json is {text!r}", lambda d, text=text: write(f"{d}/weir-dev.json", text), ("weir-dev.json",))
          for text in ("", "[]", "{}", '{"version":1}', "null")) + tuple(
    (f"weir-dev.json has lost {key}", lambda d, key=key: edited(f"{d}/weir-dev.json", lambda j: j.pop(key)),
     ("weir-dev.json",)) for key in ("version", "endpoint", "osds", "mds", "mounts"))


def clusters_of_weir_dev(lab):
    whole, moved = lab.path("whole"), lab.path("moved")
    for data in (whole, moved, lab.path("work")):
        lab.on_exit(lambda data=data: run(*dev("down", data), ok=None))
    first = ("--osds", "2", "--osd-size", "256MiB", *RATE)
    run(*dev("up", whole, *first))
    with open(f"{whole}/weir-dev.json") as file:
        ports = json.load(file)["endpoint"]
    refused("up already", dev("up", whole), 1, "up already")
    run(*dev("down", whole))
    slim(f"{whole}/mds/mds.img", f"{whole}/osd.0.img", f"{whole}/osd.1.img")
    for what, how, words in DEV_DAMAGE:
        data = copy_of(lab, whole, "work")
        how(data)
        refused(what, dev("up", data), 1, *words, same=[data])
    for options, words in ((("--osds", "3"), ("2", "3")), (("--osd-size", "300MiB"), ("256MiB", "300MiB")),
                           (("--token-rate", "7MiB/s"), ("500MiB/s", "7MiB/s")), (("--disk", "hdd:256MiB"), ("hdd:",))):
        refused(f"{options}", dev("up", whole, *options), 2, *words, same=[whole])
    os.rename(whole, moved)
    run(*dev("up", moved, *first))
    for daemon in ("osd.0", "osd.1"):
        used = [os.readlink(f"/proc/{pid_of(moved, daemon)}/fd/{fd}") for fd in os.listdir(f"/proc/{pid_of(moved, daemon)}/fd")
                if os.path.exists(f"/proc/{pid_of(moved, daemon)}/fd/{fd}")]
        check(f"{moved}/{daemon}.img" in used, f"{daemon} serves {used}")
    run(*dev("down", moved))
    # Earlier versions recorded where the directory was.
    os.unlink(f"{moved}/owner.json")

    def old(state):
        state["version"] = 1
        for i, osd in enumerate(state["osds"]):
            osd.pop("images")
            osd.update(disk=f"{whole}/osd.{i}.img", image_size=0)
    edited(f"{moved}/weir-dev.json", old)
    run(*dev("up", moved))
    check(ports in run(*dev("status", moved, "-o", "json")).stdout, "mounts would look for it at another port")
    run(*dev("down", moved))


def copies_of_disks(lab):
    """Of two copies of a disk one is served: what went to the other would be lost."""
    first, second = lab.path("first"), lab.path("second")
    for data in (first, second):
        lab.on_exit(lambda data=data: run(*dev("down", data), ok=None))
    run(*dev("up", first, "--osd-size", "256MiB", *RATE))
    run(*dev("down", first))
    slim(f"{first}/mds/mds.img", f"{first}/osd.0.img")
    copy_of(lab, first, "second")
    run(*dev("up", second))
    run(*dev("down", second))
    run(*dev("up", first))
    with open(f"{first}/endpoint") as file:
        endpoint = file.read().strip()
    serving = run(f"{BIN}/osdctl", "--cluster", first, "osd", "ls", "-o", "json").stdout
    refused("up beside its original", dev("up", second), 1, "already in use")
    refused("a copied disk", [f"{BIN}/weir-osd", "--disk", f"{second}/osd.0.img", "--mds", endpoint], 1, "osd.0", "copy",
            same=[f"{second}/osd.0.img"])
    check(json.loads(serving)["osds"][0].get("endpoint") == json.loads(
        run(f"{BIN}/osdctl", "--cluster", first, "osd", "ls", "-o", "json").stdout)["osds"][0].get("endpoint"),
        "the copy took the place of the original")
    run(*dev("kill", first), "osd.0")
    run(*dev("start", first), "osd.0")  # of one that cannot say so it is known that it is gone


def pid_of(data, daemon):
    daemons = json.loads(run(*dev("status", data, "-o", "json")).stdout)["daemons"]
    return next(one["pid"] for one in daemons if one["name"] == daemon)


# ---- disks

def some_disks(lab, endpoint):
    """(what, path, words), of disks that no mkfs may touch without --force."""
    def made(name, how, size=64 * MIB):
        path = blank(lab.path(name), size)
        how(path)
        return path
    ours = blank(lab.path("ours.img"))
    run(*mkfs(ours, endpoint))
    return [
        ("ext4", made("ext4.img", lambda p: run("mkfs.ext4", "-q", "-F", p)), ("ext2/3/4",)),
        ("GPT", made("gpt.img", lambda p: put(p, 512, b"EFI PART")), ("partition",)),
        ("noise", made("noise.img", lambda p: put(p, 0, noise(64 * MIB))), ("holds",)),
        ("noise in the middle", made("middle.img", lambda p: put(p, 33 * MIB + 5, b"x")), ("holds",)),
        ("noise at the end", made("end.img", lambda p: put(p, 64 * MIB - 1, b"x")), ("holds",)),
        ("text", made("text.img", lambda p: put(p, 0, b"a long letter")), ("holds",)),
        ("an OSD", ours, ("holds osd.0",)),
        ("an OSD without its head", made("headless.img", lambda p: (shutil.copy(ours, p), put(p, 0, bytes(MIB)))),
         ("damaged",)),
    ]


def opens_images(pid):
    with contextlib.suppress(OSError):
        files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        return sum(file.endswith(" (deleted)") for file in files) >= 4  # both, by who makes and by who formats them
    return False


def disks_that_hold_something(lab):
    mnt = unmounted(lab)
    data = lab.path("mds")
    with serving_mds(data) as endpoint:
        disks = some_disks(lab, endpoint) + [("an MDS's image", copy_of(lab, f"{data}/mds.img", "mds.img"), ("MDS",))]
        for what, path, words in disks:
            refused(f"mkfs on {what}", mkfs(path, endpoint), 1, path, "--force", *words, same=[path])
            other = blank(lab.path("blank.img"))
            refused(f"mkfs of tiers with {what}", [f"{BIN}/weir-osd", "--mkfs", "--tier-disk", f"a={other},b={path}",
                                                   "--mds", endpoint, *RATE], 1, path, same=[path, other])
            refused(f"weirfs --disk {what}", weirfs(lab.path("new"), mnt, "--disk", path), 1, path, *words, same=[path])
            refused(f"weirfs --tier-disk {what}", weirfs(lab.path("new"), mnt, "--tier-disk", f"a={other},b={path}"), 1, path,
                    same=[path, other])
            refused(f"weir-dev --disk {what}", dev("up", lab.path("new"), "--disk", path), 1, path, *words, same=[path])
            check(not os.path.exists(lab.path("new")), f"{what}: a directory was made before the disk was refused")
            if what != "an OSD":
                for argv in ([f"{BIN}/weir-osd", "--disk", path, "--mds", endpoint], [f"{BIN}/weir-osd", "--fsck", "--disk", path],
                             [f"{BIN}/weir-osd", "--fsck=deep", "--repair", "--disk", path]):
                    refused(f"weir-osd on {what}", argv, 1, path, same=[path])
        # Not disks at all.
        os.makedirs(lab.path("folder"))
        for path, code in ((lab.path("folder"), (1, 2)), (lab.path("none"), (1, 5)), ("/dev/null", (1, 2)),
                           (blank(lab.path("small"), 32 * MIB), 1), (blank(lab.path("void"), 0), (1, 2))):
            kept = [path] if path.startswith(lab.dir) and os.path.exists(path) else []
            for argv in (mkfs(path, endpoint), weirfs(lab.path("new"), mnt, "--disk", path), dev("up", lab.path("new"), "--disk", path),
                         [f"{BIN}/weir-osd", "--disk", path, "--mds", endpoint], [f"{BIN}/weir-osd", "--fsck", "--disk", path]):
                refused(f"on {path}", argv, code, path, same=kept)
        check(not os.path.exists(lab.path("none")) and not os.path.exists(lab.path("new")), "a refused disk was made")
        # An image is made when all else is well.
        path = lab.path("made.img")
        refused("too small", mkfs(path, endpoint, "--size", "1MiB"), 1, path, same=[lab.path("mds/owner.json")])
        check(not os.path.exists(path), "a refused mkfs left its image")
        refused("no MDS", [f"{BIN}/weir-osd", "--mkfs", "--tier-disk", f"a={path},b={path}.b", "--size", "64MiB", "--mds",
                           "ipc://" + lab.path("nobody"), *RATE], 6)
        check(not os.path.exists(path) and not os.path.exists(path + ".b"), "a refused mkfs left its image")
        # Profiled, it takes seconds: ended meanwhile it leaves nothing.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            argv = [f"{BIN}/weir-osd", "--mkfs", "--tier-disk", f"a={path},b={path}.b", "--size", "64MiB", "--mds", endpoint]
            with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
                wait_until(lambda p=process: p.poll() is not None or opens_images(p.pid), "mkfs to open its images")
                process.send_signal(number)
            check(process.returncode == -number, f"mkfs ended by {number.name}: {process.returncode}")
            check(not os.path.exists(path) and not os.path.exists(path + ".b"), f"{number.name}: mkfs left its image")
        run(*mkfs(path, endpoint, "--size", "64MiB"))
        refused("there already", mkfs(path, endpoint, "--size", "64MiB"), 1, path, same=[path])
        refused("there already", mkfs(path, endpoint, "--size", "64MiB", "--force"), 1, path, same=[path])
        refused("twice", weirfs(lab.path("new"), mnt, "--disk", path, "--disk", path), 2, path, "twice", same=[path])
        for name in ("noise", "ext4"):
            run(*mkfs(lab.path(f"{name}.img"), endpoint, "--force"))
    run(*weirfs(lab.path("forced"), mnt, "--disk", lab.path("text.img"), "--force", *RATE))
    umount(mnt, lab.path("forced"))
    lab.on_exit(lambda: run(*dev("down", lab.path("forced.dev")), ok=None))
    run(*dev("up", lab.path("forced.dev"), "--disk", lab.path("gpt.img"), "--force", *RATE))


def disks_in_use(lab):
    mnt = unmounted(lab)
    with serving_mds(lab.path("mds")) as endpoint, serving_mds(lab.path("mds2")) as other:
        image, ready = lab.path("osd.img"), lab.path("ready")
        run(*mkfs(image, endpoint, "--size", "64MiB"))
        os.link(image, lab.path("hard.img"))
        os.symlink(image, lab.path("soft.img"))
        serve = [f"{BIN}/weir-osd", "--disk", image, "--mds", endpoint]
        refused("another cluster's", [*serve[:-1], other], 1, image, "cluster", same=[image])
        with subprocess.Popen([*serve, "--ready-file", ready, "--pid-file", lab.path("pid"), "--log", "off"]) as osd:
            try:
                wait_until(lambda: os.path.exists(ready), "weir-osd to serve")
                loop = run("losetup", "--find", "--show", image).stdout.strip()
                lab.on_exit(lambda: run("losetup", "-d", loop, ok=None))
                for path in (image, lab.path("hard.img"), lab.path("soft.img"), f"hdd:{image}", loop):
                    for argv in (mkfs(path, endpoint), mkfs(path, endpoint, "--force"),
                                 [f"{BIN}/weir-osd", "--disk", path, "--mds", endpoint, "--pid-file", lab.path("pid")],
                                 weirfs(lab.path("new"), mnt, "--disk", path)):
                        refused(f"in use: {path}", argv, 1, ".img" if "soft" in path else os.path.basename(path))
                refused("in use", [f"{BIN}/weir-osd", "--fsck", "--repair", "--disk", image], 1, "in use")
                with open(lab.path("pid")) as file:
                    check(int(file.read()) == osd.pid, "the pid file of the one that serves was taken away")
                check(osd.poll() is None, "the OSD that served has ended")
            finally:
                osd.terminate()
        run("losetup", "-d", loop)
        # A loop device that can only be read, one that is mounted, one whose file is named beside it.
        blank(lab.path("below.img"))
        only_read = run("losetup", "--find", "--show", "-r", lab.path("below.img")).stdout.strip()
        lab.on_exit(lambda: run("losetup", "-d", only_read, ok=None))
        refused("read-only", mkfs(only_read, endpoint), 1, only_read, same=[lab.path("below.img")])
        refused("its file", mkfs(lab.path("below.img"), endpoint), 1, only_read, same=[lab.path("below.img")])
        run("losetup", "-d", only_read)
        device = lab.loop("mounted.img", 64 * MIB)
        run("mkfs.ext4", "-q", device)
        os.makedirs(lab.path("ext4"))
        run("mount", device, lab.path("ext4"))
        lab.on_exit(lambda: run("umount", lab.path("ext4"), ok=None))
        for argv in (mkfs(device, endpoint, "--force"), mkfs(lab.path("mounted.img"), endpoint, "--force"),
                     weirfs(lab.path("new"), mnt, "--disk", device)):
            refused("mounted", argv, 1, same=[])
        run("umount", lab.path("ext4"))
        run("e2fsck", "-fn", device)


# ---- a first start that is cut short

def interrupted_first_starts(lab):
    mnt = unmounted(lab)
    for last in ("owner.json", "disks.json", "osd.1.img", "mds.img", "osd.0.sock"):
        data = lab.path("first")
        shutil.rmtree(data, ignore_errors=True)
        options = ("--osds", "2", "--osd-size", "256MiB", *RATE)
        with subprocess.Popen(weirfs(data, mnt, *options, "-f", "--log", "off")) as process:
            wait_until(lambda last=last, p=process: os.path.exists(f"{data}/{last}") or p.poll() is not None, last)
            process.send_signal(signal.SIGKILL)
        run("umount", "-l", mnt, ok=None)
        run(*weirfs(data, mnt, *options))
        write(f"{mnt}/file", last)
        umount(mnt, data)
        run(*weirfs(data, mnt))
        with open(f"{mnt}/file") as file:
            check(file.read() == last, f"killed at {last}: the file is gone")
        status = json.loads(run(f"{BIN}/osdctl", "--cluster", data, "osd", "ls", "-o", "json").stdout)
        check(len(status["osds"]) == 2, f"killed at {last}: {status}")
        umount(mnt, data)


def what_weir_dev_refuses_makes_nothing(lab):
    data = lab.path("data")
    lab.on_exit(lambda: run(*dev("down", data), ok=None))
    for options, code, word in ((("--osd-size", "300000001"), 2, "4096"), (("--osd-size", "1000TiB"), 1, "no room"),
                                (("--disk", "hdd:300000001"), 2, "4096"), (("--web", "x"), 2, "--web"),
                                (("--mount", ""), 2, "--mount"), (("--osd-size", ""), 2, "--osd-size")):
        refused(f"{options}", dev("up", data, *options), code, word)
        check(not os.path.exists(data), f"{options}: made {data}")
    done = run("bash", "-c", 'ulimit -n 40; exec "$@"', "bash", *dev("up", data), ok=None)
    check(done.returncode == 1 and "ulimit -n" in done.stderr and not os.path.exists(data), f"few files: {done}")
    # Ended by a signal, it takes down what it has started.
    for number, last in ((signal.SIGINT, "mds/mds.img"), (signal.SIGTERM, "mds/endpoint"), (signal.SIGHUP, "osd.0.img")):
        shutil.rmtree(data, ignore_errors=True)
        with subprocess.Popen(dev("up", data, "--osd-size", "256MiB"), stderr=subprocess.PIPE, text=True) as process:
            wait_until(lambda last=last, p=process: os.path.exists(f"{data}/{last}") or p.poll() is not None, last)
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
        check(process.returncode == 1 and number.name in error, f"{number.name}: {process.returncode} {error}")
        daemons = json.loads(run(*dev("status", data, "-o", "json"), ok=(7,)).stdout)["daemons"]
        check(not any(daemon["up"] for daemon in daemons), f"{number.name}: {daemons} run")
        with open(f"{data}/mds/lock") as file:
            check(not os.path.exists(f"/proc/{file.read().strip()}"), f"{number.name}: weir-mds lives on")


def interrupted_first_start_of_a_cluster(lab):
    data = lab.path("first")
    lab.on_exit(lambda: run(*dev("down", data), ok=None))
    for last in ("weir-dev.json", "mds/mds.img", "osd.0.img"):
        shutil.rmtree(data, ignore_errors=True)
        options = ("--osds", "2", "--osd-size", "256MiB", *RATE)
        with subprocess.Popen(dev("up", data, *options)) as process:
            wait_until(lambda last=last, p=process: os.path.exists(f"{data}/{last}") or p.poll() is not None, last)
            process.send_signal(signal.SIGKILL)

        def up():  # what it had started may still be at work
            run(*dev("down", data))
            done = run(*dev("up", data, *options), ok=None)
            if done.returncode == 0:
                return True
            if "in use" in done.stderr:
                return False
            raise Failure(f"killed at {last}: {done.stderr}")
        wait_until(up, "the cluster to come up")
        run(*dev("down", data))


if __name__ == "__main__":
    main("wrong_disks", damaged_embedded_directories, damaged_mds_directories, other_options_are_refused,
         mountpoints_beside_their_data, directories_of_others, foreign_directories, files_in_the_way,
         clusters_of_weir_dev, copies_of_disks, disks_that_hold_something, disks_in_use, interrupted_first_starts,
         what_weir_dev_refuses_makes_nothing, interrupted_first_start_of_a_cluster)
