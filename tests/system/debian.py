"""Debian packages of the build under test, and Debian 12 systems of their own to try them in: unpacked (made by mmdebstrap and
kept below /var/tmp), and booted by systemd-nspawn, several of them joined by a network."""
import atexit
import fcntl
import functools
import glob
import hashlib
import os
import re
import select
import shutil
import stat
import subprocess
import tempfile
import time

from weirtest import BIN, MIB, REPO, Failure, check, run, wait_until

CACHE = "/var/tmp/weir-debian"
NAMES = ("weirfs", "weirfs-common", "weirfs-mds", "weirfs-osd", "weirfs-tools")
# First in a new mount namespace: what other tests have mounted would stay mounted there, and theirs not end.
ALONE = """awk '$2 ~ "/weir-" { print $2 }' /proc/self/mounts | tac | xargs -r -n 1 umount -l; """
# What README.md has an operator install beside the packages, out of reach for an apt without a network.
BESIDE = ("curl",)


@functools.cache
def built(times=1):
    """Directories with the same packages, made at the same time in different places. They stay until the program ends."""
    parent = tempfile.mkdtemp(prefix="weir-packages-", dir="/var/tmp")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    outputs = [os.path.join(parent, name) for name in ("first", "a second one")[:times]]
    made = []
    try:
        quickly = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
        environment = {**os.environ, **quickly}
        for output in outputs:
            made.append(subprocess.Popen([f"{REPO}/tools/package", "--objects", os.path.dirname(BIN), "--output", output],
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment))
        for process in made:
            said, _ = process.communicate(timeout=300)
            check(process.returncode == 0, f"tools/package: {said}")
    except BaseException:
        for process in made:
            process.terminate()  # it removes its files
            process.wait()
        raise
    return outputs


def package(directory, name):
    found = glob.glob(f"{directory}/{name}_*.deb")
    check(len(found) == 1, f"{name}: {found}")
    return found[0]


def field(deb, name):
    return run("dpkg-deb", "-f", deb, name).stdout.strip()


