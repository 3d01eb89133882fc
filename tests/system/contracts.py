#!/usr/bin/env python3
"""Contracts made with osdctl: shown, refused, kept across restarts, ended on time, obeyed and changed under load."""
import json
import os
import time

from weirtest import MIB, Cluster, Embedded, check, fio, main, wait_until


def show(system, name):
    return json.loads(system.osdctl("class", "show", name, "-o", "json").stdout)


def refused(done, code, *words):
    check(done.returncode == code, f"exit {done.returncode}, expected {code}: {done.args} {done.stderr}")
    check(done.stderr.startswith("osdctl: ") and done.stderr.count("\n") == 1, f"not one line: {done.stderr}")
    for word in words:
        check(word in done.stderr, f"'{word}' is not named in: {done.stderr}")


def every_contract_is_durable(lab):
    system = Cluster(lab, osds=1, token_rate="60MiB/s")
    system.osdctl("class", "create", "db", "--latency", "40ms@90%", "--max-pending", "4", "--admission", "measured")
    system.osdctl("class", "create", "disk", "--type", "throughput", "--peak", "25%", "--throughput", "5MiB/s",
                  "--tolerance", "10%", "--limit", "30MiB/s", "--weight", "2", "--min-weight", "0.5")
    system.osdctl("reserve", "disk", "--bandwidth", "10MiB/s", "--iops", "50", "--for", "1h", "--scope", "osd")
    system.osdctl("class", "create", "rented", "--type", "rent-a-disk", "--peak", "6MiB/s")
    before = {name: show(system, name) for name in ("db", "disk", "rented")}
    check(before["db"]["latency_us"] == 40000 and before["db"]["latency_percent"] == 90, f"{before['db']}")
    check(before["disk"]["type"] == "throughput" and before["disk"]["reservation_iops"] == 50, f"{before['disk']}")
    system.osdctl("osd", "set", "all", "--anticipation", "on", "--service-estimate", "13.1ms",
                  "--processor-pressure", "40%")
    for daemon in ("mds.0", "osd.0"):
        system.dev("kill", daemon)
        system.dev("start", daemon)
    osd = lambda: json.loads(system.osdctl("osd", "show", "0", "-o", "json").stdout)  # noqa: E731
    check(osd()["anticipation"], "anticipation was forgotten")
    check(osd()["service_estimate_us"] == 13100 and osd()["processor_pressure_percent"] == 40, f"{osd()}")
    system.osdctl("osd", "set", "all", "--processor-pressure", "off")
    check(osd()["processor_pressure_percent"] == 100, f"{osd()}")
    system.osdctl("osd", "set", "all", "--service-estimate", "auto")
    check(osd()["service_estimate_us"] is None and osd()["anticipation"], f"{osd()}")
    check({name: show(system, name) for name in before} == before, "contracts changed in a restart")
    check(before["rented"]["peaks"] == [{"osd": 0, "percent": 10, "bytes_per_s": 6 * MIB}], f"{before['rented']}")
    for name, text in (("disk", "its peak on osd.0 is 15MiB/s, 25% of the disk"), ("rented", "osd.0 is 6MiB/s, 10% of the disk")):
        shown = system.osdctl("class", "show", name).stdout
        check(text in shown, f"'{text}' is not in:\n{shown}")
    table = system.osdctl("class", "ls").stdout
    for text in ("40ms@90%", "throughput 25% 5MiB/s", "rent-a-disk 6MiB/s", "30MiB/s"):
        check(text in table, f"'{text}' is not in:\n{table}")


