#!/usr/bin/env python3
"""Switches of an OSD: one lets requests go past its pipeline, one writes down what the pipeline decides."""
import json
import os
import re
import signal
import subprocess

from weirtest import BIN, MIB, Cluster, check, main, read_from_disk, wait_until


def osd(system, *verb):
    return json.loads(system.osdctl(*verb, "-o", "json").stdout)


def bypassed_requests_are_served_and_counted_apart(lab):
    os.environ["WEIR_OSD_METERING"] = "false"
    lab.on_exit(os.environ.pop, "WEIR_OSD_METERING")
    system = Cluster(lab, osd_size="1GiB", token_rate="1MiB/s")
    system.osdctl("osd", "set", "all", "--profile", "odis", "--maximizer", "off")
    data = os.urandom(8 * MIB)  # eight seconds' worth, if it were metered
    with open(f"{system.mnt}/data", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    check(read_from_disk(f"{system.mnt}/data") == data, "the file is not what was written")
    stat = osd(system, "stat")["osds"][0]
    check(stat["unmetered_bytes"] >= 2 * len(data), f"only {stat['unmetered_bytes']} bytes count as past the pipeline")
    check(all(row["served_bytes"] == 0 for row in stat["classes"]), "a class was served by the pipeline")


def the_switch_moves_under_load(lab):
    os.environ["WEIR_OSD_METERING_SWITCH"] = "true"
    lab.on_exit(os.environ.pop, "WEIR_OSD_METERING_SWITCH")
    system = Cluster(lab, osd_size="1GiB")
    with open(f"{system.dir}/weir-dev.json") as file:
        pid = json.load(file)["osds"][0]["process"]["pid"]

    def served():
        stat = osd(system, "stat")["osds"][0]
        return stat["unmetered_bytes"], sum(row["served_bytes"] for row in stat["classes"])

    def write(data):
        with open(f"{system.mnt}/data", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def written_after(sent, column, name):
        """The switch moves when the daemon reads the signal: write until it shows."""
        os.kill(pid, sent)
        before = served()[column]

        def shows():
            write(data)
            return served()[column] - before >= len(data)
        wait_until(shows, f"bytes that are {name}")

    data = os.urandom(MIB)
    for _ in range(3):
        written_after(signal.SIGUSR1, 0, "unmetered")
        written_after(signal.SIGUSR2, 1, "metered")
    unmetered = served()[0]
    write(data)
    check(served()[0] == unmetered, "a metered write counts as past the pipeline")
    check(read_from_disk(f"{system.mnt}/data") == data, "the file is not what was written")


def decisions_are_made_again(lab):
    os.environ["WEIR_OSD_DECISION_LOG"] = f"{lab.dir}/decisions"
    lab.on_exit(os.environ.pop, "WEIR_OSD_DECISION_LOG")
    system = Cluster(lab, osd_size="1GiB", token_rate="200MiB/s")
    system.osdctl("class", "create", "bulk", "--limit", "100MiB/s")
    os.mkdir(f"{system.mnt}/bulk")
    os.setxattr(f"{system.mnt}/bulk", "user.qos.class", b"bulk")
    for profile in ("unified", "odis", "dsfq-total"):
        system.osdctl("osd", "set", "all", "--profile", profile)
        for path in (f"{system.mnt}/bulk/{profile}", f"{system.mnt}/{profile}"):
            with open(path, "wb") as file:
                file.write(os.urandom(8 * MIB))
                file.flush()
                os.fsync(file.fileno())
    system.down()
    replay = subprocess.run([f"{BIN}/weir-sim", "replay", f"{lab.dir}/decisions"], capture_output=True, text=True)
    check(replay.returncode == 0, f"weir-sim replay: {replay.stdout}{replay.stderr}")
    requests = int(re.match(r"(\d+) requests", replay.stdout)[1])
    check(requests >= 12, f"only {requests} requests were written down")


if __name__ == "__main__":
    main("metering", bypassed_requests_are_served_and_counted_apart, the_switch_moves_under_load, decisions_are_made_again)
