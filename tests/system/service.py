#!/usr/bin/env python3
"""What weir-mds and weir-osd tell systemd: when they serve, that they are alive, that they stop; and what its journal gets.

Nothing of systemd need run: this program listens where it would.
"""
import os
import signal
import socket
import subprocess
import sys

from weirtest import BIN, Failure, check, main, run

PATIENCE = 60  # seconds
JOURNAL = "/run/systemd/journal/socket"


def listen(path):
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(path)
    heard.settimeout(PATIENCE)
    return heard


class Daemon:
    """One that a service manager has started, which waits for `watchdog` microseconds."""

    def __init__(self, lab, name, *argv, watchdog=0, extra=None):
        self.heard = listen(lab.path(name + ".notify"))
        lab.on_exit(self.heard.close)
        env = {**os.environ, "NOTIFY_SOCKET": lab.path(name + ".notify"), **(extra or {})}
        if watchdog:
            env["WATCHDOG_USEC"] = str(watchdog)
        with open(lab.path(name + ".log"), "ab") as log:
            self.process = subprocess.Popen([str(a) for a in argv], env=env, stderr=log)
        lab.on_exit(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def says(self):
        """The next that it says, by name."""
        try:
            text = self.heard.recv(65536).decode()
        except TimeoutError:
            raise Failure(f"{self.process.args[0]} says nothing for {PATIENCE} s") from None
        return dict(line.split("=", 1) for line in text.strip().splitlines())

    def is_silent(self):
        self.heard.setblocking(False)
        try:
            self.heard.recv(65536)
            return False
        except BlockingIOError:
            return True
        finally:
            self.heard.settimeout(PATIENCE)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        said = self.says()
        while "WATCHDOG" in said:
            said = self.says()
        check(said.get("STOPPING") == "1", f"it is told to stop and says {said}")
        check(self.process.wait(PATIENCE) == 0, f"exit {self.process.returncode}")


def mds(lab, name="mds", **options):
    return Daemon(lab, name, f"{BIN}/weir-mds", "--data", lab.path("mds"), "--listen", f"ipc://{lab.path('s')}", **options)


def make_osd(lab):
    run(f"{BIN}/weir-osd", "--mkfs", "--disk", lab.path("osd.img"), "--size", "1GiB", "--token-rate", "100MiB/s",
        "--mds", f"ipc://{lab.path('s')}")


def osd(lab, **options):
    return Daemon(lab, "osd", f"{BIN}/weir-osd", "--disk", lab.path("osd.img"), "--mds", f"ipc://{lab.path('s')}",
                  "--listen", f"ipc://{lab.path('o')}", **options)


def an_mds_is_ready_when_it_serves(lab):
    daemon = mds(lab, watchdog=300_000)
    said = daemon.says()
    while said == {"WATCHDOG": "1"}:  # its loop runs
        said = daemon.says()
    check(said.get("READY") == "1" and said.get("STATUS", "").startswith("serving at ipc://"), f"it says {said}")
    run(f"{BIN}/osdctl", "--cluster", f"ipc://{lab.path('s')}", "class", "ls")
    for _ in range(5):
        check(daemon.says() == {"WATCHDOG": "1"}, "its loop goes on, and it says something else")
    daemon.stop()


def who_is_not_watched_says_nothing_of_being_alive(lab):
    daemon = mds(lab)
    check(daemon.says().get("READY") == "1", "it is not ready first")
    daemon.process.send_signal(signal.SIGTERM)
    check(daemon.says() == {"STOPPING": "1", "STATUS": "ended"}, "it says something between being ready and stopping")


def an_osd_is_ready_when_the_cluster_knows_it(lab):
    first = mds(lab)
    check(first.says().get("READY") == "1", "the MDS is not ready")
    make_osd(lab)
    first.stop()
    daemon = osd(lab, watchdog=300_000)
    said = daemon.says()
    while said == {"WATCHDOG": "1"}:
        said = daemon.says()
    check(said == {"STATUS": f"waiting for the MDS at ipc://{lab.path('s')}"}, f"there is no MDS, and it says {said}")
    check(daemon.says() == {"WATCHDOG": "1"}, "there is no MDS, and it says more than that it is alive")
    second = mds(lab, "mds.again")
    check(second.says().get("READY") == "1", "the MDS is not ready again")
    said = daemon.says()
    while said == {"WATCHDOG": "1"}:
        said = daemon.says()
    check(said.get("READY") == "1" and said.get("STATUS", "").startswith("serving at ipc://"), f"it says {said}")
    check("up" in run(f"{BIN}/osdctl", "--cluster", f"ipc://{lab.path('s')}", "status").stdout, "the OSD is not up")
    daemon.stop()
    second.stop()


def the_journal_gets_priorities_and_fields(lab):
    """In a mount namespace of its own, where this listens in the journal's place."""
    run("unshare", "--mount", "--propagation", "private", sys.executable, os.path.abspath(__file__), "--in-namespace", lab.dir,
        env={"PYTHONDONTWRITEBYTECODE": "1"})


def in_namespace(directory):
    class Here:
        dir = directory

        @staticmethod
        def path(name):
            return os.path.join(directory, name)

        undo = []

        @classmethod
        def on_exit(cls, function, *args):
            cls.undo.append((function, args))

    run("mount", "-t", "tmpfs", "none", "/run")
    os.makedirs(os.path.dirname(JOURNAL))
    journal = listen(JOURNAL)
    with open(Here.path("mds.log"), "ab") as file:
        info = os.fstat(file.fileno())
    try:
        daemon = mds(Here, extra={"JOURNAL_STREAM": f"{info.st_dev}:{info.st_ino}"})
        check(daemon.says().get("READY") == "1", "the MDS is not ready")
        make_osd(Here)
        entries = []

        def entry_of(text):
            while not any(text in entry.get("MESSAGE", "") for entry in entries):
                entries.append(dict(line.split("=", 1) for line in journal.recv(65536).decode().strip().splitlines()))
            return next(entry for entry in entries if text in entry["MESSAGE"])

        entry = entry_of("which does not serve yet")
        check(entry.get("OSD") == "0" and entry.get("PRIORITY") == "6", f"of an OSD: {entry}")
        check(entry.get("SYSLOG_IDENTIFIER") == "weir-mds", f"of whom: {entry}")
        check("OSD" not in entry_of("serving"), "fields of one message are in another")
        run(f"{BIN}/osdctl", "--cluster", f"ipc://{Here.path('s')}", "class", "create", "gold")
        run(f"{BIN}/osdctl", "--cluster", f"ipc://{Here.path('s')}", "class", "rm", "gold")
        entry = entry_of("is removed; what is tagged")
        check(entry.get("CLASS") == "gold", f"of a class: {entry}")
        daemon.stop()
        check(os.stat(Here.path("mds.log")).st_size == 0, "what the journal got is in stderr, too")
    finally:
        for function, args in reversed(Here.undo):
            function(*args)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-namespace"]:
        in_namespace(sys.argv[2])
    else:
        main("service", an_mds_is_ready_when_it_serves, who_is_not_watched_says_nothing_of_being_alive,
             an_osd_is_ready_when_the_cluster_knows_it, the_journal_gets_priorities_and_fields)
