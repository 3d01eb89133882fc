#!/usr/bin/env python3
"""Rights that no local filesystem can be compared for: programs that were set-id until a stranger changed them, mounts in a
PID namespace of their own, filesystems of ordinary users, programs of which another mount has just made a capability."""
import mmap
import os
import shutil
import subprocess
import sys

from weirtest import BIN, REPO, Cluster, Embedded, check, is_mounted, main, run, wait_until

sys.path.insert(0, os.path.join(REPO, "tests", "posix"))
from harness import Child, as_user, open_and_close, outcome  # noqa: E402
from users import CAPABILITY, DAC_OVERRIDE, NET_RAW, capability_of, run_as  # noqa: E402

OWNER, GROUP, STRANGER = 64001, 64002, 64003
NOBODY = (STRANGER, STRANGER, [])
MEMBER = (STRANGER, STRANGER, [GROUP])


def open_to_all(lab):
    os.chmod(lab.dir, 0o755)


def endpoint_of(system):
    with open(f"{system.dir}/endpoint") as file:
        return file.read().strip()


def cluster_mount(lab, system, name, *options):
    mount = lab.path(name)
    os.makedirs(mount)
    lab.on_exit(lambda: is_mounted(mount) and run("umount", "-l", mount, ok=None))
    run(f"{BIN}/weirfs", endpoint_of(system), mount, "-o", ",".join(("allow_other", *options)))
    return mount


def overwrite(path, direct):
    """With what is there."""
    fd = os.open(path, os.O_RDWR | (os.O_DIRECT if direct else 0))
    try:
        page = mmap.mmap(-1, 4096)
        os.preadv(fd, [page], 0)
        os.pwritev(fd, [page], 0)
    finally:
        os.close(fd)


def user_of(program):
    return int(subprocess.run([program, "-u"], capture_output=True, text=True, check=True, timeout=60).stdout)


def a_changed_program_runs_as_whoever_runs_it(lab):
    open_to_all(lab)
    system = Cluster(lab, mounts=0, osd_size="512MiB")
    mounts = {"embedded": Embedded(lab, "-o", "allow_other,suid").mnt, "cluster": cluster_mount(lab, system, "c", "suid")}
    for kind, mount in mounts.items():
        for direct in (False, True):
            program = f"{mount}/id.{direct}"
            shutil.copy(shutil.which("id"), program)
            os.chmod(program, 0o6777)
            check(as_user(NOBODY, user_of, program) == 0, f"{kind}: a set-uid program does not run as its owner")
            # At once: the kernel still has the mode that it was told.
            def change_and_run(path=program, way=direct):
                overwrite(path, way)
                return user_of(path)
            check(as_user(NOBODY, change_and_run) == STRANGER,
                  f"{kind}: a stranger runs as root what he has written (O_DIRECT: {direct})")


def a_capability_that_another_mount_has_just_given(lab):
    open_to_all(lab)
    system = Cluster(lab, mounts=0, osd_size="512MiB")
    one, two = (cluster_mount(lab, system, name) for name in ("one", "two"))
    for who, user in (("a stranger", NOBODY), ("root", (0, 0, []))):
        path, elsewhere = (f"{mount}/f.{user[0]}" for mount in (one, two))
        with open(path, "wb") as file:
            file.write(b"x" * 8192)
        os.chmod(path, 0o777)

        def write(child, name=path):
            fd = os.open(name, os.O_WRONLY)
            os.pwrite(fd, b"a", 0)
            child.ask("written once")
            os.pwrite(fd, b"b", 0)
            os.close(fd)
            child.send("written twice")

        with Child(write, user) as child:
            child.receive()
            os.setxattr(elsewhere, CAPABILITY, NET_RAW)
            child.send("go on")
            child.receive()
        for name in (path, elsewhere):
            check(capability_of(name) == "ENODATA", f"{name} kept its capability when {who} had written to it")


def files_by_group(top):
    """What a group may: read, write, pass, make."""
    os.mkdir(f"{top}/closed")
    with open(f"{top}/closed/f", "wb") as file:
        file.write(b"data")
    os.chown(f"{top}/closed/f", OWNER, GROUP)
    os.chmod(f"{top}/closed/f", 0o660)
    os.chown(f"{top}/closed", OWNER, GROUP)
    os.chmod(f"{top}/closed", 0o770)


def use(top):
    return [outcome(open_and_close, f"{top}/closed/f", os.O_RDWR),
            outcome(lambda: os.listdir(f"{top}/closed") != []),
            outcome(open_and_close, f"{top}/closed/new", os.O_CREAT | os.O_WRONLY),
            outcome(os.rename, f"{top}/closed/new", f"{top}/closed/newer"),
            outcome(os.unlink, f"{top}/closed/newer")]


def check_groups(mount):
    files_by_group(mount)
    granted = ["ok", True, "ok", "ok", "ok"]
    got = as_user(MEMBER, use, mount)
    check(got == granted, f"a member of the group got {got}")
    got = run_as(NOBODY, use, mount, capabilities=[DAC_OVERRIDE])
    check(got == granted, f"a user with CAP_DAC_OVERRIDE got {got}")
    got = as_user(NOBODY, use, mount)
    check(got == ["EACCES"] * 5, f"a stranger got {got}")
    path = f"{mount}/program"
    with open(path, "wb") as file:
        file.write(b"data")
    os.chmod(path, 0o6777)
    as_user(NOBODY, overwrite, path, False)
    check(os.stat(path).st_mode & 0o7777 == 0o777, "a stranger's write left set-id bits")


def in_namespace(lab, log, *command, unshare=()):
    """weirfs as the first process of a PID namespace, with the /proc of the outer one unless `unshare` says more."""
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *unshare, f"{BIN}/weirfs", "-f", "--log-file",
                                log, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lab.on_exit(lambda: (process.terminate(), process.wait(60)))
    return process


