"""Mappings of descriptors whose own reads and writes pass the page cache by: O_DIRECT, and O_APPEND on a mount that is shared."""
import mmap
import os

from harness import Child
from ranges import PAGE, content, pattern

HOW = {"direct": os.O_DIRECT, "append": os.O_APPEND, "both": os.O_DIRECT | os.O_APPEND}
SHARED, PRIVATE = mmap.MAP_SHARED, mmap.MAP_PRIVATE
READ, WRITE = mmap.PROT_READ, mmap.PROT_WRITE


def block(data=b"", size=PAGE):
    """Memory that direct I/O takes."""
    area = mmap.mmap(-1, size)
    area.write(data)
    return area


def direct_read(path, offset, size=PAGE):
    area = block(size=size)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        return area[:os.preadv(fd, [area], offset)]
    finally:
        os.close(fd)


def read_through(fd, offset, size=PAGE):
    area = block(size=size)
    return area[:os.preadv(fd, [area], offset)]


def may_be_mapped(p):
    for name, flags in HOW.items():
        for mode_name, mode in (("read", os.O_RDONLY), ("write", os.O_WRONLY), ("both", os.O_RDWR)):
            for kind_name, kind in (("shared", SHARED), ("private", PRIVATE)):
                for prot_name, prot in (("read", READ), ("write", READ | WRITE)):
                    fd = os.open(p.file("f", pattern(PAGE)), mode | flags)
                    p.call(f"{name} {mode_name} {kind_name} {prot_name}",
                           lambda fd=fd, kind=kind, prot=prot: bool(mmap.mmap(fd, PAGE, kind, prot)[:5] == pattern(5)))
                    os.close(fd)


def stores_and_direct_io(p):
    """Both ways, without msync, also in a last page that the file ends in."""
    for name, flags in HOW.items():
        path = p.file(f"f-{name}", pattern(3 * PAGE + 10))
        fd = os.open(path, os.O_RDWR | flags)
        area = mmap.mmap(fd, 3 * PAGE + 10)
        p.note(f"{name}: as it is", area[:] == pattern(3 * PAGE + 10))
        area[5:10] = b"store"
        area[3 * PAGE + 2:3 * PAGE + 6] = b"tail"
        p.note(f"{name}: a store is read", read_through(fd, 0)[5:10])
        p.note(f"{name}: and by others", (direct_read(path, 0)[5:10], direct_read(path, 3 * PAGE)))
        writer = os.open(path, os.O_WRONLY | os.O_DIRECT)
        os.pwritev(writer, [block(b"d" * PAGE)], PAGE)
        p.note(f"{name}: a direct write is loaded", area[PAGE - 1:PAGE + 3])
        area[PAGE + 1:PAGE + 4] = b"sto"
        os.pwritev(writer, [block(b"e" * PAGE)], PAGE)
        p.note(f"{name}: also over a store", area[PAGE:PAGE + 6])
        plain = os.open(path, os.O_RDWR)
        os.pwrite(plain, b"plain", 2 * PAGE)
        p.note(f"{name}: a plain write is loaded", area[2 * PAGE:2 * PAGE + 6])
        p.note(f"{name}: and a store read plainly", os.pread(plain, 5, 5))
        for other in (writer, plain):
            os.close(other)
        os.close(fd)
        area[0:3] = b"end"
        p.note(f"{name}: the descriptor is closed", direct_read(path, 0)[:10])
        area.close()
        p.note(f"{name}: all", content(path))
        p.note(f"{name}: elsewhere", content(f"{p.other}/f-{name}"))


def again_and_again(p):
    """Each of many direct writes and stores is seen by the other side at once."""
    path = p.file("f", bytes(4 * PAGE))
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    area, good = mmap.mmap(fd, 4 * PAGE), 0
    for turn in range(60):
        at, byte = turn % 4 * PAGE, bytes([turn + 1])
        area[at] = turn + 1
        good += read_through(fd, at)[:1] == byte
        os.pwritev(fd, [block(byte * PAGE)], (at + PAGE) % (4 * PAGE))
        good += area[(at + PAGE) % (4 * PAGE) + 7] == turn + 1
    p.note("seen", good)
    area.close()
    os.close(fd)


def another_process_maps(p):
    path = p.file("f", pattern(2 * PAGE))

    def body(child):
        with mmap.mmap(os.open(path, os.O_RDWR | os.O_DIRECT), 2 * PAGE) as area:
            child.send(area[:4])
            child.receive()
            child.send(area[:4])
            area[PAGE:PAGE + 4] = b"mine"
            child.send("stored")
            child.receive()
    with Child(body) as child:
        p.note("before", child.receive() == pattern(4))
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        os.pwritev(fd, [block(b"w" * PAGE)], 0)
        child.send("written")
        p.note("a direct write", child.receive())
        child.receive()
        p.note("a store", read_through(fd, PAGE)[:4])
        child.send("end")
    os.close(fd)


def private_ones(p):
    for name, flags in HOW.items():
        path = p.file("f", pattern(PAGE + 10))
        fd = os.open(path, os.O_RDWR | flags)
        area = mmap.mmap(fd, PAGE + 10, PRIVATE)
        area[0:4] = b"mine"
        p.note(f"{name}: stays here", (area[:6], direct_read(path, 0)[:4] == pattern(4), area[PAGE:PAGE + 10]))
        writer = os.open(path, os.O_WRONLY)
        os.pwrite(writer, b"theirs", PAGE)
        p.note(f"{name}: what others write", area[PAGE:PAGE + 6])
        os.close(writer)
        os.close(fd)
        area.close()
        p.note(f"{name}: all", content(path))


def stores_do_not_append(p):
    """What is stored goes where it was stored, beside appends through the same descriptor, here and elsewhere."""
    path = p.file("log", b"a" * PAGE)
    fd, elsewhere = os.open(path, os.O_RDWR | os.O_APPEND), os.open(f"{p.other}/log", os.O_WRONLY | os.O_APPEND)
    area = mmap.mmap(fd, PAGE)
    for turn in range(20):
        area[turn] = 65 + turn
        os.write(fd, b"here %02d\n" % turn)
        area[20 + turn] = 97 + turn
        if turn % 5 == 0:
            area.flush()
            os.write(elsewhere, b"there %02d\n" % turn)
    p.note("size", os.fstat(fd).st_size)
    p.note("loaded", area[:50])
    area.close()
    os.close(fd)
    os.close(elsewhere)
    p.note("all", content(path))


def a_log_that_grows(p):
    """As Dovecot keeps its indexes: appended by write(2), read by a mapping that is made anew as it grows."""
    path, good = p.file("index.log"), 0
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    for turn in range(1, 40):
        record = bytes([turn]) * 333
        os.write(fd, record)
        with mmap.mmap(fd, os.fstat(fd).st_size, SHARED, READ) as area:
            good += area[-333:] == record and len(area) == 333 * turn
    p.note("records", good)
    os.close(fd)


CASES = (may_be_mapped, stores_and_direct_io, again_and_again, another_process_maps, private_ones, stores_do_not_append,
         a_log_that_grows)
