"""Rights: set-id bits and file capabilities after every kind of change, users with capabilities, and root of a user
namespace."""
import ctypes
import errno
import mmap
import os
import stat
import struct

from harness import (ACCESS, GROUP, OTHER, THIRD, USER, Child, acl, become, open_and_close, outcome)

OWNER = (USER, GROUP, [])
MEMBER = (OTHER, THIRD, [GROUP])
STRANGER = (OTHER, THIRD, [])
ROOT = (0, 0, [])

CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, SYS_ADMIN, MKNOD, SETFCAP = 0, 1, 2, 3, 4, 21, 27, 31
NAMES = {CHOWN: "CHOWN", DAC_OVERRIDE: "DAC_OVERRIDE", DAC_READ_SEARCH: "DAC_READ_SEARCH", FOWNER: "FOWNER",
         FSETID: "FSETID", SYS_ADMIN: "SYS_ADMIN", MKNOD: "MKNOD", SETFCAP: "SETFCAP"}
CAPABILITY = "security.capability"
NET_RAW = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)  # cap_net_raw+ep

KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
RWF_APPEND, RWF_NOAPPEND = 0x10, 0x20
SYS_IO_SETUP, SYS_IO_DESTROY, SYS_IO_GETEVENTS, SYS_IO_SUBMIT = 206, 207, 208, 209  # of x86-64
SYS_IO_URING_SETUP, SYS_IO_URING_ENTER = 425, 426
IORING_OP_FALLOCATE, IORING_OP_WRITE = 17, 23
PR_SET_KEEPCAPS = 8
CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def set_capabilities(effective, permitted=None):
    permitted = effective if permitted is None else permitted
    masks = [sum(1 << one for one in some) for some in (effective, permitted)]
    header = struct.pack("=Ii", 0x20080522, 0)
    data = b"".join(struct.pack("=III", *((mask >> shift) & 0xFFFFFFFF for mask in masks), 0) for shift in (0, 32))
    checked(libc.capset(header, data))


def become_with(user, effective, permitted=None):
    checked(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
    become(user)
    set_capabilities(effective, permitted)


def run_as(user, function, *args, capabilities=None):
    """In a child that has become `user`; with just those capabilities if any are named."""
    def body(child):
        become(user) if capabilities is None else become_with(user, capabilities)
        child.send(function(*args))
    with Child(body) as child:
        return child.receive()


# What changes a file, each on a path that holds 64 KiB.


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

WRITERS = {
    "owner": (OWNER, None), "member": (MEMBER, None), "stranger": (STRANGER, None), "root": (ROOT, None),
    "root without FSETID": (ROOT, [CHOWN, DAC_OVERRIDE, FOWNER]), "stranger with FSETID": (STRANGER, [FSETID]),
}


def permissions_of(path):
    return oct(stat.S_IMODE(os.lstat(path).st_mode))


def capability_of(path):
    """Whether there is one, and of which size: that of a namespace's root says whose it is."""
    try:
        return len(os.getxattr(path, CAPABILITY))
    except OSError as error:
        return errno.errorcode[error.errno]


def changed_files(p, prepare, facts):
    """Notes what every change by everybody does to files that `prepare(path)` has made ready."""
    for who, (user, capabilities) in WRITERS.items():
        paths = {}
        for number, act in enumerate(ACTS):
            path = p.file(f"{who}.{number}".replace(" ", ""), b"0123" * 16384, owner=(USER, GROUP))
            p.file(os.path.basename(path) + ".source", b"s" * 16384, 0o644)
            prepare(path)
            paths[act] = path
        for path in paths.values():
            facts(path)  # whatever is remembered of it is as it was
        done = run_as(user, lambda: {act: (outcome(ACTS[act], path), facts(path)) for act, path in paths.items()},
                      capabilities=capabilities)
        for act, path in paths.items():
            p.note(f"{act} by {who}", done[act])
            p.note(f"{act} by {who}, seen elsewhere", facts(f"{p.other}/{os.path.basename(path)}"))


def changed_through_what_another_opened(p):
    """Who changes counts, not who opened."""
    for opener, who in (("root", "stranger"), ("owner", "stranger"), ("stranger", "root")):
        for name, flags, act in (
                ("write", 0, lambda fd: os.write(fd, b"x")), ("ftruncate", 0, lambda fd: os.ftruncate(fd, 5)),
                ("append", os.O_APPEND, lambda fd: os.write(fd, b"x")),
                ("direct", os.O_DIRECT, lambda fd: os.pwritev(fd, [mmap.mmap(-1, 4096)], 0)),
                ("allocate", 0, lambda fd: checked(libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(100000))))):
            path = p.file("f", b"0123" * 16384, owner=(USER, GROUP), mode=0o777)

            def body(child, flags=flags, opener=opener, who=who, act=act, path=path):
                os.setresuid(WRITERS[opener][0][0], WRITERS[opener][0][0], 0)
                fd = os.open(path, os.O_RDWR | flags)
                os.setresuid(0, 0, 0)
                os.chmod(path, 0o6777)
                os.setxattr(path, CAPABILITY, NET_RAW)
                os.setresuid(WRITERS[who][0][0], WRITERS[who][0][0], 0)
                child.send((outcome(act, fd), permissions_of(path), capability_of(path)))
            with Child(body) as child:
                p.note(f"{name} of what {opener} opened by {who}", child.receive())
            p.note(f"{name} of what {opener} opened by {who}, elsewhere",
                   (permissions_of(p.other + "/f"), capability_of(p.other + "/f")))
            os.unlink(path)


