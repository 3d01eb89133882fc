#!/usr/bin/env python3
"""tools/bench without a disk: limits, floors, what fio and the benchmark say, the choice of rows."""
import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "lib"))

from bench import acceptance, against, bigdirectory, cli, commit, cost, fio, isolation, jobs, metering, onodes, postgres, report  # noqa: E402
from bench import scheduler, verdicts  # noqa: E402
from bench.host import BenchError  # noqa: E402

LIMITS = ["raw", "passthrough"]


def table(*measured):
    return {(r["system"], r["job"]): r for r in report.rows([report.Measured(*m) for m in measured], LIMITS)}


class MeteringTest(unittest.TestCase):
    SWITCHES = [(1000, True), (1500, False), (2000, True)]

    def test_a_time_in_which_the_switch_moved_counts_for_neither_mode(self):
        for start, end, mode in ((900, 1000, None), (1000, 1100, None), (1100, 1200, True), (1400, 1500, True),
                                 (1450, 1550, None), (1550, 1650, None), (1600, 1700, False), (2100, 2200, True),
                                 (1400, 2200, None)):
            self.assertIs(metering.mode_of(self.SWITCHES, start, end), mode, (start, end))

    def test_each_mode_has_the_rate_and_the_median_of_its_times(self):
        log = [(1100, {10: 99}), (1200, {10: 3, 20: 1}), (1600, {10: 99}), (1800, {40: 8})]
        modes = metering.split(self.SWITCHES, [log, log])
        self.assertAlmostEqual(modes[True].iops, 40)
        self.assertAlmostEqual(modes[False].iops, 40)
        self.assertAlmostEqual(modes[True].p50_us, (10 + 4 / 6) / 1e3)
        self.assertAlmostEqual(modes[False].p50_us, 40.5 / 1e3)

    def test_without_a_completion_of_one_mode_there_is_nothing_to_say(self):
        modes = metering.split(self.SWITCHES, [[(1100, {}), (1200, {10: 3})]])
        self.assertRaises(BenchError, lambda: modes[False].iops)
        self.assertRaises(BenchError, lambda: modes[False].p50_us)

    def test_bins_of_fio_follow_each_other(self):
        self.assertEqual(fio.histogram_bin_ns(127), (127, 1))
        for index in range(1000):
            low, width = fio.histogram_bin_ns(index)
            self.assertEqual(low + width, fio.histogram_bin_ns(index + 1)[0], index)


class BigDirectoryTest(unittest.TestCase):
    def test_growth_is_how_many_times_as_long_it_takes(self):
        rows = bigdirectory.rows_of([1000, 400, 800], {look: 50 for look in bigdirectory.LOOKS},
                                    {look: 75 for look in bigdirectory.LOOKS})
        rows.update(bigdirectory.processor_rows([100, 300, 150]))
        self.assertEqual(set(rows), set(bigdirectory.BigDirectory().rows()))
        self.assertEqual(rows["bigdirectory.create-cpu-growth"], 1.5)
        self.assertEqual(rows["bigdirectory.create-growth"], 1.25)
        self.assertEqual(rows["bigdirectory.create-worst"], 2.5)
        self.assertEqual(rows["bigdirectory.stat-cold-growth"], 1.5)

    def test_a_part_takes_the_time_of_its_pieces(self):
        self.assertEqual(bigdirectory.tenths([100, 300] * 10), [150.0] * 10)

    def test_goes_cold_before_each_kind_of_look_and_leaves_what_it_did_not_unlink(self):
        with tempfile.TemporaryDirectory() as place:
            system = mock.Mock(data=place, **{"processes.return_value": {"mount": [os.getpid()]}})
            system.name = "here"
            job = bigdirectory.BigDirectory(names=1000, sample=200)
            with contextlib.redirect_stderr(io.StringIO()):
                rows = job.measure(system, 4, 0)
            self.assertEqual(set(rows), set(job.rows()))
            self.assertEqual(system.cold.call_count, 4)
            self.assertEqual(len(os.listdir(os.path.join(place, "bigdirectory.big"))), 800)
            self.assertEqual(job.measure(system, 4, 1), {})

    def test_is_measured_by_name_only(self):
        self.assertNotIn(bigdirectory.NAME, cli.parse([]).chosen)
        self.assertIn(bigdirectory.NAME, cli.parse(["big*"]).chosen)