class Debian:
    """An unpacked Debian 12 with what the packages in `directory` depend on and recommend, and none of them."""

    def __init__(self, lab, directory, name="debian"):
        # Beside what is the test's: of that a failure shows every log.
        self.root = f"{lab.dir}.{name}"
        os.mkdir(self.root)
        lab.on_exit(shutil.rmtree, self.root, True)
        run("tar", "-xf", self._archive(directory), "-C", self.root, timeout=300)
        self.write("etc/hosts", "127.0.0.1 localhost\n")

    @staticmethod
    def _archive(directory):
        wanted = set(BESIDE)
        for name in NAMES:
            for kind in ("Depends", "Recommends"):
                wanted.update(words.split()[0] for words in field(package(directory, name), kind).split(",") if words)
        wanted = sorted(wanted - set(NAMES))
        archive = f"{CACHE}/{hashlib.sha256(' '.join(wanted).encode()).hexdigest()[:16]}.tar"
        os.makedirs(CACHE, exist_ok=True)
        with open(f"{CACHE}/lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may want it at the same time
            if not os.path.exists(archive):
                for old in glob.glob(f"{CACHE}/*.tar"):
                    os.unlink(old)
                run("mmdebstrap", "--variant=minbase", f"--include={','.join(wanted)}", "bookworm", archive + ".new.tar",
                    timeout=580)
                os.rename(archive + ".new.tar", archive)
        return archive

    def argv(self, *words):
        script = ALONE + 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        return ["unshare", "-m", "bash", "-c", script, self.root, *words]

    def run(self, *words, **options):
        return run(*self.argv(*words), env={"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}, **options)

    def path(self, name):
        return f"{self.root}/{name}"

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def dpkg(self, *words):
        return self.run("dpkg", "--force-unsafe-io", *words)

    def tree(self):
        """Every file with what it is; without what dpkg, logs and accounts keep."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if not os.path.ismount(f"{folder}/{name}")]
            for name in folders + files:
                path = f"{folder}/{name}"
                info = os.lstat(path)
                link = os.readlink(path) if os.path.islink(path) else ""
                content = b""
                if os.path.isfile(path) and not link and info.st_size < MIB:
                    with open(path, "rb") as file:
                        content = file.read()
                found[os.path.relpath(path, self.root)] = (info.st_mode, info.st_uid, info.st_gid, link,
                                                           hashlib.sha256(content).hexdigest())
        kept = r"(debs|proc|dev|sys|run|var/lib/dpkg|var/cache|var/log|var/lib/systemd/deb-systemd-helper-\w+)(/.*)?|" \
               r"etc/(passwd|group|shadow|gshadow)-?|etc/\.pwd\.lock"
        return {path: value for path, value in found.items() if not re.fullmatch(kept, path)}


def give_to_disk_group(lab, device):
    """As udev does, which need not run here."""
    info = os.stat(device)
    lab.on_exit(lambda: (os.chown(device, info.st_uid, info.st_gid), os.chmod(device, info.st_mode)))
    shutil.chown(device, group="disk")
    os.chmod(device, 0o660)


# ---- booted

class Network:
    """Namespaces with an address each, 10.0.0.1 and following, joined by a bridge in another one."""

    def __init__(self, lab, *names):
        self.prefix = f"weir-{os.getpid()}"
        self.addresses = {name: f"10.0.0.{number}" for number, name in enumerate(names, 1)}
        for name in ("bridge", *names):
            run("ip", "netns", "add", self.namespace(name))
            lab.on_exit(lambda name=name: run("ip", "netns", "del", self.namespace(name), ok=None))
        self._ip("bridge", "link", "add", "bridge", "up", "type", "bridge")
        for name, address in self.addresses.items():
            self._ip(name, "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", self.namespace("bridge"))
            self._ip("bridge", "link", "set", name, "up", "master", "bridge")
            self._ip(name, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                self._ip(name, "link", "set", device, "up")

    def namespace(self, name):
        return f"{self.prefix}-{name}"

    def _ip(self, name, *words):
        run("ip", "-n", self.namespace(name), *words)

    def inside(self, name):
        return ["nsenter", f"--net=/run/netns/{self.namespace(name)}"]


class CannotBoot(Failure):
    """Nothing of what is tested has run yet."""


class Machine:
    """A Debian that systemd-nspawn boots, with process 1, control groups and devices of its own: DEVICES has names below
    /dev and which devices of this machine they are. The network is this machine's, or that of NETWORK under NAME."""

    def __init__(self, lab, debian, devices, name="machine", network=None):
        self.group = f"{self.cgroups()}/weir-{os.getpid()}-{name}"
        debian.write("etc/hostname", f"{name}\n")
        # nspawn runs in namespaces that end with it, and what it leaves in /run with them; it sees control groups of version
        # 2 alone, where a systemd that may use bpf keeps units from devices that they are not allowed.
        script = ALONE + """
            set -e
            mount -t tmpfs tmpfs /run && mount -t cgroup2 cgroup2 /sys/fs/cgroup
            exec systemd-nspawn --quiet --directory="$0" --boot --register=no --keep-unit --console=read-only --resolv-conf=off \
              --timezone=off --link-journal=no --system-call-filter=bpf "$@" -- --log-target=console --show-status=no"""
        fuse = lab.path(f"{name}.fuse")  # of its own, as systemd-tmpfiles opens it to all users
        os.mknod(fuse, stat.S_IFCHR | 0o600, os.stat("/dev/fuse").st_rdev)
        binds = [f"--bind={device}:/dev/{name}" for name, device in {"fuse": fuse, **devices}.items()]
        os.mkdir(self.group)
        lab.on_exit(lambda: run("find", self.group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";", ok=None))
        enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        self.log = lab.path(f"{name}.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", enter, self.group, *(network.inside(name) if network else []), "unshare", "--pid", "--fork",
                 "--kill-child", "--mount-proc", "--cgroup", "bash", "-c", script, debian.root, *binds],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        lab.on_exit(self.end)
        wait_until(lambda: self.process.poll() is not None or self.is_up(), f"{name} to boot")
        if self.process.poll() is not None:
            with open(self.log) as log:
                raise CannotBoot(f"systemd-nspawn: exit {self.process.returncode}: {log.read()[-2000:]}")

    @staticmethod
    def cgroups():
        """Where cgroup2 is mounted, or None."""
        with open("/proc/self/mounts") as mounts:
            return next((line.split()[1] for line in mounts if line.split()[2] == "cgroup2"), None)

    @classmethod
    def lacks(cls):
        """What is missing here to boot one, or nothing."""
        return ", ".join([f"no {name}" for name in ("mmdebstrap", "systemd-nspawn") if not shutil.which(name)] +
                         ([] if cls.cgroups() else ["no cgroup2"]))

    def first_process(self):
        """Its number here: the child of nspawn, which is that of unshare."""
        pid = [str(self.process.pid)]
        for _ in range(2):
            if pid:
                with open(f"/proc/{pid[0]}/task/{pid[0]}/children") as file:
                    pid = file.read().split()[:1]
        return pid

    def is_up(self):
        """Not whether all jobs are done: a daemon may wait for another machine."""
        shown = self.first_process() and self.run("systemctl", "is-active", "multi-user.target", ok=None).stdout
        return shown == "active\n"

    def argv(self, *words):
        return ["nsenter", "-t", *self.first_process(), "-m", "-u", "-i", "-n", "-p", "-C", *words]

    def run(self, *words, **options):
        return run(*self.argv(*words), **options)

    def show(self, unit, key):
        return self.run("systemctl", "show", unit, "-p", key, "--value").stdout.strip()

    def states(self, *units):
        return [self.show(unit, "ActiveState") for unit in units]

    def is_empty(self):
        with open(f"{self.group}/cgroup.events") as file:
            return "populated 0" in file.read()

    def end(self):
        self.process.kill()
        self.process.wait()
        wait_until(self.is_empty, f"all of {self.group} to end")


class Terminal:
    """A shell on a machine, as somebody who is logged in has it: what it sets stays set."""

    def __init__(self, lab, machine):
        reader, self.writer = os.pipe()
        script = 'cd; while IFS= read -r -d "" -u "$0" typed; do eval "$typed"; printf "\\0%s\\0" $?; done'
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(machine.argv("bash", "-c", script, str(reader)), pass_fds=(reader,), env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(reader)
        lab.on_exit(self._end)

    def type(self, text, timeout=120):
        """Returns status and output of what is typed."""
        os.write(self.writer, text.encode() + b"\0")
        said = b""
        end = time.monotonic() + timeout
        while said.count(b"\0") < 2:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            check(ready, f"{text}: nothing after {timeout} s but: {said.decode()}")
            more = os.read(self.process.stdout.fileno(), 65536)
            check(more, f"{text}: the shell ended: {said.decode()}")
            said += more
        before, status, after = said.split(b"\0")
        return int(status), (before + after).decode()

    def _end(self):
        os.close(self.writer)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