def a_chown_of_nothing_beside_a_writer(p):
    """Kernels announce writes by a request that looks the same."""
    for who, (user, capabilities) in WRITERS.items():
        for how in ("closed", "open", "written"):
            path = p.file("f", b"data", 0o6777, (USER, GROUP))
            fd = -1 if how == "closed" else os.open(path, os.O_RDWR)
            if how == "written":
                os.write(fd, b"x")  # root's, which costs nothing
            done = run_as(user, outcome, os.chown, path, -1, -1, capabilities=capabilities)
            p.note(f"{how}, by {who}", (done, permissions_of(path)))
            p.note(f"{how}, by {who}, what is left", permissions_of(p.other + "/f"))
            if fd >= 0:
                os.close(fd)
            os.unlink(path)


def lists_and_set_gid(p):
    """Who sets a list on what runs as a group that is not his."""
    lists = {"rich": acl(7, 5, 5, 5, users=[(THIRD, 5)]), "plain": acl(7, 7, 5)}
    for who, (user, capabilities) in {**WRITERS, "owner in no group": ((USER, THIRD, []), None)}.items():
        for kind, mode in (("file", 0o2775), ("file", 0o6775), ("directory", 0o2775)):
            for name, value in lists.items():
                path = p.dir("x", mode, (USER, GROUP)) if kind == "directory" else p.file("x", b"x", mode, (USER, GROUP))
                done = run_as(user, outcome, os.setxattr, path, ACCESS, value, capabilities=capabilities)
                p.note(f"{kind} {mode:o} {name} by {who}", (done, permissions_of(path), permissions_of(p.other + "/x")))
                os.rmdir(path) if kind == "directory" else os.unlink(path)


def given_away_with_a_capability(p):
    """A directory keeps it, which does nothing there."""
    for kind, path in (("file", p.file("f", b"x", 0o755)), ("directory", p.dir("d"))):
        os.setxattr(path, CAPABILITY, NET_RAW)
        os.chown(path, USER, GROUP)
        p.note(kind, capability_of(path))


def set_ids_fall_6777(p):
    changed_files(p, lambda path: os.chmod(path, 0o6777), permissions_of)


def set_ids_fall_2666(p):
    changed_files(p, lambda path: os.chmod(path, 0o2666), permissions_of)


def set_ids_fall_4666(p):
    changed_files(p, lambda path: os.chmod(path, 0o4666), permissions_of)


