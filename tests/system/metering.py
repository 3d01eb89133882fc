#!/usr/bin/env python3
"""The switch of an OSD that lets requests go past its pipeline."""
import json
import os

from weirtest import MIB, Cluster, check, main, read_from_disk


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
    check(read_from_disk(f"{system.mnt}/data") == data, "the file is not what was written")
    stat = osd(system, "stat")["osds"][0]
    check(stat["unmetered_bytes"] >= 2 * len(data), f"only {stat['unmetered_bytes']} bytes count as past the pipeline")
    check(all(row["served_bytes"] == 0 for row in stat["classes"]), "a class was served by the pipeline")


if __name__ == "__main__":
    main("metering", bypassed_requests_are_served_and_counted_apart)
