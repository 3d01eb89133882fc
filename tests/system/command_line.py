#!/usr/bin/env python3
"""What is typed and what the caller leaves open: names, endpoints, subtrees, signals, files, versions, in every program."""
import json
import os
import re
import resource
import signal
import socket
import subprocess

from weirtest import BIN, MIB, Cluster, Embedded, check, is_mounted, main, run, wait_until

PROGRAMS = ("weirfs", "weir-mds", "weir-osd", "weir-dev", "osdctl", "weir-sim")
SMALL = ("--osd-size", "256MiB", "--token-rate", "500MiB/s")


def shell(text, *words, ok=None, timeout=60):
    return run("bash", "-c", f"set -o pipefail; {text}", "bash", *words, ok=ok, timeout=timeout)


def refused(done, code, *words):
    check(done.returncode == code, f"exit {done.returncode}, expected {code}: {done}")
    for word in words:
        check(word in done.stderr, f"'{word}' is not in: {done.stderr}")


def small_cluster(lab, **options):
    return Cluster(lab, osd_size="256MiB", **options)


def endpoint_of(system):
    with open(f"{system.dir}/endpoint") as file:
        return file.read().strip()


def source_and_options(mountpoint):
    """Of the mount table, its escapes undone: the flags of the mount, the source, the options of the superblock."""
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            fields = line.rstrip(b"\n").split(b" ")
            if fields[4] == os.fsencode(mountpoint):
                fields = [re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found.group(1), 8)]), f) for f in fields]
                return fields[5].decode(), fields[fields.index(b"-") + 2], fields[-1].decode()
    raise AssertionError(f"{mountpoint} is not mounted")


def umount(mountpoint):
    run("umount", mountpoint)
    wait_until(lambda: not is_mounted(mountpoint), "the unmount")


# --- stdin, stdout, stderr, and how many files may be open

