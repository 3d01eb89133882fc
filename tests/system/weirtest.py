"""What the system tests share: real clusters and embedded mounts, fio, waiting, checks.

A test is a program: it makes a `Lab`, does things, and exits 0 or prints what failed and exits 1. The Lab
stops and removes all it started, also on failure, by the pids and paths it knows.
WEIR_RESULTS=FILE collects what acceptance programs measure, a JSON object a line, for `weir-sim report --live FILE`.
Binaries: WEIR_BIN, or build/release/bin of this repository.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("WEIR_BIN", os.path.join(REPO, "build", "release", "bin"))
MIB = 1 << 20
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    """A check that did not hold; its text is what the person reads."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def run(*argv, ok=(0,), timeout=120, env=None, cwd=None, stdin=None):
    """Runs a command, returns CompletedProcess; any exit code outside `ok` is a Failure. What it started itself ends with
    it when it takes too long or this program is told to end: whoever lives on keeps a mount busy."""
    argv = [str(a) for a in argv]
    with subprocess.Popen(argv, stdin=None if stdin is None else subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=cwd, env={**os.environ, **(env or {})},
                          start_new_session=True) as child:
        try:
            stdout, stderr = child.communicate(stdin, timeout)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    done = subprocess.CompletedProcess(argv, child.returncode, stdout, stderr)
    if ok is not None and done.returncode not in ok:
        raise Failure(f"{' '.join(argv)}: exit {done.returncode}, expected {ok}\n"
                      f"stdout: {done.stdout[-2000:]}\nstderr: {done.stderr[-2000:]}")
    return done


def wait_until(condition, what, timeout=60):
    """Polls a state that another process reaches; fails by name after a generous timeout."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise Failure(f"waited {timeout} s for {what}")


def files_of(pid):
    """What the descriptors of a process lead to; those that it closes meanwhile are left out."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def is_mounted(path):
    """Asks the kernel's table only: a stat of a mount whose daemon is gone would wait for it."""
    with open("/proc/self/mounts") as mounts:
        return any(line.split(" ")[1].replace("\\040", " ") == path for line in mounts)


