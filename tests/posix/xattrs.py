"""Extended attributes of every namespace, and access control lists."""
import os
import stat
import struct

from attributes import WHO, mode_of
from harness import (ACCESS, ACL_GROUP_OBJ, ACL_OTHER, ACL_USER_OBJ, DEFAULT, GROUP, NO_ID, OTHER,
                     THIRD, USER, acl, as_user, get_acl, open_and_close, outcome, pack_acl)


def plain_attributes(p):
    path = p.file("f")
    p.call("get absent", os.getxattr, path, "user.x")
    p.call("remove absent", os.removexattr, path, "user.x")
    p.call("replace absent", os.setxattr, path, "user.x", b"1", os.XATTR_REPLACE)
    p.call("create", os.setxattr, path, "user.x", b"1", os.XATTR_CREATE)
    p.call("create again", os.setxattr, path, "user.x", b"2", os.XATTR_CREATE)
    p.call("replace", os.setxattr, path, "user.x", b"22", os.XATTR_REPLACE)
    p.call("get", os.getxattr, path, "user.x")
    p.call("empty value", os.setxattr, path, "user.empty", b"")
    p.call("get empty", os.getxattr, path, "user.empty")
    p.call("list", lambda: sorted(os.listxattr(path)))
    p.call("name of 255", os.setxattr, path, "user." + "n" * 250, b"1")
    p.call("name of 256", os.setxattr, path, "user." + "n" * 251, b"1")
    p.call("no name", os.setxattr, path, "user.", b"1")
    p.call("no namespace", os.setxattr, path, "plain", b"1")
    p.call("unknown namespace", os.setxattr, path, "other.x", b"1")
    p.call("get of an unknown namespace", os.getxattr, path, "other.x")
    p.call("value of 64 KiB and 1", os.setxattr, path, "user.big", b"1" * 65537)
    p.call("2000 bytes", os.setxattr, path, "user.big", b"1" * 2000)
    p.note("length", len(os.getxattr(path, "user.big")))
    p.call("remove", os.removexattr, path, "user.x")
    p.call("on an open unlinked file", on_unlinked, p)


def on_unlinked(p):
    fd = os.open(p.file("gone"), os.O_RDWR)
    os.unlink(p / "gone")
    os.setxattr(fd, "user.x", b"1")
    value = os.getxattr(fd, "user.x")
    os.close(fd)
    return value


def namespaces_by_kind_and_user(p):
    top = p.dir("top", 0o777)
    p.file("top/file", owner=(USER, GROUP), mode=0o644)
    for name, mode in (("dir", 0o755), ("sticky", 0o1777)):
        p.dir(f"top/{name}", owner=(USER, GROUP), mode=mode)
    os.symlink("file", f"{top}/link")
    os.lchown(f"{top}/link", USER, GROUP)
    os.mkfifo(f"{top}/fifo")
    os.chown(f"{top}/fifo", USER, GROUP)
    for kind in ("file", "dir", "sticky", "link", "fifo"):
        path = f"{top}/{kind}"
        for name in ("user.x", "trusted.x", "security.x", "system.x"):
            for who, user in WHO.items():
                p.note(f"{kind} {name} {who}", [
                    as_user(user, outcome, os.setxattr, path, name, b"1", follow_symlinks=False),
                    as_user(user, outcome, os.getxattr, path, name, follow_symlinks=False),
                    as_user(user, outcome, lambda: sorted(os.listxattr(path, follow_symlinks=False))),
                    as_user(user, outcome, os.removexattr, path, name, follow_symlinks=False)])


def capability_falls(p):
    value = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
    for name, act in (("write", lambda path: os.write(os.open(path, os.O_WRONLY), b"x")),
                      ("truncate", lambda path: os.truncate(path, 1)), ("chown", lambda path: os.chown(path, USER, GROUP)),
                      ("chmod", lambda path: os.chmod(path, 0o700)), ("read", lambda path: os.stat(path))):
        path = p.file("f", b"data")
        os.setxattr(path, "security.capability", value)
        act(path)
        p.call(name, os.getxattr, path, "security.capability")
    p.call("a broken one", os.setxattr, path, "security.capability", b"xx")