def closed_files_end_in_documented_codes(lab):
    mnt = lab.path("m")
    os.mkdir(mnt)
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None))
    weirfs = [f"{BIN}/weirfs", "--data", lab.path("d"), mnt, *SMALL]
    for closed in ("<&- >&- 2>&-", "<&- >&-", ">&- 2>&-"):
        # What the daemon holds open of ours would keep the pipe from its end.
        done = shell(f'"$@" {closed}', *weirfs, timeout=120)
        check(done.returncode == 0 and is_mounted(mnt), f"weirfs {closed}: {done}")
        with open(f"{mnt}/file", "wb") as file:
            file.write(b"x" * MIB)
        umount(mnt)
        wait_until(lambda: run("flock", "-n", f"{lab.path('d')}/lock", "true", ok=None).returncode == 0, "its end")
    # In the foreground a signal ends it all the same.
    stays = subprocess.Popen(["bash", "-c", 'exec "$@" -f <&- >&- 2>&-', "bash", *weirfs])
    wait_until(lambda: is_mounted(mnt), "the mount")
    stays.send_signal(signal.SIGTERM)
    check(stays.wait(60) == 0 and not is_mounted(mnt), f"SIGTERM: {stays.returncode}")
    for number, files in enumerate(("<&- >&- 2>&-", "2>/dev/full")):  # one that logs there
        data = lab.path(f"mds{number}")
        serves = subprocess.Popen(["bash", "-c", f'exec "$@" {files}', "bash", f"{BIN}/weir-mds", "--data", data, "--listen",
                                   f"ipc://{data}.sock"])
        wait_until(lambda: os.path.exists(f"{data}/endpoint"), "the MDS")  # noqa: B023 - polled at once
        check("best-effort" in run(f"{BIN}/osdctl", "--cluster", data, "class", "ls").stdout, f"weir-mds {files}")
        serves.send_signal(signal.SIGHUP)
        check(serves.wait(60) == 0, f"weir-mds {files}: {serves.returncode}")
    wrong = [(["weirfs", "127.0.0.1:9", lab.path("none")], 5), (["weirfs", "--nonsense"], 2), (["weirfs"], 2),
             (["weir-mds", "--data", "/proc/none"], 1), (["weir-mds"], 2), (["weir-mds", "--data", "/x", "--listen", "?"], 2),
             (["weir-osd", "--disk", lab.path("none"), "--mds", "127.0.0.1:9"], 1), (["weir-osd"], 2),
             (["weir-dev", "status", "--dir", lab.path("none")], 5), (["weir-dev"], 2), (["weir-sim", "show", "none"], 2),
             (["osdctl", "--cluster", "tcp://127.0.0.1:9", "status"], 6), (["osdctl", "x"], 2), (["osdctl", "status"], 2)]
    for argv, code in wrong:
        for files in ("2>&-", "2>/dev/full", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"):
            if code == 6 and files != "2>/dev/full":
                continue  # each waits for an answer
            done = shell(f'"$@" {files}', f"{BIN}/{argv[0]}", *argv[1:])
            check(done.returncode == code, f"{argv} {files}: exit {done.returncode}, expected {code}")


def few_files_are_an_error_that_says_so(lab):
    mnt = lab.path("m")
    os.mkdir(mnt)
    with open(lab.path("disk"), "wb") as disk:
        disk.truncate(256 * MIB)
    for argv in (["weirfs", "--data", lab.path("d"), mnt], ["weirfs", "127.0.0.1:9", mnt],
                 ["weir-mds", "--data", lab.path("mds"), "--listen", f"ipc://{lab.path('s')}"],
                 ["weir-osd", "--disk", lab.path("disk"), "--mds", "127.0.0.1:9"],
                 ["weir-osd", "--mkfs", "--disk", lab.path("disk"), "--mds", "127.0.0.1:9"]):
        for limit in (10, 20, 40, 100):
            done = shell(f'ulimit -n {limit}; exec "$@"', f"{BIN}/{argv[0]}", *argv[1:])
            refused(done, 1, f"may open {limit} files only and needs 256", "ulimit -n 256")
    system = small_cluster(lab)
    for limit in (8, 12, 16, 24, 32, 40):
        done = shell(f'ulimit -n {limit}; exec "$@"', f"{BIN}/osdctl", "--cluster", system.dir, "status")
        check(done.returncode in (0, 1, 7), f"osdctl with {limit} files: {done}")
        check(done.returncode != 1 or "ulimit -n" in done.stderr, f"osdctl with {limit} files: {done}")
    # A soft limit is raised as far as it may be.
    check(shell('ulimit -Sn 40; exec "$@"', f"{BIN}/osdctl", "--cluster", system.dir, "status").returncode == 0, "soft limit")


def lost_output_is_an_error(lab):
    system = small_cluster(lab)
    system.osdctl("class", "create", "gold")
    verbs = (["status"], ["osd", "ls"], ["osd", "show", "0"], ["class", "ls"], ["class", "show", "gold"], ["stat"],
             ["rule", "ls"], ["pool", "ls"], ["why", "gold"], ["top", "-n", "1", "--interval", "100ms"], ["completion", "bash"],
             ["class", "set", "gold", "--weight", "2", "--dry-run"])
    full = "cannot write to stdout: No space left on device"
    for verb in verbs:
        for more in ([], ["-o", "json"]):
            if verb[0] == "completion" and more:
                continue
            done = shell('"$@" >/dev/full', f"{BIN}/osdctl", "--cluster", system.dir, *verb, *more)
            check(done.returncode == 1 and full in done.stderr, f"{verb} {more}: {done.returncode} {done.stderr}")
    for program in PROGRAMS:
        for word in ("--help", "--version"):
            done = shell('"$@" >/dev/full', f"{BIN}/{program}", word)
            check(done.returncode == 1 and f"{program}: {full}" in done.stderr, f"{program} {word}: {done}")
    for argv in (["weir-dev", "status", "--dir", system.dir], ["weir-sim", "list"], ["weir-sim", "show", "all"]):
        refused(shell('"$@" >/dev/full', f"{BIN}/{argv[0]}", *argv[1:]), 1, full)


def versions_and_bad_usage(lab):
    for program in PROGRAMS:
        done = run(f"{BIN}/{program}", "--version")
        words = (rf"{program} \d+\.\d+\.\d+ \(commit [^)]+\)\n"
                 r"wire protocol \d+; disk formats: OSD \d+, raw volume \d+, namespace \d+\n")
        check(re.fullmatch(words, done.stdout), done.stdout)
        check("--version" in run(f"{BIN}/{program}", "--help").stdout, f"{program} --help")
    refused(run(f"{BIN}/weirfs", ok=None), 2, "weirfs --data DIR MNT", "ENDPOINT[:/SUBTREE] MNT")
    refused(run(f"{BIN}/weirfs", "x", ok=None), 2, "weirfs --data DIR MNT")
    for words, nearest in (("osdctl clas create gold", "'class'"), ("osdctl class crate gold", "'class create'"),
                           ("osdctl osd shwo 0", "'osd show'"), ("osdctl rule tets", "'rule test'"),
                           ("osdctl verify isolatoin", "'verify isolation'"), ("osdctl top --clutser x", "'--cluster'"),
                           ("weir-dev dwon --dir x", "'down'"), ("weir-dev up --dri x", "'--dir'"),
                           ("weir-sim rnu all", "'run'"), ("weir-mds --dtaa x", "'--data'"), ("weir-osd --disc x", "'--disk'"),
                           ("weirfs --dtaa x y", "'--data'")):
        program, *rest = words.split()
        refused(run(f"{BIN}/{program}", *rest, ok=None), 2, "there is no", f"the nearest is {nearest}")
    check("over all OSDs together" in " ".join(run(f"{BIN}/osdctl", "class", "set", "--help").stdout.split()),
          "what --limit limits")


# --- names, subtrees, endpoints

def the_builds_of_a_cluster_are_shown(lab):
    system = small_cluster(lab)
    shown = json.loads(system.osdctl("version", "-o", "json").stdout)
    commit = run(f"{BIN}/osdctl", "--version").stdout.split("commit ")[1].split(")")[0]
    check([row["who"] for row in shown["programs"]] == ["osdctl", "mds", "osd.0", "mount mnt.0"], f"not all: {shown}")
    check(shown["alike"] and all(row["commit"] == commit and row["wire"] > 0 for row in shown["programs"]), f"not alike: {shown}")
    check(system.osdctl("version").stderr == "", "a warning, and they are alike")


def a_bundle_tells_of_the_cluster_and_not_of_files(lab):
    system = small_cluster(lab)
    with open(f"{system.dir}/log/mds.0.log", "a") as log:
        log.write("no 'pay roll' below /home/ann\n")
    refused(system.osdctl("bundle", lab.path("b.zip"), ok=None), 2, "NAME.tar.gz")
    for extra, told in ((), False), (("--names",), True):
        archive = lab.path(f"b{told}.tar.gz")
        system.osdctl("bundle", archive, *extra)
        names = run("tar", "-tzf", archive).stdout.split()
        inside = {os.path.basename(name) for name in names}
        check({"version.txt", "status.json", "osd.0.json", "names.json", "mds.0.log", "osd.0.log", "missing.txt"} <= inside,
              f"not all is in it: {inside}")
        text = run("tar", "-xzOf", archive).stdout
        check("osd.0" in text and "serving" in text, "logs are missing")
        check(("pay roll" in text or "/home/ann" in text) == told, f"names of files, and --names is {told}")
        refused(system.osdctl("bundle", archive, ok=None), 1, "is there already")
    # When it is needed most.
    system.dev("stop", "mds.0")
    archive = lab.path("without_mds.tar.gz")
    done = system.osdctl("bundle", archive, ok=(3,))
    check("warning: only logs" in done.stderr, f"{done}")
    text = run("tar", "-xzOf", archive).stdout
    check("osd.0" in text and "no contact" in text, f"not the logs and what is missing: {text[-500:]}")
    system.dev("start", "mds.0")


def names_that_look_like_options_are_refused(lab):
    system = small_cluster(lab)
    second = lab.path("second")
    os.mkdir(second)
    for name in ("-x", "--", "-", "--help", ".", "..", ".x", "a b", "a,b", "a/b", "", "x" * 65, "ä"):
        for verb in (["class", "create", "--", name], ["pool", "create", "--osds=0", "--replicas", "1", "--", name],
                     ["rule", "add", "--uid", "1", f"--client={name}", "--class", "best-effort"]):
            if name == "" and verb[0] == "rule":
                continue  # no client is named
            done = system.osdctl(*verb, ok=None)
            check(done.returncode == 2 and done.stderr, f"{verb}: {done}")
        for option in ("class", "client"):
            done = run(f"{BIN}/weirfs", endpoint_of(system), second, "-o", f"{option}={name}", ok=None)
            check(done.returncode == 2 and not is_mounted(second), f"-o {option}={name}: {done}")
    check([c["class"] for c in json.loads(system.osdctl("class", "ls", "-o", "json").stdout)["classes"]
           if not c["class"].startswith("system.")] == ["best-effort"], "a class was made")
    for verb in (["class", "rm"], ["class", "show"], ["class", "set", "--weight", "2"], ["pool", "rm"], ["release"]):
        check(system.osdctl(*verb, "--", "-x", ok=None).returncode == 5, f"{verb}: one of an older version can be removed")
    for name in ("_x", "a.b", "0", "A-b_c.9", "x" * 64):
        system.osdctl("class", "create", name)


def any_name_can_be_a_subtree(lab):
    system = small_cluster(lab)
    endpoint = endpoint_of(system)
    mnt = lab.path("sub")
    os.mkdir(mnt)
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None) if is_mounted(mnt) else None)
    run("chmod", "711", lab.dir)
    names = [b"archive,2026", b"x,allow_other,suid,dev", b"a:", b"a:/b", b"://", b"://c", b"\\,allow_other", b"back\\slash\\",
             b"with blank", b"line\nfeed", b"tab\t#", b"-o", b"caf\xc3\xa9", b"\xff\xfe", b'"quoted"', b"[::1]:7", b"tcp:", b"...",
             b"..x", b"$HOME `x`", b"n" * 255]
    for name in names:
        os.makedirs(os.path.join(os.fsencode(system.mnt), name))
        with open(os.path.join(os.fsencode(system.mnt), name, b"mark"), "wb") as file:
            file.write(name)
    flags = "rw,nosuid,nodev,relatime"
    for name in names:
        source = os.fsencode(endpoint) + b":/" + name
        done = subprocess.run([f"{BIN}/weirfs", source, mnt], capture_output=True, timeout=60)
        check(done.returncode == 0, f"{name}: {done}")
        with open(f"{mnt}/mark", "rb") as file:
            check(file.read() == name, f"{name}: another directory is mounted")
        found = source_and_options(mnt)
        check(found == (flags, source, "rw,user_id=0,group_id=0,default_permissions"), f"{name}: {found}")
        umount(mnt)
    for slashes in (f"{endpoint}:///archive,2026//", f"{endpoint}:/./archive,2026/."):
        run(f"{BIN}/weirfs", slashes, mnt)
        check(os.path.exists(f"{mnt}/mark"), slashes)
        umount(mnt)
    for bad in ("..", "../x", "archive,2026/..", "archive,2026/../x", "./.."):
        refused(run(f"{BIN}/weirfs", f"{endpoint}:/{bad}", mnt, ok=None), 2, "..")
        check(not is_mounted(mnt), f"{bad} was mounted")
    refused(run(f"{BIN}/weirfs", f"{endpoint}:/archive,2026/no/such", mnt, ok=None), 5, "'/archive,2026/no/such'",
            "there is no '/archive,2026/no'")
    for path in ("archive,2026/mark", "archive,2026/mark/x"):
        refused(run(f"{BIN}/weirfs", f"{endpoint}:/{path}", mnt, ok=None), 1, "'/archive,2026/mark' is not a directory")
    # A path below such a mount is found, and what stands in its name is no option of the one who asks.
    run(f"{BIN}/weirfs", f"{endpoint}:/a:/b", mnt)
    refused(system.osdctl("rule", "test", f"{mnt}/none", ok=None), 5, "/a:/b/none")
    umount(mnt)
    # As mount(8) and fstab have it; it looks for weirfs where the system keeps its programs.
    script = 'mount --bind "$1" /usr/local/bin && mount -t fuse.weirfs "$2" "$3" -o ro && cat "$3/mark"; umount "$3"'
    for name in ("archive,2026", "x,allow_other,suid,dev", "a:/b"):
        done = run("unshare", "-m", "bash", "-c", script, "bash", BIN, f"{endpoint}:/{name}", mnt, ok=None)
        check(done.stdout == name, f"mount -t fuse.weirfs of {name}: {done}")
    fstab = lab.path("fstab")
    with open(fstab, "w") as file:
        file.write(f"{endpoint}:/with\\040blank {mnt} fuse.weirfs noauto,class=best-effort 0 0\n")
    script = 'mount --bind "$1" /usr/local/bin && mount -T "$2" "$3" && cat "$3/mark"; umount "$3"'
    done = run("unshare", "-m", "bash", "-c", script, "bash", BIN, fstab, mnt, ok=None)
    check(done.stdout == "with blank", f"fstab: {done}")