def capabilities_fall(p):
    def prepare(path):
        os.chmod(path, 0o777)
        os.setxattr(path, CAPABILITY, NET_RAW)
    changed_files(p, prepare, capability_of)


def both_fall(p):
    def prepare(path):
        os.chmod(path, 0o6777)
        os.setxattr(path, CAPABILITY, NET_RAW)
    changed_files(p, prepare, lambda path: (capability_of(path), permissions_of(path)))


def what_keeps_a_capability(p):
    acts = {"chmod": lambda path: os.chmod(path, 0o755), "utime": os.utime,
            "rename": lambda path: (os.rename(path, path + ".x"), os.rename(path + ".x", path))[0],
            "link": lambda path: os.link(path, path + ".link"),
            "user attribute": lambda path: os.setxattr(path, "user.x", b"1"),
            "list": lambda path: os.setxattr(path, ACCESS, acl(7, 5, 5, 5, users=[(THIRD, 5)])),
            "chown": lambda path: os.chown(path, OTHER, -1), "chown of nothing": lambda path: os.chown(path, -1, -1),
            "chgrp": lambda path: os.chown(path, -1, THIRD), "chgrp to the same": lambda path: os.chown(path, -1, GROUP),
            "take it away": lambda path: os.removexattr(path, CAPABILITY),
            "set it": lambda path: os.setxattr(path, CAPABILITY, NET_RAW)}
    users = {"owner": (OWNER, None), "root": (ROOT, None), "owner with SETFCAP": (OWNER, [SETFCAP])}
    for who, (user, capabilities) in users.items():
        for name, act in acts.items():
            folder = p.dir(f"{who}.{name}".replace(" ", "_"), 0o777)
            path = p.file(os.path.basename(folder) + "/f", b"data", 0o777, (USER, GROUP))
            os.setxattr(path, CAPABILITY, NET_RAW)
            done = run_as(user, outcome, act, path, capabilities=capabilities)
            p.note(f"{name} by {who}", (done, capability_of(path), permissions_of(path)))


def a_capability_that_is_set_after_a_write_stays(p):
    path = p.file("f", mode=0o777)
    fd = os.open(path, os.O_RDWR)
    os.write(fd, b"x" * 100000)
    os.setxattr(path, CAPABILITY, NET_RAW)
    os.fsync(fd)
    p.note("after fsync", capability_of(path))
    os.close(fd)
    p.note("after close", capability_of(f"{p.other}/f"))
    fd = os.open(path, os.O_RDWR)
    os.write(fd, b"y" * 100000)
    os.chmod(path, 0o6755)
    os.fsync(fd)
    os.close(fd)
    p.note("set-ids that are set after a write", permissions_of(path))


def set_ids_and_owners(p):
    for mode in (0o6755, 0o2644, 0o6777, 0o2744):
        for who, (user, capabilities) in {**WRITERS, "owner in no group": ((USER, THIRD, []), None),
                                          "stranger with CHOWN": (STRANGER, [CHOWN])}.items():
            for uid, gid in ((-1, -1), (USER, -1), (-1, GROUP), (-1, THIRD), (OTHER, THIRD)):
                path = p.file("f", mode=mode, owner=(USER, GROUP))
                done = run_as(user, outcome, os.chown, path, uid, gid, capabilities=capabilities)
                st = os.stat(path)
                p.note(f"{mode:o} to {uid}:{gid} by {who}", (done, st.st_uid, st.st_gid, permissions_of(path)))
                os.unlink(path)


def rich_folder(p, name, owner, file_owner):
    """Everything that rights decide about, of others."""
    top = p.dir(name, 0o777)
    for folder, mode in (("closed", 0o700), ("sticky", 0o1777), ("run_as", 0o2777), ("tagged", 0o1777)):
        p.dir(f"{name}/{folder}", mode, owner)
    for folder in ("closed", "sticky"):
        for file in ("f", "g", "h"):
            p.file(f"{name}/{folder}/{file}", b"data", 0o600, file_owner)
    p.dir(f"{name}/closed/sub", 0o700, file_owner)
    for number in range(12):
        p.file(f"{name}/{number}", b"data", 0o600, file_owner)
    p.file(f"{name}/program", b"#!/bin/true\n", 0o700, file_owner)
    p.file(f"{name}/list", b"data", 0o600, file_owner)
    os.setxattr(f"{top}/list", ACCESS, acl(6, 0, 0, 4, users=[(THIRD, 4)]))
    return top


