#!/usr/bin/env python3
"""What lies on top of a mount: file handles across remounts and restarts, also through an NFS server, and overlayfs
with its upper layer there, which does what it does on ext4."""
import fcntl
import hashlib
import mmap
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys

from weirtest import BIN, REPO, Cluster, Embedded, check, is_mounted, main, run, wait_until

sys.path.insert(0, os.path.join(REPO, "tests", "posix"))
from files import name_it  # noqa: E402
from handles import forget, handle_of, open_handle, path_of, seen  # noqa: E402
from harness import acl, as_user, outcome  # noqa: E402

USER = (64001, 64001, [])
IMAGE = "192M"  # of the ext4 beside the mounts


# -- mounts of both kinds, which can be mounted again

class Shared:
    """A mount of a cluster."""

    def __init__(self, lab, system, name="shared", subtree="", options=()):
        self.lab, self.system, self.options = lab, system, options
        self.mnt = lab.path(name)
        self.log = lab.path(f"{name}.pid")
        os.makedirs(self.mnt)
        with open(f"{system.dir}/endpoint") as file:
            self.source = file.read().strip() + (f":{subtree}" if subtree else "")
        lab.on_exit(self.umount)
        self.mount()

    def mount(self):
        run(f"{BIN}/weirfs", self.source, self.mnt, "-o", ",".join(("allow_other", *self.options)),
            "--pid-file", self.log)
        with open(self.log) as file:
            self.pid = int(file.read())

    def umount(self):
        if is_mounted(self.mnt) and run("umount", self.mnt, ok=None).returncode != 0:
            run("umount", "-l", self.mnt, ok=None)

    def restart_servers(self):
        for daemon in ("osd.0", "mds.0"):
            self.system.dev("kill", daemon)
            self.system.dev("start", daemon)


class Alone(Embedded):
    def __init__(self, lab):
        super().__init__(lab, "-o", "allow_other", "--osd-size", "512MiB")

    def restart_servers(self):
        """They are in the process that serves the mount."""


def small_cluster(lab):
    os.chmod(lab.dir, 0o755)
    return Cluster(lab, mounts=0, osd_size="512MiB")


# -- file handles