def values_of_options_may_hold_commas(lab):
    data = lab.path("a,suid,b")
    mnt = lab.path("m")
    os.mkdir(mnt)
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None) if is_mounted(mnt) else None)
    for text in (data.replace(",", "\\,"), f'"{data}"'):
        run(f"{BIN}/weirfs", "x", mnt, "-o", f"ro,data={text}", *SMALL)
        check(os.path.exists(f"{data}/mds.img"), "the data lies elsewhere")
        check(source_and_options(mnt)[0].startswith("ro,nosuid,nodev"), f"{source_and_options(mnt)}")
        umount(mnt)
        wait_until(lambda: run("flock", "-n", f"{data}/lock", "true", ok=None).returncode == 0, "its end")
    refused(run(f"{BIN}/weirfs", "x", mnt, "-o", f'data="{data}', ok=None), 2, "quote")


def free_port():
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return probe.getsockname()[1]


HOSTS = "127.0.0.1 localhost both.test four.test\n::1 localhost both.test six.test\n"


def with_hosts(lab, *argv):
    """The command with an /etc/hosts of the test's own."""
    path = lab.path("hosts")
    with open(path, "w") as file:
        file.write(HOSTS)
    return ["unshare", "-m", "--propagation", "unchanged", "bash", "-c",
            'mount --make-private /etc/hosts 2>/dev/null; mount --bind "$0" /etc/hosts && exec "$@"', path, *argv]