class FloorTest(unittest.TestCase):
    def test_limit_is_the_lower_median_of_raw_and_passthrough(self):
        rows = table(("raw", "seqwrite-1M-direct", "MB/s", [900, 4000, 1000]),
                     ("passthrough", "seqwrite-1M-direct", "MB/s", [2000, 2000, 100]),
                     ("weirfs-embedded", "seqwrite-1M-direct", "MB/s", [349, 360, 10]))
        row = rows["weirfs-embedded", "seqwrite-1M-direct"]
        self.assertEqual((row["limit"], row["floor"], row["min"], row["median"], row["max"]), (1000, 350, 10, 349, 360))
        self.assertIs(row["pass"], False)
        self.assertIsNone(rows["raw", "seqwrite-1M-direct"]["pass"])

    def test_either_bound_is_enough_for_durable_writes(self):
        for raw, ours, passed in ((200_000, 20_000, True), (200_000, 19_999, False), (40_000, 10_000, True),
                                  (40_000, 9_999, False)):
            rows = table(("raw", "randwrite-4k-16jobs", "IOPS", [raw]),
                         ("weirfs-embedded", "randwrite-4k-16jobs", "IOPS", [ours]))
            self.assertIs(rows["weirfs-embedded", "randwrite-4k-16jobs"]["pass"], passed, (raw, ours))

    def test_without_its_limit_a_floor_is_unknown_and_not_passed(self):
        rows = table(("weirfs-embedded", "randread-4k-16jobs", "IOPS", [1e6]),
                     ("weirfs-embedded", "randwrite-4k-16jobs", "IOPS", [100]))
        self.assertIsNone(rows["weirfs-embedded", "randread-4k-16jobs"]["pass"])
        self.assertIsNone(rows["weirfs-embedded", "randwrite-4k-16jobs"]["pass"])
        self.assertEqual(len(report.shortfalls(list(rows.values()), [])), 2)

    def test_isolation_has_a_floor_and_a_ceiling(self):
        rows = table(("weirfs-embedded", "isolation-1M-psync.kept", "%", [49.9], False),
                     ("weirfs-embedded", "isolation-1M-psync.p99", "x", [5.1], False),
                     ("weirfs-embedded", "isolation-64k-libaio.p99", "x", [5], False),
                     ("raw", "isolation-64k-libaio.p99", "x", [20], False))
        self.assertEqual([r["pass"] for r in rows.values()], [False, False, True, None])
        self.assertIsNone(rows["weirfs-embedded", "isolation-64k-libaio.p99"]["limit"])

    def test_every_floor_fits_a_row_that_is_measured(self):
        measured = [row for job in [*jobs.JOBS, bigdirectory.BigDirectory()] for row in job.rows()] + list(isolation.rows()) + list(metering.rows())
        measured += [f"scheduler.{row}" for row in ("Decide/unified/1000", "Decide/cvc/10000", "growth/vd",
                                                    "BestEffort/unified", "SolveTiers/four/1000")]
        for floor in report.FLOORS:
            self.assertTrue(any(floor.fits(s, row) for row in measured
                                for s in ("weirfs-embedded", "weirfs-cluster", "osd-scheduler", metering.SYSTEM)), floor)

    def test_a_check_that_checks_nothing_is_not_green(self):
        rows = table(("raw", "randread-4k-16jobs", "IOPS", [5]))
        self.assertEqual(report.shortfalls(list(rows.values()), []), ["no row with a floor was measured"])

    def test_a_failed_job_is_a_shortfall(self):
        rows = table(("weirfs-embedded", "creates-1thread", "ops/s", [5000]))
        failures = [{"system": "weirfs-cluster", "job": "start", "error": "no contact"}]
        self.assertEqual(report.shortfalls(list(rows.values()), failures), ["start on weirfs-cluster: no contact"])


