#!/usr/bin/env python3
"""Settings: one file for each program, variables before it, options before both; --check-config, SIGHUP, osdctl config show."""
import os
import signal
import subprocess

from weirtest import BIN, check, is_mounted, main, run, wait_until

PROGRAMS = {"mds": "weir-mds", "osd": "weir-osd", "mount": "weirfs"}


def write(path, text, mode=0o644):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def checked(table, *words, **options):
    """What --check-config says."""
    return run(f"{BIN}/{PROGRAMS[table]}", "--check-config", *words, **options)


def has(text, *parts):
    for part in parts:
        check(part in text, f"'{part}' is not in: {text}")


class Daemon:
    """One that this test starts by its file, and whose log it reads."""

    def __init__(self, lab, program, *words, env=None):
        self.log = lab.path(f"{program}.log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([f"{BIN}/{program}", *words], stderr=log, env={**os.environ, **(env or {})})
        lab.on_exit(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self):
        with open(self.log) as log:
            return log.read()

    def hangs_up(self, *parts):
        """SIGHUP; returns what the log says then, once it has all of it."""
        before = len(self.said())
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: all(part in self.said()[before:] for part in parts), f"the log to say {parts}")
        return self.said()[before:]

    def stops(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(60) == 0, f"exit {self.process.returncode}: {self.said()}")


def errors_name_line_key_and_the_way_out(lab):
    path = lab.path("x.toml")
    least = {"mds": 'data = "/x"\n', "osd": 'disk = "/x"\nmds = "127.0.0.1"\n', "mount": ""}
    wrong = (
        ("mds", 'listen = "127.0.0.1"\n', ":1: unknown setting 'listen'; write it below [mds] (weir-mds --help lists all)"),
        ("mds", '[mds]\nlisen = []\n', ":2: unknown setting 'mds.lisen'; did you mean 'mds.listen'?"),
        ("mds", '[mds]\nlisten = ["?"]\n', ":2: mds.listen: endpoint '?'"),
        ("mds", '[mds]\nlisten = ["127.0.0.1:1",\n1]\n', ":2: mds.listen: must be a list of texts; write for example listen = ["),
        ("mds", '[mds]\nlisten = ["0.0.0.0"]\n', ":2: mds.listen: will not listen on tcp://0.0.0.0:7370"),
        ("mds", '[mds]\nmetrics = "127.0.0.1"\n', ":2: mds.metrics 127.0.0.1: write ADDR:PORT"),
        ("mds", '[mds]\nlog = "loud"\n', ":2: mds.log: 'loud' is no log level; there are trace, debug"),
        ("osd", '[osd]\nmemry = "1G"\n', ":2: unknown setting 'osd.memry'; did you mean 'osd.memory'? (weir-osd --help"),
        ("osd", '[osd]\nmemory = "5x"\n', ":2: osd.memory: '5x' is no size: unknown unit 'x'; write for example 4096"),
        ("osd", '[osd]\nmemory = "1MiB"\n', ":2: osd.memory: '1MiB' is too little: it must be at least 64MiB"),
        ("osd", '[osd]\nlisten = "10.0.0.1:0"\n', ":2: osd.listen: will not listen at tcp://10.0.0.1:0"),
        ("osd", '[mds]\nlog = "info"\n', ":2: unknown setting 'mds.log'; did you mean 'osd.log'?"),
        ("mount", '[mount]\nuring = "maybe"\n', ":2: mount.uring: -o uring=maybe: auto, on or off"),
        ("mount", '[mount]\ncommit = "1h"\n', ":2: mount.commit: -o commit=1h: at most a minute"),
        ("mount", '[mount]\nclient = "a,ro"\n', ":2: mount.client: 'a,ro': one value"),
        ("mount", '[mount]\nclass = \n', ":2: Error while parsing"),
        ("osd", '[osd]\nmemory = 1GiB\n', ":2: Error while parsing decimal integer: expected digit, saw 'G' (texts, also sizes and rates, stand in double"))
    for table, text, error in wrong:
        if f"[{table}]\n" in text:
            text += least[table]
        done = checked(table, "--config", write(path, text), ok=(2,))
        has(done.stderr, path + error)
        check(done.stdout == "", f"{text}: {done.stdout}")
        # Nor does it start with that.
        words = [lab.path("a"), lab.path("b")] if table == "mount" else []
        has(run(f"{BIN}/{PROGRAMS[table]}", "--config", path, *words, ok=(2,)).stderr, path + error)
    for table in PROGRAMS:
        has(checked(table, "--config", lab.path("none"), ok=(2,)).stderr, f"there is no configuration file '{lab.path('none')}'")
        has(checked(table, "--config", lab.dir, ok=(2,)).stderr, f"configuration file '{lab.dir}' is a directory")
        variable = f"WEIR_{table.upper()}_LOG"
        has(checked(table, env={variable: "loud"}, ok=(2,)).stderr, f"{variable}: 'loud'")
        has(checked(table, env={variable + "S": "info"}, ok=(2,)).stderr, f"unknown variable '{variable}S'; did you mean '{variable}'?")
        open_to_all = write(path, f"[{table}]\n{least[table]}", 0o666)
        has(checked(table, "--config", path).stderr, f"warning: {open_to_all}: everybody may change it (chmod o-w {path})")
    has(checked("mds", ok=(2,)).stderr, "where is its data?")
    has(checked("osd", "--disk", "/x", ok=(2,)).stderr, "which MDS?")
    # A file that is looked for without being named, by a user who may not read it, or its directory.
    mount = write(lab.path("mount.toml"), "[mount]\n", 0o600)
    words = ["setpriv", "--reuid", "nobody", "--clear-groups", f"{BIN}/weirfs", "--check-config"]
    where = {"WEIR_CONFIG_DIR": lab.dir}
    os.chmod(lab.dir, 0o711)
    has(run(*words, env=where, ok=(2,)).stderr, f"configuration file '{mount}'", "Permission denied", "(--config FILE names another)")
    os.chmod(lab.dir, 0o700)
    has(run(*words, env=where).stderr, f"warning: goes on without '{mount}', whose directory this user may not look into")
    os.unlink(mount)
    # Such a file is not passed over because its link leads nowhere.
    os.symlink("nowhere.toml", lab.path("mount.toml"))
    done = checked("mount", env={"WEIR_CONFIG_DIR": lab.dir}, ok=(2,))
    has(done.stderr, f"configuration file '{lab.path('mount.toml')}' is a symbolic link to 'nowhere.toml', which is not there")


