"""flock, POSIX and OFD locks, between processes that use different mounts of the same files."""
import fcntl
import os
import signal
import time

from harness import (F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, PATIENCE, Child, get_lock, outcome, set_lock)

R, W, U = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
EX, SH, NB, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB, fcntl.LOCK_UN


def interrupt(*_):
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise InterruptedError(4, "interrupted")


def worker(path):
    """A process at the other mount that opens `path` and does what it is told."""
    def body(child):
        fds = {}

        def act(verb, *args):
            if verb == "open":
                fds[args[0]] = os.open(path, os.O_RDWR)
                return None
            if verb == "close":
                return os.close(fds.pop(args[0]))
            if verb == "dup":
                fds[args[1]] = os.dup(fds[args[0]])
                return None
            if verb == "flock":
                return fcntl.flock(fds[args[0]], args[1])
            if verb == "set":
                return set_lock(fds[args[0]], *args[1:])
            if verb == "get":
                return get_lock(fds[args[0]], *args[1:]) or "free"
            if verb == "interrupted":  # again and again: the first signal may come before the call waits
                signal.signal(signal.SIGALRM, interrupt)
                signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
                try:
                    return act(*args)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            raise ValueError(verb)

        child.serve(act)
    child = Child(body)
    child.ask(("open", 0))
    return child


def pair(p):
    path = p.file("lock", b"x" * 100)
    child = worker(f"{p.other}/lock")  # before the open, or it would hold that too
    return os.open(path, os.O_RDWR), child


def soon(function, *args):
    """What is given up by a last close may linger for a moment: the kernel tells FUSE of it afterwards."""
    end = time.monotonic() + 10
    while (result := function(*args)) == "EAGAIN" and time.monotonic() < end:
        time.sleep(0.005)
    return result


