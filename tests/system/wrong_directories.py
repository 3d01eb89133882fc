#!/usr/bin/env python3
"""Each program on each kind of wrong directory: refused with the right exit code, the thing is named, and no byte of it
has changed. What was moved opens."""
import contextlib
import json
import os
import shutil
import signal
import subprocess

from untouched import (RATE, blank, copy, copy_of, dev, edited, make_embedded, make_mds, make_other, mkfs, noise, pid_of,
                       put, refused, serving_mds, slim, snapshot, umount, unmounted, weirfs, write)
from weirtest import BIN, MIB, check, files_of, main, run, wait_until

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
    ("it is another cluster's", lambda d, o: copy(f"{o}/disk.img", f"{d}/disk.img"), ("disk.img", "cluster")),
    ("it is an MDS's image", lambda d, o: copy(f"{d}/mds.img", f"{d}/disk.img"), ("disk.img", "MDS")),
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
    ("mds.img is another cluster's", lambda d, o: copy(f"{o}/mds.img", f"{d}/mds.img"), ("mds.img", "cluster")),
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
    whole, other = make_embedded(lab, "whole"), make_other(lab, "other")
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
    whole, other = make_mds(lab, "whole"), make_embedded(lab, "other")
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
    data = make_embedded(lab, "data")
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
    embedded, mds, cluster = make_embedded(lab, "embedded"), make_mds(lab, "mds"), lab.path("cluster")
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
        check(file.read() == "whole", "the mount suffered")
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
    whole, cluster_mds = make_embedded(lab, "whole"), make_mds(lab, "mds")
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
    ("osd.0.img is osd.1", lambda d: copy(f"{d}/osd.1.img", f"{d}/osd.0.img"), ("osd.1.img",)),
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
        used = files_of(pid_of(moved, daemon))
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


if __name__ == "__main__":
    main("wrong_directories", damaged_embedded_directories, damaged_mds_directories, other_options_are_refused,
         mountpoints_beside_their_data, directories_of_others, foreign_directories, files_in_the_way,
         clusters_of_weir_dev, what_weir_dev_refuses_makes_nothing)
