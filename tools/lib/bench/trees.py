"""What people do with trees of small files: tar x, git clone and checkouts, git status, rm -rf. Rates, so that more is better."""
import os
import random
import subprocess
import tarfile
import time

from .host import run

FILES = 6000
LEAST, MOST = 1 << 10, 64 << 10  # bytes of a file
FILES_IN_FOLDER = 50
BACK = 100  # commits between two checkouts, or as many as there are


def make_archive(path, files=FILES):
    """A tar of files of 1 to 64 KiB, most of them small, the same each time."""
    chance = random.Random(45)
    with tarfile.open(path, "w") as archive:
        for number in range(files):
            if number % FILES_IN_FOLDER == 0:
                folder = tarfile.TarInfo(f"d{number // FILES_IN_FOLDER}")
                folder.type, folder.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(folder)
            info = tarfile.TarInfo(f"d{number // FILES_IN_FOLDER}/f{number}")
            info.size = int(LEAST * (MOST / LEAST) ** chance.random())
            with open("/dev/urandom", "rb") as source:
                archive.addfile(info, source)


def seconds(*argv):
    start = time.monotonic()
    run(*argv, timeout=600)
    return time.monotonic() - start


def leave_second(index):
    """Of files that are of the same second as the index git reads all data, each time: the more, the faster they were made."""
    while int(time.time()) <= int(os.stat(index).st_mtime):
        time.sleep(0.05)
    os.utime(index)


class Trees:
    """Once a run: a tree is unpacked, a repository cloned and moved back and forth, and all of that removed."""
    name = "trees"
    ROWS = {"trees.tar": "files/s", "trees.git": "runs/s", "trees.status": "runs/s", "trees.rm": "files/s"}

    def __init__(self, repo):
        self._repo = repo
        self._archive = None

    def rows(self):
        return self.ROWS

    def suits(self, system):
        return system.data is not None

    def measure(self, system, _runtime_s, repeat):
        if self._archive is None:
            self._archive = os.path.join(system.host.dir, "trees.tar")
            make_archive(self._archive)
        place = os.path.join(system.data, f"trees.{repeat}")
        clone = os.path.join(place, "clone")
        os.mkdir(place)
        tar = seconds("tar", "-x", "-f", self._archive, "-C", place)
        git = seconds("git", "clone", "-q", "--no-hardlinks", self._repo, clone)
        commits = run("git", "-C", clone, "rev-list", f"--max-count={BACK}", "HEAD").split()
        for commit in (commits[-1], commits[0]):
            git += seconds("git", "-C", clone, "checkout", "-q", commit)
        leave_second(os.path.join(clone, ".git", "index"))
        run("git", "-C", clone, "status", "--short")
        status = seconds("git", "-C", clone, "status", "--short")
        files = sum(len(found) for _, _, found in os.walk(place))
        remove = seconds("rm", "-rf", place)
        return {"trees.tar": FILES / tar, "trees.git": 1 / git, "trees.status": 1 / status, "trees.rm": files / remove}


class Folders:
    """mkdir(2) by one thread."""
    name = "mkdirs"

    def rows(self):
        return {self.name: "folders/s"}

    def suits(self, system):
        return system.data is not None

    def measure(self, system, runtime_s, repeat):
        place = os.path.join(system.data, f"mkdirs.{repeat}")
        os.mkdir(place)
        made, start = 0, time.monotonic()
        while time.monotonic() - start < runtime_s:
            os.mkdir(os.path.join(place, f"d{made}"))
            made += 1
        rate = made / (time.monotonic() - start)
        subprocess.run(["rm", "-rf", place], check=True)
        return {self.name: rate}
