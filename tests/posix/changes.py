"""Every way to change a file, and some that change nothing, each on a path that holds 64 KiB beside one that ends with
`.source`."""
import ctypes
import mmap
import os
import struct

from harness import open_and_close
from users import checked, libc

KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
RWF_APPEND, RWF_NOAPPEND = 0x10, 0x20
SYS_IO_SETUP, SYS_IO_DESTROY, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = 206, 207, 208, 209  # of x86-64
SYS_IO_URING_SETUP, SYS_IO_URING_ENTER = 425, 426
IORING_OP_FALLOCATE, IORING_OP_WRITE = 17, 23


def with_fd(act, flags=os.O_RDWR):
    def run(path):
        fd = os.open(path, flags)
        try:
            act(fd)
        finally:
            os.close(fd)
    return run


def direct(act, flags=0):
    def run(path):
        page = mmap.mmap(-1, 4096)
        page.write(b"d" * 4096)
        with_fd(lambda fd: act(fd, page), os.O_WRONLY | os.O_DIRECT | flags)(path)
        page.close()
    return run


def fallocate(mode, offset=0, size=8192):
    return with_fd(lambda fd: checked(libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(size))))


def copy_over(path):
    source = os.open(path + ".source", os.O_RDONLY)
    with_fd(lambda fd: os.copy_file_range(source, fd, 8192, 0, 4096))(path)
    os.close(source)


def send_over(path):
    source = os.open(path + ".source", os.O_RDONLY)
    with_fd(lambda fd: os.sendfile(fd, source, 0, 8192))(path)
    os.close(source)


def write_with(flag, offset=0, opened=os.O_WRONLY):
    return with_fd(lambda fd: os.pwritev(fd, [b"x" * 100], offset, flag), opened)


def from_pipe(move):
    """`move(source, fd)` with a pipe that holds a page."""
    def act(fd):
        source, into = os.pipe()
        try:
            os.write(into, b"p" * 4096)
            move(source, fd)
        finally:
            os.close(source)
            os.close(into)
    return act


def map_and_store(flags=0, flush=True):
    def store(fd):
        with mmap.mmap(fd, 8192) as mapped:
            mapped[0:4] = b"mmap"
            if flush:
                mapped.flush()
    return with_fd(store, os.O_RDWR | flags)


def swap_and_write(path):
    """Through another name that came while it was open."""
    def act(fd):
        os.rename(path, path + ".moved")
        os.write(fd, b"x")
        os.rename(path + ".moved", path)
    with_fd(act)(path)


def submit_aio(fd, code, page):
    context, count = ctypes.c_ulong(), ctypes.c_long()
    checked(libc.syscall(SYS_IO_SETUP, 1, ctypes.byref(context)))
    control = ctypes.create_string_buffer(struct.pack("=QIIHhIQQqQII", 0, 0, 0, code, 0, fd, page, 4096, 0, 0, 0, 0))
    pointer = ctypes.c_void_p(ctypes.addressof(control))
    event = ctypes.create_string_buffer(32)
    try:
        if libc.syscall(SYS_IO_SUBMIT, context, 1, ctypes.byref(pointer)) != 1:
            raise OSError(ctypes.get_errno(), "io_submit")
        libc.syscall(SYS_IO_GETEVENTS, context, 1, 1, event, None)
        result = struct.unpack_from("=q", event.raw, 16)[0]
        if result < 0:
            raise OSError(-result, "an asynchronous write")
    finally:
        libc.syscall(SYS_IO_DESTROY, context)


def asynchronous(flags=0):
    def act(fd):
        page = mmap.mmap(-1, 4096)
        submit_aio(fd, 1, ctypes.addressof(ctypes.c_char.from_buffer(page)))  # IOCB_CMD_PWRITE
    return with_fd(act, os.O_WRONLY | flags)


