#!/usr/bin/env python3
"""kill -9 of every daemon under load: mounts carry on, and nothing that was fsynced is lost.

A writer process appends fsynced records to files on the mount and, only after each fsync returned, notes the
record in a log outside of WeirFS. Daemons are killed and started again meanwhile. At the end every noted
record must be on the mount.
"""
import os
import subprocess
import sys
import time

from weirtest import Cluster, Failure, check, main, wait_until

RECORD = 512


def record_of(file_index, number):
    head = f"{file_index}:{number}:".encode()
    return (head + bytes((i * 31 + number) & 0x7F for i in range(RECORD)))[:RECORD]


def writer(mount, log_path, file_index):
    """Runs as a process of its own: append, fsync, note."""
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    data = os.open(f"{mount}/records.{file_index}", os.O_WRONLY | os.O_CREAT)
    number = 0
    while True:
        os.pwrite(data, record_of(file_index, number), number * RECORD)
        os.fsync(data)
        os.write(log, f"{number}\n".encode())
        number += 1
        if number % 16 == 0:  # metadata under load as well
            name = f"{mount}/meta.{file_index}.{number}"
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.write(log, f"meta {number}\n".encode())


def noted(log_path):
    if not os.path.exists(log_path):
        return 0
    with open(log_path) as log:
        return sum(1 for line in log if line.endswith("\n"))


def kill_minus_nine(lab):
    system = Cluster(lab, osds=3, mounts=2)
    reader_mount = system.mounts[1]
    workers = []
    logs = [lab.path(f"acked.{i}.txt") for i in range(4)]
    for index, log in enumerate(logs):
        workers.append(subprocess.Popen([sys.executable, __file__, "--writer", system.mnt, log, str(index)]))
    lab.on_exit(lambda: [w.kill() for w in workers])

    def progress(beyond):
        check(all(w.poll() is None for w in workers), "a writer got an error: the mount did not carry on")
        return all(noted(log) > b for log, b in zip(logs, beyond))

    rounds = int(os.environ.get("WEIR_KILL_ROUNDS", "1"))
    wait_until(lambda: progress([20] * 4), "the writers to start")
    for _ in range(rounds):
        for daemon in ("osd.0", "osd.1", "osd.2", "mds.0"):
            system.dev("kill", daemon)
            system.dev("start", daemon)
            seen = [noted(log) for log in logs]
            wait_until(lambda: progress([s + 20 for s in seen]), f"writes to go on after kill -9 of {daemon}")
    for worker in workers:
        worker.kill()
        worker.wait()
    for daemon in ("osd.0", "osd.1", "osd.2", "mds.0"):
        system.dev("kill", daemon)
    for daemon in ("mds.0", "osd.0", "osd.1", "osd.2"):
        system.dev("start", daemon)
    total = 0
    for index, log in enumerate(logs):
        with open(log) as text:
            lines = [line for line in text if line.endswith("\n")]
        with open(f"{reader_mount}/records.{index}", "rb") as file:
            data = file.read()
        for line in lines:
            if line.startswith("meta"):
                name = f"{reader_mount}/meta.{index}.{line.split()[1]}"
                check(os.path.exists(name), f"{name} was acked and is gone")
                continue
            number = int(line)
            found = data[number * RECORD:(number + 1) * RECORD]
            check(found == record_of(index, number), f"record {number} of file {index} was fsynced and is lost")
            total += 1
    lab.show(f"        {total} fsynced records, all there after {4 * rounds + 4} kills")


def kill_of_a_mount_is_cleaned_up(lab):
    system = Cluster(lab, osds=1)
    with open(f"{system.mnt}/kept", "wb") as file:
        file.write(b"kept")
        os.fsync(file.fileno())
    system.dev("kill", "mnt.0")
    system.dev("start", "mnt.0")
    with open(f"{system.mnt}/kept", "rb") as file:
        check(file.read() == b"kept", "an fsynced file is gone after kill -9 of its mount")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--writer":
        try:
            writer(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        except OSError as error:
            print(f"writer {sys.argv[4]}: {error}", file=sys.stderr)
            sys.exit(1)
    main("crash", kill_minus_nine, kill_of_a_mount_is_cleaned_up)
