#!/usr/bin/env python3
"""The kernel's switch for FUSE over io_uring, on for as long as somebody here wants it.

fuse_rings.py COMMAND... runs COMMAND with it on; where it is not to be had, says so and runs nothing (exit 0, but 1
where WEIR_EXPECT_PATHS names rings).

Several tests and benchmarks may want it at once, and any of them may be killed: whoever has it on holds a shared lock of
the parameter's file, the first notes what was there, the last puts it back. One that died keeps no lock, and what it
noted is put back by the next.
"""
import contextlib
import fcntl
import os
import subprocess
import sys

PARAMETER = "/sys/module/fuse/parameters/enable_uring"
NOTE = "/run/weir-enable_uring.before"


def _alone(lock):
    """Takes the lock for one if nobody else has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


class Rings:
    """`parameter` and `note` are files; tests name others. Raises OSError where the kernel has no switch or we may not."""

    def __init__(self, parameter=PARAMETER, note=NOTE):
        self._parameter, self._note = parameter, note
        self._lock = None

    def on(self):
        self._lock = os.open(self._parameter, os.O_RDONLY)
        try:
            while True:
                if _alone(self._lock):
                    if not os.path.exists(self._note):
                        _write(self._note, _read(self._parameter))
                    _write(self._parameter, "Y")
                fcntl.flock(self._lock, fcntl.LOCK_SH)
                if _read(self._parameter) == "Y":
                    return
                fcntl.flock(self._lock, fcntl.LOCK_UN)  # The last of the others put it back before we had the lock.
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise

    def off(self):
        if self._lock is None:
            return
        try:
            if _alone(self._lock) and os.path.exists(self._note):
                _write(self._parameter, _read(self._note))
                os.unlink(self._note)
        finally:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def wanted():
    """Yields None with the switch on, or the error why it is not to be had."""
    rings = Rings()
    try:
        rings.on()
    except OSError as error:
        yield error
        return
    try:
        yield None
    finally:
        rings.off()


def main(command):
    if not command or command[0].startswith("-"):
        sys.exit(__doc__)
    with wanted() as why_not:
        if why_not is not None:
            print(f"skipped {' '.join(command)}: FUSE over io_uring is not to be had: {why_not}")
            return int("rings" in os.environ.get("WEIR_EXPECT_PATHS", "").split(","))
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
