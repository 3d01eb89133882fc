#!/usr/bin/env python3
"""Who is who: rules, one class from the open file to the disk, and a throttled class that harms nobody and dies when
it is killed."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from weirtest import BIN, MIB, Cluster, Failure, check, main, read_from_disk, run, wait_until

WEB, BACKUP = 1001, 1002


def effective(path, uid=None, gid=None, groups=(), exe=None):
    """What the file system says to somebody; `exe`: a program that prints an xattr."""
    if uid is None and exe is None:
        return os.getxattr(path, "qos.effective_class").decode()
    argv = ["setpriv", f"--reuid={uid or 0}", f"--regid={gid or 0}"]
    argv += [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    program = [exe or "getfattr", "--only-values", "--absolute-names", "-n", "qos.effective_class", path]
    return run(*argv, *program).stdout.strip()


def served(system, class_name):
    """Bytes that the OSDs have served of a class."""
    document = json.loads(system.osdctl("stat", class_name, "-o", "json").stdout)
    return sum(row["served_bytes"] for osd in document["osds"] for row in osd["classes"])


class Child:
    """A process of somebody that writes 256 KiB at each line it is given, into a file it opens first."""

    CODE = ("import os,sys\n"
            "fd=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT,0o666)\n"
            "print('open',flush=True)\n"
            "for line in sys.stdin:\n"
            "  os.pwrite(fd,b'x'*262144,0); os.fsync(fd); print('wrote',flush=True)\n")

    def __init__(self, lab, path, uid, program=sys.executable):
        self.process = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", program, "-c",
                                         self.CODE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lab.on_exit(self.process.kill)
        check(self.process.stdout.readline() == "open\n", f"uid {uid} cannot open {path}")

    def write(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        check(self.process.stdout.readline() == "wrote\n", "a write failed")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def charged_to(system, child, class_name):
    """Whether the next write of a process is charged to a class."""
    before = served(system, class_name)
    child.write()
    return served(system, class_name) - before >= 256 * 1024


def cluster_for_all(lab):
    """A cluster of one OSD whose mount lets everybody in, and is called `everybody`."""
    system = Cluster(lab, osds=1, mounts=0)
    os.chmod(lab.dir, 0o755)
    mnt = lab.path("everybody")
    os.mkdir(mnt)
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None))
    with open(f"{system.dir}/endpoint") as endpoint:
        run(f"{BIN}/weirfs", endpoint.read().strip(), mnt, "-o", "allow_other,client=everybody")
    system.mounts = [mnt]
    return system


def open_to_all(system):
    path = f"{system.mnt}/all"
    os.mkdir(path)
    os.chmod(path, 0o777)
    return path


def rules_say_who_is_who(lab):
    """Order, precedence, explanations, durability, and what `osdctl rule` refuses."""
    system = cluster_for_all(lab)
    for name in ("web", "backup", "gold"):
        system.osdctl("class", "create", name)
    path = f"{open_to_all(system)}/file"
    with open(path, "w") as file:
        file.write("x")
    check(effective(path, WEB) == "best-effort (default)", f"without rules: {effective(path, WEB)}")
    system.osdctl("rule", "add", "--uid", str(BACKUP), "--class", "backup")
    system.osdctl("rule", "add", "--uid", str(WEB), "--class", "web")
    wait_until(lambda: effective(path, WEB) == f"web (rule 2: uid {WEB})", "the rule to hold", timeout=10)
    system.osdctl("rule", "add", "--gid", "77", "--class", "backup", "--before", "1")
    wait_until(lambda: effective(path, WEB, 5, (6, 77)) == "backup (rule 3: gid 77)", "the first rule", timeout=10)
    check(effective(path, WEB, 5, (6,)) == f"web (rule 2: uid {WEB})", "a group that is not his")
    system.osdctl("rule", "add", "--exe", "getfattr", "--client", "everybody", "--class", "gold")
    wait_until(lambda: effective(path) != "", "an answer", timeout=10)
    wait_until(lambda: effective(path, 0).startswith("gold (rule 4: exe getfattr, client everybody)"),
               "the rule for a program", timeout=10)
    check(effective(path) == "best-effort (default)", "this program is not getfattr")
    os.setxattr(f"{system.mnt}/all", "user.qos.class", b"gold")
    wait_until(lambda: effective(path, WEB) == "gold (from /all)", "the tag to win", timeout=10)
    os.removexattr(f"{system.mnt}/all", "user.qos.class")

    test = lambda *argv: system.osdctl("rule", "test", *argv).stdout.strip()  # noqa: E731
    check(test("--uid", str(WEB)) == f"web (rule 2: uid {WEB})", "rule test of a user")
    check(test("--exe", "/usr/bin/getfattr", "--client", "everybody", path).startswith("gold (rule 4"), "rule test")
    check(test("--uid", "9", "--mount-class", "gold") == "gold (mount default)", "rule test of a mount")
    listed = json.loads(system.osdctl("rule", "ls", "-o", "json").stdout)["rules"]
    check([rule["rule"] for rule in listed] == [3, 1, 2, 4], f"the order: {listed}")
    check(listed[2] == {"rule": 2, "uid": WEB, "gid": None, "exe": None, "cgroup": None, "client": None, "class": "web"}, listed[2])

    for argv, code in ((["add", "--class", "web"], 2), (["add", "--uid", "1"], 2), (["rm", "x"], 2), (["rm", "99"], 5),
                       (["add", "--uid", "1", "--class", "none"], 5), (["test", "/no/such/path"], 5),
                       (["add", "--uid", "no-such-user", "--class", "web"], 2),
                       (["add", "--uid", "1", "--class", "web", "--before", "99"], 5)):
        done = system.osdctl("rule", *argv, ok=None)
        check(done.returncode == code and done.stderr.startswith("osdctl: "), f"rule {argv}: {done}")
    system.osdctl("rule", "rm", "3")
    system.dev("kill", "mds.0")
    system.dev("start", "mds.0")
    wait_until(lambda: effective(path, WEB, 77) == f"web (rule 2: uid {WEB})", "the rules after a restart")
    check("rule 2" not in system.osdctl("rule", "ls").stdout, "the table")
    check(f"uid {WEB}" in system.osdctl("rule", "ls").stdout, "the table lacks a rule")


def data_is_charged_to_the_opener(lab):
    """Not to the thread that writes back; also when the rules change while a file is open."""
    system = cluster_for_all(lab)
    for name in ("web", "backup"):
        system.osdctl("class", "create", name)
    path = f"{open_to_all(system)}/file"
    program = lab.path("backup-tool")
    shutil.copy(os.path.realpath(sys.executable), program)
    child = Child(lab, path, WEB)
    child.write()
    check(served(system, "web") == 0, "charged without a rule")
    system.osdctl("rule", "add", "--uid", str(WEB), "--class", "web")
    wait_until(lambda: charged_to(system, child, "web"), "a new rule to reach an open file", timeout=10)
    system.osdctl("rule", "add", "--exe", "backup-tool", "--class", "backup", "--before", "1")
    tool = Child(lab, path, WEB, program)
    wait_until(lambda: charged_to(system, tool, "backup"), "the rule for a program", timeout=10)
    check(charged_to(system, child, "web"), "another program of the same user")
    with open(f"{system.mnt}/all/big", "wb") as file:  # of root, whom no rule names
        file.write(b"x" * MIB)
    before = served(system, "web")
    run("setpriv", f"--reuid={WEB}", f"--regid={WEB}", "--clear-groups", "cat", f"{system.mnt}/all/big")
    check(served(system, "web") - before == MIB, f"a read: {served(system, 'web') - before} bytes")
    system.osdctl("rule", "rm", "1")
    wait_until(lambda: not charged_to(system, child, "web"), "the rule to go", timeout=10)
    os.setxattr(f"{system.mnt}/all", "user.qos.class", b"backup")
    wait_until(lambda: charged_to(system, child, "backup"), "a tag to win", timeout=10)
    for one in (child, tool):
        one.end()


def who_may_use_a_class(lab):
    system = cluster_for_all(lab)
    system.osdctl("class", "create", "gold", "--user", str(WEB))
    folder = open_to_all(system)
    os.chown(folder, BACKUP, BACKUP)
    tag = lambda uid: run("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "setfattr", "-n",  # noqa: E731
                          "user.qos.class", "-v", "gold", folder, ok=None)
    done = tag(BACKUP)
    check(done.returncode != 0 and "not permitted" in done.stderr, f"a tag by somebody who may not: {done}")
    check(tag(WEB).returncode == 0, "a tag by somebody who may")
    endpoint = open(f"{system.dir}/endpoint").read().strip()
    mnt = lab.path("other")
    os.mkdir(mnt)
    done = run(f"{BIN}/weirfs", endpoint, mnt, "-o", "class=system.purge", ok=None)
    check(done.returncode != 0 and "system.purge" in done.stderr, f"a mount of WeirFS's own class: {done}")


def exits_within(process, what, sent=signal.SIGKILL, seconds=20):
    """A generous time: left to itself it would take minutes."""
    process.send_signal(sent)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failure(f"{what} outlives its {sent.name} by {seconds} s") from None


def throttled_class_harms_nobody(lab):
    """Two classes in one mount, one of them held to 1 MiB/s with far more to write and read than that."""
    system = Cluster(lab, osds=1)
    system.osdctl("class", "create", "slow", "--limit", "1MiB/s")
    slow, fast = f"{system.mnt}/slow", f"{system.mnt}/fast"
    os.mkdir(fast)
    os.mkdir(slow)
    with open(f"{slow}/old", "wb") as file:
        file.write(os.urandom(64 * MIB))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # else the kernel answers the readers
    os.setxattr(slow, "user.qos.class", b"slow")
    wait_until(lambda: effective(f"{slow}/old") == "slow (from /slow)", "the tag", timeout=10)

    writers = [subprocess.Popen(["dd", "if=/dev/zero", f"of={slow}/w{i}", "bs=64k", "count=8000"],
                                stderr=subprocess.DEVNULL) for i in range(4)]
    readers = [subprocess.Popen(["dd", f"if={slow}/old", "of=/dev/null", "bs=1M", f"skip={16 * i}"],
                                stderr=subprocess.DEVNULL) for i in range(4)]
    syncer = subprocess.Popen(["dd", "if=/dev/zero", f"of={slow}/s", "bs=1M", "count=400", "oflag=sync"],
                              stderr=subprocess.DEVNULL)
    direct = subprocess.Popen(["dd", "if=/dev/zero", f"of={slow}/d", "bs=1M", "count=400", "oflag=direct"],
                              stderr=subprocess.DEVNULL)
    everybody = writers + readers + [syncer, direct]
    for process in everybody:
        lab.on_exit(process.kill)
    wait_until(lambda: served(system, "slow") > 3 * MIB, "the slow class to be at its limit")

    # Alone, this takes about a second; at the mercy of the other class it would be a minute.
    payload = os.urandom(96 * MIB)
    start = time.monotonic()
    with open(f"{fast}/file", "wb") as file:
        for offset in range(0, len(payload), 65536):
            file.write(payload[offset:offset + 65536])
        file.flush()
        os.fsync(file.fileno())
    check(read_from_disk(f"{fast}/file") == payload, "the neighbour's data")
    seconds = time.monotonic() - start
    lab.show(f"        the neighbour of a throttled class wrote and read {len(payload) // MIB} MiB in {seconds:.1f} s")
    check(seconds < 40, f"the neighbour took {seconds:.0f} s")
    done = [" ".join(process.args) for process in everybody if process.poll() is not None]
    check(not done, f"the throttled class was not throttled, ended are: {done}")

    system.osdctl("class", "set", "slow", "--limit", "32KiB/s")
    for process, what, sent in ((writers[0], "a buffered writer", signal.SIGKILL), (readers[0], "a reader", signal.SIGKILL),
                                (syncer, "fsync", signal.SIGKILL), (direct, "a direct writer", signal.SIGKILL),
                                (writers[1], "a buffered writer", signal.SIGTERM)):
        begin = time.monotonic()
        exits_within(process, what, sent)
        lab.show(f"        {what} of the throttled class ended {time.monotonic() - begin:.2f} s after {sent.name}")
    for process in everybody:
        process.kill()
    for process in everybody:
        process.wait(timeout=60)
    system.osdctl("class", "set", "slow", "--limit", "max")  # what was written may leave
    with open(f"{slow}/w0", "r+b") as file:
        file.flush()
        os.fsync(file.fileno())


def metadata_is_charged(lab):
    """Operations of each class are counted where they are served."""
    system = cluster_for_all(lab)
    system.osdctl("class", "create", "web")
    system.osdctl("rule", "add", "--uid", str(WEB), "--class", "web")
    folder = open_to_all(system)
    count = lambda: {row["class"]: row["operations"] for row in  # noqa: E731
                     json.loads(system.osdctl("stat", "-o", "json").stdout)["mds"]["classes"]}
    wait_until(lambda: effective(folder, WEB).startswith("web"), "the rule", timeout=10)
    before = count()
    run("setpriv", f"--reuid={WEB}", f"--regid={WEB}", "--clear-groups", "sh", "-c",
        f"for i in $(seq 200); do : > {folder}/$i; done")
    grown = count().get("web", 0) - before.get("web", 0)
    check(grown >= 200, f"200 files were made by {grown} operations of their class")


if __name__ == "__main__":
    main("who", rules_say_who_is_who, data_is_charged_to_the_opener, who_may_use_a_class, throttled_class_harms_nobody,
         metadata_is_charged)
