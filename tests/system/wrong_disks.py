#!/usr/bin/env python3
"""Each program on each kind of wrong device and image: refused with the right exit code, the thing is named, and no byte
of it has changed. What was interrupted goes on."""
import contextlib
import json
import os
import shutil
import signal
import subprocess

from untouched import (RATE, blank, copy_of, dev, mkfs, noise, put, refused, serving_mds, slim, umount, unmounted, weirfs,
                       write)
from weirtest import BIN, MIB, check, files_of, is_mounted, main, run, wait_until

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
        files = files_of(pid)
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


def processes_of(data):
    """What runs of a cluster: every daemon of it is told of its directory, or of a file there."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if f"{data}/".encode() in file.read():
                found.append(int(pid))
    return found


def killed_at(data, last, argv):
    """weir-dev, killed as soon as that file is there: what it has started ends by itself. False: all was served by then."""
    def held(pid):  # by its only pipe
        return any(file.startswith("pipe:") for file in files_of(pid))
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: os.path.exists(f"{data}/{last}") or process.poll() is not None, last)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: process.poll() is not None or open(f"/proc/{process.pid}/stat").read().split(") ")[1][0] == "T",
                   "weir-dev to stand still")
        if process.poll() is not None or not held(process.pid):
            process.send_signal(signal.SIGCONT)
            return False
        # One that ends shows no command any more, and holds its locks still.
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            started = {int(pid) for pid in file.read().split()} | set(processes_of(data))
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not processes_of(data) and not any(os.path.exists(f"/proc/{pid}") for pid in started),
               f"what a weir-dev had started that was killed at {last} to end")
    return True


def killed_starts_of_a_cluster(lab):
    mnt, data = unmounted(lab), lab.path("cluster")
    lab.on_exit(lambda: run(*dev("down", data), ok=None))
    lab.on_exit(lambda: [os.kill(pid, signal.SIGKILL) for pid in processes_of(data)])
    options = ("--osds", "2", "--osd-size", "256MiB", "--mount", mnt, *RATE)
    for last in ("weir-dev.json", "mds/mds.img", "osd.0.img", "log/mnt.0.log"):
        shutil.rmtree(data, ignore_errors=True)
        while not killed_at(data, last, dev("up", data, *options)):
            run(*dev("down", data))
            shutil.rmtree(data)
        check(not is_mounted(mnt), f"killed at {last}: the mount is still there")
        run(*dev("up", data, *options))
        write(f"{mnt}/file", last)
        run(*dev("down", data))
    # As well when it starts what was there before, or one daemon.
    while not killed_at(data, "run/osd.0.ready", dev("up", data)):
        run(*dev("down", data))
    run(*dev("up", data))
    run(*dev("kill", data), "osd.1")
    before = set(processes_of(data))
    with subprocess.Popen([*dev("start", data), "osd.1"]) as process:
        wait_until(lambda: set(processes_of(data)) - before or process.poll() is not None, "osd.1 to start")
        process.send_signal(signal.SIGKILL)
    run(*dev("down", data))
    wait_until(lambda: not processes_of(data), "what a weir-dev had started that was killed to end")


if __name__ == "__main__":
    main("wrong_disks", copies_of_disks, disks_that_hold_something, disks_in_use, interrupted_first_starts,
         killed_starts_of_a_cluster)