class Ring:
    """An io_uring of one entry."""

    def __init__(self):
        params = ctypes.create_string_buffer(120)
        self.fd = libc.syscall(SYS_IO_URING_SETUP, 1, params)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "io_uring_setup")
        entries = struct.unpack_from("=II", params.raw, 0)
        self.sq = struct.unpack_from("=8I", params.raw, 40)  # head tail ring_mask ring_entries flags dropped array
        self.cq = struct.unpack_from("=8I", params.raw, 80)  # head tail ring_mask ring_entries overflow cqes
        self.sq_ring = mmap.mmap(self.fd, self.sq[6] + entries[0] * 4, offset=0)
        self.cq_ring = mmap.mmap(self.fd, self.cq[5] + entries[1] * 16, offset=0x8000000)
        self.sqes = mmap.mmap(self.fd, entries[0] * 64, offset=0x10000000)

    def run(self, opcode, fd, address, length, offset):
        self.sqes[0:64] = struct.pack("=BBHiQQIIQ24x", opcode, 0, 0, fd, offset, address, length, 0, 0)
        struct.pack_into("=I", self.sq_ring, self.sq[6], 0)
        struct.pack_into("=I", self.sq_ring, self.sq[1], 1)
        if libc.syscall(SYS_IO_URING_ENTER, self.fd, 1, 1, 1, None, 0) != 1:
            raise OSError(ctypes.get_errno(), "io_uring_enter")
        result = struct.unpack_from("=Qi", self.cq_ring, self.cq[5])[1]
        os.close(self.fd)
        if result < 0:
            raise OSError(-result, "through an io_uring")


def ringed(opcode, address=None, length=4096, flags=0):
    def act(fd):
        page = mmap.mmap(-1, 4096)
        where = ctypes.addressof(ctypes.c_char.from_buffer(page)) if address is None else address
        Ring().run(opcode, fd, where, length, 0)
    return with_fd(act, os.O_WRONLY | flags)


ACTS = {
    "write": with_fd(lambda fd: os.write(fd, b"x")),
    "pwrite at the end": with_fd(lambda fd: os.pwrite(fd, b"x" * 5000, 65536)),
    "writev": with_fd(lambda fd: os.writev(fd, [b"x", b"y" * 5000])),
    "synchronous write": with_fd(lambda fd: os.write(fd, b"x"), os.O_WRONLY | os.O_DSYNC),
    "append": with_fd(lambda fd: os.write(fd, b"x"), os.O_WRONLY | os.O_APPEND),
    "direct write": direct(lambda fd, page: os.writev(fd, [page])),
    "direct write at the end": direct(lambda fd, page: os.pwritev(fd, [page], 65536)),
    "direct append": direct(lambda fd, page: os.writev(fd, [page]), os.O_APPEND),
    "truncate shorter": lambda path: os.truncate(path, 5),
    "truncate longer": lambda path: os.truncate(path, 100000),
    "ftruncate": with_fd(lambda fd: os.ftruncate(fd, 5)),
    "O_TRUNC": lambda path: open_and_close(path, os.O_WRONLY | os.O_TRUNC),
    "creat": lambda path: open_and_close(path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT),
    "allocate": fallocate(0, 65536),
    "allocate within": fallocate(0),
    "allocate behind the end": fallocate(KEEP_SIZE, 65536),
    "punch": fallocate(PUNCH_HOLE | KEEP_SIZE),
    "zero": fallocate(ZERO_RANGE),
    "zero behind the end": fallocate(ZERO_RANGE | KEEP_SIZE, 65536),
    "copy": copy_over,
    "sendfile": send_over,
    "mapped store": map_and_store(),
    "mapped store without msync": map_and_store(flush=False),
    "mapped store beside O_DIRECT": map_and_store(os.O_DIRECT),
    "write with RWF_APPEND": write_with(RWF_APPEND),
    "write with RWF_DSYNC": write_with(os.RWF_DSYNC),
    "write with RWF_NOAPPEND": write_with(RWF_NOAPPEND, 10, os.O_WRONLY | os.O_APPEND),
    "splice": with_fd(from_pipe(lambda source, fd: os.splice(source, fd, 4096, offset_dst=4096))),
    "write while it is renamed": swap_and_write,
    "asynchronous write": asynchronous(),
    "asynchronous direct write": asynchronous(os.O_DIRECT),
    "ring write": ringed(IORING_OP_WRITE),
    "ring direct write": ringed(IORING_OP_WRITE, flags=os.O_DIRECT),
    "ring allocation": ringed(IORING_OP_FALLOCATE, 100000, 0),
    "truncate to the same size": lambda path: os.truncate(path, 65536),
    "ftruncate to the same size": with_fd(lambda fd: os.ftruncate(fd, 65536)),
    "punch behind the end": fallocate(PUNCH_HOLE | KEEP_SIZE, 1 << 20),
    "allocate what cannot be": fallocate(0, 0, 0),
    "read": with_fd(lambda fd: os.read(fd, 10), os.O_RDONLY),
    "open for writing": lambda path: open_and_close(path, os.O_RDWR),
    "write of nothing": with_fd(lambda fd: os.write(fd, b"")),
}