def disks_of_an_osd_are_one_or_several(lab):
    has(checked("osd", "--mds", "127.0.0.1", ok=(2,)).stderr, "which disk?", "tier_disk")
    path = lab.path("x.toml")
    for text, error in (('disk = "/x"\ntier_disk = "a=/y,b=/z"', 'osd.disk = "/x" and {path}:3: osd.tier_disk = "a=/y,b=/z": one disk'),
                        ('disk = "hdd:20GiB"', "osd.disk: hdd:20GiB: name the image"), ('disk = "hdd:"', "osd.disk: disk 'hdd:'"),
                        ('tier_disk = "a=/y"', "osd.tier_disk: an OSD has 2 to 8"), ('tier_disk = "a=/y,b=hdd:1GiB"', "osd.tier_disk: hdd:1GiB: name")):
        done = checked("osd", "--mds", "127.0.0.1", "--config", write(path, f"[osd]\n{text}\n"), ok=(2,))
        has(done.stderr, f"{path}:2: " + error.replace("{path}", path))
    has(checked("osd", "--mds", "127.0.0.1", "--disk", "/x", env={"WEIR_OSD_TIER_DISK": "a=/y,b=/z"}, ok=(2,)).stderr,
        '--disk = "/x" and WEIR_OSD_TIER_DISK = "a=/y,b=/z": one disk')


