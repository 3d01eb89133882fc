#!/usr/bin/env python3
"""Runs every POSIX case on a directory and on a local filesystem, and lists what differs. See README.md."""
import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback

import attributes
import files
import handles
import listings
import locks
import mappings
import names
import ranges
import replaced
import reserved
import rights
import set_ids
import times
import xattrs
from harness import BROKE_OFF, Place
from justified import JUSTIFIED

CASES = {f"{module.__name__}.{case.__name__}": case
         for module in (names, listings, attributes, files, handles, ranges, reserved, replaced, mappings,
                        times, xattrs, locks, set_ids, rights)
         for case in module.CASES}


def notes_of(case, top, other):
    """What the case notes in a directory of its own, seen through both mounts."""
    folder = tempfile.mkdtemp(prefix="posix-", dir=top)
    os.chmod(folder, 0o777)
    place = Place(folder, os.path.join(other, os.path.basename(folder)))
    try:
        case(place)
    except Exception as error:  # noqa: BLE001 - a case that breaks off differs from one that does not
        place.note(BROKE_OFF, "".join(traceback.format_exception_only(type(error), error)).strip())
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    return place.notes


def differences(here, there):
    """(label, here, there) of every note that is not the same in both."""
    absent = "not reached"
    labels = list(there) + [label for label in here if label not in there]
    return [(label, here.get(label, absent), there.get(label, absent)) for label in labels
            if here.get(label, absent) != there.get(label, absent)]


def is_justified(name, difference, kinds):
    label, here, _ = difference
    return any(row.case == name and row.matches(label, here) and row.on in kinds for row in JUSTIFIED)


def arguments():
    parser = argparse.ArgumentParser(
        description="Runs POSIX cases on DIR and beside it on a local filesystem; every difference is listed, one that "
                    "is not justified in justified.py fails. Needs root, and a mount that others may use.",
        epilog="Example: tests/posix/run.py /mnt/a /mnt/b")
    parser.add_argument("dir", help="where to run: a mount or a directory of it")
    parser.add_argument("second", nargs="?", help="the same directory through a second mount (default: DIR)")
    parser.add_argument("--beside", metavar="LOCAL", help="directory of the local filesystem (default: a temporary one)")
    parser.add_argument("--case", action="append", help="only cases whose name holds this")
    parser.add_argument("--exclusive", action="store_true", help="DIR is a mount of an embedded cluster")
    return parser.parse_args()


def main():
    args = arguments()
    if os.geteuid() != 0:
        sys.exit("run.py: needs root: it becomes several users")
    second = args.second or args.dir
    if not os.path.samestat(os.stat(args.dir), os.stat(second)) and \
            os.stat(args.dir).st_ino != os.stat(second).st_ino:
        sys.exit(f"run.py: {args.dir} and {second} do not show the same directory")
    kinds = {"any", "exclusive" if args.exclusive else "shared"}
    local = args.beside or tempfile.mkdtemp(prefix="posix-local-", dir=os.environ.get("WEIR_TEST_DIR", "/var/tmp"))
    os.chmod(local, 0o755)
    justified = failed = notes = 0
    try:
        for name, case in CASES.items():
            if args.case and not any(part in name for part in args.case):
                continue
            start = time.monotonic()
            there = notes_of(case, local, local)
            half = time.monotonic()
            here = notes_of(case, args.dir, second)
            notes += len(there)
            bad = int(BROKE_OFF in there)
            if bad:
                print(f"  BROKEN  {name}: {there[BROKE_OFF]}")
            for difference in differences(here, there):
                label, mine, theirs = difference
                if is_justified(name, difference, kinds):
                    justified += 1
                    print(f"        {name}: {label}: {mine}, locally {theirs} (justified)")
                else:
                    bad += 1
                    print(f"  DIFFERS {name}: {label}: {mine}, locally {theirs}")
            failed += bad > 0
            print(f"{'FAILED' if bad else 'ok    '}  {name} ({len(there)} notes, {time.monotonic() - half:.1f} s, "
                  f"locally {half - start:.1f} s)", flush=True)
    finally:
        if args.beside is None:
            shutil.rmtree(local, ignore_errors=True)
    print(f"posix: {notes} notes, {justified} justified differences, {failed} cases failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
