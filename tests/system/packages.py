#!/usr/bin/env python3
"""Debian packages of the build under test: what is in them, their services, and installing, upgrading, removing and
purging them in a Debian 12 of its own (made by mmdebstrap and kept below /var/tmp; left out where mmdebstrap is missing).
What the units start is started by hand, as their user; and once more by a systemd that systemd-nspawn boots, where there
is that and a cgroup2 for it."""
import glob
import os
import re
import shutil
import signal
import subprocess

from booted import machine_goes_down_and_up, services_under_systemd
from debian import NAMES, Debian, built, field, give_to_disk_group, package
from installed import OtherHost, configure, newer, packages
from weirtest import BIN, MIB, REPO, Cluster, check, is_mounted, main, read_from_disk, run, wait_until

FILES = {
    "weirfs": ["usr/bin/weirfs", "usr/sbin/mount.weirfs", "usr/sbin/umount.fuse.weirfs"],
    "weirfs-common": ["etc/weirfs/", "lib/systemd/system/weirfs.target", "usr/lib/sysusers.d/weirfs-common.conf",
                      "usr/lib/weirfs/let-mounts-end"],
    "weirfs-mds": ["usr/bin/weir-mds", "lib/systemd/system/weir-mds.service", "usr/share/doc/weirfs-mds/examples/mds.toml"],
    "weirfs-osd": ["usr/bin/weir-osd", "lib/systemd/system/weir-osd@.service",
                   "usr/share/doc/weirfs-osd/examples/osd-sdb.toml"],
    "weirfs-tools": ["usr/bin/osdctl", "usr/bin/weir-dev", "usr/bin/weir-sim", "usr/share/weirfs/report/__main__.py",
                     "usr/share/weirfs/monitoring/alerts.yml", "usr/share/weirfs/monitoring/grafana-dashboard.json"],
}
# What else may lie in a package.
OTHERS = r"usr/share/(doc|man|bash-completion|zsh|fish|lintian)/.*|usr/share/weirfs/(report|monitoring)/.*|.*/"


def unpacked(lab):
    root = lab.path("unpacked")
    for name in NAMES:
        run("dpkg-deb", "-x", package(packages(), name), root)
    return root


def settings(unit):
    """Of a unit, KEY to the list of its values."""
    found = {}
    with open(unit) as file:
        for line in file:
            if "=" in line and not line.startswith("#"):
                key, value = line.rstrip("\n").split("=", 1)
                found.setdefault(key, []).append(value)
    return found


def what_they_hold(lab):
    first, second = built(2)
    check(sorted(os.listdir(first)) == sorted(os.listdir(second)), "two runs made different packages")
    for deb in glob.glob(f"{first}/*.deb"):
        with open(deb, "rb") as one, open(f"{second}/{os.path.basename(deb)}", "rb") as other:
            check(one.read() == other.read(), f"two runs made different bytes: {deb}")
    versions = set()
    for name in NAMES:
        deb = package(first, name)
        versions.add(field(deb, "Version"))
        held = {}
        for line in run("dpkg-deb", "-c", deb).stdout.splitlines():
            mode, owner, _, _, _, path = line.split(maxsplit=5)
            held[path[2:]] = mode
            check(owner == "root/root" and mode[8] != "w" and "s" not in mode, f"{name}: {line}")
        for path in FILES[name]:
            check(path in held, f"{name} lacks {path}: {sorted(held)}")
        strange = [path for path in held if path and path not in FILES[name] and not re.fullmatch(OTHERS, path)]
        check(not strange, f"{name} has {strange}")
        check(field(deb, "Description") and field(deb, "Maintainer"), f"{name}: {run('dpkg-deb', '-f', deb).stdout}")
        programs = [path for path in FILES[name] if path.startswith("usr/bin/")]
        if programs:
            check("libc6 (" in field(deb, "Depends"), f"{name} depends on {field(deb, 'Depends')}")
            symbols = run("dpkg-deb", "-c", package(first, name + "-dbgsym")).stdout
            check(symbols.count(".debug\n") == len(programs), f"debug symbols of {programs}: {symbols}")
        check((name == "weirfs-common") == (field(deb, "Architecture") == "all"), f"{name} is for {field(deb, 'Architecture')}")
    check(len(versions) == 1, f"{versions}")
    version = versions.pop()
    check(re.fullmatch(r"\d+\.\d+\.\d+~git\d{8}\.\d+\.[0-9a-f]{12}(\+changes)?-1", version), version)
    check(run("dpkg", "--compare-versions", version, "lt", version.split("~")[0], ok=(0, 1)).returncode == 0,
          f"{version} would come after its release")
    if not shutil.which("lintian"):
        print("        no lintian here")
        return
    run(f"{REPO}/tools/package", "--source", "--output", lab.path("source"))
    for changes in (glob.glob(f"{first}/*.changes"), glob.glob(lab.path("source/*.changes"))):
        run("lintian", "--allow-root", "--tag-display-limit", "0", "--fail-on", "error,warning", *changes)