def refusals_name_the_way_out(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "60MiB/s")
    system.osdctl("osd", "set", "all", "--best-effort-min", "0")
    create = lambda *argv: system.osdctl("class", "create", *argv, ok=None)  # noqa: E731
    check(create("a", "--latency", "20ms").returncode == 0, "960 requests/s do not admit a bound of 20 ms")
    refused(create("b", "--latency", "20ms@99%"), 4, "20ms@99%", "'b'", "osd.0", "960 requests/s already promised",
            "largest that fits: 63 requests/s, a bound of ")
    dry = system.osdctl("class", "create", "b", "--latency", "400ms", "--dry-run")
    check("would be admitted" in dry.stdout, dry.stdout)
    refused(system.osdctl("class", "show", "b", ok=None), 5, "b")
    refused(create("b", "--type", "rent-a-disk", "--peak", "50%"), 4, "50% of the disk", "largest that fits: 6.59%")
    refused(create("b", "--type", "rent-a-disk", "--peak", "50MiB"), 4, "a peak of 50MiB/s to 'b'", "MiB/s already promised",
            "largest that fits: 3.9")
    system.osdctl("class", "create", "b")
    refused(system.osdctl("reserve", "b", "--iops", "100", ok=None), 4, "100 requests/s for 'b'", "63 requests/s")
    system.osdctl("reserve", "b", "--iops", "63", "--dry-run")
    check(show(system, "b")["reservation_scope"] is None, "a dry run reserved")
    dry = system.osdctl("reserve", "b", "--iops", "63", "--leeway", "auto", "--dry-run").stdout
    check("leeway 1.5: the default, too little was seen of the class" in dry and "would be admitted" in dry, dry)
    system.osdctl("reserve", "b", "--iops", "63", "--leeway", "1.25")
    check(show(system, "b")["reservation_leeway"] == 1.25, "the leeway")
    system.osdctl("class", "set", "a", "--latency", "none")
    system.osdctl("reserve", "b", "--bandwidth", "10MiB/s", "--iops", "100", "--admission", "measured")
    for argv in (["class", "set", "a", "--latency", "fast"], ["class", "set", "a", "--latency", "10ms@120%"],
                 ["class", "set", "a", "--peak", "20%"], ["class", "set", "a", "--type", "sideways"],
                 ["class", "set", "a", "--type", "throughput", "--peak", "20%"],
                 ["class", "set", "a", "--type", "rent-a-disk", "--peak", "20B"],
                 ["class", "set", "a", "--type", "rent-a-disk", "--peak", "150%"],
                 ["class", "set", "a", "--admission", "maybe"], ["class", "set", "a", "--capacity", "1"],
                 ["class", "set", "best-effort", "--latency", "10ms"], ["reserve", "a"],
                 ["reserve", "a", "--iops", "-3"], ["reserve", "a", "--iops", "3", "--leeway", "0.5"],
                 ["reserve", "a", "--iops", "3", "--leeway", "2x"], ["class", "set", "a", "--max-pending", "x"]):
        done = system.osdctl(*argv, ok=None)
        check(done.returncode == 2 and done.stderr.startswith("osdctl: "), f"{argv}: {done}")


def a_bound_below_what_the_disk_does_alone_is_refused(lab):
    system = Cluster(lab, osds=1, token_rate="60MiB/s", disks=["ssd:4GiB,rate=80MB/s"])
    system.osdctl("osd", "set", "all", "--iops-max", "1000000")  # by which a request alone takes a microsecond
    alone = lambda: json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"][0]["alone_p99_us"]  # noqa: E731
    check(alone() == 0, "nothing was measured yet")
    system.osdctl("class", "create", "db", "--latency", "10us@99%", "--max-pending", "0")
    system.osdctl("class", "rm", "db")
    system.osdctl("profile", "0")
    check(alone() > 20, f"a read of an emulated disk takes {alone()} us")
    refused(system.osdctl("class", "create", "db", "--latency", "10us@99%", "--max-pending", "0", ok=None), 4,
            "10us@99%", "'db'", "osd.0", "one in a hundred", "osdctl profile 0")
    system.osdctl("class", "create", "db", "--latency", f"{2 * alone()}us@99%", "--max-pending", "0")
    refused(system.osdctl("class", "set", "db", "--latency", "10us@99%", ok=None), 4, "osd.0")