class AcceptanceTest(unittest.TestCase):
    """The table of musts and the arithmetic that holds two builds to it."""

    def judged(self, row, system, old, new, limit=None):
        medians = {(system, "old", row): old, (system, "new", row): new}
        limits = {(acceptance.BY_NAME[row].limit, row): limit}
        found = acceptance.judge([row], [system], {k: v for k, v in medians.items() if v is not None}, limits, {})
        self.assertEqual(len(found), 1)
        return found[0]

    def passes(self, *args):
        return self.judged(*args).passed

    def test_rates_are_multiples_of_the_old_build(self):
        self.assertIs(self.passes("write16", "weirfs-cluster", 1000, 2000), True)
        self.assertIs(self.passes("write16", "weirfs-cluster", 1000, 1999), False)
        judged = self.judged("read16", "weirfs-embedded", 1000, 1500, 10_000)
        self.assertEqual((judged.ratio, judged.share, judged.passed, judged.goal_reached), (1.5, 0.15, True, True))
        self.assertIs(self.judged("read16", "weirfs-embedded", 1000, 1499, 10_000).goal_reached, False)

    def test_a_row_near_the_raw_device_holds(self):
        self.assertIs(self.passes("coldstat", "weirfs-cluster", 800, 1000, 1000), False)  # A passthrough is no wall.
        self.assertIs(self.passes("read16", "weirfs-cluster", 800, 900, 1000), True)
        self.assertIs(self.passes("read16", "weirfs-cluster", 800, 899, 1000), False)

    def test_switches_are_multiples_of_one_process_and_numbers_of_a_cluster(self):
        self.assertIs(self.passes("read1.switches", "weirfs-embedded", 10, 9.5), True)
        self.assertIs(self.passes("read1.switches", "weirfs-embedded", 10, 9.6), False)
        self.assertIs(self.passes("read1.switches", "weirfs-cluster", None, 12), True)
        self.assertIs(self.passes("read1.switches", "weirfs-cluster", 12.1, 12.1), False)

    def test_latencies_are_differences(self):
        self.assertIs(self.passes("read1.p50", "weirfs-embedded", 90, 90, 60), True)
        self.assertIs(self.passes("read1.p50", "weirfs-embedded", 90, 90.1, 60), False)
        self.assertIs(self.passes("read1.p50", "weirfs-cluster", 200, 170, 60), True)
        self.assertIs(self.passes("read1.p50", "weirfs-cluster", 200, 171, 60), False)

    def test_databases_are_shares_of_ext4(self):
        self.assertIs(self.passes("postgres.1client", "weirfs-embedded", 1, 72, 100), True)
        self.assertIs(self.passes("postgres.1client", "weirfs-embedded", 1, 71, 100), False)
        self.assertIsNone(self.passes("postgres.1client", "weirfs-embedded", 1, 71))

    def test_what_was_not_measured_is_unknown_and_not_passed(self):
        for old, new in ((None, 100), (100, None)):
            judged = self.judged("write16", "weirfs-embedded", old, new)
            self.assertIsNone(judged.passed)
            self.assertIn("not measured", verdicts.shortfalls([judged], [])[0])
        self.assertEqual(verdicts.shortfalls([], []), ["no row was measured"])

    def test_a_goal_is_nobodys_failure(self):
        judged = self.judged("write1m", "weirfs-embedded", 100, 111)
        self.assertEqual((judged.passed, judged.goal_reached), (True, False))
        self.assertEqual(verdicts.shortfalls([judged], []), [])

    def test_every_goal_asks_for_more_than_its_must(self):
        for row in acceptance.ROWS:
            for system, must in row.musts.items():
                if must.goal is not None:
                    more = must.goal > must.value if must.how in ("times", "share", "at least") else must.goal < must.value
                    self.assertTrue(more, (row.name, system))

    def test_every_row_of_the_table_is_measured_in_its_unit(self):
        measured = {row: unit for load in against.loads() for row, unit in load.rows().items()} | metering.rows()
        for row in acceptance.ROWS:
            self.assertEqual(measured.get(row.name), row.unit, row.name)

    def test_builds_take_turns_in_coming_first(self):
        self.assertEqual([against.turns(["raw", "old", "new"], r) for r in range(2)],
                         [["raw", "old", "new"], ["new", "old", "raw"]])

    def test_metering_without_room_costs_its_rows_and_no_others(self):
        class FullHost:
            def need_space(self, _):
                raise BenchError("no room")
        options = argparse.Namespace(rows=["metering.p50"], repeats=1, system_types=[])
        run = against.Against(options, FullHost(), [])
        run.run([])
        self.assertEqual(run.failures, [{"system": acceptance.PIPELINE, "job": "metering", "error": "no room"}])

    def test_the_table_tells_limit_way_must_and_goal(self):
        medians = {("weirfs-embedded", build, "read16"): value for build, value in (("old", 1000), ("new", 1400))}
        over = {("weirfs-embedded", "old"): "/dev/fuse", ("weirfs-embedded", "new"): "io_uring"}
        rows = acceptance.judge(["read16"], ["weirfs-embedded"], medians, {("raw", "read16"): 2000}, over)
        text = verdicts.to_table(rows).splitlines()[1]
        for part in ("1.40", "70 % raw (75 to 90 %)", "/dev/fuse -> io_uring", ">= 1.25 x", "ok", "[>= 1.5 x]"):
            self.assertIn(part, text)
        document = json.loads(verdicts.to_json(rows, [], {}))["rows"][0]
        self.assertEqual((document["ratio"], document["share"], document["pass"], document["goal_reached"]),
                         (1.4, 0.7, True, False))

    def test_switches_are_read_from_the_kernels_counters(self):
        self.assertEqual(cost.switches("cpu  1 2 3\nctxt 1234\nbtime 5\n"), 1234)
        self.assertRaises(BenchError, cost.switches, "cpu 1\n")

    def test_pgbench_says_its_rate_without_the_connections(self):
        self.assertEqual(postgres.parse("latency average = 2 ms\ntps = 512.25 (without initial connection time)\n"), 512.25)
        self.assertRaises(BenchError, postgres.parse, "pgbench: error: connection failed\n")


