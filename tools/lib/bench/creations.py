"""Creations where they are hardest: with the data on a rotating disk, and by sixteen processes of two mounts in one directory."""
import contextlib
import json
import os
import subprocess
import sys

from .host import BenchError, run, stop

HDD = "hdd:4GiB"     # as --disk has it
WRITERS = 8          # processes of each of two mounts
SMALL_FILE = 4096    # bytes

# What a writer does: begins when it is told to, then makes files until its time is over, and says how many those were.
WRITER = """
import os, sys, time
place, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
sys.stdin.readline()
made, end = 0, time.monotonic() + seconds
while time.monotonic() < end:
    os.close(os.open(f"{place}/{name}.{made}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    made += 1
print(made)
"""


class OnHdd:
    """Of a build's own filesystem whose OSDs have emulated disks of 7200 rpm: empty files, and files of 4 KiB."""
    name = "hdd"
    ROWS = {"hdd.creates": 0, "hdd.smallfiles": SMALL_FILE}

    def rows(self):
        return dict.fromkeys(self.ROWS, "files/s")

    def suits(self, system):
        return hasattr(system, "on_disk")

    def measure(self, system, runtime_s, repeat):
        rates = {}
        with system.on_disk(HDD, f"{self.name}.{repeat}") as top:
            for row, size in self.ROWS.items():
                place = os.path.join(top, row)
                os.mkdir(place)
                said = run(system.host.program("weir-metabench"), place, "--threads", 1, "--seconds", f"{runtime_s:g}", "--size", size,
                           timeout=600)
                rates[row] = json.loads(said)["create_per_s"]
        return rates


class Together:
    """Empty files that eight processes of each of two mounts make in one directory."""
    name = "together"

    def rows(self):
        return {self.name: "files/s"}

    def suits(self, system):
        return hasattr(system, "second_mount")

    def measure(self, system, runtime_s, repeat):
        place = f"{self.name}.{repeat}"
        os.mkdir(os.path.join(system.data, place))
        with system.second_mount() as second, contextlib.ExitStack() as started:
            writers = []
            for top in (system.data, second):
                for number in range(WRITERS):
                    child = subprocess.Popen([sys.executable, "-c", WRITER, os.path.join(top, place), f"{len(writers)}.{number}", str(runtime_s)],
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                    started.callback(stop, child)
                    writers.append(child)
            for child in writers:
                child.stdin.write("\n")
                child.stdin.flush()
            said = [child.communicate(timeout=600)[0] for child in writers]
        if any(child.returncode != 0 for child in writers):
            raise BenchError("a writer failed")
        return {self.name: sum(map(int, said)) / runtime_s}