def units_are_good(lab):
    root = unpacked(lab)
    units = f"{root}/lib/systemd/system"
    for name, directory, condition in (("weir-mds", "mds", ["/etc/weirfs/mds.toml"]), ("weir-osd@", "osd-%i", None)):
        unit = settings(f"{units}/{name}.service")
        configuration = f"/etc/weirfs/{directory}.toml"
        for key, value in (("Type", "notify"), ("User", "weirfs"),
                           ("ExecStart", f"/usr/bin/{name.rstrip('@')} --config {configuration}"),
                           ("StateDirectory", f"weirfs/{directory}"), ("RuntimeDirectory", f"weirfs/{directory}"),
                           ("WatchdogSec", "30"), ("Restart", "on-failure"), ("CapabilityBoundingSet", ""),
                           ("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("WantedBy", "weirfs.target")):
            check(unit.get(key) == [value], f"{name}: {key} is {unit.get(key)}, not {value}")
        check(unit.get("ConditionPathExists") == condition, f"{name} starts if {unit.get('ConditionPathExists')}")
        for key in ("TimeoutStopSec", "StartLimitBurst", "LimitNOFILE"):
            check(int(unit[key][0]) > 0, f"{name}: {key} is {unit[key]}")
    if not shutil.which("systemd-analyze"):
        print("        no systemd-analyze here")
        return
    for unit in os.listdir(units):
        path = f"{units}/{unit}"
        with open(path) as file:
            text = file.read().replace("/usr/bin/weir-", f"{BIN}/weir-")
        with open(path, "w") as file:
            file.write(text)
        check(run("systemd-analyze", "verify", "--man=no", path.replace("@.", "@sdb.")).stderr == "", f"{unit} is not clean")
        if unit.endswith(".service"):
            # 2.0 of 10 and below is OK.
            run("systemd-analyze", "security", "--offline=yes", "--threshold=20", path)
    filters = run("systemd-analyze", "syscall-filter", "@aio", "@resources").stdout
    for call in ("io_uring_setup", "io_uring_enter", "io_uring_register", "sched_setattr", "sched_setscheduler"):
        check(call in filters, f"the sandbox would forbid {call}")


class Installed:
    """The build, installed: in a namespace of its own mount(8) and umount(8) find their helpers there."""

    def __init__(self, lab):
        prefix, self.helpers = lab.path("prefix"), lab.path("helpers")
        run("cmake", "--install", os.path.dirname(BIN), "--prefix", prefix)
        os.mkdir(self.helpers)
        for name in ("mount.weirfs", "umount.fuse.weirfs"):
            os.symlink(f"{prefix}/sbin/{name}", f"{self.helpers}/{name}")

    def argv(self, script, *words):
        return ["unshare", "-m", "bash", "-c", f"mount --bind {self.helpers} /usr/sbin && {{ {script}; }}", "bash", *words]


def port_of(system):
    with open(f"{system.dir}/endpoint") as file:
        return file.read().strip().rsplit(":", 1)[1]


def mount_type(lab):
    """As mount(8) and fstab have it."""
    system = Cluster(lab, osd_size="256MiB")
    port = port_of(system)
    os.mkdir(f"{system.mnt}/sub")
    for name, text in (("top", "the root"), ("sub/mark", "the subtree")):
        with open(f"{system.mnt}/{name}", "w") as file:
            file.write(text)
    installed, mnt = Installed(lab), lab.path("m")
    os.mkdir(mnt)

    def there(script, *words, ok=(0,)):
        return run(*installed.argv(script, mnt, *words), ok=ok)

    for source, path, text in ((f"127.0.0.1:{port}", "top", "the root"), (f"localhost:{port}:/sub", "mark", "the subtree"),
                               (f"tcp://127.0.0.1:{port}:/sub", "mark", "the subtree")):
        done = there('mount -t weirfs "$2" "$1" -o ro,class=best-effort && cat "$1/$3" && grep -F " $1 " /proc/self/mountinfo; '
                     'umount "$1"', source, path)
        check(done.stdout.startswith(text) and " ro," in done.stdout, f"{source}: {done}")
    fstab = lab.path("fstab")
    with open(fstab, "w") as file:
        file.write(f"127.0.0.1:{port}:/sub {mnt} weirfs _netdev,nofail,x-systemd.requires=x.service,class=best-effort 0 0\n")
    done = there('mount -T "$2" -a && mount -T "$2" -a && cat "$1/mark" && grep -cF " $1 " /proc/self/mountinfo && '
                 'mount -T "$2" -o remount,ro "$1" && ! touch "$1/new" 2>/dev/null; umount "$1"', fstab)
    check(done.stdout.splitlines() == ["the subtree1"], f"fstab: {done}")
    # What mount(8) alone knows of a mount is listed beside what weirfs has listed, and goes with it.
    done = there('mount -t tmpfs none /run/mount && mount -t weirfs -o _netdev "$2" "$1" && findmnt --mtab -no OPTIONS "$1" && '
                 'cat /run/mount/utab; umount "$1"; cat /run/mount/utab', f"127.0.0.1:{port}")
    check(re.search(r"^\S*\b_netdev\b", done.stdout) and done.stdout.count("OPTS=") == 2, f"options of mount(8): {done}")
    for words, code, said in ((["localhost:9", mnt], 32, "no contact with tcp://localhost:9; is its daemon running and the network up? ('localhost' is 127.0.0.1"), ([mnt], 1, "what and where"),
                              ([f"127.0.0.1:{port}", mnt, "-o", "nonsense"], 1, "unknown mount option 'nonsense'"),
                              ([f"127.0.0.1:{port}", mnt, "-o", "clss=gold"], 1, "did you mean 'class'?"),
                              ([f"127.0.0.1:{port}", mnt, "-x"], 1, "'-x' is unknown"),
                              ([f"127.0.0.1:{port}:/none", mnt], 32, "there is no '/none'")):
        done = run(f"{installed.helpers}/mount.weirfs", *words, ok=None)
        check(done.returncode == code and said in done.stderr, f"mount.weirfs {words}: {done}")
    done = run(f"{installed.helpers}/mount.weirfs", "a", mnt, "-fv", "-o", "ro", "-onoatime", "-sn")
    check(done.stdout == f"mount.weirfs: weirfs a {mnt} -o ro,noatime\n" and not is_mounted(mnt), f"-f: {done}")


def unmounting_waits_until_all_is_stored(lab):
    """As umount(8) has it, while the only OSD takes nothing."""
    system = Cluster(lab, osd_size="256MiB")
    installed = Installed(lab)
    mnt, elsewhere = lab.path("m"), lab.path("elsewhere")
    for directory in (mnt, elsewhere):
        os.mkdir(directory)
    osds = [int(pid) for pid in run("pgrep", "-f", f"weir-osd.*{system.dir}").stdout.split()]
    text = os.urandom(4 * MIB)
    with open(lab.path("text"), "wb") as file:
        file.write(text)

    def begin(script):
        """On a mount with a file that is not stored, in its own namespace."""
        for osd in osds:
            os.kill(osd, signal.SIGSTOP)
        prelude = f"""
            {BIN}/weirfs 127.0.0.1:{port_of(system)} "$1" --pid-file {lab.path("pid")} && cp {lab.path("text")} "$1/$$" || exit 99
            umounted() {{ ! grep -qF " $1 " /proc/self/mountinfo; }}
        """
        process = subprocess.Popen(installed.argv(prelude + script, mnt, elsewhere), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        lab.on_exit(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def go_on():
        for osd in osds:
            os.kill(osd, signal.SIGCONT)

    lab.on_exit(go_on)

    def weirfs():
        with open(lab.path("pid")) as file:
            return int(file.read())

    def holds_files(pid):
        """False from when it ends, also while nobody has heard of that."""
        try:
            return bool(os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            return False

    def told(process):
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    # A part of the tree that is mounted in a second place is no end.
    process = begin('mount --bind "$1" "$2" && umount "$2" && echo first && umount "$1" && echo second')
    check(process.stdout.readline() == "first\n", "umount of a second mount")
    wait_until(lambda: not run("nsenter", "-t", process.pid, "-m", "grep", "-F", f" {mnt} ", "/proc/self/mountinfo", ok=(0, 1)).stdout,
               "the mount to go")
    pid = weirfs()
    check(process.poll() is None and holds_files(pid), "umount did not wait")
    go_on()
    code, said = told(process)
    check((code, said, holds_files(pid)) == (0, "second\n", False), f"umount, once all is stored: {code}: {said}")
    check(read_from_disk(f"{system.mnt}/{process.pid}") == text, "not all is stored")

    # Who says lazily, or by force, waits for nobody.
    for how in ("-l", "-f"):
        process = begin(f'umount {how} "$1" && umounted "$1" && echo gone')
        check(told(process) == (0, "gone\n"), f"umount {how}")
        pid = weirfs()
        check(holds_files(pid), f"umount {how} waited")
        go_on()
        wait_until(lambda: not holds_files(pid), "weirfs to end")

    # Who dies then has not stored it, and that is said.
    process = begin('umount "$1"')
    wait_until(lambda: os.path.exists(lab.path("pid")) and weirfs() != pid, "another weirfs")
    wait_until(lambda: not run("nsenter", "-t", process.pid, "-m", "grep", "-F", f" {mnt} ", "/proc/self/mountinfo", ok=(0, 1)).stdout,
               "the mount to go")
    os.kill(weirfs(), signal.SIGKILL)
    code, said = told(process)
    check(code == 64 and f"'{mnt}' is unmounted, but weirfs ended before" in said, f"{code}: {said}")
    go_on()

    # Without the program the script is no hindrance.
    os.unlink(lab.path("prefix/bin/weirfs"))
    code, said = told(begin('umount "$1" && umounted "$1"'))
    check(code == 0, f"without weirfs: {code}: {said}")
    go_on()


# --- in a Debian of its own

def limits_of(unit):
    """A nice value of N is the limit 20 - N."""
    return [f"--nofile={unit['LimitNOFILE'][0]}", f"--rtprio={unit.get('LimitRTPRIO', ['0'])[0]}",
            f"--nice={20 - int(unit.get('LimitNICE', ['20'])[0])}"]


# Containers may keep it even from root.
MAY_RAISE_LIMITS = run("prlimit", "--nofile=65536", "--rtprio=1", "--nice=40", "true", ok=None).returncode == 0


class Services:
    """What the units would start, by hand: their command lines, user, groups, limits and directories."""

    def __init__(self, lab, debian):
        self.lab, self.debian, self.running = lab, debian, []

    def unit(self, name):
        return {key: [value.replace("%i", "a") for value in values]
                for key, values in settings(self.debian.path(f"lib/systemd/system/{name}.service")).items()}

    def as_user(self, name, *words):
        unit = self.unit(name)
        for key, parent in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")):
            self.debian.run("install", "-d", "-o", "weirfs", "-g", "weirfs", "-m", "700", f"{parent}/{unit[key][0]}")
        limits = limits_of(unit) if MAY_RAISE_LIMITS else []
        groups = ["--groups", unit["SupplementaryGroups"][0]] if "SupplementaryGroups" in unit else ["--clear-groups"]
        return self.debian.argv("prlimit", *limits, "setpriv", "--reuid", unit["User"][0], "--regid", unit["Group"][0], *groups,
                                "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", *unit["ExecStart"][0].split(), *words)

    def start(self, name, ready, *words):
        if os.path.exists(self.debian.path(ready)):
            os.unlink(self.debian.path(ready))
        with open(self.lab.path(f"{name}.log"), "a") as log:
            process = subprocess.Popen(self.as_user(name, *words), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.running.append(process)
        self.lab.on_exit(lambda: process.poll() is None and (process.kill(), process.wait()))
        wait_until(lambda: os.path.exists(self.debian.path(ready)) or process.poll() is not None, name)
        check(process.poll() is None, f"{name} ended: {process.returncode}")
        return process

    def stop(self):
        while self.running:
            process = self.running.pop()
            process.send_signal(signal.SIGTERM)
            check(process.wait(60) == 0, f"{process.args}: {process.returncode}")


def nice_values(pid):
    values = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat") as file:
            values.append(int(file.read().rsplit(")", 1)[1].split()[16]))
    return values


def install_upgrade_remove_purge(lab):
    if not shutil.which("mmdebstrap"):
        print("        no mmdebstrap here: nothing was installed")
        return
    debian = Debian(lab, packages())
    before = debian.tree()
    debs = [package(packages(), name) for name in NAMES]
    for revision, files in ((1, debs), (2, newer(debs, lab.path("newer")))):
        os.makedirs(debian.path(f"debs/{revision}"))
        for deb in files:
            shutil.copy(deb, debian.path(f"debs/{revision}"))

    def install(revision):
        # Both orders that dpkg may take; dpkg refuses what lacks a dependency.
        debian.run("sh", "-c", f"dpkg --force-unsafe-io -i /debs/{revision}/*.deb")

    install(1)
    check(not debian.run("dpkg", "--audit").stdout, "dpkg is not content")
    for program in ("weirfs", "weir-mds", "weir-osd", "osdctl", "weir-dev", "weir-sim"):
        debian.run(program, "--version")
    check(debian.run("getent", "passwd", "weirfs").stdout.rstrip().endswith("/var/lib/weirfs:/usr/sbin/nologin"), "the user")
    for unit in ("weirfs.target", "weir-mds.service"):
        check(debian.run("systemctl", "is-enabled", unit).stdout == "enabled\n", f"{unit} is not enabled")
        debian.run("systemd-analyze", "verify", "--man=no", unit)
    check(not os.listdir(debian.path("etc/weirfs")), "something is configured")
    check(not os.path.exists(debian.path("var/lib/weirfs")), "something was started")

    disk, blank = lab.loop("disk", 512 * MIB), lab.loop("blank", 64 * MIB)
    for device in (disk, blank):
        give_to_disk_group(lab, device)
    port = configure(debian, disk)
    services = Services(lab, debian)

    def start():
        services.start("weir-mds", "var/lib/weirfs/mds/endpoint")
        return services.start("weir-osd@", "run/weirfs/osd-a/ready", "--ready-file", "/run/weirfs/osd-a/ready")

    services.start("weir-mds", "var/lib/weirfs/mds/endpoint")
    # A disk that is not its own, also an empty one, does not start it.
    for device in (disk, blank):
        done = run(*services.as_user("weir-osd@", "--disk", device), ok=(1,), timeout=60)
        check(device in done.stderr and "mkfs" in done.stderr, f"{done}")
    debian.run("weir-osd", "--mkfs", "--config", "/etc/weirfs/osd-a.toml", "--token-rate", "500MiB/s")
    services.stop()
    osd = start()
    if MAY_RAISE_LIMITS:
        check(-20 in nice_values(osd.pid), f"no thread of weir-osd goes before others: {nice_values(osd.pid)}")
    else:
        print("        no limit can be raised here: not seen that threads of weir-osd may go before others")
    with open(f"/proc/{osd.pid}/status") as file:
        check(re.search(r"(?m)^CapEff:\s*0+$", file.read()), "weir-osd has capabilities")

    os.makedirs(debian.path("mnt/weir"))
    with open(debian.path("etc/fstab")) as file:
        fstab = file.read()
    debian.write("etc/fstab", fstab + f"localhost:{port}:/ /mnt/weir weirfs _netdev,class=best-effort 0 0\n")

    def on_mount(script):
        return debian.run("sh", "-ec", f"mount /mnt/weir; {{ {script}; }} || bad=1; umount /mnt/weir; exit ${{bad:-0}}").stdout

    on_mount("echo text > /mnt/weir/file")
    other = OtherHost(lab, port)
    services.stop()
    install(2)
    check(debian.run("dpkg-query", "-W", "-f", "${Version}", "weirfs-osd").stdout.endswith("-2"), "no upgrade")
    start()
    check(on_mount("cat /mnt/weir/file") == "text\n", "what was written is gone after an upgrade")
    other.goes_on()
    other.ends_well()
    services.stop()

    # Removed: what was configured and written stays, and all of it works again.
    debian.run("ln", "-s", "/lib/systemd/system/weir-osd@.service",
               "/etc/systemd/system/weirfs.target.wants/weir-osd@a.service")
    debian.dpkg("-r", *NAMES)
    check(not os.path.exists(debian.path("usr/bin/weirfs")), "a program stayed")
    for path in ("etc/weirfs/mds.toml", "etc/weirfs/osd-a.toml", "var/lib/weirfs/mds/endpoint"):
        check(os.path.exists(debian.path(path)), f"removing took {path}")
    install(2)
    start()
    check(on_mount("cat /mnt/weir/file") == "text\n", "what was written is gone after removing and installing")
    services.stop()

    # Purged, one after the other: each takes its own.
    debian.dpkg("-P", "weirfs-mds")
    check(os.listdir(debian.path("etc/weirfs")) == ["osd-a.toml"], f"{os.listdir(debian.path('etc/weirfs'))}")
    said = debian.dpkg("-P", "weirfs", "weirfs-osd", "weirfs-tools", "weirfs-common")
    check(os.path.exists(debian.path("var/lib/weirfs/mds/endpoint")), f"purging took the namespace: {said}")
    debian.write("etc/fstab", fstab)
    os.rmdir(debian.path("mnt/weir"))
    shutil.rmtree(debian.path("var/lib/weirfs"))
    shutil.rmtree(debian.path("run/weirfs"))
    after = debian.tree()
    different = {path: (before.get(path), after.get(path)) for path in {*before, *after} if before.get(path) != after.get(path)}
    check(not different, f"purged, and not as before: {different}")
    run(f"{BIN}/weir-osd", "--fsck", "--disk", disk)  # no disk was touched

    # Once more, never configured: purging leaves nothing at all.
    install(1)
    debian.dpkg("-P", *NAMES)
    check(debian.tree() == before, "installed and purged, and not as before")


def ordinary_user(lab):
    """What the packages let a user without rights do, in PID and mount namespaces that end with each script."""
    if not shutil.which("mmdebstrap"):
        print("        no mmdebstrap here: nothing was installed")
        return
    debian = Debian(lab, packages())
    os.makedirs(debian.path("debs"))
    for name in ("weirfs", "weirfs-common"):
        shutil.copy(package(packages(), name), debian.path("debs"))
    debian.run("sh", "-c", "dpkg --force-unsafe-io -i /debs/*.deb && useradd -m alice")
    # As udev makes it, which need not run here.
    debian.run("mknod", "-m", "666", "/root/fuse", "c", "10", "229")
    debian.run("setpriv", "--reuid", "alice", "--regid", "alice", "--clear-groups", "mkdir", "/home/alice/m", "/home/alice/n")

    def session(script, ok=(0,)):
        """`alice COMMANDS` is what she types; the rest is done by root."""
        prelude = """
            mount --bind /root/fuse /dev/fuse
            alice() {
                setpriv --reuid alice --regid alice --clear-groups env HOME=/home/alice sh -ec "cd; $1"
            }
        """
        return run("unshare", "--pid", "--fork", "--kill-child", *debian.argv("sh", "-ec", prelude + script), ok=ok)

    session("""
        alice "weirfs --data ~/weir ~/m --osd-size 256MiB --token-rate 500MiB/s; echo text > m/file; mkdir m/folder"
        alice "test $(stat -c %U /home/alice/weir) = alice; cat m/file; fusermount3 -u m; ls m" > /said
        test "$(cat /said)" = text
        alice "weirfs --data ~/weir ~/m; test -d m/folder; cat m/file; umount m; flock -n weir/lock true"
    """)
    done = session("""
        alice "weirfs --data ~/weir ~/m"
        ! ls /home/alice/m 2>&1
        ! alice "weirfs --data ~/weir ~/n" 2>&1
        ! alice "weirfs --data ~/other ~/m" 2>&1
        alice "weirfs --data ~/other ~/n --osd-size 256MiB --token-rate 500MiB/s; echo more > n/file; fusermount3 -u n; fusermount3 -u m"
    """).stdout
    for words in ("'/home/alice/m': Permission denied", "has it mounted on '/home/alice/m'", "something is mounted there already"):
        check(words in done, f"no {words} in {done}")
    allow_other = 'alice "weirfs --data ~/weir ~/m -o allow_other"; cat /home/alice/m/file'
    said = session(allow_other, ok=(1,)).stderr
    check(re.search(r"take the '#' out of line \d+ of /etc/fuse\.conf", said), said)
    debian.run("sed", "-i", "s/^#user_allow_other/user_allow_other/", "/etc/fuse.conf")
    check(session(allow_other).stdout == "text\n", "root may not read in spite of allow_other")
    said = session('chmod 600 /dev/fuse; alice "weirfs --data ~/weir ~/m"', ok=(1,)).stderr
    check("chmod 666 /dev/fuse" in said, said)


if __name__ == "__main__":
    main("packages", what_they_hold, units_are_good, mount_type, unmounting_waits_until_all_is_stored, install_upgrade_remove_purge, ordinary_user,
         services_under_systemd, machine_goes_down_and_up)
