#!/usr/bin/env python3
"""Between whom a class is shared, as `osdctl class set --flow` says it: users, cgroups, programs or nobody; rules that know cgroups;
who uses a class, as `top --flows` and `why` show it; the part of its class's promise that a user has; and what a class
may ask about names, and who asks."""
import json
import mmap
import os
import struct
import subprocess
import sys
import time

from weirtest import MIB, Cluster, check, main, run, wait_until

MANY, FEW, THIRD = 1001, 1002, 1003
REQUEST = 64 << 10


def open_cluster(lab):
    """One OSD, a mount for everybody, and a class `gold` that is always held up: by its own limit."""
    system = Cluster(lab, osds=1, extra=["-o", "allow_other"])
    os.chmod(lab.dir, 0o755)
    system.osdctl("class", "create", "gold", "--limit", "12MiB/s")
    os.mkdir(f"{system.mnt}/gold")
    os.chmod(f"{system.mnt}/gold", 0o777)
    os.setxattr(f"{system.mnt}/gold", "user.qos.class", b"gold")
    return system


class Load:
    """A process of somebody whose threads write 64 KiB each, past the caches, until it is killed; it counts what is written."""

    CODE = ("import ctypes,mmap,os,struct,sys,threading\n"
            "path,counts,threads=sys.argv[1],sys.argv[2],int(sys.argv[3])\n"
            "page=mmap.mmap(os.open(counts,os.O_RDWR),threads*8)\n"
            f"data=mmap.mmap(-1,{REQUEST})\n"
            "fd=os.open(path,os.O_RDWR|os.O_CREAT|os.O_DIRECT,0o666)\n"
            "def write(i):\n"
            "  n=0\n"
            "  while True:\n"
            f"    os.pwrite(fd,data,(i*16+n%16)*{REQUEST}); n+=1; struct.pack_into('Q',page,i*8,n)\n"
            "all=[threading.Thread(target=write,args=(i,)) for i in range(threads)]\n"
            "[one.start() for one in all]\n"
            "print('runs',flush=True)\n")

    def __init__(self, lab, system, name, uid, threads, cgroup=None):
        counts = lab.path(f"{name}.counts")
        with open(counts, "wb") as file:
            file.truncate(threads * 8)
        os.chmod(counts, 0o666)
        self.threads = threads
        with open(counts, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), threads * 8)
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", sys.executable, "-c", self.CODE,
             f"{system.mnt}/gold/{name}", counts, str(threads)], stdout=subprocess.PIPE, text=True,
            preexec_fn=(lambda: join(cgroup)) if cgroup else None)
        lab.on_exit(self.end)
        check(self.process.stdout.readline() == "runs\n", f"{name} does not run")

    def end(self):
        self.process.kill()
        self.process.wait()

    def written(self):
        return sum(struct.unpack(f"{self.threads}Q", self.page[:])) * REQUEST


def cgroup_root():
    """Where this process's cgroup (v2) is mounted, and its path; none without a writable one."""
    with open("/proc/self/mounts") as mounts:
        places = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    with open("/proc/self/cgroup") as own:
        paths = [line[3:].rstrip("\n") for line in own if line.startswith("0::")]
    if not places or not paths:
        return None
    inside = paths[0].rstrip("/")
    return (places[0] + inside, inside) if os.access(places[0] + inside, os.W_OK) else None


def make_cgroup(lab, name):
    """A cgroup below ours: its directory and its path; none where none may be made."""
    root = cgroup_root()
    if root is None:
        return None
    place = os.path.join(root[0], f"weir-{os.getpid()}-{name}")
    try:
        os.mkdir(place)
    except OSError:
        return None
    lab.on_exit(lambda: wait_until(lambda: gone(place), f"{place} to be empty"))
    return place, f"{root[1]}/{os.path.basename(place)}"