def attempts(top, ids):
    """Everything that somebody may be allowed; `ids`: uid and gid to give away to."""
    uid, gid = ids
    found = {}

    def attempt(label, function, *args, **kwargs):
        found[label] = outcome(function, *args, **kwargs)

    def shown(path):
        st = os.lstat(path)
        return st.st_uid, st.st_gid, oct(st.st_mode)

    attempt("list a closed one", lambda: sorted(os.listdir(f"{top}/closed")))
    attempt("pass a closed one", lambda: os.stat(f"{top}/closed/f").st_size)
    attempt("read in a closed one", open_and_close, f"{top}/closed/f", os.O_RDONLY)
    attempt("write in a closed one", open_and_close, f"{top}/closed/f", os.O_RDWR)
    attempt("make in a closed one", open_and_close, f"{top}/closed/new", os.O_CREAT | os.O_WRONLY)
    attempt("mkdir in a closed one", os.mkdir, f"{top}/closed/made")
    attempt("rename in a closed one", os.rename, f"{top}/closed/g", f"{top}/closed/moved")
    attempt("unlink in a closed one", os.unlink, f"{top}/closed/h")
    attempt("move a directory out of it", os.rename, f"{top}/closed/sub", f"{top}/sub")
    attempt("unnamed file", open_and_close, f"{top}/closed", os.O_TMPFILE | os.O_WRONLY)
    attempt("unlink in a sticky one", os.unlink, f"{top}/sticky/f")
    attempt("rename in a sticky one", os.rename, f"{top}/sticky/g", f"{top}/sticky/moved")
    attempt("read", open_and_close, f"{top}/0", os.O_RDONLY)
    attempt("write", open_and_close, f"{top}/0", os.O_WRONLY)
    attempt("truncate", os.truncate, f"{top}/0", 2)
    attempt("read by a list", open_and_close, f"{top}/list", os.O_RDONLY)
    attempt("run", os.access, f"{top}/program", os.X_OK, effective_ids=True)
    attempt("chmod", os.chmod, f"{top}/1", 0o644)
    attempt("chmod with set-ids", os.chmod, f"{top}/2", 0o6755)
    attempt("  is", lambda: shown(f"{top}/2"))
    attempt("times now", os.utime, f"{top}/3")
    attempt("exact times", os.utime, f"{top}/3", ns=(1, 2))
    attempt("chown", os.chown, f"{top}/4", uid, gid)
    attempt("  is", lambda: shown(f"{top}/4"))
    attempt("chown of a directory", os.chown, f"{top}/closed", uid, gid)
    attempt("chgrp", os.chown, f"{top}/5", -1, gid)
    attempt("a list", os.setxattr, f"{top}/6", ACCESS, acl(6, 4, 0, 4, users=[(uid, 4)]))
    attempt("user attribute", os.setxattr, f"{top}/7", "user.x", b"1")
    attempt("user attribute of a sticky one", os.setxattr, f"{top}/tagged", "user.x", b"1")
    attempt("trusted attribute", os.setxattr, f"{top}/8", "trusted.x", b"1")
    attempt("security attribute", os.setxattr, f"{top}/8", "security.x", b"1")
    attempt("capability", os.setxattr, f"{top}/9", CAPABILITY, NET_RAW)
    attempt("  is", capability_of, f"{top}/9")
    attempt("no capability", os.removexattr, f"{top}/9", CAPABILITY)
    attempt("device", os.mknod, f"{top}/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    attempt("whiteout", os.mknod, f"{top}/whiteout", stat.S_IFCHR | 0o666, 0)
    attempt("make a set-gid program", open_and_close, f"{top}/run_as/f", os.O_CREAT | os.O_WRONLY, 0o2775)
    attempt("  is", lambda: shown(f"{top}/run_as/f"))
    attempt("mknod of a set-gid program", os.mknod, f"{top}/run_as/n", stat.S_IFREG | 0o2775)
    attempt("  is", lambda: shown(f"{top}/run_as/n"))
    attempt("mkdir", os.mkdir, f"{top}/run_as/d")
    attempt("  is", lambda: shown(f"{top}/run_as/d"))
    attempt("link", os.link, f"{top}/10", f"{top}/link")
    return found


def users_with_capabilities(p):
    sets = [[], *([one] for one in NAMES), [DAC_OVERRIDE, FOWNER, CHOWN, FSETID], [DAC_READ_SEARCH, FOWNER]]
    for some in sets:
        label = "+".join(NAMES[one] for one in some) or "none"
        top = rich_folder(p, label, (USER, GROUP), (USER, GROUP))
        for name, result in run_as(STRANGER, attempts, top, (THIRD, THIRD), capabilities=some).items():
            p.note(f"{label}: {name}", result)


def root_without_capabilities(p):
    for some in ([], [CHOWN], [FOWNER, DAC_OVERRIDE], [DAC_READ_SEARCH]):
        label = "root with " + ("+".join(NAMES[one] for one in some) or "none")
        top = rich_folder(p, label.replace(" ", "_"), (USER, GROUP), (USER, GROUP))
        for name, result in run_as(ROOT, attempts, top, (THIRD, THIRD), capabilities=some).items():
            p.note(f"{label}: {name}", result)


def capabilities_that_come_and_go(p):
    """Within the second for which anybody may remember a process."""
    folder = p.dir("closed", 0o700, (USER, GROUP))
    p.file("closed/f", b"data", 0o600, (USER, GROUP))
    p.file("g", b"data", 0o600, (USER, GROUP))
    mine = p.file("mine", b"data", 0o644, (OTHER, GROUP))

    def body(child):
        become_with(STRANGER, [], [DAC_OVERRIDE, FOWNER, FSETID])
        seen = []
        for effective in ([], [DAC_OVERRIDE], [], [FOWNER], [], [DAC_OVERRIDE, FOWNER, FSETID], []):
            set_capabilities(effective, [DAC_OVERRIDE, FOWNER, FSETID])
            seen.append([outcome(open_and_close, folder + "/f", os.O_RDWR), outcome(os.chmod, p / "g", 0o600),
                         outcome(lambda: sorted(os.listdir(folder))), outcome(os.chmod, mine, 0o2755),
                         permissions_of(mine)])
        child.send(seen)
    with Child(body) as child:
        p.note("came and went", child.receive())


def groups_that_come(p):
    folder = p.dir("closed", 0o770, (USER, GROUP))
    p.file("closed/f", b"data", 0o660, (USER, GROUP))

    def body(child):
        become_with((OTHER, THIRD, []), [], [6])  # CAP_SETGID
        seen = []
        for groups in ([], [GROUP], [THIRD], [GROUP, THIRD]):
            set_capabilities([6])
            os.setgroups(groups)
            set_capabilities([], [6])
            seen.append((outcome(open_and_close, folder + "/f", os.O_RDWR), outcome(open_and_close, folder + "/new",
                                                                                   os.O_CREAT | os.O_WRONLY)))
        child.send(seen)
    with Child(body) as child:
        p.note("came and went", child.receive())


FIRST, COUNT = 100_000, 65_536  # what the namespace has of the users and groups out here


class Namespace:
    """A child in a user namespace of its own, whose root it is; `body(child)` runs there."""

    def __init__(self, body):
        def inside(child):
            checked(libc.unshare(CLONE_NEWUSER))
            child.ask("unshared")
            os.setgroups([])
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
            body(child)
        self.child = Child(inside, (FIRST + 50_000, FIRST + 50_000, []))

    def __enter__(self):
        self.child.receive()
        for kind in ("uid_map", "gid_map"):
            with open(f"/proc/{self.child.pid}/{kind}", "w") as file:
                file.write(f"0 {FIRST} {COUNT}")
        self.child.send("mapped")
        return self.child

    def __exit__(self, *_):
        self.child.__exit__()


def in_namespace(function, *args, user=None):
    def body(child):
        if user is not None:
            become(user)
        child.send(function(*args))
    with Namespace(body) as child:
        return child.receive()


def root_of_a_namespace(p):
    for label, owner in (("of its root", FIRST), ("of a user of it", FIRST + 1000), ("of nobody in it", 5000)):
        top = rich_folder(p, label.replace(" ", "_"), (owner, owner), (owner, owner))
        os.chown(top, FIRST, FIRST)
        for name, result in in_namespace(attempts, top, (1000, 1000)).items():
            p.note(f"{label}: {name}", result)


def half_of_a_file_is_in_the_namespace(p):
    """Capable is only who has both its owner and its group."""
    for label, owner in (("group outside", (FIRST + 7, 5000)), ("owner outside", (5000, FIRST + 7))):
        top = rich_folder(p, label.replace(" ", "_"), owner, owner)
        for name, result in in_namespace(attempts, top, (1000, 1000)).items():
            p.note(f"{label}: {name}", result)


def a_user_of_a_namespace(p):
    top = rich_folder(p, "top", (FIRST + 1000, FIRST + 1000), (FIRST + 2000, FIRST + 2000))
    for name, result in in_namespace(attempts, top, (1000, 1000), user=(1000, 1000, [2000])).items():
        p.note(name, result)


def unpacking_in_a_namespace(p):
    """What a rootless container does to the files of an image."""
    top = p.dir("image", 0o755, (FIRST, FIRST))

    def unpack():
        os.umask(0)
        facts = {}
        for name, mode, uid, gid in (("plain", 0o644, 0, 0), ("daemon", 0o600, 33, 33), ("su", 0o4755, 0, 0),
                                     ("wall", 0o2755, 0, 5), ("secret", 0o000, 1000, 1000)):
            path = f"{top}/{name}"
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.write(fd, b"content")
            facts[name] = [outcome(os.fchown, fd, uid, gid), outcome(os.fchmod, fd, mode)]
            os.close(fd)
            facts[name] += [outcome(os.lchown, path, uid, gid), outcome(os.chmod, path, mode),
                            outcome(os.utime, path, ns=(5, 6)), outcome(os.setxattr, path, CAPABILITY, NET_RAW)]
            st = os.stat(path)
            facts[name] += [st.st_uid, st.st_gid, oct(st.st_mode), st.st_mtime_ns, capability_of(path)]
            with open(path, "rb") as file:
                facts[name].append(file.read())
        os.symlink("plain", f"{top}/link")
        facts["link"] = outcome(os.lchown, f"{top}/link", 12, 13)
        os.mkdir(f"{top}/dir", 0o700)
        facts["dir"] = [outcome(os.chown, f"{top}/dir", 1000, 1000), outcome(os.mkdir, f"{top}/dir/sub"),
                        outcome(open_and_close, f"{top}/dir/f", os.O_CREAT | os.O_WRONLY)]
        return facts

    for name, result in in_namespace(unpack).items():
        p.note(name, result)
    for name in sorted(os.listdir(top)):
        st = os.lstat(f"{p.other}/image/{name}")
        p.note(f"{name} from outside", (st.st_uid, st.st_gid, oct(st.st_mode)))


CASES = (changed_through_what_another_opened, a_chown_of_nothing_beside_a_writer, lists_and_set_gid,
         given_away_with_a_capability, set_ids_fall_6777, set_ids_fall_2666, set_ids_fall_4666, capabilities_fall,
         both_fall, what_keeps_a_capability, a_capability_that_is_set_after_a_write_stays, set_ids_and_owners,
         users_with_capabilities, root_without_capabilities, capabilities_that_come_and_go, groups_that_come,
         root_of_a_namespace, half_of_a_file_is_in_the_namespace, a_user_of_a_namespace, unpacking_in_a_namespace)