def write_file(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def take_handles(top):
    os.makedirs(f"{top}/a/b/c")
    write_file(f"{top}/a/b/file", b"content")
    os.symlink("b/file", f"{top}/a/symlink")
    handles = {name: handle_of(f"{top}/{name}") for name in ("a/b/file", "a/b/c", "a/b", ".", "a/symlink")}
    write_file(f"{top}/a/gone", b"gone")
    handles["gone"] = handle_of(f"{top}/a/gone")
    os.unlink(f"{top}/a/gone")
    return handles


def check_handles(top, handles, when):
    got = seen(top, handles["a/b/file"])
    check(got == ("0o100644", 1, b"content"), f"a file by its handle, {when}: {got}")
    got = seen(top, handles["a/symlink"], os.O_PATH)
    check(got[2] == "b/file", f"a symbolic link by its handle, {when}: {got}")
    for name in ("a/b/c", "a/b", "."):
        got = path_of(top, handles[name])
        check(got == name, f"the directory {name} by its handle, {when}: {got}")
    got = outcome(seen, top, handles["gone"])
    check(got == "ESTALE", f"a removed file by its handle, {when}: {got}")


def handles_outlive(lab, mount):
    handles = take_handles(mount.mnt)
    check_handles(mount.mnt, handles, "at once")
    mount.umount()
    mount.mount()
    check_handles(mount.mnt, handles, "after a remount")
    forget(mount.mnt)
    mount.restart_servers()
    check_handles(mount.mnt, handles, "after a restart of the servers")
    fd = open_handle(mount.mnt, handles["a/b/file"], os.O_RDWR)
    os.pwrite(fd, b"CONTENT", 0)
    os.fsync(fd)
    os.close(fd)
    with open(f"{mount.mnt}/a/b/file", "rb") as file:
        check(file.read() == b"CONTENT", "what was written by a handle is not read by name")


def handles_embedded(lab):
    os.chmod(lab.dir, 0o755)
    handles_outlive(lab, Alone(lab))


def handles_of_a_cluster(lab):
    system = small_cluster(lab)
    mount = Shared(lab, system)
    handles_outlive(lab, mount)
    handles_stay_below_a_subtree(lab, system, mount.mnt)
    handles_outlive_a_death(lab, system)


def check_handles_of_another(top, make_anew):
    """The same names in the same order get the same numbers."""
    handles = take_handles(top)
    numbers = [os.lstat(f"{top}/{name}").st_ino for name in ("a/b/file", "a/b/c", "a/symlink")]
    make_anew()
    take_handles(top)
    check(numbers == [os.lstat(f"{top}/{name}").st_ino for name in ("a/b/file", "a/b/c", "a/symlink")],
          "a new filesystem numbers its files otherwise: this test says nothing")
    for forgotten in (False, True):
        if forgotten:
            forget(top)
        for name, flags in (("a/b/file", os.O_RDONLY), ("a/b/c", os.O_RDONLY), ("a/symlink", os.O_PATH)):
            got = outcome(seen, top, handles[name], flags)
            check(got == "ESTALE", f"{name} by a handle of the filesystem that was there before: {got}")


def handles_of_another_filesystem(lab):
    os.chmod(lab.dir, 0o755)
    alone = Alone(lab)

    def embedded_anew():
        alone.umount()
        shutil.rmtree(alone.dir)
        alone.mount()

    check_handles_of_another(alone.mnt, embedded_anew)
    system = small_cluster(lab)
    mount = Shared(lab, system)

    def cluster_anew():
        mount.umount()
        system.down()
        shutil.rmtree(system.dir)
        with open(f"{small_cluster(lab).dir}/endpoint") as file:
            mount.source = file.read().strip()
        mount.mount()

    check_handles_of_another(mount.mnt, cluster_anew)


def handles_stay_below_a_subtree(lab, system, whole):
    os.makedirs(f"{whole}/tree/in")
    write_file(f"{whole}/tree/in/file", b"inside")
    write_file(f"{whole}/tree/in/moves", b"moves")
    write_file(f"{whole}/outside", b"outside")
    write_file(f"{whole}/both", b"both")
    os.link(f"{whole}/both", f"{whole}/tree/in/both")
    names = ("tree/in/file", "tree/in", "tree/in/moves", "outside", "both", "a", "a/b", "tree")
    handles = {name: handle_of(f"{whole}/{name}") for name in names}
    part = Shared(lab, system, "part", "/tree")
    check(seen(part.mnt, handles["tree/in/file"])[2] == b"inside", "a file below a subtree by its handle")
    check(path_of(part.mnt, handles["tree/in"]) == "in", "a directory below a subtree by its handle")
    check(seen(part.mnt, handles["both"])[2] == b"both", "a file with one name below a subtree by its handle")
    for name in ("outside", "a", "a/b", "tree"):
        got = outcome(seen, part.mnt, handles[name])
        check(got == "ESTALE", f"'{name}', which is not below the subtree, by its handle: {got}")
    os.rename(f"{whole}/tree/in/moves", f"{whole}/moved")
    forget(part.mnt)
    got = outcome(seen, part.mnt, handles["tree/in/moves"])
    check(got == "ESTALE", f"a file that was moved out of a subtree, by its handle: {got}")
    check(sorted(os.listdir(part.mnt)) == ["in"], "the root of the subtree shows something else")
    root = handle_of(part.mnt)
    part.umount()
    part.mount()
    check(path_of(part.mnt, root) == ".", "the root of a subtree by its handle")


def handles_outlive_a_death(lab, system):
    """Of a process that another one follows: with `-o supervise`."""
    held = Shared(lab, system, "held", options=("supervise",))
    os.mkdir(f"{held.mnt}/s")
    handles = take_handles(f"{held.mnt}/s")
    used = os.open(f"{held.mnt}/s/a", os.O_RDONLY)
    forget(held.mnt)

    def server():
        with open(f"/proc/{held.pid}/task/{held.pid}/children") as file:
            children = file.read().split()
        return int(children[0]) if children else None
    before = wait_until(server, "a process to serve")
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: server() not in (None, before), "a successor")
    check_handles(f"{held.mnt}/s", handles, "after the death of the process that served")
    os.close(used)