def daemon(lab, *argv):
    log = open(lab.path(f"{os.path.basename(argv[0])}.log"), "a")  # noqa: SIM115 - the daemon's
    process = subprocess.Popen(with_hosts(lab, *argv), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def end():
        if process.poll() is None:
            process.terminate()
            process.wait(60)
    lab.on_exit(end)
    return process


def ends(*processes):
    for process in processes:
        process.send_signal(signal.SIGTERM)
        check(process.wait(60) == 0, f"{process.args}: {process.returncode}")


def hosts_have_names_and_ipv6(lab):
    def here(*argv, ok=(0,)):
        return run(*with_hosts(lab, *argv), ok=ok)

    for number, host in enumerate(("localhost", "[::1]", "six.test")):
        base = lab.path(str(number))
        os.makedirs(f"{base}/mnt")
        lab.on_exit(lambda mnt=f"{base}/mnt": run("umount", "-l", mnt, ok=None) if is_mounted(mnt) else None)
        port = free_port()
        mds = f"tcp://{host}:{port}"
        ready = f"{base}/ready"
        # The HTTP library may be built without IPv6.
        metrics = f"{'four.test' if host in ('[::1]', 'six.test') else host}:{free_port()}"
        server = daemon(lab, f"{BIN}/weir-mds", "--data", f"{base}/mds", "--listen", mds, "--metrics", metrics)
        wait_until(lambda: os.path.exists(f"{base}/mds/endpoint") or server.poll() is not None, "the MDS")
        check(server.poll() is None, f"weir-mds --listen {mds}: exit {server.poll()}")
        with open(f"{base}/mds/endpoint") as file:
            check(file.read().strip() == mds, "the endpoint that others are told")
        here(f"{BIN}/weir-osd", "--mkfs", "--disk", f"{base}/img", "--size", "256MiB", "--token-rate", "500MiB/s", "--mds", mds)
        osd = daemon(lab, f"{BIN}/weir-osd", "--disk", f"{base}/img", "--mds", f"{host}:{port}", "--listen", f"tcp://{host}:0",
                     "--ready-file", ready)
        wait_until(lambda: os.path.exists(ready) or osd.poll() is not None, "the OSD")
        check(osd.poll() is None, f"weir-osd --listen tcp://{host}:0: exit {osd.poll()}")
        with open(ready) as file:
            check(file.read().startswith(f"tcp://{host}:"), "the endpoint that clients are told")
        for cluster in (mds, f"{host}:{port}"):
            # A mount belongs to its namespace: it is used from there, and ends there.
            script = '"$1" "$2" "$3" && echo text > "$3/file" && cat "$3/file" && umount "$3"'
            done = here("bash", "-c", script, "bash", f"{BIN}/weirfs", cluster, f"{base}/mnt")
            check(done.stdout == "text\n", f"weirfs {cluster}: {done}")
            here(f"{BIN}/osdctl", "--cluster", cluster, "status")
        page = here("curl", "-sg", f"http://{metrics}/metrics").stdout
        check("weir_mds_inodes" in page, f"--metrics {metrics}")
        if host == "localhost":  # reached at both of its addresses
            for address in (f"127.0.0.1:{port}", f"[::1]:{port}", f"four.test:{port}", f"six.test:{port}"):
                here(f"{BIN}/osdctl", "--cluster", address, "status")
        ends(osd, server)
    # Who listens at one address of a host is found by its name, whichever that is.
    port = free_port()
    for listen in ("127.0.0.1", "[::1]"):
        data = lab.path(f"only{listen}")
        server = daemon(lab, f"{BIN}/weir-mds", "--data", data, "--listen", f"tcp://{listen}:{port}")
        wait_until(lambda: os.path.exists(f"{data}/endpoint"), "the MDS")  # noqa: B023 - polled at once
        for host in ("localhost", "both.test"):
            done = here(f"{BIN}/osdctl", "--cluster", f"{host}:{port}", "class", "ls")
            check("best-effort" in done.stdout, f"{host} of {listen}: {done}")
        ends(server)
    unknown = "no-such-host.invalid"
    os.mkdir(lab.path("m"))
    for argv in (["weirfs", f"{unknown}:1", lab.path("m")], ["osdctl", "--cluster", f"{unknown}:1", "status"],
                 ["osdctl", "--cluster", f"tcp://{unknown}:1", "status"],
                 ["weir-osd", "--mkfs", "--disk", "/dev/null", "--mds", f"{unknown}:1"]):
        refused(run(f"{BIN}/{argv[0]}", *argv[1:], ok=None), 6, unknown)
    for listen in (f"tcp://{unknown}:1", "tcp://192.0.2.1:0", "tcp://[2001:db8::1]:0"):
        done = run(f"{BIN}/weir-mds", "--data", lab.path("none"), "--listen", listen, "--insecure", ok=None)
        check(done.returncode == 1 and "address" in done.stderr, f"{listen}: {done}")


# --- what is left behind, and what a signal does

def logs_and_pid_files(lab):
    system = small_cluster(lab)
    mnt = lab.path("m")
    os.mkdir(mnt)
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None) if is_mounted(mnt) else None)
    places = ([endpoint_of(system), mnt], ["--data", lab.path("d"), mnt, *SMALL])
    for place in places:
        for foreground in ([], ["-f"]):
            for log in ("/proc/none.log", lab.path("no/such/folder/log"), lab.dir):
                done = run(f"{BIN}/weirfs", *place, *foreground, "--log-file", log, ok=None, timeout=60)
                refused(done, 1, f"cannot log to '{log}'")
                check(not is_mounted(mnt), "mounted all the same")
        done = run(f"{BIN}/weirfs", *place, "--pid-file", lab.path("no/such/pid"), ok=None)
        check(done.returncode != 0 and "pid" in done.stderr and not is_mounted(mnt), f"{done}")
    pid_file = lab.path("pid")
    for place in [*places, [endpoint_of(system), mnt, "-o", "supervise"]]:
        run(f"{BIN}/weirfs", *place, "--pid-file", pid_file)
        with open(pid_file) as file:
            check(os.path.exists(f"/proc/{file.read().strip()}/stat"), "the pid file names nobody")
        umount(mnt)
        wait_until(lambda: not os.path.exists(pid_file), f"the pid file of {place} to go", timeout=30)
        wait_until(lambda: run("flock", "-n", f"{lab.path('d')}/lock", "true", ok=None).returncode == 0
                   if os.path.exists(lab.path("d/lock")) else True, "its end")
    # Who takes a mount over keeps the file.
    run(f"{BIN}/weirfs", endpoint_of(system), mnt, "--pid-file", pid_file)
    with open(pid_file) as file:
        first = file.read().strip()
    run(f"{BIN}/weirfs", "--replace", endpoint_of(system), mnt, "--pid-file", pid_file)
    wait_until(lambda: not os.path.exists(f"/proc/{first}"), "the first to end")
    with open(pid_file) as file:
        check(file.read().strip() != first, "the pid file of the first stayed")
    umount(mnt)
    wait_until(lambda: not os.path.exists(pid_file), "the pid file to go")