def reservations_end_on_time(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "60MiB/s")
    system.osdctl("class", "create", "a")
    began = time.monotonic()
    system.osdctl("reserve", "a", "--bandwidth", "50MiB/s", "--for", "2s")
    refused(system.osdctl("reserve", "a", "--bandwidth", "70MiB/s", ok=None), 4, "70MiB/s")
    wait_until(lambda: show(system, "a")["reservation_scope"] is None, "the reservation to end")
    took = time.monotonic() - began
    check(took >= 2, f"a reservation of 2 s ended after {took:.2f} s")
    system.osdctl("reserve", "a", "--bandwidth", "50MiB/s")


def changes_under_load_lose_nothing(lab):
    system = Cluster(lab, osds=2, token_rate="40MiB/s")
    system.osdctl("class", "create", "a")
    path = f"{system.mnt}/a"
    os.mkdir(path)
    os.setxattr(path, "user.qos.class", b"a")
    from concurrent.futures import ThreadPoolExecutor
    job = {"name": "load", "directory": path, "rw": "randrw", "bs": "16k", "size": "16m", "numjobs": "2",
           "ioengine": "libaio", "iodepth": "8", "direct": "1", "time_based": "1", "runtime": "6"}
    verified = {"name": "verified", "directory": path, "rw": "write", "bs": "64k", "size": "16m", "verify": "crc32c",
                "do_verify": "1", "direct": "1"}
    with ThreadPoolExecutor() as pool:
        load = pool.submit(fio, lab, job, verified)
        changes = [("class", "set", "a", "--latency", "100ms@90%"), ("reserve", "a", "--bandwidth", "10MiB/s"),
                   ("class", "set", "a", "--limit", "30MiB/s"), ("osd", "set", "all", "--anticipation", "on"),
                   ("osd", "set", "all", "--processor-pressure", "1%"),
                   ("class", "set", "a", "--latency", "none"),
                   ("reserve", "a", "--iops", "100", "--scope", "osd"), ("osd", "set", "all", "--profile", "vd"),
                   ("class", "set", "a", "--type", "rent-a-disk", "--peak", "40%"),
                   ("osd", "set", "all", "--profile", "unified"), ("class", "set", "a", "--type", "best-effort"),
                   ("release", "a"), ("class", "set", "a", "--limit", "max")]
        count = 0
        while not load.done():
            system.osdctl(*changes[count % len(changes)])
            count += 1
        load.result()
    check(count >= len(changes), f"only {count} changes were made")
    stat = json.loads(system.osdctl("stat", "a", "-o", "json").stdout)
    for osd in stat["osds"]:
        row = osd["classes"][0]
        check(row["served_bytes"] > 0 and row["queued_ops"] == 0, f"{row}")
    lab.show(f"        {count} changes under load")


def a_bound_that_cannot_be_kept_is_counted(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "60MiB/s")
    system.osdctl("class", "create", "slow", "--latency", "30ms", "--limit", "1MiB/s")
    path = f"{system.mnt}/slow"
    os.mkdir(path)
    os.setxattr(path, "user.qos.class", b"slow")
    job = {"name": "slow", "directory": path, "rw": "write", "bs": "64k", "size": "8m", "direct": "1",
           "ioengine": "libaio", "iodepth": "16", "time_based": "1", "runtime": "4"}
    fio(lab, job)
    row = json.loads(system.osdctl("stat", "slow", "-o", "json").stdout)["osds"][0]["classes"][0]
    check(row["deadline_misses"] > 10, f"64 KiB take 62 ms, and hardly one is late: {row}")
    check(row["violation_seconds"] >= 2, f"{row}")
    check(row["served_bytes"] <= 5.5 * MIB, f"served {row['served_bytes'] / MIB:.2f} MiB in 4 s at 1 MiB/s")


if __name__ == "__main__":
    main("contracts", every_contract_is_durable, refusals_name_the_way_out,
         a_bound_below_what_the_disk_does_alone_is_refused, reservations_end_on_time,
         changes_under_load_lose_nothing, a_bound_that_cannot_be_kept_is_counted)