class OnodesTest(unittest.TestCase):
    def test_every_object_is_read_once_by_one_of_the_readers(self):
        options = onodes.each_object("/mnt", 800)
        skip = int(options["rw"].removeprefix("read:").removesuffix("k")) * 1024
        self.assertEqual(skip + 4096, onodes.OBJECT)
        of_one = options["io_size"] // 4096
        self.assertEqual((of_one * options["numjobs"], options["size"]), (800, of_one * onodes.OBJECT))

    def test_the_neighbour_is_compared_with_itself_beside_the_second_pass(self):
        def result(p99, iops):
            return fio.Result(mb_per_s=1, iops=iops, p50_us=1, p99_us=p99, requests=1, seconds=1)

        beside = {"cold": (result(300, 1), result(1, 4000)), "known": (result(200, 1), result(1, 8000))}
        rows = onodes.rows_of(result(100, 1), beside)
        self.assertEqual(list(rows), list(onodes.ColdOnodes().rows()))
        self.assertEqual(list(rows.values()), [1.5, 100, 300, 200, 4000, 8000])


class ThreadsTest(unittest.TestCase):
    def test_the_most_threads_of_any_process_of_a_kind_are_counted_under_load(self):
        looked = threading.Event()

        class Load:
            def prepare(self, _system):
                pass

            def run(self, *_):
                looked.wait(60)

        class System:
            def processes(self):
                looked.set()
                return {"mount": [os.getpid()], "osd": [child.pid, os.getpid()], "mds": [child.pid]}

        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
            rows = cost.Threads(Load()).measure(System(), 1, 0)
        self.assertEqual(rows, {"threads.mount": 2, "threads.osd": 2, "threads.mds": 1})  # This one and the load's.