def signals_end_the_wait_for_an_mds(lab):
    mnt = lab.path("m")
    os.mkdir(mnt)
    with socket.socket() as silent:  # takes connections and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        mds = f"127.0.0.1:{silent.getsockname()[1]}"
        with open(lab.path("disk"), "wb") as disk:
            disk.truncate(256 * MIB)
        weirfs = [f"{BIN}/weirfs", mds, mnt]
        mkfs = [f"{BIN}/weir-osd", "--mkfs", "--force", "--disk", lab.path("disk"), "--mds", mds]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for argv in (weirfs, [*weirfs, "-f"], [*weirfs, "-o", "supervise"], [*weirfs, "-f", "-o", "supervise"], mkfs):
                silent.settimeout(30)
                process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
                silent.accept()[0].close()  # it has come to where it waits
                process.send_signal(number)
                try:
                    _, error = process.communicate(timeout=8)  # it would wait ten seconds
                except subprocess.TimeoutExpired:
                    process.kill()
                    check(False, f"{argv} ignores signal {number}")
                if argv is mkfs:
                    check(process.returncode == -number, f"{argv}: {process.returncode}")
                else:
                    check(process.returncode == 1, f"{argv}: exit {process.returncode} {error}")
                    check(number.name in error or "supervise" in argv, f"{argv}: {error}")
                check(not is_mounted(mnt), f"{argv} mounted after signal {number}")
                silent.settimeout(0)
                while True:  # what it dialled more often
                    try:
                        silent.accept()[0].close()
                    except OSError:
                        break