def acl_errors(p):
    path, folder = p.file("f"), p.dir("d")
    os.symlink("f", p / "l")
    p.call("absent", get_acl, path)
    p.call("remove absent", os.removexattr, path, ACCESS)
    p.call("default of a file", os.setxattr, path, DEFAULT, acl(7, 5, 5))
    p.call("default of a file, get", os.getxattr, path, DEFAULT)
    p.call("default of a file, remove", os.removexattr, path, DEFAULT)
    p.call("of a link", os.setxattr, p / "l", ACCESS, acl(7, 5, 5), follow_symlinks=False)
    for label, value in (
            ("bad version", struct.pack("<I", 3)), ("no mask", acl(7, 5, 5, users=[(USER, 7)])),
            ("no other", pack_acl((ACL_USER_OBJ, 7, NO_ID), (ACL_GROUP_OBJ, 7, NO_ID))),
            ("twice", acl(7, 5, 5, 7, users=[(USER, 7), (USER, 7)])), ("bad permissions", acl(15, 5, 5)),
            ("unknown tag", pack_acl((3, 7, NO_ID))), ("odd length", acl(7, 5, 5) + b"x"), ("short", b"\2\0"),
            ("wrong order", pack_acl((ACL_OTHER, 5, NO_ID), (ACL_USER_OBJ, 7, NO_ID), (ACL_GROUP_OBJ, 5, NO_ID)))):
        p.call(label, os.setxattr, path, ACCESS, value)
        p.call(label + " as default", os.setxattr, folder, DEFAULT, value)
    p.note("unharmed", (mode_of(path), outcome(get_acl, path)))
    p.call("empty as default", os.setxattr, folder, DEFAULT, struct.pack("<I", 2))
    p.call("empty", os.setxattr, path, ACCESS, struct.pack("<I", 2))


def acl_and_mode(p):
    path, folder = p.file("f", mode=0o640), p.dir("d", mode=0o750)
    p.call("minimal", os.setxattr, path, ACCESS, acl(7, 4, 1))
    p.note("is a mode", (mode_of(path), outcome(get_acl, path), os.listxattr(path)))
    p.call("with a user", os.setxattr, path, ACCESS, acl(6, 4, 0, 6, users=[(USER, 7)]))
    p.note("mask is shown", (mode_of(path), get_acl(path), os.listxattr(path)))
    os.chmod(path, 0o705)
    p.note("chmod changes the mask", (mode_of(path), get_acl(path)))
    os.chmod(path, 0o2775)
    p.note("set-gid", (mode_of(path), get_acl(path)))
    p.call("create only", os.setxattr, path, ACCESS, acl(7, 4, 1), os.XATTR_CREATE)
    p.call("removed", os.removexattr, path, ACCESS)
    p.note("left", (mode_of(path), outcome(get_acl, path)))
    p.call("default", os.setxattr, folder, DEFAULT, acl(7, 5, 0, 5, users=[(USER, 7)]))
    p.note("mode stays", (mode_of(folder), outcome(get_acl, folder), get_acl(folder, DEFAULT), os.listxattr(folder)))
    os.chmod(folder, 0o777)
    p.note("chmod leaves the default", get_acl(folder, DEFAULT))
    p.call("remove default", os.removexattr, folder, DEFAULT)
    p.call("remove default again", os.removexattr, folder, DEFAULT)


def acl_is_inherited(p):
    folder = p.dir("d")
    old = os.umask(0o077)
    try:
        for label, default in (("minimal", acl(7, 5, 1)), ("extended", acl(7, 5, 4, 7, users=[(USER, 6)],
                                                                            groups=[(GROUP, 4)]))):
            os.setxattr(folder, DEFAULT, default)
            for name, make in (("file", lambda n: open_and_close(n, os.O_CREAT | os.O_WRONLY, 0o666)),
                               ("tight", lambda n: open_and_close(n, os.O_CREAT | os.O_WRONLY, 0o600)),
                               ("dir", lambda n: os.mkdir(n, 0o777)), ("fifo", lambda n: os.mkfifo(n, 0o666)),
                               ("node", lambda n: os.mknod(n, stat.S_IFREG | 0o640)),
                               ("link", lambda n: os.symlink("x", n))):
                path = f"{folder}/{label}.{name}"
                make(path)
                if name == "link":
                    p.note(f"{label} {name}", mode_of(path))
                    continue
                p.note(f"{label} {name}", (mode_of(path), outcome(get_acl, path), outcome(get_acl, path, DEFAULT)))
    finally:
        os.umask(old)


def acl_is_enforced(p):
    path = p.file("f", b"x", owner=(0, 0), mode=0o600)
    folder = p.dir("d", 0o700)
    p.file("d/f", mode=0o666)
    rules = {"a user": acl(6, 0, 0, 7, users=[(OTHER, 6)]), "a masked user": acl(6, 0, 0, 4, users=[(OTHER, 7)]),
             "a refused user": acl(6, 6, 6, 7, users=[(OTHER, 0)]), "a group": acl(6, 0, 0, 7, groups=[(GROUP, 7)]),
             "a masked group": acl(6, 0, 0, 1, groups=[(GROUP, 7)]),
             "a refused group": acl(6, 7, 7, 7, groups=[(GROUP, 0)]),
             "two groups": acl(6, 0, 0, 7, groups=[(GROUP, 4), (THIRD, 2)]), "the rest": acl(6, 0, 6, 0, users=[(USER, 0)])}
    for label, rule in rules.items():
        os.setxattr(path, ACCESS, rule)
        os.setxattr(folder, ACCESS, rule)
        for who, user in WHO.items():
            found = [as_user(user, outcome, open_and_close, path, flags)
                     for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)]
            found += [as_user(user, os.access, path, mask) for mask in (os.R_OK, os.W_OK, os.X_OK)]
            found += [as_user(user, outcome, open_and_close, folder + "/f", os.O_RDONLY),
                      as_user(user, outcome, lambda: sorted(os.listdir(folder))),
                      as_user(user, outcome, os.mkdir, f"{folder}/made.{who}"),
                      as_user(user, outcome, os.rmdir, f"{folder}/made.{who}")]
            p.note(f"{label} {who}", found)


