"""The command: options, the order of measuring, the result."""
import argparse
import fnmatch
import os
import signal
import sys

from . import acceptance, against, bigdirectory, commit, isolation, jobs, metering, onodes, postgres, report, scheduler, verdicts
from .host import MIB, SIGNALS, BenchError, Host, say
from .systems import Ext4, Passthrough, Peer, Raw
from .weirfs import Cluster, Embedded

SYSTEMS = [Raw, Passthrough, Ext4, Embedded, Cluster]
LIMITS = [s.name for s in SYSTEMS if s.limit]
PEERS = "peers"
REPO = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

EXAMPLES = """examples:
  tools/bench                                     every row, about a quarter of an hour
  tools/bench 'rand*' --systems raw,weirfs-embedded
  tools/bench --check -o json > bench.json        exit 1 when a row is below its floor
  tools/bench isolation scheduler --repeats 1
  tools/bench peers seqwrite-1M-direct --peers-dir DIR --peer moosefs
  tools/bench postgres                            pgbench over ext4 and over mounts
  tools/bench --against fa680be --check           another commit and this build in turns; exit 1 when a must is missed
  tools/bench --against HEAD~5 read1 'write*' --uring --systems raw,weirfs-embedded
"""


def size(text):
    """Bytes of `4G`, `512M` (binary) or a plain number."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper())
    value = int(text[:-1]) * factor if factor else int(text)
    if value <= 0 or value % MIB:
        raise ValueError(text)
    return value


def names():
    """{job: what it measures} in the order of measuring."""
    return {**{j.name: j.about for j in jobs.JOBS}, onodes.NAME: onodes.ABOUT, postgres.NAME: postgres.ABOUT,
            bigdirectory.NAME: bigdirectory.ABOUT, scheduler.NAME: scheduler.ABOUT, metering.NAME: metering.ABOUT,
            isolation.NAME: isolation.ABOUT,
            PEERS: "adds one other filesystem to the rows (needs --peers-dir)"}


def parse(argv):
    parser = argparse.ArgumentParser(prog="tools/bench", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Measures WeirFS beside what bounds it, in one run.", epilog=EXAMPLES)
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to measure, also as patterns (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names and what they measure")
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    parser.add_argument("--systems", help=f"comma-separated, of {','.join(s.name for s in SYSTEMS)} (default: all)")
    parser.add_argument("--runtime", type=float, default=4, metavar="S", help="seconds of one run (default 4)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs of each row (default 3)")
    parser.add_argument("--check", action="store_true", help="exit 1 when a row misses its floor or must")
    parser.add_argument("--against", metavar="COMMIT", help="builds that commit and compares the acceptance rows of both builds")
    parser.add_argument("--uring", action="store_true", help="with --against: FUSE over io_uring meanwhile, where a build has it")
    parser.add_argument("--clean-against", action="store_true", help=f"remove what --against built below {commit.ROOT}")
    parser.add_argument("--all", action="store_true", help="isolation also on systems without classes")
    parser.add_argument("--work", default="/var/tmp", metavar="DIR", help="where the disk images are (default /var/tmp)")
    parser.add_argument("--disk-size", type=size, metavar="SIZE", help="of each disk (default 4G; 2G with --against)")
    parser.add_argument("--file-size", type=size, metavar="SIZE", help="of the files (default: a quarter of a disk)")
    parser.add_argument("--keep-images", action="store_true", help="keep the written images for the next run")
    parser.add_argument("--bin", metavar="DIR", help="where the programs are (default: WEIR_BIN, build/release/bin)")
    parser.add_argument("--peers-dir", metavar="DIR", help="scripts up-PEER and down-PEER")
    parser.add_argument("--peer", default="moosefs", metavar="PEER", help="which of them (default moosefs)")
    options = parser.parse_args(argv)
    complete(parser, options)
    return options


def complete(parser, options):
    """Resolves names, systems and defaults; ends with exit code 2 and a reason where that fails."""
    choose(parser, options)
    known = {s.name: s for s in SYSTEMS}
    wanted = options.systems.split(",") if options.systems else list(known)
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no system '{unknown[0]}'; there are: {', '.join(known)}")
    options.system_types = [s for s in SYSTEMS if s.name in wanted]
    if options.runtime < 0.1 or options.repeats < 1:
        parser.error("--runtime must be at least 0.1 and --repeats at least 1")
    options.disk_size = options.disk_size or size("2G" if options.against else "4G")
    options.file_size = options.file_size or options.disk_size // 4
    if options.file_size < 64 * MIB or options.file_size > options.disk_size // 4:
        parser.error("--file-size must be at least 64M and at most a quarter of --disk-size")
    options.bin = options.bin or os.environ.get("WEIR_BIN") or os.path.join(REPO, "build", "release", "bin")
    if PEERS in options.chosen and not options.peers_dir:
        if PEERS in options.names:
            parser.error("'peers' needs --peers-dir, a directory with the scripts up-PEER and down-PEER")
        say("bench: no --peers-dir given: no other filesystem is measured beside")
        options.chosen.remove(PEERS)


def choose(parser, options):
    if options.against:
        try:
            options.rows = against.names(options.names)
        except ValueError as error:
            parser.error(str(error))
        options.chosen = []
        return
    if options.uring:
        parser.error("--uring belongs to --against; without it, the kernel's switch stays as it is")
    chosen = []
    for pattern in options.names or ["*"]:
        found = fnmatch.filter(names(), pattern)
        if not found:
            parser.error(f"no row '{pattern}'; there are: {', '.join(names())}")
        chosen += found
    if not options.names:
        chosen.remove(bigdirectory.NAME)  # Too long for each run.
    if chosen == [PEERS]:
        chosen += [job.name for job in jobs.JOBS]
    options.chosen = [name for name in names() if name in chosen]


class Bench:
    """One run: values by (system, row), and what went wrong by (system, job)."""

    def __init__(self, options, host):
        self._options = options
        self._host = host
        self._units = {}
        self._values = {}
        self._failures = {}
        self._tables = [j for j in jobs.JOBS if j.name in options.chosen]
        if onodes.NAME in options.chosen:
            self._tables.append(onodes.ColdOnodes())
        if postgres.NAME in options.chosen:
            if why := postgres.missing():
                say(f"bench: {postgres.NAME} is skipped: {why}")
            else:
                self._tables.append(postgres.Postgres())
        if bigdirectory.NAME in options.chosen:  # Behind them: its names stay.
            self._tables.append(bigdirectory.BigDirectory())

    def run(self):
        if scheduler.NAME in self._options.chosen:
            self._scheduler()
        if metering.NAME in self._options.chosen:
            self._metering()
        systems = self._start_systems()
        for job in self._tables:
            self._measure(job, [s for s in systems if job.suits(s) and (s.name != Ext4.name or job.name == postgres.NAME)])
        if isolation.NAME in self._options.chosen:  # Last: it changes the settings of the systems.
            for system in systems:
                if system.has_classes or (self._options.all and system.limit):
                    self._isolation(system)

    def rows(self):
        order = [s.name for s in SYSTEMS]
        job_order = list(self._units)
        keys = sorted(self._values, key=lambda k: (job_order.index(k[1]), order.index(k[0]) if k[0] in order else 99))
        return report.rows([report.Measured(s, j, self._units[j], self._values[s, j], self._bounded(j))
                            for s, j in keys], LIMITS)

    def _bounded(self, row):
        return any(row in job.rows() for job in self._tables)

    def failures(self):
        return [{"system": s, "job": j, "error": e} for (s, j), e in self._failures.items()]

    def _start_systems(self):
        options = self._options
        if not self._tables and isolation.NAME not in options.chosen:
            return []
        wanted = [kind(self._host, options.file_size) for kind in options.system_types if self._needs(kind)]
        if PEERS in options.chosen:
            wanted.append(Peer(self._host, options.file_size, options.peers_dir, options.peer))
        for system in wanted:
            for program in system.programs:
                system.program(program)
        self._host.need_space(sum(s.disks for s in wanted))
        started = []
        for system in wanted:
            say(f"bench: starting {system.name}")
            if self._guard(system.name, "start", lambda s=system: s.start() or True):
                started.append(system)
        return started

    def _needs(self, kind):
        if kind is Ext4:
            return any(job.name == postgres.NAME for job in self._tables)
        return bool(self._tables) or kind.has_classes or self._options.all

    def _measure(self, job, systems):
        """Interleaved, so that whatever else the machine does hits all systems alike."""
        for repeat in range(self._options.repeats):
            for system in systems:
                if (system.name, job.name) in self._failures:
                    continue
                system.before_each()
                got = self._guard(system.name, job.name,
                                  lambda s=system, r=repeat: job.measure(s, self._options.runtime, r))
                self._keep(system.name, got, job.rows())
                if got:
                    say(f"{job.name} {repeat + 1}/{self._options.repeats}: {system.name} "
                        f"{report.figure(next(iter(got.values())))} {next(iter(job.rows().values()))}")

    def _isolation(self, system):
        trial = isolation.Isolation(system, self._options.runtime)
        say(f"bench: isolation on {system.name}")
        if not self._guard(system.name, isolation.NAME, lambda: trial.prepare() or True):
            return
        for repeat in range(self._options.repeats):
            got = self._guard(system.name, isolation.NAME, lambda r=repeat: trial.measure(r))
            self._keep(system.name, got, isolation.rows())
            if not got:
                return

    def _scheduler(self):
        for _ in range(self._options.repeats):
            got = self._guard("osd-scheduler", scheduler.NAME, lambda: scheduler.measure(self._host))
            if not got:
                return
            self._keep("osd-scheduler", got, {row: scheduler.unit(row) for row in got})

    def _metering(self):
        if not self._guard(metering.SYSTEM, metering.NAME, lambda: self._host.need_space(2) or True):
            return
        trial = metering.Metering(self._host, self._options.file_size, self._options.runtime)
        say("bench: metering, on a cluster of one OSD that meters and does not, in turns")
        if not self._guard(metering.SYSTEM, metering.NAME, lambda: trial.start() or True):
            return
        for repeat in range(self._options.repeats):
            got = self._guard(metering.SYSTEM, metering.NAME, lambda r=repeat: trial.measure(r))
            if not got:
                return
            self._keep(metering.SYSTEM, got, metering.rows())

    def _keep(self, system, got, units):
        for row, value in (got or {}).items():
            self._units[row] = units[row]
            self._values.setdefault((system, row), []).append(value)

    def _guard(self, system, job, call):
        """One system's failure is noted and costs its rows, not the run."""
        try:
            return call()
        except (BenchError, OSError) as e:
            say(f"bench: {job} on {system} failed: {e}")
            self._failures[system, job] = str(e)
            return None


