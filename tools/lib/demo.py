#!/usr/bin/env python3
"""The demonstration of tools/quickstart: AQuA's figures 9 and 10 on a mounted WeirFS.

Three classes hold reservations on one disk whose token rate is what they add up to. Their writers
start one after the other; the counters of the OSD are read every second. Alone, a class gets all;
with more of them each gets at least its promise; then the maximizer finds what the disk can do.

Example: tools/lib/demo.py --bin build/release/bin --phase 10
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
TOKEN_RATE = 40
CLASSES = {"bronze": 5, "silver": 15, "gold": 20}  # MiB/s promised, in the order of their start
LETTER = {"bronze": "b", "silver": "s", "gold": "G"}
BLOCK = "512k"
DEPTH = 8
FILE_BYTES = 1 << 30
COLUMNS = 60       # of the plot
SETTLE_SECONDS = 3  # at the start of a phase that its verdict leaves out
TOLERANCE = 0.05


class Demo:
    def __init__(self, bin_dir, phase):
        self.bin = pathlib.Path(bin_dir).resolve()
        self.phase = phase
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="weir-quickstart."))
        self.data = self.root / "data"
        self.mount = self.root / "mnt"
        self.writers = []
        self.samples = []  # (second, phase, {class: (demanded, served, queued)})

    def run(self, *command):
        return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def osdctl(self, *words):
        return self.run(self.bin / "osdctl", "--cluster", self.data, *words)

    def start(self):
        self.data.mkdir()
        self.mount.mkdir()
        self.run(self.bin / "weirfs", "--data", self.data, "--osd-size", "5GiB", "--token-rate",
                 f"{TOKEN_RATE}MiB/s", self.mount)
        self.osdctl("osd", "set", "all", "--profile", "odis", "--token-rate",
                    f"{TOKEN_RATE}MiB/s", "--best-effort-min", "0", "--maximizer", "off")
        for name, promised in CLASSES.items():
            self.osdctl("class", "create", name)
            self.osdctl("reserve", name, "--bandwidth", f"{promised}MiB/s")
            directory = self.mount / name
            directory.mkdir()
            self.run("setfattr", "-n", "user.qos.class", "-v", name, directory)
            with open(directory / "stream", "wb") as stream:
                stream.truncate(FILE_BYTES)

    def start_writer(self, name):
        # In a process group of its own, so that all of fio's processes end together.
        self.writers.append(subprocess.Popen(
            # Threads: a job that fio forks leaves its process group, and would outlive us.
            ["fio", "--thread", f"--name={name}", f"--filename={self.mount / name / 'stream'}", "--rw=write",
             f"--bs={BLOCK}", "--direct=1", "--ioengine=libaio", f"--iodepth={DEPTH}",
             f"--size={FILE_BYTES}", "--time_based", "--runtime=3600", "--fallocate=none"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.root,
            start_new_session=True))

    def counters(self):
        osd = json.loads(self.osdctl("stat", "-o", "json"))["osds"][0]
        return time.monotonic(), {row["class"]: row for row in osd["classes"]}

    def watch(self, phase, seconds):
        """One phase: a line per second."""
        began = time.monotonic()
        before_at, before = self.counters()
        for tick in range(1, seconds + 1):
            time.sleep(max(0.0, began + tick - time.monotonic()))
            at, now = self.counters()
            span = at - before_at
            row = {}
            for name in CLASSES:
                grown = {key: (now[name][key] - before[name][key]) / span / MIB
                         for key in ("arrived_bytes", "served_bytes")}
                row[name] = (grown["arrived_bytes"], grown["served_bytes"],
                             now[name]["queued_ops"])
            self.samples.append((len(self.samples) + 1, phase, row))
            print(line_of(*self.samples[-1]), flush=True)
            before_at, before = at, now
        for writer in self.writers:
            if writer.poll() is not None:
                sys.exit(f"quickstart: a writer ended early: {writer.stderr.read().decode()}")

    def play(self):
        print(heading())
        for name in CLASSES:
            self.start_writer(name)
            self.watch(f"{len(self.writers)} of {len(CLASSES)} write", self.phase)
        self.osdctl("osd", "set", "all", "--maximizer", "on")
        self.watch("maximizer on", 2 * self.phase)  # it moves by 5 % every two seconds

    def stop(self):
        for writer in self.writers:
            if writer.poll() is None:
                os.killpg(writer.pid, signal.SIGKILL)
            writer.wait()
        unmount(self.mount)
        wait_for_end(self.data / "lock")
        shutil.rmtree(self.root, ignore_errors=True)


def unmount(mountpoint):
    """A killed writer may still be leaving the mount: busy for a moment, lazily at the last."""
    deadline = time.monotonic() + 10
    while os.path.ismount(mountpoint):
        if subprocess.run(["umount", mountpoint], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            return
        if time.monotonic() > deadline:
            subprocess.run(["umount", "-l", mountpoint], check=False)
            return
        time.sleep(0.1)


def wait_for_end(lock):
    """The process of the mount closes its stores after umount; its files must not go before."""
    try:
        pid = int(lock.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.05)


def heading():
    names = "".join(f"| {name:^17} " for name in CLASSES)
    promised = "".join(f"| promised {rate:>8} " for rate in CLASSES.values())
    columns = "| demand  |  served " * len(CLASSES)
    return (f"MiB/s {names}|  sum  | one letter = 1 MiB/s\n"
            f"      {promised}|       |\n"
            f"   s  {columns}|       |")


def line_of(second, _, row):
    cells, plot = "", ""
    for name, (demanded, served, queued) in row.items():
        more = "+" if queued else " "  # it has requests waiting: it would take more
        cells += f"| {demanded:6.1f}{more} | {served:7.1f} "
        plot += LETTER[name] * round(served)
    total = sum(served for _, served, _ in row.values())
    if len(plot) > COLUMNS:
        plot = plot[:COLUMNS - 1] + ">"
    return f"{second:4d}  {cells}| {total:5.1f} | {plot}"


def verdicts(samples):
    """Per phase: what each class got on average once things had settled, against its promise."""
    phases = list(dict.fromkeys(phase for _, phase, _ in samples))
    kept = True
    for index, phase in enumerate(phases):
        rows = [row for _, name, row in samples if name == phase][SETTLE_SECONDS:]
        if not rows:
            continue
        writing = list(CLASSES)[:index + 1]
        means = {name: sum(row[name][1] for row in rows) / len(rows) for name in writing}
        ok = all(means[name] >= CLASSES[name] * (1 - TOLERANCE) for name in writing)
        kept = kept and ok
        text = ", ".join(f"{name} {mean:.1f} of {CLASSES[name]}" for name, mean in means.items())
        print(f"  {'kept  ' if ok else 'BROKEN'}  {phase:<13}  {text}; sum "
              f"{sum(means.values()):.1f} MiB/s")
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="where weirfs and osdctl are")
    parser.add_argument("--phase", type=int, default=10, help="seconds between two changes")
    options = parser.parse_args()
    if options.phase <= SETTLE_SECONDS:
        parser.error(f"--phase must be above {SETTLE_SECONDS}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    demo = Demo(options.bin, options.phase)
    try:
        demo.start()
        demo.play()
    except subprocess.CalledProcessError as error:
        sys.exit(f"quickstart: {' '.join(error.cmd)} failed (exit {error.returncode})")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        demo.stop()
    print("\nPromises, by the mean of each phase after its first seconds:")
    return 0 if verdicts(demo.samples) else 1


if __name__ == "__main__":
    sys.exit(main())