def acl_by_others(p):
    path = p.file("f", owner=(USER, GROUP), mode=0o2750)
    folder = p.dir("d", owner=(USER, THIRD), mode=0o2750)
    for who, user in WHO.items():
        p.call_as(f"set by {who}", user, os.setxattr, path, ACCESS, acl(7, 5, 0, 7, users=[(THIRD, 6)]))
        p.note(f"set by {who} is", (mode_of(path), outcome(get_acl, path)))
        p.call_as(f"default by {who}", user, os.setxattr, folder, DEFAULT, acl(7, 5, 0))
        p.call_as(f"access by {who}", user, os.setxattr, folder, ACCESS, acl(7, 5, 0, 5, users=[(THIRD, 6)]))
        p.note(f"access by {who} is", mode_of(folder))
        p.call_as(f"read by {who}", user, get_acl, path)
        p.call_as(f"removed by {who}", user, os.removexattr, path, ACCESS)


def acl_through_both(p):
    folder = p.dir("d", 0o700)
    p.file("d/f", mode=0o644)
    elsewhere = f"{p.other}/d"
    user = WHO["stranger"]
    p.call_as("closed", user, open_and_close, elsewhere + "/f", os.O_RDONLY)
    os.setxattr(folder, ACCESS, acl(7, 0, 0, 5, users=[(OTHER, 5)]))
    p.call_as("opened", user, open_and_close, elsewhere + "/f", os.O_RDONLY)
    p.note("shown there", outcome(get_acl, elsewhere))
    os.setxattr(elsewhere, ACCESS, acl(7, 0, 5, 5, users=[(OTHER, 0)]))
    p.call_as("closed again", user, open_and_close, folder + "/f", os.O_RDONLY)
    os.removexattr(folder, ACCESS)
    p.call_as("by mode again", user, open_and_close, elsewhere + "/f", os.O_RDONLY)


def set_elsewhere(p):
    """What is asked for again and again, as by kernels before each write, is there as soon as another mount has set it."""
    capability = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
    path, elsewhere = p.file("f", b"data"), f"{p.other}/f"
    for how, flags in (("closed", None), ("read", os.O_RDONLY), ("written", os.O_RDWR)):
        fd = None if flags is None else os.open(path, flags)
        for name, value in (("security.capability", capability), (ACCESS, acl(6, 4, 4, 6, users=[(USER, 4)]))):
            for round_ in range(3):
                if how == "written":
                    os.pwrite(fd, b"data", 0)
                p.call(f"{how}: {name} {round_}: none", os.getxattr, path, name)
                os.setxattr(elsewhere, name, value)
                p.call(f"{how}: {name} {round_}: set", os.getxattr, path, name)
                p.note(f"{how}: {name} {round_}: listed", name in os.listxattr(path))
                if how == "written" and name != ACCESS:
                    os.pwrite(fd, b"gone", 0)
                    p.call(f"{how}: {name} {round_}: lost by a write", os.getxattr, elsewhere, name)
                else:
                    os.removexattr(elsewhere, name)
        if fd is not None:
            os.close(fd)


def acl_set_elsewhere(p):
    """Nobody has the file or directory open, and its lists were asked for before another mount sets, changes and removes them."""
    user = WHO["stranger"]
    for name, make in (("f", lambda: p.file("f", b"data", mode=0o640)), ("d", lambda: p.dir("d", 0o750))):
        make()
        elsewhere = f"{p.other}/{name}"
        kinds = (ACCESS, DEFAULT) if name == "d" else (ACCESS,)
        for round_ in range(6):
            def shown(what, name=name, kinds=kinds, round_=round_):
                p.note(f"{name} {round_} {what}", [outcome(get_acl, p / name, kind) for kind in kinds])
                if round_ % 2 != 0:  # who looks at the attributes has the kernel ask for all of it
                    p.note(f"{name} {round_} {what}, access", (as_user(user, os.access, p / name, os.R_OK), mode_of(p / name)))
            shown("none")
            for kind in kinds:
                os.setxattr(elsewhere, kind, acl(6, 4, 0, 6, users=[(OTHER, 4)]))
            shown("set")
            for kind in kinds:
                os.setxattr(elsewhere, kind, acl(6, 4, 0, 4, users=[(OTHER, 0)]))
            shown("changed")
            for kind in kinds:
                os.removexattr(elsewhere, kind)


CASES = (plain_attributes, namespaces_by_kind_and_user, capability_falls, acl_errors, acl_and_mode, acl_is_inherited,
         acl_is_enforced, acl_by_others, acl_through_both, set_elsewhere, acl_set_elsewhere)
