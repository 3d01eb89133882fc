#!/usr/bin/env python3
"""A directory of a million names (WEIR_ENTRIES): made, listed, gone back to, thinned out while it is listed, and emptied."""
import ctypes
import os
import random
import stat
import time

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import Cluster, check, main

ENTRIES = int(os.environ.get("WEIR_ENTRIES", "1000000"))
SEED = int(os.environ.get("TEST_SEED", "1"))
WORKERS = 4
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir64.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = (ctypes.c_void_p, ctypes.c_long)
for call in (libc.readdir64, libc.telldir, libc.closedir, libc.rewinddir):
    call.argtypes = (ctypes.c_void_p,)


class Listing:
    """opendir(3), which tells and takes positions."""

    def __init__(self, path):
        self.dir = libc.opendir(os.fsencode(path))
        check(self.dir, f"opendir of {path} fails")

    def next(self):
        entry = libc.readdir64(self.dir)
        return None if entry is None else os.fsdecode(ctypes.string_at(entry + 19))

    def tell(self):
        return libc.telldir(self.dir)

    def seek(self, position):
        libc.seekdir(self.dir, position)

    def close(self):
        libc.closedir(self.dir)


def in_parallel(work):
    """work(number) for every number, by several processes; seconds."""
    start = time.monotonic()
    children = []
    for worker in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            try:
                for number in range(worker, ENTRIES, WORKERS):
                    work(number)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - a forked child must never return into its parent's code
                print(error, flush=True)
                os._exit(1)
        children.append(pid)
    check(all([os.waitpid(pid, 0)[1] == 0 for pid in children]), "a worker failed")
    return time.monotonic() - start


def name_of(number):
    return f"entry-{number:07}"


def numbers(names):
    return {int(name[6:]) for name in names if name.startswith("entry-")}


def million(lab):
    dice = random.Random(SEED)
    top = f"{Cluster(lab, mounts=1).mnt}/dir"
    os.mkdir(top)

    def show(what, seconds, count=ENTRIES):
        lab.show(f"        {what:34} {seconds:8.1f} s {count / max(seconds, 1e-9):10,.0f}/s")

    show("mknod, four processes", in_parallel(lambda number: os.mknod(f"{top}/{name_of(number)}", stat.S_IFREG | 0o644)))
    start = time.monotonic()
    check(numbers(os.listdir(top)) == set(range(ENTRIES)), "the listing is not what was made")
    show("listing", time.monotonic() - start)
    start = time.monotonic()
    check(sum(entry.stat().st_size for entry in os.scandir(top)) == 0, "an empty file has a size")
    show("listing with stat", time.monotonic() - start)

    listing = Listing(top)
    places = {}
    while True:
        position = listing.tell()
        name = listing.next()
        if name is None:
            break
        if dice.random() < 2000 / ENTRIES:
            places[position] = name
    check(len(places) > 0, "no position was noted")

    def go_back(what, removed=frozenset()):
        start = time.monotonic()
        for position, name in dice.sample(sorted(places.items()), len(places)):
            listing.seek(position)
            if name not in removed:
                check(listing.next() == name, f"{what}: position {position} leads to another name than {name}")
        show(what, time.monotonic() - start, len(places))

    go_back("back to positions")
    # A listing that goes on while every third name goes and others come.
    other = Listing(top)
    seen = []
    removed = set()
    for number in range(ENTRIES):
        name = other.next()
        if name is None:
            break
        seen.append(name)
        if number % 100 == 0 and number < ENTRIES // 10:
            victim = name_of(dice.randrange(ENTRIES) // 3 * 3)
            if victim not in removed:
                os.unlink(f"{top}/{victim}")
                removed.add(victim)
                os.mknod(f"{top}/young-{number}", stat.S_IFREG | 0o644)
    while (name := other.next()) is not None:
        seen.append(name)
    other.close()
    check(len(seen) == len(set(seen)), "a name was listed twice")
    missing = set(range(ENTRIES)) - numbers(seen) - numbers(removed)
    check(not missing, f"{len(missing)} names were skipped by a listing during changes")
    go_back("back to positions after changes", removed)
    listing.close()
    for name in removed:
        os.mknod(f"{top}/{name}", stat.S_IFREG | 0o644)
    for name in os.listdir(top):
        if name.startswith("young"):
            os.unlink(f"{top}/{name}")
    show("unlink, four processes", in_parallel(lambda number: os.unlink(f"{top}/{name_of(number)}")))
    check(os.listdir(top) == [], "something is left")
    os.rmdir(top)


if __name__ == "__main__":
    main("directories", million)