def remounts_change_flags(lab):
    system = small_cluster(lab, mounts=1)
    embedded = Embedded(lab, *SMALL)
    script = 'mount --bind "$1" /usr/local/bin; mount -o "remount,$2" "$3"'
    fstab = 'mount --bind "$1" /usr/local/bin; mount -t fuse.weirfs -o "remount,$2" source "$3"'
    for mnt in (system.mnt, embedded.mnt):
        with open(f"{mnt}/file", "w") as file:
            file.write("x")

        def writable():
            try:
                with open(f"{mnt}/file", "a") as file:  # noqa: B023 - called at once
                    file.write("x")
                return True
            except OSError as error:
                check(error.errno == 30, f"{error}")
                return False

        def remount(options, way):
            # The mount is the same in both namespaces: flags of its superblock are seen in ours.
            return run("unshare", "-m", "bash", "-c", way, "bash", BIN, options, mnt, ok=None)  # noqa: B023

        for way in (script, fstab):
            done = remount("ro", way)
            check(done.returncode == 0 and not writable(), f"remount,ro of {mnt}: {done}")
            done = remount("rw", way)
            check(done.returncode == 0 and writable(), f"remount,rw of {mnt}: {done}")
        with open(f"{mnt}/file", "a"):
            refused(remount("ro", script), 1, "cannot remount", "open for writing")
        check(writable(), "it is read-only all the same")
        # By weirfs itself, as mount(8) calls it: here for the mount in our namespace.
        run(f"{BIN}/weirfs", "source", mnt, "-o", "ro,nosuid,nodev,noexec,noatime,nodiratime,remount,user_id=0,group_id=0")
        check(source_and_options(mnt)[0] == "ro,nosuid,nodev,noexec,noatime,nodiratime", f"{source_and_options(mnt)}")
        run(f"{BIN}/weirfs", "source", mnt, "-o", "remount,rw,dev,suid,exec")
        check(source_and_options(mnt)[0] == "rw,relatime" and writable(), f"{source_and_options(mnt)}")
    refused(run(f"{BIN}/weirfs", "source", lab.dir, "-o", "remount,ro", ok=None), 2, "no WeirFS is mounted")
    refused(run(f"{BIN}/weirfs", "source", embedded.mnt, "-o", "user_id=0", ok=None), 2, "user_id=0")


