#!/usr/bin/env python3
"""What people run on a filesystem, run on this one: git, SQLite, PostgreSQL, make, rsync, tar and
mail in Maildirs.

Each application gets a cluster of three OSDs with one mount, or with --data an embedded mount, and is asked whether its
data are right; databases are killed in the middle and must recover to all that they had promised, and of mail nothing that was
accepted is lost when everything is killed.
WEIR_TREE (/usr) is what tar and rsync carry. A program that is missing is named, with the package that has it.
"""
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import servicelog  # noqa: F401 - makes weirtest known
from crash import kill_at_once, pids_with
from weirtest import BIN, REPO, Cluster, Embedded, Failure, check, is_mounted, main, run, wait_until

TREE = os.environ.get("WEIR_TREE", "/usr")
SEED = int(os.environ.get("TEST_SEED", "1"))
PACKAGES = {"git": "git", "sqlite3": "sqlite3", "initdb": "postgresql", "pgbench": "postgresql", "make": "make", "gcc": "gcc",
            "rsync": "rsync", "setfacl": "acl", "setfattr": "attr", "tar": "tar"}
SQLITE_ROUNDS = 6
MAIL_ROUNDS = 4
FILES = 200


def need(*programs):
    """Paths of the programs; those of PostgreSQL are where Debian hides them."""
    found = []
    for program in programs:
        path = shutil.which(program) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"))[::-1]), None)
        check(path is not None, f"{program} is missing: apt-get install {PACKAGES[program]}")
        found.append(path)
    return found


def mount(lab):
    """A directory on a new mount that every user may use."""
    os.chmod(lab.dir, 0o755)
    if "--data" in sys.argv:
        return Embedded(lab, "-o", "allow_other", "--osd-size", "24GiB").mnt
    system = Cluster(lab, osds=3, mounts=0, osd_size="8GiB")
    place = lab.path("mnt")
    os.makedirs(place)
    lab.on_exit(lambda: is_mounted(place) and run("umount", "-l", place, ok=None))
    with open(f"{system.dir}/endpoint") as file:
        run(f"{BIN}/weirfs", file.read().strip(), place, "-o", "allow_other")
    return place


def git(lab):
    need("git")
    top = mount(lab)
    env = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
           "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}

    def on(where, *argv):
        return run("git", "-C", where, *argv, env=env, timeout=300).stdout.strip()

    run("git", "clone", "--quiet", "--no-hardlinks", REPO, f"{top}/repo", env=env, timeout=300)
    head = on(f"{top}/repo", "rev-parse", "HEAD")
    on(f"{top}/repo", "fsck", "--full", "--strict")
    check(on(f"{top}/repo", "status", "--porcelain") == "", "a fresh clone has changes")
    on(f"{top}/repo", "worktree", "add", "--quiet", "-b", "side", f"{top}/side")
    for number in range(20):
        with open(f"{top}/side/file{number}", "w") as file:
            file.write(f"{number}\n" * 1000)
        on(f"{top}/side", "add", "-A")
        on(f"{top}/side", "commit", "--quiet", "-m", f"commit {number}")
    on(f"{top}/repo", "merge", "--quiet", "--no-ff", "-m", "join", "side")
    on(f"{top}/repo", "gc", "--quiet", "--aggressive", "--prune=now")
    on(f"{top}/repo", "fsck", "--full", "--strict")
    run("git", "clone", "--quiet", "--bare", f"{top}/repo", f"{top}/bare", env=env, timeout=300)
    on(f"{top}/repo", "push", "--quiet", f"{top}/bare", "HEAD:refs/heads/pushed")
    check(on(f"{top}/bare", "rev-parse", "pushed^1") == head, "the pushed merge has another first parent")
    check(on(f"{top}/repo", "status", "--porcelain") == "", "the merged tree has changes")
    on(f"{top}/bare", "fsck", "--full", "--strict")


SQLITE_WRITER = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
if sys.argv[2] != "wal":  # which the file remembers
    base.execute(f"pragma journal_mode={sys.argv[2]}")
base.execute("pragma synchronous=full")
number = base.execute("select coalesce(max(number), 0) from t where writer = ?", (sys.argv[3],)).fetchone()[0]
print("start", number, flush=True)
while True:
    number += 1
    base.execute("begin immediate")
    base.execute("insert into t values (?, ?, ?)", (sys.argv[3], number, "x" * (number * 37 % 3000)))
    base.execute("commit")
    print("done", number, flush=True)