# -- NFS

GANESHA = """
NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {port}; Bind_addr = 127.0.0.1; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSV4 {{ Graceless = true; RecoveryRoot = "{folder}"; Only_Numeric_Owners = true; UseGetpwnam = true; }}
EXPORT_DEFAULTS {{ Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 4; }}
EXPORT {{ Export_Id = 7; Path = "{path}"; Pseudo = /weir; Filesystem_Id = 7.7; FSAL {{ Name = VFS; }} }}
"""


class NfsServer:
    """Ganesha in user space, which keeps files by their handles."""

    def __init__(self, lab, path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        folder = lab.path("ganesha")
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/conf", "w") as file:
            file.write(GANESHA.format(port=self.port, folder=folder, path=path))
        with open(f"{folder}/out.log", "wb") as out:
            self.process = subprocess.Popen(["ganesha.nfsd", "-F", "-f", f"{folder}/conf", "-L", f"{folder}/nfs.log",
                                             "-p", f"{folder}/pid"], stdout=out, stderr=out)
        lab.on_exit(self.stop)
        wait_until(lambda: self.client("nfs-ls", "").returncode == 0, "the NFS server to serve")

    def client(self, program, path):
        return run(program, f"nfs://127.0.0.1/weir/{path}?version=4&nfsport={self.port}", ok=None, timeout=30)

    def read(self, path):
        done = self.client("nfs-cat", path)
        check(done.returncode == 0, f"'{path}' cannot be read by NFS: {done.stderr.strip()}")
        return done.stdout

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def nfs_server_on(lab, mount):
    os.makedirs(f"{mount.mnt}/a/b")
    write_file(f"{mount.mnt}/a/b/file", b"content")
    server = NfsServer(lab, mount.mnt)
    check(server.read("a/b/file") == "content", "NFS brings something else")
    forget(mount.mnt)
    check(server.read("a/b/file") == "content", "NFS brings something else by a handle that it kept")
    write_file(f"{mount.mnt}/a/b/new", b"new")
    check(server.read("a/b/new") == "new", "NFS does not bring what is new")
    server.stop()


def nfs_server(lab):
    for program in ("ganesha.nfsd", "nfs-cat", "nfs-ls"):
        if shutil.which(program) is None:
            lab.show(f"        skipped: there is no {program} (packages nfs-ganesha-vfs and libnfs-utils)")
            return
    os.chmod(lab.dir, 0o755)
    nfs_server_on(lab, Alone(lab))
    nfs_server_on(lab, Shared(lab, small_cluster(lab)))


# -- overlayfs

class Overlay:
    """One with its upper layer below `top`, seen at a place of its own."""

    def __init__(self, lab, name, top, lower, options):
        self.place = lab.path(f"overlay.{name}")
        self.upper, self.work = f"{top}/{name}.upper", f"{top}/{name}.work"
        for folder in (self.place, self.upper, self.work):
            os.makedirs(folder)
        self.options = f"lowerdir={lower},upperdir={self.upper},workdir={self.work}{options}"
        lab.on_exit(self.umount)
        self.mount()

    def mount(self):
        run("mount", "-t", "overlay", "none", self.place, "-o", self.options)

    def umount(self):
        if is_mounted(self.place) and run("umount", self.place, ok=None).returncode != 0:
            run("umount", "-l", self.place, ok=None)


def make_lower(top):
    """What an image of a container may hold."""
    os.makedirs(f"{top}/etc/deep/deeper")
    os.makedirs(f"{top}/usr/lib")
    os.makedirs(f"{top}/home")
    os.mkdir(f"{top}/tmp")
    os.chmod(f"{top}/tmp", 0o1777)
    for name in ("etc/passwd", "etc/group", "etc/old", "etc/twice", "etc/deep/one", "etc/deep/deeper/two", "usr/lib/a",
                 "usr/lib/b", "usr/lib/c", "usr/mapped", "usr/truncated", "usr/appended", "usr/touched", "usr/gone"):
        write_file(f"{top}/{name}", name.encode() * 500)
    os.link(f"{top}/etc/twice", f"{top}/etc/again")
    os.symlink("passwd", f"{top}/etc/link")
    os.mkfifo(f"{top}/etc/fifo")
    write_file(f"{top}/usr/su", b"program")
    os.chmod(f"{top}/usr/su", 0o4755)
    os.setxattr(f"{top}/usr/su", "user.note", b"kept")
    write_file(f"{top}/usr/listed", b"with a list")
    os.setxattr(f"{top}/usr/listed", "system.posix_acl_access", acl(6, 4, 0, 6, users=[(64001, 6)]))
    for name in ("home/notes", "home/draft", "home/dir"):
        os.mkdir(f"{top}/{name}") if name.endswith("dir") else write_file(f"{top}/{name}", b"mine")
    for root, folders, files in os.walk(f"{top}/home"):
        for path in (root, *(f"{root}/{name}" for name in folders + files)):
            os.chown(path, *USER[:2])


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def map_and_store(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:5] = b"STORE"
        memory.flush()


def unnamed_and_named(folder):
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b"was unnamed")
    name_it(fd, f"{folder}/named")
    os.close(fd)


