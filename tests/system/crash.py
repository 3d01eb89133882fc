#!/usr/bin/env python3
"""kill -9 of every daemon under load: mounts carry on, and nothing that was fsynced is lost.

A writer process appends fsynced records to files on the mount and, only after each fsync returned, notes the
record in a log outside of WeirFS. Daemons are killed and started again meanwhile. At the end every noted
record must be on the mount.
"""
import json
import os
import signal
import subprocess
import sys
import time

from weirtest import BIN, Cluster, Embedded, Failure, check, main, run, wait_until

RECORD = 512
ROUNDS_TO_LOSE = 3  # one loses nothing if it falls just behind a commit


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


def pids_with(word):
    """Of processes that were started with that argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill_at_once(system, daemons):
    """In that order, and none waits for another's end."""
    status = json.loads(run(f"{BIN}/weir-dev", "status", "--dir", system.dir, "-o", "json").stdout)
    pids = {daemon["name"]: daemon["pid"] for daemon in status["daemons"]}
    for daemon in daemons:
        os.kill(pids[daemon], signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pids[daemon]) for daemon in daemons), "them to be dead")


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
        file.flush()
        os.fsync(file.fileno())
    system.dev("kill", "mnt.0")
    system.dev("start", "mnt.0")
    with open(f"{system.mnt}/kept", "rb") as file:
        check(file.read() == b"kept", "an fsynced file is gone after kill -9 of its mount")


def namer(mount, log_path):
    """Runs as a process of its own: makes files one after the other, every third gets another name, and notes each step
    that was answered; every hundred the directory is synced."""
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    directory = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    for number in range(1_000_000):
        os.close(os.open(f"{mount}/f.{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        if number % 3 == 0:
            os.rename(f"{mount}/f.{number}", f"{mount}/g.{number}")
        os.write(log, f"{number}\n".encode())
        if number % 100 == 99:
            os.fsync(directory)
            os.write(log, f"synced {number}\n".encode())


def check_prefix(directory, log_path, nothing_lost):
    """Of the noted names there is a beginning, up to the last sync at least."""
    with open(log_path) as text:
        lines = [line.split() for line in text if line.endswith("\n")]
    told = max((int(words[0]) for words in lines if len(words) == 1), default=-1)
    synced = max((int(words[1]) for words in lines if len(words) == 2), default=-1)
    names = set(os.listdir(directory))
    there = {int(name.split(".")[1]) for name in names}
    last = max(there, default=-1)
    check(there == set(range(last + 1)), f"of {last + 1} names {sorted(set(range(last + 1)) - there)[:5]} are missing")
    for number in range(last):  # the last may not have its other name yet
        name = f"{'g' if number % 3 == 0 else 'f'}.{number}"
        check(name in names, f"{name} is missing, and {last} is there")
    check(last >= synced, f"{synced} was synced, and {last} is the last that is there")
    if nothing_lost:
        check(last >= told, f"{told} was answered, and {last} is the last that is there")
    return told - last


def killed_while_naming(lab, mount, kill, rounds, nothing_lost, what):
    """`kill` is told the number of the round. Returns in how many something was lost."""
    lost = []
    for number in range(rounds):
        word = what.replace(" ", ".")
        directory, log = f"{mount}/{word}.{number}", lab.path(f"named.{word}.{number}")
        os.mkdir(directory)
        top = os.open(mount, os.O_RDONLY)
        os.fsync(top)  # it is no part of what may be lost
        os.close(top)
        worker = subprocess.Popen([sys.executable, __file__, "--namer", directory, log], stderr=subprocess.DEVNULL)
        lab.on_exit(worker.kill)
        wait_until(lambda log=log, number=number: noted(log) > 130 + 37 * (number % 5), "names to be made")
        kill(number)
        worker.kill()
        worker.wait()
        lost.append(max(0, check_prefix(directory, log, nothing_lost)))
    losses = sum(1 for names in lost if names > 0)
    lab.show(f"        kill -9 of {what}, {rounds} rounds: {max(lost)} names lost at most, in {losses} of them some")
    return losses


def names_go_back_to_a_prefix(lab):
    rounds = int(os.environ.get("WEIR_KILL_ROUNDS", "2"))
    alone = Embedded(lab)

    def kill_process(_):
        for pid in pids_with(alone.dir):
            os.kill(pid, signal.SIGKILL)
        run("umount", "-l", alone.mnt, ok=None)
        alone.umount()
        alone.mount()

    killed_while_naming(lab, alone.mnt, kill_process, rounds, False, "an embedded mount")
    alone.umount()
    system = Cluster(lab, osds=1)

    def kill_mds(_):
        system.dev("kill", "mds.0")
        system.dev("start", "mds.0")

    def kill_mount(_):
        system.dev("kill", "mnt.0")
        system.dev("start", "mnt.0")

    def kill_several(*daemons):
        def kill(number):
            kill_at_once(system, daemons if number % 2 == 0 else daemons[::-1])
            for daemon in reversed(daemons):
                system.dev("start", daemon)
        return kill

    killed_while_naming(lab, system.mnt, kill_mds, rounds, True, "the MDS")
    killed_while_naming(lab, system.mnt, kill_mount, rounds, True, "a mount")
    few = (rounds + 1) // 2  # the MDS waits 15 s for a mount that never comes back
    losses = killed_while_naming(lab, system.mnt, kill_several("mnt.0", "mds.0"), few, False, "a mount and the MDS")
    check(losses > 0 or few < ROUNDS_TO_LOSE, "a mount and the MDS lost nothing: what is there proves nothing")
    killed_while_naming(lab, system.mnt, kill_several("mnt.0", "osd.0", "mds.0"), few, False, "everything")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--namer":
        try:
            namer(sys.argv[2], sys.argv[3])
        except OSError as error:
            print(f"namer: {error}", file=sys.stderr)
            sys.exit(1)
    if len(sys.argv) > 1 and sys.argv[1] == "--writer":
        try:
            writer(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        except OSError as error:
            print(f"writer {sys.argv[4]}: {error}", file=sys.stderr)
            sys.exit(1)
    main("crash", kill_minus_nine, kill_of_a_mount_is_cleaned_up, names_go_back_to_a_prefix)