class CommitTest(unittest.TestCase):
    """Building another commit, in a repository of a few bytes and without a compiler."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo, self.root = os.path.join(folder.name, "repo"), os.path.join(folder.name, "root")
        os.mkdir(self.repo)
        self.git("init", "-q")
        for text in ("one", "two"):
            with open(os.path.join(self.repo, "file"), "w", encoding="ascii") as file:
                file.write(text)
            self.git("add", "file")
            self.git("-c", "user.name=a", "-c", "user.email=a@example", "commit", "-q", "-m", text)

    def git(self, *args):
        subprocess.run(["git", "-C", self.repo, *args], check=True, stdin=subprocess.DEVNULL)

    def test_a_commit_is_unpacked_and_built_once_in_its_own_folder(self):
        built = []
        with mock.patch.object(commit, "build", built.append), contextlib.redirect_stderr(io.StringIO()):
            for _ in range(2):
                programs = commit.programs(self.repo, "HEAD~1", self.root)
        place = commit.folder(commit.resolve(self.repo, "HEAD~1"), self.root)
        self.assertEqual((built, programs), ([place], os.path.join(place, "build", "release", "bin")))
        with open(os.path.join(place, "file"), encoding="ascii") as file:
            self.assertEqual(file.read(), "one")
        commit.clean(self.root)
        self.assertFalse(os.path.exists(self.root))

    def test_a_build_that_failed_is_tried_again(self):
        broken = mock.patch.object(commit, "build", side_effect=BenchError("no compiler"))
        with broken, contextlib.redirect_stderr(io.StringIO()):
            for _ in range(2):
                with self.assertRaisesRegex(BenchError, "no compiler"):
                    commit.programs(self.repo, "HEAD", self.root)

    def test_what_is_no_commit_is_named(self):
        with self.assertRaisesRegex(BenchError, "'nope' is no commit"):
            commit.programs(self.repo, "nope", self.root)


class OutputTest(unittest.TestCase):
    def test_json_has_the_keys_of_the_contract(self):
        rows = list(table(("raw", "randread-4k-16jobs", "IOPS", [5.12345, 6, 7])).values())
        document = json.loads(report.to_json(rows, [], {}))
        self.assertEqual(document["version"], 1)
        keys = {"system", "job", "unit", "min", "median", "max", "limit", "ratio", "floor", "pass"}
        self.assertLessEqual(keys, document["rows"][0].keys())
        self.assertEqual(document["rows"][0]["min"], 5.123)

    def test_table_shows_what_is_low(self):
        rows = list(table(("weirfs-embedded", "creates-1thread", "ops/s", [999])).values())
        self.assertIn("LOW >= 1,000", report.to_table(rows))


class ParseTest(unittest.TestCase):
    JOB = {"error": 0, "read": {"total_ios": 0},
           "write": {"total_ios": 10, "bw_bytes": 5_000_000, "iops": 12.5, "runtime": 1500,
                     "lat_ns": {"percentile": {"50.000000": 500_000, "99.000000": 2_000_000}}}}

    def test_fio_result_after_a_note(self):
        result = fio.parse("x", "fio: a note\n" + json.dumps({"jobs": [self.JOB]}))
        self.assertEqual(result, fio.Result(mb_per_s=5, iops=12.5, p50_us=500, p99_us=2000, requests=10, seconds=1.5))

    def test_fio_errors_are_not_figures(self):
        for text in ("fio: no such engine", json.dumps({"jobs": [{**self.JOB, "error": 5}]}),
                     json.dumps({"jobs": [{**self.JOB, "write": {"total_ios": 0}}]})):
            with self.assertRaises(BenchError):
                fio.parse("x", text)

    def test_scheduler_rows_are_ns_and_growth_from_10_to_10000_classes(self):
        runs = [{"name": f"Decide/odis/{n}", "run_type": "iteration", "cpu_time": us, "time_unit": "us"}
                for n, us in ((10, 0.1), (1000, 0.25), (10000, 0.5))]
        runs.append({"name": "SolveTiers/two/1000", "run_type": "iteration", "cpu_time": 13, "time_unit": "us"})
        self.assertEqual(scheduler.parse(json.dumps({"benchmarks": runs})),
                         {"scheduler.Decide/odis/1000": 250, "scheduler.Decide/odis/10000": 500,
                          "scheduler.growth/odis": 5, "scheduler.SolveTiers/two/1000": 13_000})
        self.assertEqual([scheduler.unit(f"scheduler.{row}") for row in ("growth/odis", "Decide/odis/1000")], ["x", "ns"])

    def test_scheduler_bounds_fit_one_row_each(self):
        for row, ceiling in (("Decide/cvc/1000", 1_000), ("Decide/cvc/10000", 5_000), ("growth/cvc", 10),
                             ("BestEffort/cvc", 500), ("SolveTiers/two/1000", 1_000_000)):
            fits = [f.most for f in report.FLOORS if f.fits("osd-scheduler", f"scheduler.{row}")]
            self.assertEqual(fits, [ceiling], row)

    def test_scheduler_without_1000_classes_is_an_error(self):
        runs = [{"name": "Decide/odis/10", "run_type": "iteration", "cpu_time": 0.25, "time_unit": "us"}]
        with self.assertRaises(BenchError):
            scheduler.parse(json.dumps({"benchmarks": runs[:1]}))


class ChoiceTest(unittest.TestCase):
    def refused(self, *argv):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            cli.parse(argv)
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_patterns_choose_rows_in_the_order_of_measuring(self):
        options = cli.parse(["isolation", "rand*", "--systems", "weirfs-embedded,raw"])
        self.assertEqual(options.chosen, ["randread-4k-16jobs", "randwrite-4k-16jobs", "randwrite-4k-16jobs-dsync",
                                          "isolation"])
        self.assertEqual([s.name for s in options.system_types], ["raw", "weirfs-embedded"])
        self.assertEqual(options.file_size, 1 << 30)

    def test_what_cannot_be_is_refused_and_named(self):
        self.assertIn("no row 'nope'", self.refused("nope"))
        self.assertIn("no system 'zfs'", self.refused("--systems", "raw,zfs"))
        self.assertIn("--peers-dir", self.refused("peers"))
        self.assertIn("invalid size value", self.refused("--disk-size=-4G"))
        self.assertIn("--file-size", self.refused("--disk-size", "1G", "--file-size", "512M"))
        self.assertIn("--runtime", self.refused("--runtime", "0"))
        self.assertIn("--against", self.refused("--uring"))

    def test_a_comparison_has_rows_of_its_own_and_smaller_disks(self):
        options = cli.parse(["--against", "fa680be", "threads", "read1.p50", "post*"])
        self.assertEqual(options.rows, ["threads.mount", "threads.osd", "threads.mds", "read1.p50", "postgres.1client",
                                        "postgres.8clients"])
        self.assertEqual((options.chosen, options.disk_size), ([], 2 << 30))
        self.assertIn("no row 'isolation'", self.refused("--against", "fa680be", "isolation"))
        self.assertEqual(cli.parse(["--against", "fa680be"]).rows, list(acceptance.BY_NAME))


if __name__ == "__main__":
    unittest.main()
