#!/usr/bin/env python3
"""Switches of an OSD: one lets requests go past its pipeline, one writes down what the pipeline decides."""
import json
import os
import re
import subprocess

from weirtest import BIN, MIB, Cluster, check, main


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
        os.fsync(file.fileno())
    with open(f"{system.mnt}/data", "rb") as file:
        check(file.read() == data, "the file is not what was written")
    stat = osd(system, "stat")["osds"][0]
    check(stat["unmetered_bytes"] >= len(data), f"only {stat['unmetered_bytes']} bytes count as past the pipeline")
    check(all(row["served_bytes"] == 0 for row in stat["classes"]), "a class was served by the pipeline")


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
                os.fsync(file.fileno())
    system.down()
    replay = subprocess.run([f"{BIN}/weir-sim", "replay", f"{lab.dir}/decisions"], capture_output=True, text=True)
    check(replay.returncode == 0, f"weir-sim replay: {replay.stdout}{replay.stderr}")
    requests = int(re.match(r"(\d+) requests", replay.stdout)[1])
    check(requests >= 12, f"only {requests} requests were written down")


if __name__ == "__main__":
    main("metering", bypassed_requests_are_served_and_counted_apart, decisions_are_made_again)