def replace(path, data):
    write_file(f"{path}.new", data)
    os.rename(f"{path}.new", path)


def use(top):
    """What a container does with its files; returns what each step brought."""
    notes = {}

    def do(label, function, *args):
        notes[label] = outcome(function, *args)

    do("copy up by write", append, f"{top}/etc/passwd", b"more")
    do("copy up by append", append, f"{top}/usr/appended", b"more")
    do("copy up by truncate", os.truncate, f"{top}/usr/truncated", 10)
    do("copy up by a mapping", map_and_store, f"{top}/usr/mapped")
    do("copy up by chmod", os.chmod, f"{top}/usr/lib/a", 0o600)
    do("copy up by chown", os.chown, f"{top}/usr/lib/b", 5, 6)
    do("copy up by utime", lambda: os.utime(f"{top}/usr/touched", ns=(10**18, 10**18)))
    do("copy up by setxattr", os.setxattr, f"{top}/usr/lib/c", "user.note", b"new")
    do("copy up of one link", append, f"{top}/etc/twice", b"more")
    do("set-id", os.chmod, f"{top}/usr/su", 0o6755)
    do("list", os.chmod, f"{top}/usr/listed", 0o664)
    do("replace", replace, f"{top}/etc/group", b"replaced")
    do("unlink", os.unlink, f"{top}/usr/gone")
    do("unlink, and make again", os.unlink, f"{top}/etc/old")
    do("made again", write_file, f"{top}/etc/old", b"new")
    do("rename a file", os.rename, f"{top}/usr/lib/c", f"{top}/etc/c")
    do("link", os.link, f"{top}/usr/lib/a", f"{top}/etc/a")
    do("symlink", os.symlink, "c", f"{top}/etc/symlink")
    do("node", os.mkfifo, f"{top}/etc/fifo2")
    do("without a name", unnamed_and_named, f"{top}/tmp")
    do("make a directory", os.makedirs, f"{top}/new/sub")
    do("rename a new directory", os.rename, f"{top}/new/sub", f"{top}/etc/sub")
    do("rename a directory", os.rename, f"{top}/etc/deep", f"{top}/etc/deep2")
    do("file in it", write_file, f"{top}/etc/deep2/three" if notes["rename a directory"] == "ok"
       else f"{top}/etc/deep/three", b"three")
    do("rmdir, full", os.rmdir, f"{top}/usr/lib")
    do("rm -rf", shutil.rmtree, f"{top}/usr/lib")
    do("made again, empty", os.mkdir, f"{top}/usr/lib")
    do("listing of it", os.listdir, f"{top}/usr/lib")
    do("remove a directory", shutil.rmtree, f"{top}/home/dir")
    do("file instead of it", write_file, f"{top}/home/dir", b"x")
    for label, function, *args in (
            ("writes", append, f"{top}/home/notes", b" and more"),
            ("removes", os.unlink, f"{top}/home/draft"),
            ("makes", write_file, f"{top}/home/fresh", b"fresh"),
            ("renames", os.rename, f"{top}/home/notes", f"{top}/home/notes2"),
            ("makes again what he removed", write_file, f"{top}/home/draft", b"second"),
            ("makes a directory where a file was", os.mkdir, f"{top}/home/notes"),
            ("makes in it", write_file, f"{top}/home/notes/new", b"new"),
            ("removes that", shutil.rmtree, f"{top}/home/notes"),
            ("makes a link where it was", os.symlink, "draft", f"{top}/home/notes"),
            ("replaces by a link", lambda: (os.unlink(f"{top}/home/notes"),
                                            os.link(f"{top}/home/draft", f"{top}/home/notes"))[0]),
            ("makes in /tmp", write_file, f"{top}/tmp/mine", b"mine"),
            ("removes another's", os.unlink, f"{top}/tmp/named"),
            ("writes another's", append, f"{top}/etc/passwd", b"x")):
        notes[f"a user {label}"] = as_user(USER, outcome, function, *args)
    return notes


