"""Names that are removed or replaced while others are on their way through them."""
import collections
import errno
import os
import stat
import threading


def by_number(descriptor):
    """The path that leads to what an O_PATH descriptor holds, whatever became of its name."""
    return f"/proc/self/fd/{descriptor}"


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def note_held(p, kind, held):
    p.call(f"{kind}: links", lambda: os.fstat(held).st_nlink)
    p.call(f"{kind}: type", lambda: stat.S_IFMT(os.fstat(held).st_mode))
    if kind.startswith("link"):
        p.call(f"{kind}: target", lambda: os.readlink("", dir_fd=held))
        return
    p.call(f"{kind}: chmod", os.chmod, by_number(held), 0o700)
    p.call(f"{kind}: mode", lambda: stat.S_IMODE(os.fstat(held).st_mode))
    p.call(f"{kind}: attribute", os.setxattr, by_number(held), "user.note", b"x")
    p.call(f"{kind}: attributes", os.listxattr, by_number(held))
    if kind.startswith("dir"):
        p.call(f"{kind}: listed", os.listdir, by_number(held))
        p.call(f"{kind}: made in it", os.mkdir, by_number(held) + "/x")
        p.call(f"{kind}: looked up in it", os.stat, by_number(held) + "/x")
        return
    p.call(f"{kind}: linked", os.link, by_number(held), p / "again", follow_symlinks=True)
    p.call(f"{kind}: read", contents, by_number(held))
    p.call(f"{kind}: cut", os.truncate, by_number(held), 3)
    p.call(f"{kind}: read once more", contents, by_number(held))


MAKE = {"file": lambda p, name: p.file(name, b"contents"), "link": lambda p, name: os.symlink("target", p / name),
        "dir": lambda p, name: os.mkdir(p / name)}


def looked_up_and_removed(p):
    """Whoever holds what a name led to, as a walk through it does for a moment, finds it when the name is gone."""
    for kind, make in MAKE.items():
        make(p, kind)
        held = os.open(p / kind, os.O_PATH | os.O_NOFOLLOW)
        p.call(f"{kind}: removed", os.rmdir if kind == "dir" else os.unlink, p / kind)
        note_held(p, kind, held)
        os.close(held)


def looked_up_and_replaced(p):
    for kind, make in MAKE.items():
        make(p, kind)
        make(p, "new " + kind)
        held = os.open(p / kind, os.O_PATH | os.O_NOFOLLOW)
        p.call(f"{kind} replaced", os.rename, p / ("new " + kind), p / kind)
        note_held(p, kind + " replaced", held)
        os.close(held)


LOOKS = {"file": (lambda n: os.close(os.open(n, os.O_RDONLY)), os.stat, contents, lambda n: os.listxattr(n)),
         "link": (os.readlink, os.lstat, lambda n: os.stat(n + "/")),
         "dir": (os.listdir, os.stat, lambda n: os.close(os.open(n, os.O_RDONLY)), lambda n: os.access(n + "/.", os.R_OK))}


def replaced_again_and_again(p):
    """A name that always exists is found, always."""
    os.mkdir(p / "target")
    for kind, make in MAKE.items():
        target = "target" if kind == "link" else None
        name = "current " + kind
        make(p, name) if target is None else os.symlink(target, p / name)
        errors, over = collections.Counter(), threading.Event()

        def look(path, looks):
            while not over.is_set():
                for one in looks:
                    try:
                        one(path)
                    except OSError as error:
                        errors[errno.errorcode[error.errno]] += 1

        def replace(number):
            for turn in range(120):
                fresh = f"fresh {number}"
                make(p, fresh) if target is None else os.symlink(target, p / fresh)
                os.rename(p / fresh, p / name)

        readers = [threading.Thread(target=look, args=(f"{top}/{name}", LOOKS[kind])) for top in (p.top, p.top, p.other)]
        writers = [threading.Thread(target=replace, args=(number,)) for number in range(3)]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        over.set()
        for thread in readers:
            thread.join()
        p.note(f"{kind}: errors", dict(errors))


CASES = (looked_up_and_removed, looked_up_and_replaced, replaced_again_and_again)