def read_from_disk(path):
    """What the OSDs hold of a file that is synced: kernels keep pages also of files that are closed."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.readall()


class Cluster:
    """`weir-dev up`: a real multi-process cluster on this machine."""

    def __init__(self, lab, osds=1, mounts=1, osd_size="2GiB", token_rate="1GiB/s", disks=(), tiers=(),
                 extra=()):
        # A token rate that is given need not be measured; pass None to have mkfs measure it.
        self.lab = lab
        self.dir = lab.path("cluster")
        self.mounts = [lab.path(f"mnt.{i}") for i in range(mounts)]
        argv = [f"{BIN}/weir-dev", "up", "--dir", self.dir]
        for disk in disks:
            argv += ["--disk", disk]
        for several in tiers:
            argv += ["--tier-disk", several]
        if not disks and not tiers:
            argv += ["--osds", osds, "--osd-size", osd_size]
        if token_rate:
            argv += ["--token-rate", token_rate]
        for mount in self.mounts:
            os.makedirs(mount)
            argv += ["--mount", mount]
        lab.on_exit(self.down)
        run(*argv, *extra, timeout=180)
        for mount in self.mounts:
            check(is_mounted(mount), f"weir-dev up returned but {mount} is no mount")

    @property
    def mnt(self):
        return self.mounts[0]

    def osdctl(self, *argv, **kwargs):
        return run(f"{BIN}/osdctl", "--cluster", self.dir, *argv, **kwargs)

    def dev(self, verb, daemon):
        return run(f"{BIN}/weir-dev", verb, "--dir", self.dir, daemon, timeout=120)

    def down(self):
        run(f"{BIN}/weir-dev", "down", "--dir", self.dir, ok=None, timeout=120)
        for mount in self.mounts:
            if is_mounted(mount):
                run("umount", "-l", mount, ok=None)


class Embedded:
    """`weirfs --data`: everything in one process."""

    def __init__(self, lab, *options, name="embedded"):
        self.lab = lab
        self.dir = lab.path(name)
        self.mnt = lab.path(name + ".mnt")
        self.options = options
        os.makedirs(self.mnt, exist_ok=True)
        lab.on_exit(self.umount)
        self.mount()

    def mount(self):
        run(f"{BIN}/weirfs", "--data", self.dir, self.mnt, *self.options, timeout=180)
        check(is_mounted(self.mnt), f"weirfs returned but {self.mnt} is no mount")

    def umount(self):
        if is_mounted(self.mnt):
            run("umount", self.mnt, ok=None, timeout=60)
        if is_mounted(self.mnt):
            run("umount", "-l", self.mnt, ok=None)
        # The process ends after the mount is gone; its lock on DIR tells.
        wait_until(lambda: run("flock", "-n", f"{self.dir}/lock", "true", ok=None).returncode == 0
                   if os.path.exists(f"{self.dir}/lock") else True, "weirfs to end")

    def osdctl(self, *argv, **kwargs):
        return run(f"{BIN}/osdctl", "--cluster", self.dir, *argv, **kwargs)


class Lab:
    """A temporary folder, and everything that was started in it."""

    def __init__(self, name):
        base = os.environ.get("WEIR_TEST_DIR", "/var/tmp")
        self.dir = tempfile.mkdtemp(prefix=f"weir-{name}-", dir=base)
        self._stack = contextlib.ExitStack()
        self._stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.report = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def on_exit(self, function, *args):
        self._stack.callback(function, *args)

    def loop(self, name, size):
        """A loop device over a fresh file, direct I/O on, removed at the end."""
        image = self.path(name)
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        device = run("losetup", "--find", "--show", "--direct-io=on", image).stdout.strip()
        self.on_exit(lambda: run("losetup", "-d", device, ok=None))
        return device

    def close(self):
        """Undoes all of it, and is not disturbed by another signal meanwhile."""
        before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
        try:
            self._stack.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def show(self, text):
        print(text, flush=True)


def fio(lab, *jobs, timeout=300, **options):
    """Runs fio jobs (dicts with a `name`), shared options as keywords; returns the JSON's jobs by name."""
    argv = ["fio", "--output-format=json", "--eta=never", "--thread"]
    argv += [f"--{k}={v}" for k, v in options.items()]
    for job in jobs:
        job = dict(job)
        argv.append(f"--name={job.pop('name')}")
        argv += [f"--{k}={v}" for k, v in job.items()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, cwd=lab.dir)
    if done.returncode != 0:
        raise Failure(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return {job["jobname"]: job for job in json.loads(done.stdout[done.stdout.index("{"):])["jobs"]}


def result(experiment, what, value, paper=None, unit="", low=None, high=None, passed=None):
    """Appends to the file WEIR_RESULTS, if there is one, what was measured of a paper's experiment ("E14"), for
    `weir-sim report --live`. The last of several with the same text counts."""
    _append({"experiment": experiment, "what": what.strip(), "paper": paper, "value": value, "unit": unit, "low": low,
             "high": high, "pass": passed})


def curve(experiment, figure, name, points, x_label="", y_label=""):
    """The same with a curve of a figure; `points` are (x, y)."""
    x, y = zip(*points)
    _append({"experiment": experiment, "figure": figure, "curve": name, "x_label": x_label, "y_label": y_label, "x": x, "y": y})


def _append(line):
    if path := os.environ.get("WEIR_RESULTS"):
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")


def end_on_signals():
    """A signal ends this program through its `finally`s, so that what it started is ended too."""
    for number in SIGNALS:
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def wanted_tests(name, tests):
    """Those that the command line names, or all; options are the test program's own."""
    words = sys.argv[1:]
    names = [test.__name__ for test in tests]
    if "-h" in words or "--help" in words:
        about = sys.modules["__main__"].__doc__ or ""
        print(f"usage: {sys.argv[0]} [TEST...]\n\n{about.strip()}\n\ntests: {' '.join(names)}")
        sys.exit(0)
    wanted = [word for word in words if not word.startswith("-")]
    for word in wanted:
        if word not in names:
            print(f"{name}: no test '{word}'; there are: {' '.join(names)}", file=sys.stderr)
            sys.exit(2)
    return [test for test in tests if not wanted or test.__name__ in wanted]


def main(name, *tests):
    """Runs test functions, each with a Lab of its own; exit 1 names every one that failed."""
    failed = passed = 0
    end_on_signals()
    for test in wanted_tests(name, tests):
        lab = Lab(name)
        start = time.monotonic()
        try:
            test(lab)
            passed += 1
            print(f"ok      {name}.{test.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception as error:  # noqa: BLE001 - every failure is reported, the next test still runs
            failed += 1
            print(f"FAILED  {name}.{test.__name__}: {error}", flush=True)
            if not isinstance(error, Failure):
                traceback.print_exc()
            for root, folders, files in os.walk(lab.dir):
                folders[:] = [f for f in folders if not is_mounted(os.path.join(root, f))]  # a dead one would hang us
                for log in sorted(f for f in files if f.endswith(".log")):
                    with open(os.path.join(root, log), errors="replace") as text:
                        print(f"--- {log}\n" + "".join(text.readlines()[-30:]))
        finally:
            lab.close()
    print(f"{name}: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