def end_on_signal(number, _):
    raise SystemExit(128 + number)


def measure(options):
    host = Host(options.work, options.bin, options.disk_size, options.keep_images)
    try:
        bench = Bench(options, host)
        bench.run()
        return bench.rows(), bench.failures()
    finally:
        host.close_undisturbed()


def list_rows(options):
    about = names()
    if options.against:
        about = {name: ", ".join(f"{system} {acceptance.words(must, must.value)}" for system, must in row.musts.items())
                 for name, row in acceptance.BY_NAME.items()}
    for name, text in about.items():
        print(f"{name:34}{text}")
    return 0


def compare(options):
    """The result of --against as text, and what it misses."""
    table, failures = against.measure(options, REPO)
    settings = {**settings_of(options), "against": options.against, "fuse_over_io_uring": options.uring}
    said = verdicts.to_json(table, failures, settings) if options.output == "json" else verdicts.to_table(table)
    return said, verdicts.shortfalls(table, failures), failures


def single(options):
    table, failures = measure(options)
    said = report.to_json(table, failures, settings_of(options)) if options.output == "json" else report.to_table(table)
    return said, report.shortfalls(table, failures), failures


def settings_of(options):
    return {"runtime_s": options.runtime, "repeats": options.repeats, "disk_bytes": options.disk_size,
            "file_bytes": options.file_size, "cores": os.cpu_count(), "load": os.getloadavg()[0]}


def main(argv):
    options = parse(argv)
    if options.list:
        return list_rows(options)
    if options.clean_against:
        commit.clean()
        if not options.against:
            return 0
    if os.geteuid() != 0:
        say("tools/bench: needs root, for loop devices and mounts: run it with sudo")
        return 1
    for number in SIGNALS:
        signal.signal(number, end_on_signal)
    try:
        said, bad, failures = compare(options) if options.against else single(options)
    except BenchError as e:
        say(f"tools/bench: {e}")
        return 1
    print(said)
    if options.check:
        for text in bad:
            say(f"tools/bench: {text}")
        return 1 if bad else 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