def xattrs_of(path):
    """Names, and values that say the same on every filesystem."""
    same = ("user.note", "system.", "trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.opaque")
    return {name: os.getxattr(path, name, follow_symlinks=False) if name.startswith(same) else None
            for name in os.listxattr(path, follow_symlinks=False)
            if not name.endswith((".uuid", "security.selinux"))}


def tree(top):
    """All that is there, by path: what can be compared between filesystems."""
    found = {}
    for root, folders, files in os.walk(top):
        for path in (root, *(f"{root}/{name}" for name in sorted(folders + files))):
            st = os.lstat(path)
            what = None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    what = st.st_size, hashlib.sha1(file.read()).hexdigest()[:8]
            elif stat.S_ISLNK(st.st_mode):
                what = os.readlink(path)
            links = None if stat.S_ISDIR(st.st_mode) else st.st_nlink
            found[os.path.relpath(path, top)] = oct(st.st_mode), st.st_uid, st.st_gid, links, st.st_rdev, what, \
                xattrs_of(path)
    return found


def complaints(since):
    """What overlayfs has said to the kernel's log that upper layers lack."""
    log = run("dmesg", ok=None).stdout
    return [line for line in log[len(since):].splitlines() if "overlayfs" in line and "upper fs" in line]


def layer(lab, name, top, lower, options):
    """Uses an overlay, mounts it again, removes most of it."""
    overlay = Overlay(lab, name, top, lower, options)
    facts = {"steps": use(overlay.place), "merged": tree(overlay.place)}
    overlay.umount()
    facts["upper"] = {path: fact for path, fact in tree(overlay.upper).items() if not path.startswith("#")}
    overlay.mount()
    facts["merged again"] = tree(overlay.place)
    os.unlink(f"{overlay.place}/etc/again")  # before the name by which overlayfs keeps the file: see the README
    shutil.rmtree(f"{overlay.place}/etc")
    facts["removed"] = {"names": sorted(os.listdir(overlay.place)), "etc": shown_kind(f"{overlay.upper}/etc")}
    overlay.umount()
    facts["work"] = {"left": len(os.listdir(f"{overlay.work}/work"))}
    return facts


def shown_kind(path):
    st = os.lstat(path)
    return oct(st.st_mode), st.st_rdev


def compare(name, here, there):
    bad = [f"{part}: {key}: {here[part].get(key)}, on ext4 {there[part].get(key)}"
           for part in there for key in sorted({*here[part], *there[part]})
           if here[part].get(key) != there[part].get(key)]
    check(not bad, f"overlay {name}: {len(bad)} differences\n  " + "\n  ".join(bad[:40]))


