"""What wrong_directories.py and wrong_disks.py share: programs that must refuse something, and leave every byte of it as it was."""
import atexit
import contextlib
import errno
import functools
import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import tempfile

from weirtest import BIN, MIB, check, is_mounted, run, wait_until

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


def umounted(data):
    """The process ends after the mount is gone."""
    wait_until(lambda: run("flock", "-n", f"{data}/lock", "true", ok=None).returncode == 0, "weirfs to end")


def umount(mnt, data):
    run("umount", mnt)
    umounted(data)


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


def copy(source, target):
    """Of zeros in it there is nothing to write."""
    run("cp", "-a", "--sparse=always", source, target)


def copy_of(lab, source, name):
    target = lab.path(name)
    run("rm", "-rf", target)
    copy(source, target)
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


@functools.cache
def templates():
    """Where directories lie of which every test gets copies: to make one takes seconds."""
    top = tempfile.mkdtemp(prefix="weir-untouched-", dir=os.environ.get("WEIR_TEST_DIR", "/var/tmp"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    return top


@functools.cache
def embedded_template():
    data, mnt = f"{templates()}/embedded", f"{templates()}/mnt"
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    os.makedirs(mnt, exist_ok=True)
    blank(f"{data}/disk.img")
    try:
        run(*weirfs(data, mnt, "--disk", f"{data}/disk.img", *RATE))
        write(f"{mnt}/file", "whole")
    finally:
        run("umount", mnt, ok=None)
    umounted(data)
    slim(f"{data}/mds.img", f"{data}/disk.img")
    return data


@functools.cache
def mds_template():
    """With a disk of its cluster beside it."""
    data = f"{templates()}/mds"
    with serving_mds(data) as endpoint:
        run(*mkfs(blank(f"{templates()}/disk.img"), endpoint))
    slim(f"{data}/mds.img", f"{templates()}/disk.img")
    return data


def make_embedded(lab, name):
    """A whole directory of weirfs --data, on a small disk, with a file in it."""
    return copy_of(lab, embedded_template(), name)


def make_mds(lab, name):
    return copy_of(lab, mds_template(), name)


def make_other(lab, name):
    """A directory with images of another cluster than that of make_embedded."""
    data = make_mds(lab, name)
    copy(f"{templates()}/disk.img", f"{data}/disk.img")
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


def pid_of(data, daemon):
    daemons = json.loads(run(*dev("status", data, "-o", "json")).stdout)["daemons"]
    return next(one["pid"] for one in daemons if one["name"] == daemon)
