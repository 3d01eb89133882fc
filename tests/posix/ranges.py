"""Ranges of files: allocating, holes and where they are, copies, appends, mappings beside other ways to write."""
import ctypes
import hashlib
import mmap
import os
import signal

from attributes import WHO, mode_of
from harness import GROUP, USER, Child, as_user, open_and_close, outcome

ALLOCATE, KEEP_SIZE, PUNCH, COLLAPSE, ZERO, INSERT, UNSHARE = 0, 1, 2, 8, 16, 32, 64
MODES = {"allocate": ALLOCATE, "allocate kept": KEEP_SIZE, "punch": PUNCH | KEEP_SIZE, "zero": ZERO,
         "zero kept": ZERO | KEEP_SIZE}
KIB = 1 << 10
PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def pattern(size, seed=1):
    block = hashlib.sha512(bytes([seed])).digest()
    return (block * (size // len(block) + 1))[:size]


def content(path):
    with open(path, "rb") as file:
        data = file.read()
    return len(data), hashlib.sha256(data).hexdigest()[:16]


def allocate_in_every_way(p):
    for name, mode in MODES.items():
        for offset, length in ((0, 1), (0, 64 * KIB), (5 * KIB, 100), (5 * KIB, 30 * KIB), (60 * KIB, 8 * KIB),
                               (64 * KIB, 4 * KIB), (100 * KIB, 10 * KIB), (64 * KIB - 1, 1)):
            path = p.file("f", pattern(64 * KIB))
            fd = os.open(path, os.O_RDWR)
            p.call(f"{name} {offset}+{length}", fallocate, fd, mode, offset, length)
            p.note(f"{name} {offset}+{length} size", os.fstat(fd).st_size)
            os.close(fd)
            p.note(f"{name} {offset}+{length} content", content(path))


def allocate_errors(p):
    path = p.file("f", pattern(PAGE))
    fd = os.open(path, os.O_RDWR)
    for name, mode in MODES.items():
        p.call(f"{name}: nothing", fallocate, fd, mode, 0, 0)
        p.call(f"{name}: before the beginning", fallocate, fd, mode, -1, 10)
        p.call(f"{name}: backwards", fallocate, fd, mode, 10, -1)
        p.call(f"{name}: beyond what can be said", fallocate, fd, mode, 2**63 - 1, 10)
    p.call("punch that moves the size", fallocate, fd, PUNCH, 0, 10)
    p.call("collapse", fallocate, fd, COLLAPSE, 0, PAGE // 2)
    p.call("punch and zero", fallocate, fd, PUNCH | ZERO | KEEP_SIZE, 0, 10)
    p.call("an unknown mode", fallocate, fd, 0x4000, 0, 10)
    p.call("insert", fallocate, fd, INSERT, 0, PAGE)
    os.close(fd)
    for name, mode in MODES.items():
        fd = os.open(path, os.O_RDONLY)
        p.call(f"{name}: read-only", fallocate, fd, mode, 0, 10)
        os.close(fd)
        fd = os.open(path, os.O_WRONLY)
        p.call(f"{name}: write-only", fallocate, fd, mode, 0, 10)
        os.close(fd)
    fd = os.open(p.top, os.O_RDONLY | os.O_DIRECTORY)
    p.call("a directory", fallocate, fd, 0, 0, 10)
    os.close(fd)
    os.mkfifo(p / "fifo")
    fd = os.open(p / "fifo", os.O_RDWR)
    p.call("a fifo", fallocate, fd, 0, 0, 10)
    os.close(fd)
    p.call("by somebody who may only read", os.chmod, path, 0o644)
    p.call_as("it", WHO["stranger"], open_and_close, path, os.O_RDWR)


def allocate_drops_set_ids(p):
    acts = {name: lambda path, mode=mode: fallocate(os.open(path, os.O_WRONLY), mode, 0, 2)
            for name, mode in MODES.items()}
    acts["copy"] = lambda path: os.copy_file_range(os.open(path + ".from", os.O_RDONLY), os.open(path, os.O_WRONLY), 2)
    p.file("f.from", b"something", mode=0o644)
    for who in ("owner", "member", "root"):
        for name, act in acts.items():
            for mode in (0o6777, 0o2767, 0o4666):
                path = p.file("f", b"data", owner=(USER, GROUP), mode=mode)
                p.note(f"{who} {name} {mode:o}", (as_user(WHO[who], outcome, act, path), mode_of(path)))


def ranges_move_times(p):
    path, source = p.file("f", pattern(8 * PAGE)), p.file("from", pattern(PAGE, 2))
    fd, from_fd = os.open(path, os.O_RDWR), os.open(source, os.O_RDONLY)
    acts = {name: lambda mode=mode: fallocate(fd, mode, PAGE, PAGE) for name, mode in MODES.items()}
    acts["copy"] = lambda: os.copy_file_range(from_fd, fd, PAGE, 0, 0)
    acts["copy of nothing"] = lambda: os.copy_file_range(from_fd, fd, PAGE, PAGE, 0)
    for name, act in acts.items():
        before = os.stat(path)
        p.tick()
        act()
        after = os.stat(path)
        p.note(name, (after.st_mtime_ns > before.st_mtime_ns, after.st_ctime_ns > before.st_ctime_ns))
    os.close(fd)
    os.close(from_fd)


def map_of(fd):
    """Data and holes from the start to the end: (where, what)."""
    size, at, found = os.fstat(fd).st_size, 0, []
    while at < size:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            found.append((at, "hole to the end"))
            break
        if data > at:
            found.append((at, "hole"))
        at = os.lseek(fd, data, os.SEEK_HOLE)
        found.append((data, "data"))
    return found + [(size, "end")]


def where_holes_are(p):
    fd = os.open(p / "f", os.O_RDWR | os.O_CREAT)
    p.note("empty", map_of(fd))
    os.ftruncate(fd, 1 << 20)
    p.note("only a size", map_of(fd))
    for offset in (0, 64 * KIB, 512 * KIB):
        os.pwrite(fd, pattern(32 * KIB), offset)
    p.note("written a moment ago", map_of(fd))
    os.fsync(fd)
    p.note("written out", map_of(fd))
    fallocate(fd, PUNCH | KEEP_SIZE, 8 * KIB, 8 * KIB)
    fallocate(fd, PUNCH | KEEP_SIZE, 70 * KIB, 9 * KIB)
    p.note("punched", map_of(fd))
    os.ftruncate(fd, 520 * KIB + 10)
    p.note("cut", map_of(fd))
    os.ftruncate(fd, 2 << 20)
    p.note("grown", map_of(fd))
    os.close(fd)
    fd = os.open(p.other + "/f", os.O_RDONLY)
    p.note("through the other mount", map_of(fd))
    os.close(fd)


def blocks_of_holes(p):
    path = p / "f"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 20)
    p.note("only a size", os.stat(path).st_blocks)
    os.pwrite(fd, pattern(32 * KIB), 64 * KIB)
    os.close(fd)
    p.note("something written", os.stat(path).st_blocks)
    fd = os.open(path, os.O_RDWR)
    fallocate(fd, PUNCH | KEEP_SIZE, 72 * KIB, 8 * KIB)
    p.note("a hole in it", os.stat(path).st_blocks)
    os.close(fd)
    p.note("one byte", os.stat(p.file("g", b"x")).st_blocks)
    p.note("dense", os.stat(p.file("h", pattern(100 * KIB))).st_blocks)


def seek_errors(p):
    fd = os.open(p.file("f", pattern(100)), os.O_RDONLY)
    for what, whence in (("data", os.SEEK_DATA), ("hole", os.SEEK_HOLE)):
        for offset in (-1, 0, 50, 99, 100, 101, 2**62):
            p.call(f"{what} from {offset}", os.lseek, fd, offset, whence)
        p.note(f"{what}: where the descriptor is then", os.lseek(fd, 0, os.SEEK_CUR))
    p.call("no such whence", os.lseek, fd, 0, 5)
    os.close(fd)


def far_apart(p):
    fd = os.open(p / "f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"begin", 0)
    os.pwrite(fd, b"end", 1 << 40)
    p.note("map", map_of(fd))
    p.call("allocate far behind", fallocate, fd, KEEP_SIZE, 1 << 41, PAGE)
    p.call("punch nearly all", fallocate, fd, PUNCH | KEEP_SIZE, 0, 1 << 40)
    p.note("map then", map_of(fd))
    p.note("the end", os.pread(fd, 10, 1 << 40))
    os.close(fd)


def copy_ranges(p):
    data = pattern(300 * KIB)
    for from_offset, to_offset, length in ((0, 0, 300 * KIB), (0, 0, 64 * KIB), (PAGE, 8 * PAGE, 10 * PAGE),
                                           (100, 200, 5000), (PAGE + 7, 3 * PAGE + 7, 9 * PAGE), (299 * KIB, 0, 64 * KIB),
                                           (400 * KIB, 0, 10), (0, 500 * KIB, PAGE), (0, 0, 0)):
        source, target = p.file("from", data), p.file("to", pattern(200 * KIB, 2))
        fd, to_fd = os.open(source, os.O_RDONLY), os.open(target, os.O_RDWR)
        label = f"{from_offset} to {to_offset}, {length}"
        p.call(label, os.copy_file_range, fd, to_fd, length, from_offset, to_offset)
        p.note(f"{label}: then", content(target))
        os.close(fd)
        os.close(to_fd)


def copy_keeps_apart(p):
    """What is changed of one afterwards does not change the other."""
    source, target = p.file("from", pattern(256 * KIB)), p.file("to")
    fd, to_fd = os.open(source, os.O_RDWR), os.open(target, os.O_RDWR)
    p.call("copy", os.copy_file_range, fd, to_fd, 256 * KIB, 0, 0)
    os.pwrite(fd, b"new", 10)
    os.pwrite(to_fd, pattern(64 * KIB, 3), 64 * KIB)
    fallocate(fd, PUNCH | KEEP_SIZE, 128 * KIB, 20 * KIB)
    os.ftruncate(to_fd, 200 * KIB + 5)
    p.note("the source", content(source))
    p.note("the copy", content(target))
    p.call("back again, within one file", os.copy_file_range, to_fd, to_fd, 32 * KIB, 0, 300 * KIB)
    os.unlink(source)
    os.close(fd)
    p.note("the copy without its source", content(target))
    os.close(to_fd)


def copy_with_flags(fd, flags):
    if libc.copy_file_range(fd, None, fd, None, ctypes.c_size_t(1), ctypes.c_uint(flags)) < 0:
        raise OSError(ctypes.get_errno(), "copy_file_range")


def copy_errors(p):
    source, target = p.file("from", pattern(PAGE)), p.file("to", pattern(PAGE, 2))
    flags = {"reading": os.O_RDONLY, "writing": os.O_WRONLY, "both": os.O_RDWR, "appending": os.O_WRONLY | os.O_APPEND}
    for first, from_flags in flags.items():
        for second, to_flags in flags.items():
            fd, to_fd = os.open(source, from_flags), os.open(target, to_flags)
            p.call(f"{first} to {second}", os.copy_file_range, fd, to_fd, 10)
            os.close(fd)
            os.close(to_fd)
    fd, folder = os.open(source, os.O_RDWR), os.open(p.top, os.O_RDONLY | os.O_DIRECTORY)
    p.call("from a directory", os.copy_file_range, folder, fd, 10)
    p.call("over itself", os.copy_file_range, fd, fd, 100, 0, 50)
    p.call("beside itself", os.copy_file_range, fd, fd, 100, 0, 200)
    p.call("from before the beginning", os.copy_file_range, fd, fd, 100, -5, 200)
    p.call("flags", copy_with_flags, fd, 1)
    os.close(fd)
    os.close(folder)


def copy_moves_the_descriptors(p):
    fd, to_fd = os.open(p.file("from", pattern(PAGE)), os.O_RDONLY), os.open(p.file("to"), os.O_RDWR)
    os.lseek(fd, 10, os.SEEK_SET)
    p.call("copy", os.copy_file_range, fd, to_fd, 100)
    p.note("where they are", (os.lseek(fd, 0, os.SEEK_CUR), os.lseek(to_fd, 0, os.SEEK_CUR)))
    os.close(fd)
    os.close(to_fd)


def append(p):
    path = p.file("f", b"0123")
    one, two = os.open(path, os.O_RDWR | os.O_APPEND), os.open(p.other + "/f", os.O_RDWR | os.O_APPEND)
    plain = os.open(path, os.O_WRONLY)
    os.write(one, b"one")
    p.note("where it is then", os.lseek(one, 0, os.SEEK_CUR))
    os.write(two, b"two")
    os.write(one, b"three")
    os.pwrite(one, b"not here", 1)
    os.pwrite(plain, b"X", 0)
    for fd in (one, two, plain):
        os.close(fd)
    with open(path, "rb") as file:
        p.note("all", file.read())
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.truncate(p.other + "/f", 3)
    os.write(fd, b"behind the cut")
    os.close(fd)
    with open(p.other + "/f", "rb") as file:
        p.note("after another's truncation", file.read())


def append_together(p):
    """Whole records of several processes, none over another."""
    path, count = p.file("f"), 60

    def body(where, who):
        def run(child):
            fd = os.open(where, os.O_WRONLY | os.O_APPEND)
            for number in range(count):
                os.write(fd, f"{who}:{number}:".encode() + bytes([65 + who]) * (number * 97 % 5000) + b"\n")
            os.close(fd)
            child.send("done")
        return run
    children = [Child(body(where, who)) for who, where in enumerate((path, p.other + "/f", path, p.other + "/f"))]
    for child in children:
        with child:
            child.receive()
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    p.note("lines", len(lines))
    for who in range(4):
        mine = [line for line in lines if line.startswith(f"{who}:".encode())]
        wanted = [f"{who}:{n}:".encode() + bytes([65 + who]) * (n * 97 % 5000) for n in range(count)]
        p.note(f"of writer {who}", mine == wanted)


def mappings(p):
    path = p.file("f", pattern(3 * PAGE + 10))
    fd = os.open(path, os.O_RDWR)
    shared = mmap.mmap(fd, 3 * PAGE + 10)
    private = mmap.mmap(fd, 3 * PAGE + 10, flags=mmap.MAP_PRIVATE)
    shared[5:10] = b"share"
    private[20:25] = b"privy"
    os.pwrite(fd, b"wrote", PAGE)
    p.note("a write is seen in a mapping", bytes(shared[PAGE:PAGE + 5]))
    p.note("and what was mapped is read", os.pread(fd, 5, 5))
    p.note("not what is private", os.pread(fd, 5, 20) == pattern(25)[20:])
    shared.flush()
    private.close()
    shared.close()
    os.close(fd)
    p.note("then", content(path))


def touch_behind_the_cut(path, cut):
    """The signal that a process gets which touches a page behind the end."""
    def body(child):
        fd = os.open(path, os.O_RDWR)
        area = mmap.mmap(fd, 4 * PAGE)
        area[3 * PAGE] = 1
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        os.truncate(path, cut)
        child.send(bytes(area[cut:PAGE]) == bytes(PAGE - cut) if cut < PAGE else None)
        libc.memset(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(area, 3 * PAGE))), 1, 1)
        child.send("no signal")
    with Child(body) as child:
        zeros = child.receive()
        try:
            return zeros, child.receive()
        except EOFError:
            return zeros, "a signal"


def mappings_and_truncation(p):
    path = p.file("f", pattern(4 * PAGE))
    p.note("zeros behind the new end", touch_behind_the_cut(path, 100))
    p.note("size", os.stat(path).st_size)
    os.truncate(path, 4 * PAGE)
    with open(path, "rb") as file:
        data = file.read()
    p.note("grown again", (data[:100] == pattern(100), data[100:] == bytes(4 * PAGE - 100)))


def hole_under_a_mapping(p):
    path = p.file("f", pattern(4 * PAGE))
    fd = os.open(path, os.O_RDWR)
    area = mmap.mmap(fd, 4 * PAGE)
    area[2 * PAGE] = 1
    fallocate(fd, PUNCH | KEEP_SIZE, PAGE + 100, 2 * PAGE)
    p.note("zeros", bytes(area[PAGE + 100:3 * PAGE + 100]) == bytes(2 * PAGE))
    area[PAGE + 200:PAGE + 205] = b"again"
    p.note("written again", os.pread(fd, 10, PAGE + 198))
    os.copy_file_range(fd, fd, PAGE, 0, 3 * PAGE)
    p.note("a copy under it", bytes(area[3 * PAGE:3 * PAGE + 5]) == pattern(5))
    area.close()
    os.close(fd)
    p.note("then", content(path))


def direct_beside_the_rest(p):
    path = p.file("f", pattern(16 * PAGE))
    fd, direct = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR | os.O_DIRECT)
    area = mmap.mmap(fd, 16 * PAGE)
    block = mmap.mmap(-1, PAGE)
    for turn in range(1, 5):
        at = turn * PAGE
        block[:] = pattern(PAGE, turn + 10)
        os.pwritev(direct, [block], at)
        p.note(f"direct, read {turn}", os.pread(fd, PAGE, at) == block[:])
        p.note(f"direct, mapped {turn}", area[at:at + PAGE] == block[:])
        os.pwrite(fd, pattern(PAGE, turn + 20), at)
        os.preadv(direct, [block], at)
        p.note(f"written, read directly {turn}", block[:] == pattern(PAGE, turn + 20))
        area[at:at + 3] = b"map"
        os.preadv(direct, [block], at)
        p.note(f"mapped, read directly {turn}", block[:3] == b"map")
    p.call("direct at the end", os.preadv, direct, [block], 16 * PAGE)
    area.close()
    os.close(fd)
    os.close(direct)
    p.note("then", content(path))


def after_a_cut(p):
    """Bytes that were cut off never come back."""
    for grow in ("truncate", "write", "allocate", "copy"):
        path = p.file("f", pattern(40 * KIB))
        fd = os.open(path, os.O_RDWR)
        os.ftruncate(fd, 5000)
        if grow == "truncate":
            os.ftruncate(fd, 40 * KIB)
        elif grow == "write":
            os.pwrite(fd, b"end", 30 * KIB)
        elif grow == "allocate":
            fallocate(fd, 0, 0, 40 * KIB)
        else:
            os.copy_file_range(fd, fd, 100, 0, 30 * KIB)
        os.close(fd)
        p.note(grow, content(path))
        p.note(f"{grow}, through the other mount", content(p.other + "/f"))


CASES = (allocate_in_every_way, allocate_errors, allocate_drops_set_ids, ranges_move_times, where_holes_are, blocks_of_holes, seek_errors,
         far_apart, copy_ranges, copy_keeps_apart, copy_errors, copy_moves_the_descriptors, append, append_together,
         mappings, mappings_and_truncation, hole_under_a_mapping, direct_beside_the_rest, after_a_cut)