def gone(place):
    try:
        os.rmdir(place)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def join(place):
    with open(f"{place}/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))


def share_settles(few, others, low, high, what):
    """Of the next 16 MiB that all have written, as often as it takes: what they had under way when the kind of flows changed was
    in the old order."""
    def written(loads):
        return sum(one.written() for one in loads)

    def share():
        mine, theirs = written(few), written(others)
        wait_until(lambda: written(few) - mine + written(others) - theirs >= 16 * MIB, "writes to go on")
        mine, theirs = written(few) - mine, written(others) - theirs
        seen.append(mine / (mine + theirs))
        return low <= seen[-1] <= high
    seen = []
    try:
        wait_until(share, "")
    except Exception:
        check(False, f"{what}: the share was not within {low} to {high}: {[round(one, 3) for one in seen]}")


def a_class_is_shared_as_its_flows_say(lab):
    """128 threads of one user in 8 processes, 8 threads of another, both in one cgroup, and 8 threads in 2 processes of a third one
    elsewhere."""
    system = open_cluster(lab)
    crowd, alone = make_cgroup(lab, "crowd"), make_cgroup(lab, "alone")
    in_crowd, in_alone = (one and one[0] for one in (crowd, alone))
    many = [Load(lab, system, f"many.{i}", MANY, 16, in_crowd) for i in range(8)]
    third = Load(lab, system, "third", THIRD, 8, in_crowd)
    few = [Load(lab, system, f"few.{i}", FEW, 4, in_alone) for i in range(2)]
    others = many + [third]

    share_settles(few, others, 0.25, 0.42, "user, the default: one of three")
    system.osdctl("class", "set", "gold", "--flow", "none")
    share_settles(few, others, 0, 0.1, "none: 8 of 144 requests")
    system.osdctl("class", "set", "gold", "--flow", "opener")
    share_settles(few, others, 0.13, 0.25, "opener: two of eleven programs")
    if crowd is not None and alone is not None:
        system.osdctl("class", "set", "gold", "--flow", "cgroup")
        share_settles(few, others, 0.43, 0.58, "cgroup: one of two")
        shown = flows_of(system, lambda one: {u["cgroup"] for u in one["users"]} == {crowd[1], alone[1]})
        check(shown["flow"] == "cgroup" and {u["uid"] for u in shown["users"]} == {None}, f"{shown}")
    else:
        lab.show("  (no writable cgroup v2 here: flows of cgroups were left out)")
    third.end()
    system.osdctl("class", "set", "gold", "--flow", "user")
    share_settles(few, many, 0.42, 0.58, "user: one of two")
    show_who_it_is(system, many, few)


def a_user_has_a_part_of_what_his_class_is_promised(lab):
    """He has that, not half; the class has no more than before."""
    system = open_cluster(lab)
    run_refused(system, 2, "promised no bandwidth", "reserve", "gold", "--user", FEW, "--bandwidth", "8MiB/s")
    system.osdctl("reserve", "gold", "--bandwidth", "12MiB/s")
    many = [Load(lab, system, f"many.{i}", MANY, 16) for i in range(4)]
    few = [Load(lab, system, "few", FEW, 16)]
    share_settles(few, many, 0.42, 0.58, "one of two users")
    system.osdctl("reserve", "gold", "--user", FEW, "--bandwidth", "8MiB/s")
    share_settles(few, many, 0.62, 0.9, "8 of 12 MiB/s")
    shown = json.loads(system.osdctl("class", "show", "gold", "-o", "json").stdout)
    check(shown["reservation_users"] == [{"uid": FEW, "bytes_per_s": 8 * MIB}], f"{shown}")
    check(f"uid {FEW} is promised 8MiB/s of it" in system.osdctl("class", "show", "gold").stdout, "class show")
    run_refused(system, 4, "largest that fits: 4MiB/s", "reserve", "gold", "--user", MANY, "--bandwidth", "5MiB/s")
    run_refused(system, 4, "than its users are promised", "reserve", "gold", "--bandwidth", "7MiB/s")
    run_refused(system, 2, "with --flow user", "class", "set", "gold", "--flow", "cgroup")
    run_refused(system, 2, "--bandwidth and nothing else", "reserve", "gold", "--user", MANY, "--bandwidth", "1MiB/s", "--for", "1h")
    system.osdctl("release", "gold", "--user", FEW)
    share_settles(few, many, 0.42, 0.58, "one of two users again")
    run_refused(system, 5, "promised nothing", "release", "gold", "--user", FEW)


def flows_of(system, holds):
    """What top says of the class, when it says that."""
    def look():
        sample = json.loads(system.osdctl("top", "--flows", "gold", "-n", "1", "-o", "json").stdout)["samples"][0]
        found = [one for one in sample["classes"] if holds(one)]
        return found[0] if found else None
    return wait_until(look, "top to show the flows of the class")


def show_who_it_is(system, many, few):
    """Programs by their numbers, the mount, shares that fit; and why says who of its own a class waits for."""
    pids = {one.process.pid for one in many + few}
    shown = flows_of(system, lambda one: {u["uid"] for u in one["users"]} == {MANY, FEW} and
                     {o["pid"] for o in one["openers"]} == pids)
    users = {u["uid"]: u for u in shown["users"]}
    check(users[MANY]["openers"] == 8 and users[FEW]["openers"] == 2, f"{shown}")
    check(abs(sum(u["share"] for u in shown["users"]) - 1) < 0.01, f"{shown}")
    check(0.3 < users[FEW]["share"] < 0.7 and not users[FEW]["light"], f"{shown}")
    check(abs(users[FEW]["bytes_per_s"] - REQUEST * users[FEW]["requests_per_s"]) < REQUEST, f"{shown}")
    # It is a mount that the cluster knows, and all that the class moves is theirs.
    clients = [m["client"] for m in json.loads(system.osdctl("status", "-o", "json").stdout)["mounts"]]
    check({u["client"] for u in shown["users"]} <= set(clients) and shown["users"][0]["client"], f"{clients}: {shown}")
    check(2 * MIB < sum(u["bytes_per_s"] for u in shown["users"]) < 14 * MIB, f"{shown}")
    screen = system.osdctl("top", "--flows", "-n", "1").stdout
    check(f"uid {FEW}" in screen and f"pid {few[0].process.pid}" in screen and "SHARE" in screen, screen)

    def blamed():
        blame = json.loads(system.osdctl("why", "gold", "-o", "json").stdout)["blame"]
        return blame["culprit"] == "limit" and blame["flow"] and blame["flow"]["uid"] in (MANY, FEW)
    wait_until(blamed, "why to name a user")
    text = system.osdctl("why", "gold").stdout
    check("of its own, uid " in text and "osdctl top --flows gold" in text, text)
    run_refused(system, 5, "there is no class", "top", "--flows", "nothing", "-n", "1")
    run_refused(system, 2, "top --flows gold", "top", "gold", "-n", "1")


def run_refused(system, code, words, *argv):
    done = system.osdctl(*argv, ok=(code,))
    check(done.stderr.startswith("osdctl: ") and words in done.stderr, f"{argv}: {done.stderr}")


def kinds_of_flows_are_shown_and_kept(lab):
    system = Cluster(lab, osds=1, mounts=0)
    system.osdctl("class", "create", "plain")
    system.osdctl("class", "create", "gold", "--flow", "cgroup")
    run_refused(system, 2, "user, cgroup, opener, none", "class", "set", "gold", "--flow", "process")
    run_refused(system, 2, "user, cgroup, opener, none", "class", "create", "x", "--flow", "Users")
    system.dev("kill", "mds.0")
    system.dev("start", "mds.0")
    listed = json.loads(system.osdctl("class", "ls", "-o", "json").stdout)["classes"]
    kinds = {one["class"]: one["flow"] for one in listed}
    check((kinds["gold"], kinds["plain"], kinds["best-effort"]) == ("cgroup", "user", "user"), f"{kinds}")
    check(json.loads(system.osdctl("class", "show", "gold", "-o", "json").stdout)["flow"] == "cgroup", "class show")
    for verb in (["ls"], ["show", "gold"]):
        text = system.osdctl("class", *verb).stdout
        check("FLOW" in text and "cgroup" in text, text)
    system.osdctl("class", "set", "gold", "--flow", "none")
    check("none" in system.osdctl("class", "show", "gold").stdout, "the kind did not change")
    check("user|cgroup|opener|none" in system.osdctl("class", "set", "--help").stdout, "class set --help")


def effective(path, cgroup=None):
    """What the file system says to a program in that cgroup."""
    argv = ["getfattr", "--only-values", "--absolute-names", "-n", "qos.effective_class", path]
    if cgroup is None:
        return run(*argv).stdout.strip()
    return run("sh", "-c", f'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, *argv).stdout.strip()


def served(system, class_name):
    document = json.loads(system.osdctl("stat", class_name, "-o", "json").stdout)
    return sum(row["served_bytes"] for osd in document["osds"] for row in osd["classes"])


def rules_know_cgroups(lab):
    """Judged at open, kept in the handle; below a cgroup counts as in it; what cannot be one is refused with the way out."""
    system = Cluster(lab, osds=1)
    system.osdctl("class", "create", "web")
    for path, way_out in (("docker-abc.scope", "begins with '/'"), ("/sys/fs/cgroup/a", "as in '/a'"), ("/a/", "leave out the '/'"),
                          ("/a/../b", "each of its parts")):
        run_refused(system, 2, way_out, "rule", "add", "--cgroup", path, "--class", "web")
        run_refused(system, 2, way_out, "rule", "test", "--cgroup", path)
    system.osdctl("rule", "add", "--cgroup", "/docker-abc.scope", "--class", "web")
    test = lambda path: system.osdctl("rule", "test", "--cgroup", path).stdout.strip()  # noqa: E731
    check(test("/docker-abc.scope/worker") == "web (rule 1: cgroup /docker-abc.scope)", test("/docker-abc.scope/worker"))
    check(test("/docker-abc.scope2") == "best-effort (default)", test("/docker-abc.scope2"))
    listed = json.loads(system.osdctl("rule", "ls", "-o", "json").stdout)["rules"]
    check(listed == [{"rule": 1, "uid": None, "gid": None, "exe": None, "cgroup": "/docker-abc.scope", "client": None,
                      "class": "web"}], f"{listed}")
    check("cgroup /docker-abc.scope" in system.osdctl("rule", "ls").stdout, "rule ls")

    made = make_cgroup(lab, "rules")
    if made is None:
        lab.show("  (no writable cgroup v2 here: rules were not tried on a process)")
        return
    place, path = made
    below = f"{place}/below"
    os.mkdir(below)
    lab.on_exit(lambda: wait_until(lambda: gone(below), f"{below} to be empty"))
    file = f"{system.mnt}/file"
    with open(file, "wb", buffering=0) as out:
        out.write(b"x")
        os.fsync(out.fileno())  # else that byte would be written with the others, and charged to its writer
    system.osdctl("rule", "add", "--cgroup", path, "--class", "web")
    says = f"web (rule 2: cgroup {path})"
    wait_until(lambda: effective(file, place) == says, "the rule to hold")
    check(effective(file, below) == says, effective(file, below))
    check(effective(file) == "best-effort (default)", effective(file))

    # A file that was opened within stays the class's, wherever its process goes.
    before = served(system, "web")
    writer = subprocess.Popen(
        [sys.executable, "-c", "import os,sys\n"
         "fd=os.open(sys.argv[1],os.O_RDWR)\n"
         "open(sys.argv[2]+'/cgroup.procs','w').write(str(os.getpid()))\n"
         "os.pwrite(fd,b'x'*262144,0); os.fsync(fd); print('wrote',flush=True); sys.stdin.read()\n",
         file, cgroup_root()[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: join(place))
    lab.on_exit(writer.kill)
    check(writer.stdout.readline() == "wrote\n", "the write failed")
    check(served(system, "web") - before >= 262144, "the write was not charged to the class of its opener's cgroup")
    writer.stdin.close()
    writer.wait()


def names_of(system, class_name):
    """What the MDS counts of the class, and between which two moments it did."""
    before = time.monotonic()
    rows = json.loads(system.osdctl("stat", class_name, "-o", "json").stdout)["mds"]["classes"]
    nothing = {"operations": 0, "queued": 0, "delayed": 0, "limited": 0}
    return before, rows[0] if rows else nothing, time.monotonic()


def names_are_held_to_the_limit_of_their_class(lab):
    """16 processes make files in a class that may have 300 operations on names a second, and one elsewhere."""
    system = Cluster(lab, osds=1)
    limit = 300
    system.osdctl("class", "create", "slow", "--limit-names", limit)
    run_refused(system, 2, "--limit-names", "class", "set", "slow", "--limit-names", "fast")
    check(json.loads(system.osdctl("class", "show", "slow", "-o", "json").stdout)["limit_names_per_s"] == limit, "class show")
    for name in ("slow", "free"):
        os.mkdir(f"{system.mnt}/{name}")
    os.setxattr(f"{system.mnt}/slow", "user.qos.class", b"slow")
    make = "import os,sys\nn=0\nwhile True:\n  os.mknod(f'{sys.argv[1]}/{os.getpid()}.{n}'); n+=1\n"
    for place in ["slow"] * 16 + ["free"]:
        child = subprocess.Popen([sys.executable, "-c", make, f"{system.mnt}/{place}"])
        lab.on_exit(child.wait)
        lab.on_exit(child.kill)
    wait_until(lambda: names_of(system, "slow")[1]["limited"] > limit, "the limit to hold")

    def begun(row):
        return row["operations"] - row["queued"]
    for _ in range(4):
        since, first, _ = names_of(system, "slow")
        wait_until(lambda: begun(names_of(system, "slow")[1]) >= begun(first) + limit, "a second's worth")
        _, last, until = names_of(system, "slow")
        rate = (begun(last) - begun(first)) / (until - since)
        check(rate <= limit * 1.02 + 16, f"{rate} operations a second, the limit is {limit}")
    free = names_of(system, "best-effort")[1]
    check(free["limited"] == 0 and free["operations"] > 0, f"{free}")

    system.osdctl("class", "set", "slow", "--limit-names", "max")
    held = names_of(system, "slow")[1]
    wait_until(lambda: begun(names_of(system, "slow")[1]) > begun(held) + 4 * limit, "operations without a limit")
    check(names_of(system, "slow")[1]["limited"] == held["limited"], "a limit that was lifted still holds")


def start_maker(lab, place, uid, pause):
    """A process of somebody that makes a file and takes it away, over and over, in a directory of its own: in one, the kernel
    lets one at a time."""
    os.mkdir(place)
    os.chmod(place, 0o777)
    code = ("import os,sys,time\n"
            "name=sys.argv[1]+'/file'\n"
            "while True:\n"
            "  os.close(os.open(name,os.O_WRONLY|os.O_CREAT)); os.unlink(name); time.sleep(float(sys.argv[2]))\n")
    child = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", sys.executable, "-c", code, place,
                              str(pause)])
    lab.on_exit(child.wait)
    lab.on_exit(child.kill)
    return child.pid


def who_asks_for_names_is_shown(lab):
    """Eight programs of one user and one of another make files in a class that may have 100 operations on names a second."""
    system = Cluster(lab, osds=1, extra=["-o", "allow_other"])
    os.chmod(lab.dir, 0o755)
    system.osdctl("class", "create", "slow", "--limit-names", 100)
    slow = f"{system.mnt}/slow"
    os.mkdir(slow)
    os.setxattr(slow, "user.qos.class", b"slow")
    many = {start_maker(lab, f"{slow}/many.{i}", MANY, 0) for i in range(8)}
    few = start_maker(lab, f"{slow}/few", FEW, 0.05)

    def look():
        sample = json.loads(system.osdctl("top", "--flows", "slow", "-n", "1", "-o", "json").stdout)["samples"][0]
        found = [one for one in sample["mds"]["classes"] if one["class"] == "slow"]
        if not found or not many | {few} <= {one["pid"] for one in found[0]["openers"]}:
            return None
        users = {one["uid"]: one for one in found[0]["users"]}
        settled = users[FEW]["operations_per_s"] > 5 and users[MANY]["share"] > 0.5 and users[MANY]["waiting"] >= 4
        return (found[0], users) if settled else None
    shown, users = wait_until(look, "top to show who asks for names")
    # The mkdirs and the tag are root's.
    check(set(users) <= {0, MANY, FEW} and users[MANY]["openers"] == 8 and users[FEW]["openers"] == 1, f"{shown}")
    check(users[FEW]["waiting"] <= 1 and users[FEW]["light"], f"{shown}")
    check(users[MANY]["wait_us"] > users[FEW]["wait_us"] > 0, f"{shown}")
    check(users[MANY]["operations_per_s"] <= shown["operations_per_s"] <= 110, f"{shown}")
    clients = [one["client"] for one in json.loads(system.osdctl("status", "-o", "json").stdout)["mounts"]]
    check(users[MANY]["client"] in clients and users[FEW]["client"] in clients, f"{clients}: {shown}")
    screen = system.osdctl("top", "--flows", "-n", "1").stdout
    check(all(word in screen for word in ("operations on names", f"uid {FEW}", f"pid {few}")), screen)

    def blamed():
        names = json.loads(system.osdctl("why", "slow", "-o", "json").stdout)["names"]
        return names["waits"] and names["limited"] and names["flow"]["uid"] == MANY and names["flow"]["class"] == "slow"
    wait_until(blamed, "why to name the user whose operations on names wait")
    text = system.osdctl("why", "slow").stdout
    check(f"uid {MANY}" in text and "--limit-names" in text and "osdctl top --flows slow" in text, text)


main("flows", kinds_of_flows_are_shown_and_kept, rules_know_cgroups, names_are_held_to_the_limit_of_their_class,
     who_asks_for_names_is_shown,
     a_user_has_a_part_of_what_his_class_is_promised, a_class_is_shared_as_its_flows_say)
