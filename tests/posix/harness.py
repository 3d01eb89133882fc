"""What the cases share: noting what happens, other users, other processes.

A case takes a Place and notes facts: `place.note(label, value)`, or `place.call(label, function, ...)`, which notes the
result or the errno. It expects nothing: the notes of the same case on a local filesystem are what is expected.
"""
import errno
import fcntl
import os
import pickle
import select
import signal
import struct
import time
import traceback

USER = 64001
GROUP = 64002
OTHER = 64003
THIRD = 64004
PATIENCE = 60
CLOCK_REALTIME_COARSE = 5  # which Python has no name for
BROKE_OFF = "broke off"


class Place:
    """An empty directory, seen through one mount (`top`) and through another (`other`, maybe the same)."""

    def __init__(self, top, other):
        self.top = top
        self.other = other
        self.notes = {}

    def __truediv__(self, name):
        return f"{self.top}/{name}"

    def note(self, label, value):
        while label in self.notes:
            label += "'"
        self.notes[label] = value

    def call(self, label, function, *args, **kwargs):
        """Notes what it returns (numbers of descriptors do not matter), or the errno; returns the former."""
        value = None
        try:
            value = function(*args, **kwargs)
            shown = "fd" if function is os.open else value
        except OSError as error:
            shown = errno.errorcode.get(error.errno, error.errno)
        self.note(label, "ok" if shown is None else shown)
        return value

    def call_as(self, label, user, function, *args, **kwargs):
        """The same in another process, as `user`: (uid, gid, groups)."""
        self.note(label, as_user(user, outcome, function, *args, **kwargs))

    def tick(self):
        """Lets the coarse clock move on, which kernels stamp files with."""
        now = time.clock_gettime_ns(time.CLOCK_REALTIME)
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) <= now:
            time.sleep(0.001)

    def file(self, name, data=b"", mode=None, owner=None):
        path = f"{self.top}/{name}"
        with open(path, "wb") as file:
            file.write(data)
        if owner is not None:
            os.chown(path, *owner)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def dir(self, name, mode=0o755, owner=None):
        path = f"{self.top}/{name}"
        os.mkdir(path)
        if owner is not None:
            os.chown(path, *owner)
        os.chmod(path, mode)
        return path


def outcome(function, *args, **kwargs):
    try:
        value = function(*args, **kwargs)
        return "ok" if value is None else value
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)


def open_and_close(path, flags, mode=0o666):
    os.close(os.open(path, flags, mode))


def become(user):
    uid, gid, groups = user
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def as_user(user, function, *args, **kwargs):
    """Runs it in a child that has become `user`; returns what it returned."""
    with Child(lambda child: child.send(function(*args, **kwargs)), user) as child:
        return child.receive()


class Child:
    """A process that runs `body(child)` and talks in pickles; ends with the `with` block."""

    _ours = set()  # pipe ends of this process, which children must not keep open

    def __init__(self, body, user=None):
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(to_child)
            os.close(from_child)
            Child._ours |= {self._to, self._from}
            return
        code = 1
        try:
            for fd in Child._ours | {self._to, self._from}:
                os.close(fd)
            Child._ours = set()
            self._to, self._from = from_child, to_child
            signal.alarm(PATIENCE)
            if user is not None:
                become(user)
            body(self)
            code = 0
        except EOFError:
            code = 0
        except BaseException:  # noqa: BLE001 - a forked child must never return into its parent's code
            traceback.print_exc()
        finally:
            os._exit(code)

    def send(self, value):
        data = pickle.dumps(value)
        os.write(self._to, struct.pack("<I", len(data)) + data)

    def ready(self, seconds):
        return bool(select.select([self._from], [], [], seconds)[0])

    def receive(self):
        if not self.ready(PATIENCE):
            raise TimeoutError("a child of the test is silent")
        return pickle.loads(self._read(struct.unpack("<I", self._read(4))[0]))

    def _read(self, size):
        data = b""
        while len(data) < size:
            more = os.read(self._from, size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def ask(self, value):
        self.send(value)
        return self.receive()

    def serve(self, function):
        """Child's side: answers each value with function(*value) or its errno, until the parent goes."""
        while True:
            self.send(outcome(function, *self.receive()))

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self):
        if self.pid:
            os.waitpid(self.pid, 0)
            self.pid = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in (self._to, self._from):
            os.close(fd)
            Child._ours.discard(fd)
        self.wait()


F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38


def lock_fields(kind, start, length, whence=os.SEEK_SET):
    return struct.pack("hhqqi4x", kind, whence, start, length, 0)


def set_lock(fd, kind, start=0, length=0, command=fcntl.F_SETLK, whence=os.SEEK_SET):
    fcntl.fcntl(fd, command, lock_fields(kind, start, length, whence))


def get_lock(fd, kind, start=0, length=0, command=fcntl.F_GETLK):
    """None, or (kind, start, length) of the lock in the way."""
    found, _, at, size, _ = struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, lock_fields(kind, start, length)))
    return None if found == fcntl.F_UNLCK else (found, at, size)


# Access control lists as the kernel takes them: (tag, permissions, id).
ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ, ACL_GROUP, ACL_MASK, ACL_OTHER = 1, 2, 4, 8, 16, 32
NO_ID = 0xFFFFFFFF
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def pack_acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def get_acl(path, name=ACCESS):
    data = os.getxattr(path, name)
    return [struct.unpack_from("<HHI", data, at) for at in range(4, len(data), 8)]


def acl(user_obj, group_obj, other, mask=None, users=(), groups=()):
    entries = [(ACL_USER_OBJ, user_obj, NO_ID)]
    entries += [(ACL_USER, perm, uid) for uid, perm in users]
    entries += [(ACL_GROUP_OBJ, group_obj, NO_ID)]
    entries += [(ACL_GROUP, perm, gid) for gid, perm in groups]
    if mask is not None:
        entries += [(ACL_MASK, mask, NO_ID)]
    return pack_acl(*entries, (ACL_OTHER, other, NO_ID))