def first_of(*children):
    """The one that answers first."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for child in children:
            if child.ready(0.01):
                return child
    raise TimeoutError("nobody answers")


def flock_table(p):
    fd, child = pair(p)
    with child:
        for mine in (SH, EX):
            fcntl.flock(fd, mine)
            for theirs in (SH, EX):
                p.note(f"{mine} against {theirs}", child.ask(("flock", 0, theirs | NB)))
            child.ask(("flock", 0, UN))
            fcntl.flock(fd, UN)
        fcntl.flock(fd, SH)
        child.ask(("flock", 0, SH))
        p.note("no upgrade over another", outcome(fcntl.flock, fd, EX | NB))
        child.ask(("flock", 0, UN))
        p.note("upgrade", outcome(fcntl.flock, fd, EX | NB))
        p.note("upgraded", child.ask(("flock", 0, SH | NB)))
        fcntl.flock(fd, SH)
        p.note("downgraded", child.ask(("flock", 0, SH | NB)))
        p.note("nonsense", outcome(fcntl.flock, fd, 0))
    os.close(fd)


def flock_belongs_to_the_open_file(p):
    fd, child = pair(p)
    with child:
        second = os.open(p / "lock", os.O_RDWR)
        copy = os.dup(fd)
        fcntl.flock(fd, EX)
        p.note("by another open", outcome(fcntl.flock, second, EX | NB))
        p.note("by a copy", outcome(fcntl.flock, copy, EX | NB))
        os.close(second)
        os.close(fd)
        p.note("held by the copy", child.ask(("flock", 0, EX | NB)))
        os.close(copy)
        p.note("free at the last close", soon(child.ask, ("flock", 0, EX | NB)))
    fd = os.open(p / "lock", os.O_RDONLY)
    p.note("free after the process ended", soon(outcome, fcntl.flock, fd, EX | NB))
    set_lock(os.open(p / "lock", os.O_RDWR), W, 0, 10)
    p.note("POSIX locks are others", outcome(fcntl.flock, fd, EX | NB))
    os.close(fd)


def map_of(child, command=fcntl.F_GETLK):
    """What another process sees of the first 20 bytes."""
    shown = ""
    for byte in range(20):
        found = child.ask(("get", 0, W, byte, 1, command))
        shown += "." if found == "free" else {R: "r", W: "w"}.get(found[0], "?")
    return shown


def ranges_split_and_merge(p):
    fd, child = pair(p)
    with child:
        steps = ((W, 2, 10), (R, 5, 3), (U, 6, 1), (R, 0, 5), (U, 3, 2), (W, 0, 20), (U, 9, 2), (R, 4, 12), (W, 15, 0),
                 (U, 0, 3), (R, 3, 1), (W, 4, 12), (U, 5, 0), (R, 0, 20), (U, 0, 0))
        for kind, start, length in steps:
            set_lock(fd, kind, start, length)
            p.note(f"{kind} {start}+{length}", map_of(child))
            p.note(f"{kind} {start}+{length} first", child.ask(("get", 0, W, 0, 0)))
        set_lock(fd, W, 10, -5)
        p.note("negative length", map_of(child))
        set_lock(fd, U)
        set_lock(fd, W, -5, 5, whence=os.SEEK_END)
        p.note("from the end", child.ask(("get", 0, W, 0, 0)))
        set_lock(fd, U)
        p.call("before the start", set_lock, fd, W, -1, 1)
        p.call("beyond the largest", set_lock, fd, W, (1 << 63) - 1, 10)
        p.call("at the largest", set_lock, fd, W, (1 << 63) - 1, 1)
        p.note("shown", child.ask(("get", 0, W, 0, 0)))
    os.close(fd)


def posix_table(p):
    fd, child = pair(p)
    with child:
        for mine in (R, W):
            set_lock(fd, mine, 10, 10)
            for theirs in (R, W):
                for start, length in ((0, 10), (0, 11), (15, 1), (19, 10), (20, 5), (0, 0)):
                    p.note(f"{mine} against {theirs} {start}+{length}",
                           child.ask(("set", 0, theirs, start, length)))
                    child.ask(("set", 0, U, 0, 0))
        p.note("who is in the way", child.ask(("get", 0, R, 0, 0)))
        p.note("not oneself", get_lock(fd, W, 0, 0))
    os.close(fd)
    read_only = os.open(p / "lock", os.O_RDONLY)
    write_only = os.open(p / "lock", os.O_WRONLY)
    p.note("write lock on a read-only one", outcome(set_lock, read_only, W, 0, 1))
    p.note("read lock on a write-only one", outcome(set_lock, write_only, R, 0, 1))
    p.note("nonsense", outcome(set_lock, write_only, 7, 0, 1))


def posix_belongs_to_the_process(p):
    fd, child = pair(p)
    with child:
        other = os.open(p / "lock", os.O_RDWR)
        set_lock(fd, W, 0, 10)
        p.note("again by another descriptor", outcome(set_lock, other, W, 5, 10))
        with Child(lambda c: c.send(outcome(set_lock, fd, W, 0, 1))) as forked:
            p.note("not inherited", forked.receive())
        p.note("held", child.ask(("get", 0, W, 0, 0)))
        os.close(os.open(p / "lock", os.O_RDONLY))
        p.note("gone with any close", child.ask(("get", 0, W, 0, 0)))
        child.ask(("set", 0, W, 0, 10))
        p.note("theirs", get_lock(fd, W, 0, 0))
        child.kill()
        p.note("gone with the process", outcome(set_lock, fd, W, 0, 10))


def ofd_locks(p):
    fd, child = pair(p)
    with child:
        second = os.open(p / "lock", os.O_RDWR)
        copy = os.dup(fd)
        set_lock(fd, W, 0, 10, F_OFD_SETLK)
        p.note("by another open", outcome(set_lock, second, W, 5, 1, F_OFD_SETLK))
        p.note("by a copy", outcome(set_lock, copy, W, 5, 10, F_OFD_SETLK))
        p.note("against POSIX here", outcome(set_lock, second, W, 0, 1))
        p.note("against POSIX there", child.ask(("set", 0, W, 0, 1)))
        p.note("against OFD there", child.ask(("set", 0, R, 0, 1, F_OFD_SETLK)))
        p.note("shown", child.ask(("get", 0, W, 0, 0, F_OFD_GETLK)))
        with Child(lambda c: c.send(outcome(set_lock, fd, W, 0, 20, F_OFD_SETLK))) as forked:
            p.note("inherited", forked.receive())
        os.close(os.open(p / "lock", os.O_RDONLY))
        os.close(second)
        os.close(fd)
        p.note("held by the copy", child.ask(("get", 0, W, 0, 0, F_OFD_GETLK)))
        os.close(copy)
        p.note("gone with the last", child.ask(("set", 0, W, 0, 1, F_OFD_SETLKW)))


def waiting(p):
    fd, child = pair(p)
    with child:
        set_lock(fd, W, 0, 10)
        child.send(("set", 0, W, 5, 10, fcntl.F_SETLKW))
        p.note("waits", not child.ready(0.2))
        set_lock(fd, U, 0, 5)
        p.note("still waits", not child.ready(0.1))
        set_lock(fd, U, 5, 5)
        p.note("woken", child.receive())
        p.note("has it", get_lock(fd, W, 0, 0))
        child.ask(("set", 0, U, 0, 0))
        fcntl.flock(fd, EX)
        child.send(("flock", 0, SH))
        p.note("flock waits", not child.ready(0.2))
        fcntl.flock(fd, SH)
        p.note("flock woken by a downgrade", child.receive())
        set_lock(fd, W, 0, 1, F_OFD_SETLK)
        child.send(("set", 0, W, 0, 1, F_OFD_SETLKW))
        p.note("OFD waits", not child.ready(0.2))
        os.close(fd)
        p.note("OFD woken by a close", child.receive())


def a_wait_is_interrupted(p):
    fd, child = pair(p)
    with child:
        set_lock(fd, W, 0, 10)
        p.note("by a signal", child.ask(("interrupted", "set", 0, W, 0, 1, fcntl.F_SETLKW)))
        set_lock(fd, U)
        p.note("and left nothing", get_lock(fd, W, 0, 0))
        fcntl.flock(fd, EX)
        p.note("flock by a signal", child.ask(("interrupted", "flock", 0, EX)))
        fcntl.flock(fd, UN)
        p.note("and left nothing'", outcome(fcntl.flock, os.open(p / "lock", os.O_RDWR), EX | NB))
    fd, child = pair(p)
    with child:
        set_lock(fd, W, 0, 10)
        child.send(("set", 0, W, 0, 1, fcntl.F_SETLKW))
        p.note("waits", not child.ready(0.2))
        child.kill()
        set_lock(fd, U)
        p.note("killed and left nothing", get_lock(fd, W, 0, 0))


def deadlocks_are_told(p):
    path = p.file("lock", b"x" * 100)
    with worker(path) as one, worker(f"{p.other}/lock") as two:
        one.ask(("set", 0, W, 0, 1))
        two.ask(("set", 0, W, 1, 1))
        one.send(("set", 0, W, 1, 1, fcntl.F_SETLKW))
        two.send(("set", 0, W, 0, 1, fcntl.F_SETLKW))
        told, waits = (one, two) if first_of(one, two) is one else (two, one)
        p.note("whose wait would close the ring is told", told.receive())
        p.note("the other waits", not waits.ready(0.3))
        told.ask(("set", 0, U, 0, 0))
        p.note("and goes on", waits.receive())


def many_waiters(p):
    fd, first = pair(p)
    others = [worker(f"{p.other if i % 2 else p.top}/lock") for i in range(20)]
    set_lock(fd, W, 0, 1)
    for other in others:
        other.send(("set", 0, W, 0, 1, fcntl.F_SETLKW))
    p.note("none has it", [other.ready(0) for other in others].count(True))
    p.note("the mount still works", os.stat(f"{p.other}/lock").st_size)
    set_lock(fd, U, 0, 1)
    served = 0
    while others:
        done = [other for other in others if other.ready(0.01)]
        for other in done:
            served += other.receive() == "ok"
            other.ask(("set", 0, U, 0, 0))
            others.remove(other)
            other.__exit__()
    p.note("all were served", served)
    first.__exit__()
    os.close(fd)


CASES = (flock_table, flock_belongs_to_the_open_file, ranges_split_and_merge, posix_table, posix_belongs_to_the_process,
         ofd_locks, waiting, a_wait_is_interrupted, deadlocks_are_told, many_waiters)