def what_holds_is_printed_with_its_origin(lab):
    """The output is a file that says the same; nothing is made."""
    mds = write(lab.path("mds.toml"), f'[mds]\ndata = "{lab.path("d")}"\nlisten = ["127.0.0.1:1", "127.0.0.1:2"]\nlog = "warn"\n')
    done = checked("mds", "--config", mds, "--log", "debug", env={"WEIR_MDS_LISTEN": "127.0.0.1:3,127.0.0.1:4"})
    has(done.stdout, f'data = "{lab.path("d")}"  # {mds}:2\n', 'log = "debug"  # --log\n', "insecure = false  # default\n",
        'listen = ["127.0.0.1:3", "127.0.0.1:4"]  # WEIR_MDS_LISTEN\n')
    again = checked("mds", "--config", write(lab.path("again.toml"), done.stdout)).stdout
    values = lambda text: [line.split("  # ")[0] for line in text.splitlines()]  # noqa: E731
    check(values(again) == values(done.stdout), f"{again} is not {done.stdout}")
    has(checked("mds", "--data", "/x", "--listen", "127.0.0.1:5", "--listen", "127.0.0.1:6").stdout,
        'listen = ["127.0.0.1:5", "127.0.0.1:6"]  # --listen\n')
    has(checked("osd", "--disk", "hdd:/none", "--mds", "127.0.0.1", env={"WEIR_OSD_MEMORY": "1GiB"}).stdout,
        'disk = "hdd:/none"  # --disk\n', 'memory = "1GiB"  # WEIR_OSD_MEMORY\n', 'token_rate = "0"  # default\n')
    mount = write(lab.path("mount.toml"), '[mount]\nclass = "gold"\nsupervise = true\nlog = "warn"\n')
    has(checked("mount", "--config", mount, "-o", "nosupervise,commit=5").stdout, f'class = "gold"  # {mount}:2\n',
        "supervise = false  # -o nosupervise\n", 'commit = "5"  # -o commit\n', f'log = "warn"  # {mount}:4\n')
    check(not os.path.exists(lab.path("d")), "--check-config made something")

    files = {"WEIR_CONFIG_DIR": lab.dir}
    osd = write(lab.path("osd-a.toml"), '[osd]\ndisk = "/x"\nmds = "127.0.0.1"\n')
    write(lab.path("else.toml"), "x = 1\n")
    # A mount reads its file there unless it is told of another one.
    has(checked("mount", env=files).stdout, f'class = "gold"  # {mount}:2\n')
    other = write(lab.path("other.toml"), "[mount]\nro = true\n")
    check("gold" not in checked("mount", "--config", other, env=files).stdout, "two files were read")
    check("gold" not in checked("mount", env={"WEIR_CONFIG_DIR": lab.path("none")}).stdout, "another file was read")
    check("/etc/weirfs" in run(f"{BIN}/osdctl", "config", "show", "osd-b", env={"WEIR_CONFIG_DIR": ""}, ok=(2,)).stderr, "no directory")
    has(run(f"{BIN}/osdctl", "config", "show", "mount", env=files).stdout, f"# {mount} of weirfs\n", f'class = "gold"  # {mount}:2\n')
    shown = run(f"{BIN}/osdctl", "config", "show", env=files).stdout
    has(shown, f"# {mds} of weir-mds\n[mds]\n", f"\n\n# {osd} of weir-osd\n[osd]\n", f"\n\n# {mount} of weirfs\n[mount]\n")
    check("else" not in shown, shown)
    write(osd, "[osd]\nx = 1\n")
    done = run(f"{BIN}/osdctl", "config", "show", env=files, ok=(2,))
    has(done.stderr, f"{osd}:2: unknown setting 'osd.x'")
    has(done.stdout, f"# {mount} of weirfs\n[mount]\n")
    has(run(f"{BIN}/osdctl", "config", "show", "osd-b", env=files, ok=(2,)).stderr, "there is no configuration file")
    has(run(f"{BIN}/osdctl", "config", "show", "else", env=files, ok=(2,)).stderr, "none of mds, osd-NAME and mount")
    has(run(f"{BIN}/osdctl", "config", "show", env={"WEIR_CONFIG_DIR": lab.path("none")}, ok=(5,)).stderr, lab.path("none"))


