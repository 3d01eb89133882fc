"""What users may who have capabilities, root who has none, and root and users of a user namespace."""
import os
import stat

from harness import ACCESS, GROUP, OTHER, THIRD, USER, Child, acl, become, open_and_close, outcome
from users import (CAPABILITY, CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, NAMES, NET_RAW, ROOT, STRANGER,
                   become_with, capability_of, checked, libc, permissions_of, run_as, set_capabilities)

CLONE_NEWUSER = 0x10000000


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


CASES = (users_with_capabilities, root_without_capabilities, capabilities_that_come_and_go, groups_that_come,
         root_of_a_namespace, half_of_a_file_is_in_the_namespace, a_user_of_a_namespace, unpacking_in_a_namespace)
