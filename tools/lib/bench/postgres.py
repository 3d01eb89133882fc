"""pgbench over a mount: TPC-B of 1 and of 8 clients, every commit durable, a server of its own for each system.

A server runs only while it is measured, so that nobody's checkpoints are in another's figures.
"""
import glob
import os
import pwd
import re
import shutil
import subprocess
import time

from .host import BenchError, run, say, stop

NAME = "postgres"
ABOUT = "pgbench's TPC-B by 1 and by 8 clients, in transactions per second (skipped where PostgreSQL is missing)"
USER = "postgres"
SCALE = 10
LEAST_DISK = 1 << 30  # The database, its log, and the files of other rows.
CLIENTS = {"1client": 1, "8clients": 8}
PROGRAMS = ("initdb", "postgres", "pgbench", "pg_isready")
PATIENCE_S = 60


def rows():
    """{row: unit} in the order of printing."""
    return {f"{NAME}.{clients}": "tps" for clients in CLIENTS}


def programs():
    """The directory of PostgreSQL's programs, or None: Debian keeps them out of the PATH."""
    for place in (*os.environ.get("PATH", "").split(os.pathsep), *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)):
        if all(os.access(os.path.join(place, name), os.X_OK) for name in PROGRAMS):
            return place
    return None


def missing():
    """Why nothing of it can be measured, or None."""
    if programs() is None:
        return "PostgreSQL is not installed"
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return f"there is no user '{USER}'"
    return None


def parse(text):
    """Transactions per second, of pgbench's report."""
    found = re.search(r"^tps = ([0-9.]+)", text, re.MULTILINE)
    if not found:
        raise BenchError(f"pgbench did not say how many: {text.strip()[:200]}")
    return float(found[1])


class Postgres:
    name, unit = NAME, "tps"

    def __init__(self):
        self._made = {}  # {system: (data, sockets)}

    def rows(self):
        return rows()

    def suits(self, system):
        return system.has_owners

    def measure(self, system, runtime_s, _repeat):
        """{row: tps} of one run."""
        if system.host.disk_bytes < LEAST_DISK:
            raise BenchError(f"{NAME} needs --disk-size of at least {LEAST_DISK >> 30}G")
        if system.name not in self._made:
            self._made[system.name] = self._make(system)
        data, sockets = self._made[system.name]
        server = self._start(system, data, sockets)
        try:
            return {f"{NAME}.{row}": self._bench(sockets, clients, runtime_s) for row, clients in CLIENTS.items()}
        finally:
            stop(server, PATIENCE_S)

    def _make(self, system):
        """A database with tables in it."""
        os.chmod(system.host.dir, 0o711)  # The server's user passes through, and sees nothing.
        data, sockets = os.path.join(system.data, "postgres"), system.host.folder(f"postgres-{system.name}")
        os.mkdir(data)
        for path in (data, sockets):
            shutil.chown(path, USER, USER)
        os.chmod(os.path.dirname(sockets), 0o711)
        say(f"bench: making a database on {system.name}")
        self._run("initdb", "-D", data, "--locale=C", "--encoding=UTF8", "-A", "trust")
        server = self._start(system, data, sockets)
        try:
            self._run("pgbench", "-h", sockets, "-i", "-q", "-s", SCALE, "postgres")
        finally:
            stop(server, PATIENCE_S)
        return data, sockets

    def _start(self, system, data, sockets):
        log = os.path.join(system.host.folder(f"postgres-{system.name}"), "log")
        server = system.host.start(log, *self._as_user("postgres"), "-D", data, "-k", sockets, "-c", "listen_addresses=")
        system.host.undo(stop, server)
        end = time.monotonic() + PATIENCE_S
        while subprocess.run([*self._as_user("pg_isready"), "-q", "-h", sockets], check=False).returncode != 0:
            if server.poll() is not None or time.monotonic() > end:
                raise BenchError(f"PostgreSQL does not start on {system.name}: see {log}")
            time.sleep(0.05)
        return server

    def _bench(self, sockets, clients, runtime_s):
        return parse(self._run("pgbench", "-h", sockets, "-c", clients, "-j", min(clients, 2), "-T", max(1, round(runtime_s)),
                               "postgres"))

    @staticmethod
    def _as_user(program):
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", os.path.join(programs(), program)]

    def _run(self, program, *args):
        return run(*self._as_user(program), *args, timeout=300)