WAYS = {"plain": "", "full": ",redirect_dir=on,index=on,metacopy=on", "userxattr": ",userxattr",
        "exported": ",index=on,nfs_export=on"}


def local_ext4(lab):
    place = lab.path("ext4")
    os.mkdir(place)
    image = lab.path("ext4.img")
    run("truncate", "-s", IMAGE, image)
    run("mkfs.ext4", "-q", image)
    run("mount", "-o", "loop", image, place)
    lab.on_exit(lambda: run("umount", "-l", place, ok=None))
    return place


def layers(lab, mount):
    with open("/proc/filesystems") as file:
        if "overlay\n" not in file.read():
            lab.show("        skipped: this kernel has no overlayfs")
            return
    local = local_ext4(lab)
    make_lower(f"{local}/lower")
    make_lower(f"{mount.mnt}/lower")
    for way, options in WAYS.items():
        there = layer(lab, f"{way}.local", local, f"{local}/lower", options)
        log = run("dmesg", ok=None).stdout
        here = layer(lab, f"{way}.upper", mount.mnt, f"{local}/lower", options)
        lacks = complaints(log)
        check(not lacks, f"overlay {way}: {lacks}")
        compare(f"{way}, upper layer on the mount", here, there)
        compare(f"{way}, both layers on the mount",
                layer(lab, f"{way}.both", mount.mnt, f"{mount.mnt}/lower", options), there)
    copied_up_of_users(lab, local, f"{local}/lower", "local")
    copied_up_of_users(lab, mount.mnt, f"{local}/lower", "mount")
    for entry in os.listdir(mount.mnt):
        shutil.rmtree(f"{mount.mnt}/{entry}")
    check(os.listdir(mount.mnt) == [], "layers cannot be removed")


def copied_up_of_users(lab, top, lower, name):
    """Of an overlay whose file handles are durable users go on to see what was copied up."""
    overlay = Overlay(lab, f"handles.{name}", top, lower, WAYS["exported"])
    append(f"{overlay.place}/usr/appended", b"more")
    for when in ("at once", "when the kernel has forgotten it", "mounted again"):
        got = as_user(USER, outcome, lambda: os.stat(f"{overlay.place}/usr/appended").st_size)
        check(got == len("usr/appended") * 500 + 4, f"{name}: a user sees a file that was copied up, {when}: {got}")
        forget(top)
        if when != "at once":
            overlay.umount()
            overlay.mount()
    overlay.umount()


def overlay_embedded(lab):
    os.chmod(lab.dir, 0o755)
    layers(lab, Alone(lab))


def overlay_on_a_cluster(lab):
    layers(lab, Shared(lab, small_cluster(lab)))


# -- /proc/locks

def locks_listed(mount):
    """Of which kind the kernel lists locks that this process holds."""
    path = f"{mount.mnt}/locked"
    write_file(path, b"x")
    with open(path, "r+b") as whole, open(path, "r+b") as part:
        fcntl.flock(whole, fcntl.LOCK_EX)
        fcntl.lockf(part, fcntl.LOCK_EX)
        number = os.fstat(whole.fileno()).st_ino
        with open("/proc/locks") as locks:
            rows = [line.split() for line in locks]
        found = sorted(row[1] for row in rows if row[4] == str(os.getpid()) and row[5].endswith(f":{number}"))
    os.unlink(path)
    return found


def locks_of_a_kernel_are_listed(lab):
    os.chmod(lab.dir, 0o755)
    found = locks_listed(Alone(lab))
    check(found == ["FLOCK", "POSIX"], f"/proc/locks of an embedded mount shows {found}")
    found = locks_listed(Shared(lab, small_cluster(lab)))
    check(found == [], f"the README says that /proc/locks does not show locks kept by an MDS: {found}")


if __name__ == "__main__":
    main("reexport", handles_embedded, handles_of_a_cluster, handles_of_another_filesystem, nfs_server, overlay_embedded, overlay_on_a_cluster,
         locks_of_a_kernel_are_listed)