# --- what is said

def a_cluster_says_what_is_so(lab):
    mnt = lab.path("mnt.x")
    system = small_cluster(lab, osds=2, mounts=0, extra=["--mount", mnt, "-o", "allow_other,noexec", "-o", "class=best-effort"])
    lab.on_exit(lambda: run("umount", "-l", mnt, ok=None) if is_mounted(mnt) else None)
    flags, _, options = source_and_options(mnt)
    check("noexec" in flags and "allow_other" in options, f"options of weir-dev's mounts: {flags} {options}")
    system.dev("stop", "mnt.0")
    system.dev("start", "mnt.0")
    check("allow_other" in source_and_options(mnt)[2], "they are gone after a restart")
    done = run(f"{BIN}/weir-dev", "up", "--dir", lab.path("other"), "-o", "ro", ok=None)
    refused(done, 2, "--mount")
    size = 40 * MIB
    with open(f"{mnt}/file", "wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())

    def used():
        shown = json.loads(system.osdctl("osd", "ls", "-o", "json").stdout)["osds"]
        return sum(osd["used_bytes"] for osd in shown) >= size
    wait_until(used, "osd ls to count what is used")
    for verb in (["status"], ["osd", "show", "0"], ["osd", "ls"]):
        check(not re.search(r"\b0B\b.*\n?.*osd\.0", system.osdctl(*verb).stdout) and "used_bytes                   0B" not in
              system.osdctl(*verb).stdout, f"{verb} says that nothing is used")
    status = json.loads(system.osdctl("status", "-o", "json").stdout)
    check(sum(osd["used_bytes"] for osd in status["osds"]) >= size, f"status: {status['osds']}")
    with open(f"{system.dir}/log/mds.0.log") as log:
        text = log.read()
        check("registered at ''" not in text and "registered at 'tcp" in text, f"the log of the MDS: {text}")
    system.dev("kill", "osd.1")

    def down():
        done = system.osdctl("status", "-o", "json", ok=None)
        return done.returncode == 7 and [t for t in json.loads(done.stdout)["troubles"] if "osd.1 is down" in t]
    troubles = wait_until(down, "status to miss an OSD")
    check(len(troubles) == 1, f"one OSD, said twice: {troubles}")


def a_start_that_fails_leaves_nothing(lab):
    system = small_cluster(lab, mounts=0)
    endpoint = f"{system.dir}/endpoint"

    def mds():
        with open(f"{system.dir}/weir-dev.json") as file:
            pid = json.load(file)["mds"]["pid"]
        try:
            with open(f"/proc/{pid}/stat") as file:
                alive = file.read().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            alive = False
        return pid, alive
    system.dev("stop", "mds.0")
    os.rename(endpoint, f"{endpoint}.away")
    os.mkdir(endpoint)  # the MDS serves, and then that cannot be written down
    old = mds()[0]
    done = run(f"{BIN}/weir-dev", "start", "--dir", system.dir, "mds.0", ok=None, timeout=120)
    check(done.returncode == 1, f"exit {done.returncode}: {done}")
    check(mds()[0] != old, f"no MDS was started: {done}")
    wait_until(lambda: not mds()[1], "the MDS to end, as its start failed")
    os.rmdir(endpoint)
    os.rename(f"{endpoint}.away", endpoint)
    system.dev("start", "mds.0")
    check(mds()[1], "the MDS does not run")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    main("command_line", closed_files_end_in_documented_codes, few_files_are_an_error_that_says_so, lost_output_is_an_error,
         versions_and_bad_usage, the_builds_of_a_cluster_are_shown,
         a_bundle_tells_of_the_cluster_and_not_of_files, names_that_look_like_options_are_refused, any_name_can_be_a_subtree,
         values_of_options_may_hold_commas, hosts_have_names_and_ipv6, logs_and_pid_files, signals_end_the_wait_for_an_mds,
         remounts_change_flags, a_cluster_says_what_is_so, a_start_that_fails_leaves_nothing)
