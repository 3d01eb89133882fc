"""Packages where they are installed: newer ones, a configuration by their examples, and another host, which writes."""
import os
import re
import shutil
import socket
import subprocess
import sys

from debian import built
from weirtest import BIN, check, is_mounted, run, wait_until


def packages():
    """A directory with them."""
    return built(2)[0]


def newer(debs, directory):
    """The same packages again, of the next revision."""
    os.makedirs(directory)
    made = []
    for deb in debs:
        tree = f"{directory}/{os.path.basename(deb)}.tree"
        run("dpkg-deb", "-R", deb, tree)
        with open(f"{tree}/DEBIAN/control") as file:
            text = re.sub(r"(?m)^(Version: .*|Depends: weirfs-common \(= [^)]*)-1\b", r"\1-2", file.read())
        with open(f"{tree}/DEBIAN/control", "w") as file:
            file.write(text)
        made.append(f"{directory}/{os.path.basename(deb)}")
        run("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, made[-1])
        shutil.rmtree(tree)
    return made


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configure(debian, disk):
    """By the examples: /etc/weirfs/mds.toml and osd-a.toml. Returns the port of the MDS."""
    port = free_port()
    example = debian.run("cat", "/usr/share/doc/weirfs-mds/examples/mds.toml").stdout
    debian.write("etc/weirfs/mds.toml", example.replace(":7370", f":{port}"))
    example = debian.run("cat", "/usr/share/doc/weirfs-osd/examples/osd-sdb.toml").stdout.replace(":7370", f":{port}")
    example, found = re.subn(r'(?m)^disk = "[^"]*"', f'disk = "{disk}"', example)
    check(found == 1, example)
    debian.write("etc/weirfs/osd-a.toml", example)
    return port


class OtherHost:
    """A mount outside the Debian, and a program that writes there, makes names and syncs until it is told to end."""

    PROGRAM = """
import os, sys
mnt, end = sys.argv[1:]
number = 0
with open(f"{mnt}/numbers", "w") as file:
    while not os.path.exists(end):
        print(number, file=file, flush=True)
        os.fsync(file.fileno())
        with open(f"{mnt}/new", "w") as other:
            other.write(str(number))
        os.rename(f"{mnt}/new", f"{mnt}/last")
        print(number, flush=True)
        number += 1
"""

    def __init__(self, lab, port, program=f"{BIN}/weirfs"):
        self.mnt, self.end, self.steps = (lab.path(f"other-host.{name}") for name in ("mnt", "end", "steps"))
        os.mkdir(self.mnt)
        lab.on_exit(lambda: is_mounted(self.mnt) and run("umount", "-l", self.mnt, ok=None))
        run(program, f"127.0.0.1:{port}", self.mnt, "-o", "class=best-effort")
        with open(self.steps, "w") as steps:
            self.process = subprocess.Popen([sys.executable, "-c", self.PROGRAM, self.mnt, self.end], stdout=steps)
        lab.on_exit(lambda: self.process.poll() is None and (self.process.kill(), self.process.wait()))
        self.goes_on()

    def count(self):
        with open(self.steps) as steps:
            return steps.read().count("\n")

    def goes_on(self):
        before = self.count()
        wait_until(lambda: self.count() > before or self.process.poll() is not None, "another host to write")
        check(self.process.poll() is None, f"another host cannot write: {self.process.returncode}")

    def ends_well(self):
        """Everything that it wrote is there, in order."""
        with open(self.end, "w"):
            pass
        check(self.process.wait(60) == 0, "another host met an error")
        numbers = [str(number) for number in range(self.count())]
        with open(f"{self.mnt}/numbers") as file:
            found = file.read().split()
        check(found == numbers, f"another host wrote {numbers[-1]} lines, and reads {found[-3:]}")
        with open(f"{self.mnt}/last") as file:
            check(file.read() == numbers[-1], "its last file is another")
        run("umount", self.mnt)