"""


def sqlite_round(path, mode, dice, promised):
    """Two writers that are killed at once; all that either was told to be committed is there."""
    writers = [subprocess.Popen([sys.executable, "-c", SQLITE_WRITER, path, mode, name], stdout=subprocess.PIPE, text=True)
               for name in promised]
    for writer in writers:
        check(writer.stdout.readline().startswith("start"), f"{mode}: a writer does not start")
    time.sleep(dice.uniform(0.2, 1.0))
    for writer in writers:
        writer.kill()
    for name, writer in zip(promised, writers):
        told = re.findall(r"^done (\d+)$", writer.stdout.read(), re.MULTILINE)
        writer.wait()
        promised[name] = max([promised[name], *map(int, told)])
    check(run("sqlite3", path, "pragma integrity_check").stdout.strip() == "ok", f"{mode}: the database is damaged")
    for name, most in promised.items():
        count, last = run("sqlite3", path, f"select count(*), max(number) from t where writer = '{name}'").stdout.split("|")
        last = int(last.strip() or 0)
        check(last in (most, most + 1), f"{mode}: {most} rows were committed, the last is {last}")
        check(int(count) == last, f"{mode}: {count} rows, the last is {last}")
        promised[name] = last


def sqlite(lab):
    need("sqlite3")
    top = mount(lab)
    dice = random.Random(SEED)
    for mode in ("wal", "delete", "truncate", "persist"):
        promised = {"one": 0, "two": 0}
        run("sqlite3", f"{top}/{mode}.db", f"pragma journal_mode={mode}; create table t (writer, number, text)")
        for _ in range(SQLITE_ROUNDS):
            sqlite_round(f"{top}/{mode}.db", mode, dice, promised)
        lab.show(f"        {mode}: {sum(promised.values())} transactions, {SQLITE_ROUNDS} kills")


class Postgres:
    def __init__(self, lab, folder):
        self.initdb, self.pgbench = need("initdb", "pgbench")
        self.bin = os.path.dirname(os.path.realpath(self.initdb))
        self.folder = folder
        self.user = "postgres"
        self.socket = tempfile.mkdtemp(prefix="weir-pg-", dir="/tmp")
        lab.on_exit(shutil.rmtree, self.socket, True)
        os.mkdir(folder)
        for path in (folder, self.socket):
            shutil.chown(path, self.user, self.user)
        self.server = None
        lab.on_exit(self.kill)

    def run(self, program, *argv, **options):
        return run("setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups",
                   f"{self.bin}/{program}", *argv, cwd="/", timeout=300, **options)

    def start(self):
        argv = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", f"{self.bin}/postgres",
                "-D", f"{self.folder}/data", "-k", self.socket, "-c", "listen_addresses="]
        self.server = subprocess.Popen(argv, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.run("pg_isready", "-h", self.socket, ok=None).returncode == 0, "PostgreSQL to start", 120)

    def children(self):
        with open(f"/proc/{self.server.pid}/task/{self.server.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def kill(self):
        """Everything of it at once, as when the power goes."""
        if self.server is None:
            return
        pids = [self.server.pid, *self.children()]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.server.wait()
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "PostgreSQL to be gone")
        self.server = None

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait(120)
        self.server = None

    def ask(self, query):
        return self.run("psql", "-h", self.socket, "-At", "-c", query, "postgres").stdout.strip()

    def bench(self, *argv, ok=(0,)):
        return self.run("pgbench", "-h", self.socket, *argv, "postgres", ok=ok)


def balanced(server, least):
    sums = server.ask("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches), "
                      "(select sum(tbalance) from pgbench_tellers), (select coalesce(sum(delta), 0) from pgbench_history)")
    check(len(set(sums.split("|"))) == 1, f"the accounts do not balance: {sums}")
    kept = int(server.ask("select count(*) from pgbench_history"))
    check(kept >= least, f"{least} transactions were committed, {kept} are there")
    return kept


def postgresql(lab):
    server = Postgres(lab, f"{mount(lab)}/pg")
    server.run("initdb", "-D", f"{server.folder}/data", "--data-checksums", "--locale=C", "--encoding=UTF8", "-A", "trust")
    server.start()
    server.bench("-i", "-q", "-s", "5")
    done = server.bench("-c", "8", "-j", "2", "-T", "5").stdout
    kept = balanced(server, int(re.search(r"actually processed: (\d+)", done).group(1)))
    logs = tempfile.mkdtemp(dir=server.socket)
    shutil.chown(logs, server.user, server.user)
    for number in range(3):
        # A line for every transaction whose commit was answered.
        client = subprocess.Popen(["setpriv", f"--reuid={server.user}", f"--regid={server.user}", "--clear-groups",
                                   f"{server.bin}/pgbench", "-h", server.socket, "-c", "8", "-T", "60", "-n", "-l",
                                   f"--log-prefix={logs}/round{number}", "postgres"], cwd="/",
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)
        server.kill()
        client.wait(60)
        answered = sum(1 for path in glob.glob(f"{logs}/round{number}.*") for line in open(path) if line.endswith("\n"))
        check(answered > 0, "pgbench did nothing")
        started = time.monotonic()
        server.start()
        lab.show(f"        {answered} transactions, killed, back after {time.monotonic() - started:.1f} s")
        kept = balanced(server, kept + answered)
    server.bench("-c", "4", "-T", "2", "-n")
    server.run("pg_amcheck", "-h", server.socket, "--install-missing", "--heapallindexed", "postgres")
    server.stop()
    server.run("pg_checksums", "--check", "-D", f"{server.folder}/data")


def write_project(top):
    os.makedirs(f"{top}/include")
    for number in range(FILES):
        folder = f"{top}/part{number % 10}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{top}/include/f{number}.h", "w") as file:
            file.write(f"#pragma once\nint f{number}(int);\n")
        uses = [other for other in (number + 1, number + 7, number * 2) if other < FILES and other != number]
        with open(f"{folder}/f{number}.c", "w") as file:
            file.write(f'#include "f{number}.h"\n' + "".join(f'#include "f{other}.h"\n' for other in uses))
            calls = "".join(f"  if (x > {9 + number % 3}) s += f{other}(x - 10);\n" for other in uses)
            file.write(f"int f{number}(int x) {{\n  int s = {number} ^ x;\n{calls}  return s;\n}}\n")
    with open(f"{top}/main.c", "w") as file:
        file.write('#include <stdio.h>\n#include "f0.h"\nint main(void) { printf("%d\\n", f0(25)); }\n')
    with open(f"{top}/Makefile", "w") as file:
        file.write("sources := main.c $(wildcard part*/*.c)\nobjects := $(sources:%.c=out/%.o)\nCFLAGS := -O1 -Iinclude\n"
                   "out/program: $(objects)\n\t$(CC) -o $@ $^\n"
                   "out/%.o: %.c\n\t@mkdir -p $(@D)\n\t$(CC) $(CFLAGS) -MMD -c -o $@ $<\n-include $(objects:.o=.d)\n")


def build(lab):
    need("make", "gcc")
    top = f"{mount(lab)}/project"
    write_project(top)
    first = run("make", "-j8", "-C", top, timeout=600).stdout
    check(first.count(" -c ") == FILES + 1, f"{first.count(' -c ')} files were compiled")
    local = lab.path("local")
    shutil.copytree(top, local, ignore=shutil.ignore_patterns("out"))
    run("make", "-j8", "-C", local, timeout=600)
    same = run(f"{top}/out/program").stdout == run(f"{local}/out/program").stdout
    check(same, "the program says something else than one that was built locally")
    check(" -c " not in run("make", "-j8", "-C", top).stdout, "make compiles what is up to date")
    os.utime(f"{top}/include/f5.h")
    again = run("make", "-j8", "-C", top).stdout.count(" -c ")
    with_header = len(subprocess.run(["grep", "-rl", '"f5.h"', top, "--include=*.c"], capture_output=True,
                                     check=False).stdout.split())
    check(again == with_header, f"{again} of {with_header} users of a touched header were compiled")


def special_tree(top):
    """Everything that rsync -aHAX carries."""
    os.makedirs(f"{top}/dir")
    for number in range(20):
        with open(f"{top}/dir/f{number}", "wb") as file:
            file.write(os.urandom(number * 5000))
    os.link(f"{top}/dir/f1", f"{top}/hard")
    os.symlink("dir/f2", f"{top}/soft")
    os.symlink("nowhere", f"{top}/dangling")
    os.mkfifo(f"{top}/fifo")
    os.chmod(f"{top}/dir/f3", 0o4751)
    os.chown(f"{top}/dir/f4", 1234, 4321)
    os.chmod(f"{top}/dir", 0o2775)
    os.setxattr(f"{top}/dir/f5", "user.note", b"kept")
    os.setxattr(f"{top}/dir/f5", "trusted.note", b"kept too")
    run("setfacl", "-m", "u:1234:rwx,g:4321:r", f"{top}/dir/f6")
    run("setfacl", "-d", "-m", "u:1234:rwx", f"{top}/dir")
    os.utime(f"{top}/dir/f7", ns=(1_111_111_111_123_456_789, 987_654_321_012_345_678))
    with open(f"{top}/sparse", "wb") as file:
        file.truncate(50 << 20)
        file.seek(30 << 20)
        file.write(b"x" * 10000)


def rsync(lab):
    need("rsync", "setfacl", "setfattr")
    top = mount(lab)
    special_tree(lab.path("special"))
    for source, name in ((lab.path("special"), "special"), (f"{TREE}/include", "include")):
        argv = ["rsync", "-aHAX", "--numeric-ids", f"{source}/"]
        run(*argv, f"{top}/{name}/", timeout=900)
        for place in (f"{top}/{name}", f"{top}/{name}.copy"):  # the latter from mount to mount
            if place.endswith(".copy"):
                argv[-1] = f"{top}/{name}/"
                run(*argv, f"{place}/", timeout=900)
            again = run(*argv, "--itemize-changes", "--stats", f"{place}/", timeout=900).stdout
            check("Number of regular files transferred: 0\n" in again, f"the second rsync transfers:\n{again[:2000]}")
            changed = [line for line in again.splitlines() if re.match(r"[<>ch.*][fdLDS]", line)]
            check(not changed, "the second rsync changes: " + "; ".join(changed[:5]))
            differs = run("rsync", "-aHAXnc", "--numeric-ids", "--itemize-changes", f"{source}/", f"{place}/",
                          timeout=900).stdout
            check(differs == "", f"checksums differ: {differs[:2000]}")


def tar(lab):
    need("tar", "setfacl", "setfattr")
    top = mount(lab)
    kept = ["--xattrs", "--xattrs-include=*", "--acls", "--numeric-owner"]
    special_tree(lab.path("special"))
    for source, name in ((lab.path("special"), "special"), (TREE, "tree")):
        archive, copy = f"{top}/{name}.tar", f"{top}/{name}"
        os.mkdir(copy)
        times = [time.monotonic()]

        def step(*argv):
            done = run(*argv, timeout=6 * 3600)  # ends what hangs, not what is slow
            times.append(time.monotonic())
            return done.stdout

        step("tar", "-C", source, *kept, "-cf", archive, ".")
        step("tar", "-C", copy, *kept, "-xpf", archive)
        step("tar", "-C", copy, *kept, "--compare", "-f", archive)
        here = step("find", copy, "-printf", "%P %y %s %m %l\\n")
        there = run("find", source, "-printf", "%P %y %s %m %l\\n", timeout=600).stdout
        size = {path: re.sub(r" d \d+ ", " d ", text) for path, text in ((copy, here), (source, there))}
        check(sorted(size[copy].splitlines()) == sorted(size[source].splitlines()), "find does not list the same")
        step("du", "-s", "--apparent-size", copy)
        step("rm", "-rf", copy)
        check(not os.path.exists(copy), "rm left something")
        names = ("create", "extract", "compare", "find", "du", "rm")
        lab.show(f"        {name}, {len(here.splitlines())} entries: " + ", ".join(
            f"{what} {end - begin:.1f} s" for what, begin, end in zip(names, times, times[1:])))


# As Dovecot and Postfix do it: nobody locks, names are unique, and what is accepted is durable.
MAIL_DELIVERER = """
import os, sys
box, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
new = os.open(f"{box}/new", os.O_RDONLY | os.O_DIRECTORY)
while True:
    number += 1
    message = f"{number}.{name}.host"
    file = os.open(f"{box}/tmp/{message}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(file, f"{message}\\n".encode() * (number * 37 % 900 + 1))
    os.fsync(file)
    os.close(file)
    if number % 2:
        os.rename(f"{box}/tmp/{message}", f"{box}/new/{message}")
    else:
        os.link(f"{box}/tmp/{message}", f"{box}/new/{message}")
        os.unlink(f"{box}/tmp/{message}")
    os.fsync(new)
    print(number, message, flush=True)
"""
# Reads what is new, marks it as seen, and deletes each fifth.
MAIL_READER = """
import os, sys
box = sys.argv[1]
while True:
    for message in sorted(os.listdir(f"{box}/new")):
        seen = f"{box}/cur/{message}:2,S"
        os.rename(f"{box}/new/{message}", seen)
        with open(seen) as file:
            lines = file.read().splitlines()
        number = int(message.split(".")[0])
        if lines != [message] * (number * 37 % 900 + 1):
            print("wrong", message, flush=True)
        if number % 5 == 0:
            print("deletes", message, flush=True)
            os.unlink(seen)
"""


class MailSystem:
    """A cluster with two mounts, or an embedded one, all of whose processes can be killed at once."""

    def __init__(self, lab):
        self.embedded = Embedded(lab) if "--data" in sys.argv else None
        self.cluster = None if self.embedded else Cluster(lab, osds=3, mounts=2)
        self.mounts = [self.embedded.mnt] * 2 if self.embedded else self.cluster.mounts

    def kill(self):
        if self.embedded is None:
            daemons = ["mnt.0", "mds.0", "osd.0", "mnt.1", "osd.1", "osd.2"]
            kill_at_once(self.cluster, daemons)
            for daemon in ("mds.0", "osd.0", "osd.1", "osd.2", "mnt.0", "mnt.1"):
                self.cluster.dev("start", daemon)
            return
        for pid in pids_with(self.embedded.dir):
            os.kill(pid, signal.SIGKILL)
        run("umount", "-l", self.embedded.mnt, ok=None)
        self.embedded.umount()
        self.embedded.mount()


def mail_of(box):
    """What is in the box, by its folder; each message once, whole."""
    there = {}
    for folder in ("new", "cur"):
        for name in os.listdir(f"{box}/{folder}"):
            message = name.split(":")[0]
            check(message not in there, f"{message} is in new and in cur")
            there[message] = folder
            with open(f"{box}/{folder}/{name}") as file:
                lines = file.read().splitlines()
            check(lines == [message] * (int(message.split(".")[0]) * 37 % 900 + 1), f"{folder}/{name} is not what was delivered")
    return there


def maildir(lab):
    system = MailSystem(lab)
    boxes = [f"{mnt}/mail" for mnt in system.mounts]
    for folder in ("", "/tmp", "/new", "/cur"):
        os.mkdir(boxes[0] + folder)
    fd = os.open(boxes[0], os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    numbers, accepted, deleted = {"one": 0, "two": 0, "three": 0}, set(), set()
    for _ in range(MAIL_ROUNDS):
        logs = {name: lab.path(f"{name}.log") for name in [*numbers, "reader"]}
        workers = []
        for index, name in enumerate(logs):
            program = MAIL_DELIVERER if name in numbers else MAIL_READER
            with open(logs[name], "w") as log:
                workers.append(subprocess.Popen([sys.executable, "-c", program, boxes[index % 2], name, str(numbers.get(name))],
                                                stdout=log, stderr=subprocess.DEVNULL))  # each ends by an error of its mount
            lab.on_exit(workers[-1].kill)

        def lines(name, logs=logs):
            with open(logs[name]) as log:
                return [line.split() for line in log if line.endswith("\n")]

        wait_until(lambda: all(len(lines(name)) > 40 for name in numbers), "mail to be delivered")
        check(all(worker.poll() is None for worker in workers), "a deliverer or the reader met an error")
        system.kill()
        for worker in workers:
            worker.kill()
            worker.wait()
        for name in numbers:
            accepted |= {words[1] for words in lines(name)}
            numbers[name] = int(lines(name)[-1][0]) + 1  # the one after that may be there
        wrong = [words[1] for words in lines("reader") if words[0] == "wrong"]
        check(not wrong, f"read, and not what was delivered: {wrong[:5]}")
        deleted |= {words[1] for words in lines("reader")}
        for box in boxes:
            there = mail_of(box)
            check(not (accepted - deleted - set(there)), f"accepted and lost: {sorted(accepted - deleted - set(there))[:5]}")
            check(len(set(there) - accepted) <= MAIL_ROUNDS * len(numbers), "there is mail that nobody delivered")
    lab.show(f"        {len(accepted)} messages accepted, {len(deleted)} deleted, {MAIL_ROUNDS} kills of everything")


if __name__ == "__main__":
    main("applications", git, sqlite, postgresql, build, rsync, tar, maildir)
