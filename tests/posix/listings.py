"""Listings of directories that change: a stream ends, and gives each name that is there all the time exactly once."""
import ctypes
import os
import struct

from names import EXCHANGE, Listing, renameat2

SYS_GETDENTS64 = 217
NAMES = 400
TOO_MANY = 3 * NAMES
AT_A_TIME = 80  # renamed between two steps of a stream, which gives fewer
STEP = 2048     # bytes of a stream's buffer: some 60 names
libc = ctypes.CDLL(None, use_errno=True)


class Stream:
    """An open directory, read with getdents(2) a few names at a time."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def step(self, size=STEP):
        """[(name, position behind it)], without the dots; None at the end."""
        buffer = ctypes.create_string_buffer(size)
        got = libc.syscall(SYS_GETDENTS64, self.fd, buffer, size)
        if got < 0:
            raise OSError(ctypes.get_errno(), "getdents")
        found, at = [], 0
        while at < got:
            _, where, length, _ = struct.unpack_from("<QqHB", buffer.raw, at)
            name = buffer.raw[at + 19:at + length].split(b"\0", 1)[0].decode()
            found.append((name, where))
            at += length
        return [entry for entry in found if entry[0] not in (".", "..")] if got else None

    def seek(self, position):
        os.lseek(self.fd, position, os.SEEK_SET)

    def close(self):
        os.close(self.fd)


def read_all(stream, between=lambda: None, most=TOO_MANY):
    """Every name of it, with `between` after each step; and whether it ended before it gave far too many."""
    names = []
    while len(names) < most:
        found = stream.step()
        if found is None:
            return names, True
        names += [name for name, _ in found]
        between()
    return names, False


def fill(p, prefix, count=NAMES // 2, make=None):
    names = [f"{prefix}{i:04}" for i in range(count)]
    for name in names:
        (make or (lambda path: os.mknod(path, 0o100644)))(p / name)
    return names


def once(names, stayed):
    """Whether each of those that stayed was given exactly once."""
    count = dict.fromkeys(stayed, 0)
    for name in names:
        if name in count:
            count[name] += 1
    return all(n == 1 for n in count.values())


class Renamer:
    """Gives the next few of some files a new name, again and again."""

    def __init__(self, folder, names):
        self.folder, self.names, self.turn = folder, list(names), 0

    def __call__(self):
        for _ in range(AT_A_TIME):
            i = self.turn % len(self.names)
            new = f"r{self.turn:06}"
            os.rename(f"{self.folder}/{self.names[i]}", f"{self.folder}/{new}")
            self.names[i], self.turn = new, self.turn + 1


def renamed_all_the_time(p):
    for kind, make, folder in (("files", None, p.top), ("directories, elsewhere", os.mkdir, p.other)):
        stayed, moving = fill(p, f"s{kind[0]}", make=make), fill(p, f"m{kind[0]}", make=make)
        renamer, stream = Renamer(folder, moving), Stream(p.top)
        for turn in ("opened", "rewound"):
            names, ended = read_all(stream, renamer)
            p.note(f"{kind} {turn}: ends, each once", (ended, once(names, stayed)))
            stream.seek(0)
        names, ended = read_all(stream)
        p.note(f"{kind}: afterwards", (ended, sorted(names) == sorted(os.listdir(folder))))
        stream.close()
        for name in stayed + renamer.names:
            (os.rmdir if make else os.unlink)(p / name)


def made_and_removed_all_the_time(p):
    stayed = fill(p, "s")
    turn = [0]

    def change():
        for _ in range(AT_A_TIME):
            turn[0] += 1
            path = f"{p.other}/t{turn[0]}"
            os.link(f"{p.other}/{stayed[0]}", path)
            if turn[0] % 2:
                os.unlink(path)
    names, ended = read_all(Stream(p.top), change)
    p.note("ends, each once", (ended, once(names, stayed)))


def replaced_all_the_time(p):
    """A name that another file is renamed to, or that two files exchange, is there all the time."""
    stayed = fill(p, "s")
    turn = [0]

    def change():
        for _ in range(AT_A_TIME // 2):
            turn[0] += 1
            name = stayed[turn[0] % (len(stayed) // 2)]
            os.mknod(f"{p.other}/new", 0o100644)
            os.rename(f"{p.other}/new", f"{p.other}/{name}")
            renameat2(p / name, p / stayed[-1 - turn[0] % 200], EXCHANGE)
    stream = Stream(p.top)
    for label in ("opened", "rewound"):
        names, ended = read_all(stream, change)
        p.note(f"{label}: ends, each once", (ended, once(names, stayed)))
        stream.seek(0)
    stream.close()


def overtaken_by_other_listings(p):
    """What others list meanwhile, which a kernel may keep, neither prolongs nor mends a stream that began earlier."""
    stayed, moving = fill(p, "s"), fill(p, "m")
    renamer, others = Renamer(p.top, moving), []

    def between():
        renamer()
        others.append(sorted(os.listdir(p.top)) == sorted(stayed + renamer.names))
        os.listdir(p.top)
    stream = Stream(p.top)
    names, ended = read_all(stream, between)
    p.note("ends, each once", (ended, once(names, stayed)))
    p.note("the others", all(others))
    between()
    second = Stream(p.top)
    names = [name for name, _ in second.step()]
    os.listdir(p.top)
    rest, ended = read_all(second)
    p.note("one that goes on in a listing kept", (ended, sorted(names + rest) == sorted(stayed + renamer.names)))


def looked_at_while_it_is_listed(p):
    stayed, moving = fill(p, "s"), fill(p, "m")
    renamer, seen = Renamer(p.other, moving), []
    with os.scandir(p.top) as entries:
        for entry in entries:
            seen.append(entry.name)
            if len(seen) % 50 == 0:
                renamer()
            if entry.name.startswith("s"):
                entry.stat()
            if len(seen) > TOO_MANY:
                break
    p.note("ends, each once", (len(seen) <= TOO_MANY, once(seen, stayed)))


def positions_outlive_changes(p):
    stayed, moving = fill(p, "s"), fill(p, "m")
    renamer, listing = Renamer(p.other, moving), Listing(p.top)
    places, seen = [], []
    for _ in range(NAMES // 2):
        places.append(listing.tell())
        seen.append(listing.read())
    renamer()
    for label, again in (("after renames", renamer), ("after names were made and went", lambda: os.unlink(fill(p, "x", 1)
                                                                                                         and p / "x0000"))):
        again()
        same, complete = [], []
        for i in range(0, len(seen) - 50, 37):
            at = next(j for j in range(i, len(seen)) if seen[j] in stayed)
            listing.seek(places[at])
            same.append(listing.read() == seen[at])
            rest, before = [seen[at]] + listing.rest(), {name for name in seen[:at] if name in stayed}
            complete.append(once(rest, set(stayed) - before) and not before & set(rest))
        p.note(f"{label}: the same name", all(same))
        p.note(f"{label}: all that stood behind it", all(complete))
    listing.close()


def positions_without_a_stream(p):
    """As NFS servers list: the directory is opened for each step, at the position that the last one ended with."""
    stayed, moving = fill(p, "s"), fill(p, "m")
    renamer, names, position = Renamer(p.other, moving), [], 0
    while len(names) < TOO_MANY:
        stream = Stream(p.top)
        stream.seek(position)
        found = stream.step()
        stream.close()
        if found is None:
            break
        names += [name for name, _ in found]
        position = found[-1][1] if found else position
        renamer()
    p.note("ends, each once", (found is None, once(names, stayed)))


CASES = (renamed_all_the_time, made_and_removed_all_the_time, replaced_all_the_time, overtaken_by_other_listings,
         looked_at_while_it_is_listed, positions_outlive_changes, positions_without_a_stream)