def said(log):
    with open(log) as file:
        return file.read().count("cannot be seen in /proc")


def a_pid_namespace_of_its_own(lab):
    open_to_all(lab)
    system = Cluster(lab, mounts=0, osd_size="512MiB")
    for kind, where in (("cluster", [endpoint_of(system)]), ("embedded", ["--data", lab.path("data")])):
        mount, log = lab.path(f"{kind}.mnt"), lab.path(f"{kind}.weirfs.log")
        os.makedirs(mount)
        lab.on_exit(lambda mount=mount: is_mounted(mount) and run("umount", "-l", mount, ok=None))
        process = in_namespace(lab, log, *where, mount, "-o", "allow_other")
        wait_until(lambda mount=mount: is_mounted(mount), f"a {kind} mount")
        check_groups(mount)
        check(said(log) == 1, f"{kind}: that weirfs cannot see who asks was said {said(log)} times")
        run("umount", mount)
        process.wait(60)


def its_own_processes_are_seen(lab):
    """With /proc of its namespace weirfs sees who is in it; the mount is in a mount namespace then, where we follow."""
    open_to_all(lab)
    mount, log = lab.path("mount"), lab.path("weirfs.log")
    os.makedirs(mount)
    script = f"""{BIN}/weirfs --log-file {log} --data {lab.path("data")} {mount} -o allow_other &&
        exec {sys.executable} {os.path.abspath(__file__)} --inside {mount}"""
    done = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
                          capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, "WEIR_BIN": BIN})
    check(done.returncode == 0, f"inside: {done.stdout[-800:]} {done.stderr[-2000:]}")
    check(said(log) == 0, "weirfs does not see processes of its own namespace")


def who_may_not_mount_is_told_what_root_has_to_change(lab):
    """In a mount namespace of its own, with a device and a fuse.conf as we like them; nothing is made."""
    open_to_all(lab)
    conf = lab.path("fuse.conf")
    home = lab.path("home")
    os.mkdir(home)
    os.makedirs(f"{home}/mnt")
    os.chown(home, STRANGER, STRANGER)
    user = f"setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups {BIN}/weirfs --data {home}/data {home}/mnt"

    def tries(text, mode, *options):
        with open(conf, "w") as file:
            file.write(text)
        return run("unshare", "--mount", "--propagation", "private", "bash", "-c",
                   f"mount -t tmpfs none /mnt && mknod /mnt/fuse c 10 229 && chmod {mode} /mnt/fuse && mount --bind /mnt/fuse /dev/fuse && "
                   f"mount --bind {conf} /etc/fuse.conf && {user} {' '.join(options)}", ok=None)

    for text, mode, options, word in (
            ("", "600", (), "chmod 666 /dev/fuse"),
            ("mount_max = 9\n", "666", ("-o", "allow_other"), "add the line 'user_allow_other' to /etc/fuse.conf"),
            ("# x\n#user_allow_other\n", "666", ("-o", "allow_other"), "take the '#' out of line 2 of /etc/fuse.conf")):
        done = tries(text, mode, *options)
        check(done.returncode not in (0, 127) and word in done.stderr, f"exit {done.returncode}, and not '{word}': {done.stderr}")
        check(not os.path.exists(f"{home}/data"), "something was made")


def who_makes_a_filesystem_owns_it(lab):
    open_to_all(lab)
    user = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    mounter = list(user)
    if os.stat("/dev/fuse").st_mode & 0o006 != 0o006:  # ordinary users cannot mount on this machine
        mounter += [f"--{kind}-caps=+sys_admin,+dac_override" for kind in ("inh", "ambient")]
    mine = lab.path("mine")
    os.mkdir(mine)
    os.chown(mine, STRANGER, STRANGER)
    mount = f"{mine}/mnt"
    run(*user, "mkdir", mount)
    lab.on_exit(lambda: is_mounted(mount) and run("umount", "-l", mount, ok=None))
    for again in (False, True):
        run(*mounter, f"{BIN}/weirfs", "--data", f"{mine}/data", "--osd-size", "512MiB", mount)
        shown = run(*user, "stat", "-c", "%u:%g %a", mount).stdout.strip()
        check(shown == f"{STRANGER}:{STRANGER} 755", f"the root of his own filesystem is {shown}")
        run(*user, "touch", f"{mount}/file.{again}")
        run("umount", mount)
        wait_until(lambda: run("flock", "-n", f"{mine}/data/lock", "true", ok=None).returncode == 0, "weirfs to end")
    run(*user, f"{BIN}/weir-dev", "up", "--dir", f"{mine}/dev", "--osd-size", "512MiB", "--token-rate", "1GiB/s", timeout=180)
    lab.on_exit(lambda: run(f"{BIN}/weir-dev", "down", "--dir", f"{mine}/dev", ok=None, timeout=120))
    with open(f"{mine}/dev/endpoint") as file:
        run(*mounter, f"{BIN}/weirfs", file.read().strip(), mount)
    run(*user, "touch", f"{mount}/file")
    run("umount", mount)
    root = Embedded(lab).mnt
    check((os.stat(root).st_uid, os.stat(root).st_gid) == (0, 0), "root does not own what he made")


if __name__ == "__main__":
    if "--inside" in sys.argv:
        check_groups(sys.argv[-1])
        run("umount", sys.argv[-1])
        sys.exit(0)
    main("rights", a_changed_program_runs_as_whoever_runs_it, a_capability_that_another_mount_has_just_given,
         a_pid_namespace_of_its_own, its_own_processes_are_seen,
         who_may_not_mount_is_told_what_root_has_to_change, who_makes_a_filesystem_owns_it)