def daemons_and_mounts_run_by_their_files(lab):
    sockets = [f"ipc://{lab.path('s1')}", f"ipc://{lab.path('s2')}"]
    mds_text = f'[mds]\ndata = "{lab.path("mds")}"\nlisten = ["{sockets[0]}", "{sockets[1]}"]\n'
    mds_file = write(lab.path("mds.toml"), mds_text)
    mds = Daemon(lab, "weir-mds", "--config", mds_file)
    wait_until(lambda: os.path.exists(lab.path("mds/endpoint")), "the MDS")
    for endpoint in sockets:
        run(f"{BIN}/osdctl", "--cluster", endpoint, "class", "ls")
    run(f"{BIN}/osdctl", "--cluster", sockets[0], "class", "create", "gold")

    # One file makes the OSD and serves it.
    ready = lab.path("ready")
    osd_text = (f'[osd]\ndisk = "{lab.path("disk")}"\nmds = "{sockets[1]}"\nlisten = "ipc://{lab.path("s3")}"\n'
                f'size = "256MiB"\ntoken_rate = "500MiB/s"\nready_file = "{ready}"\n')
    osd_file = write(lab.path("osd.toml"), osd_text)
    run(f"{BIN}/weir-osd", "--mkfs", "--config", osd_file)
    osd = Daemon(lab, "weir-osd", "--config", osd_file)
    wait_until(lambda: os.path.exists(ready), "the OSD")
    has(run(f"{BIN}/weir-osd", "--config", osd_file, "--size", "1GiB", ok=(2,)).stderr, "go with --mkfs")

    # SIGHUP: the log at once, the rest with a restart, a wrong file not at all.
    for daemon, table, path, text in ((mds, "mds", mds_file, mds_text), (osd, "osd", osd_file, osd_text)):
        lines = text.count("\n")
        daemon.hangs_up(f"SIGHUP: {path} says nothing new")
        write(path, text + 'metrics = "127.0.0.1:1"\nlog = "debug"\n')
        daemon.hangs_up(f'{path}:{lines + 1}: {table}.metrics = "127.0.0.1:1" needs a restart, until then it is ""',
                        f'{path}:{lines + 2}: {table}.log = "debug", was "info"')
        write(path, text + 'log = "warn"\nlgo = "info"\n')
        said = daemon.hangs_up(f"{path}:{lines + 2}: unknown setting '{table}.lgo'; did you mean '{table}.log'?", "nothing changes")
        check("was" not in said, said)
        write(path, text + 'log = "warn"\n')
        daemon.hangs_up(f'{table}.log = "warn", was "debug"')
        os.remove(path)
        daemon.hangs_up(f"there is no configuration file '{path}'; nothing changes")
        check(daemon.process.poll() is None, f"{table} ended")

    mnt = lab.path("m")
    os.mkdir(mnt)
    mount_file = write(lab.path("mount.toml"), '[mount]\nclass = "gold"\nsupervise = true\n')
    lab.on_exit(lambda: is_mounted(mnt) and run("umount", "-l", mnt, ok=None))
    run(f"{BIN}/weirfs", "--config", mount_file, sockets[0], mnt, "--pid-file", lab.path("pid"))
    with open(f"{mnt}/file", "w") as file:
        file.write("x")
    class_of = lambda: os.getxattr(f"{mnt}/file", "qos.effective_class").decode()  # noqa: E731
    has(class_of(), "gold")
    with open(lab.path("pid")) as file:
        holder = file.read().strip()
    # What the file says by now is no matter for a mount that is there.
    write(mount_file, "[mount]\nx = 1\n")
    run(f"{BIN}/weirfs", "--upgrade", mnt)
    has(class_of(), "gold")
    with open(f"/proc/{holder}/cmdline") as words:
        has(words.read(), "class=gold,supervise")
    run("umount", mnt)
    wait_until(lambda: not os.path.exists(f"/proc/{holder}"), "the mount's end")
    run(f"{BIN}/weirfs", sockets[1], mnt, "-o", "class=best-effort", env={"WEIR_MOUNT_CLASS": "gold"})
    has(class_of(), "best-effort")
    run("umount", mnt)
    # Errors of what nobody typed say where it is from; a file for clusters does not keep a mount with --data from its own classes.
    write(mount_file, '[mount]\nro = true\nclass = "none"\n')
    done = run(f"{BIN}/weirfs", "--config", mount_file, sockets[0], mnt, ok=(5,))
    has(done.stderr, "there is no class 'none'", f"(-o class is from {mount_file}:3; what is typed goes before it)")
    run(f"{BIN}/weirfs", "--config", mount_file, "--data", lab.path("embedded"), "--osd-size", "256MiB", "--token-rate", "500MiB/s", mnt)
    has(os.getxattr(mnt, "qos.effective_class").decode(), "best-effort")
    run("umount", mnt)
    wait_until(lambda: run("flock", "-n", lab.path("embedded/lock"), "true", ok=None).returncode == 0, "the mount's end")
    write(mount_file, f'[mount]\nlog_file = "{lab.path("none/log")}"\n')
    has(run(f"{BIN}/weirfs", "--config", mount_file, sockets[0], mnt, ok=None).stderr, f"--log-file is from {mount_file}:2")
    osd.stops()
    mds.stops()


def without_a_file_sighup_ends_a_daemon(lab):
    mds = Daemon(lab, "weir-mds", "--data", lab.path("mds"), "--listen", f"ipc://{lab.path('s')}")
    wait_until(lambda: os.path.exists(lab.path("mds/endpoint")), "the MDS")
    mds.process.send_signal(signal.SIGHUP)
    check(mds.process.wait(60) == 0, mds.said())


if __name__ == "__main__":
    main("config", errors_name_line_key_and_the_way_out, disks_of_an_osd_are_one_or_several, what_holds_is_printed_with_its_origin,
         daemons_and_mounts_run_by_their_files, without_a_file_sighup_ends_a_daemon)
