"""Set-id bits and file capabilities after every kind of change by everybody."""
import ctypes
import mmap
import os

from changes import ACTS
from harness import ACCESS, GROUP, OTHER, THIRD, USER, Child, acl, outcome
from users import (CAPABILITY, CHOWN, DAC_OVERRIDE, FOWNER, FSETID, MEMBER, NET_RAW, OWNER, ROOT, SETFCAP, STRANGER,
                   capability_of, checked, libc, permissions_of, run_as)

WRITERS = {
    "owner": (OWNER, None), "member": (MEMBER, None), "stranger": (STRANGER, None), "root": (ROOT, None),
    "root without FSETID": (ROOT, [CHOWN, DAC_OVERRIDE, FOWNER]), "stranger with FSETID": (STRANGER, [FSETID]),
}


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


CASES = (changed_through_what_another_opened, a_chown_of_nothing_beside_a_writer, lists_and_set_gid,
         given_away_with_a_capability, set_ids_fall_6777, set_ids_fall_2666, set_ids_fall_4666, capabilities_fall,
         both_fall, what_keeps_a_capability, a_capability_that_is_set_after_a_write_stays, set_ids_and_owners)
