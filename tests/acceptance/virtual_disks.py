#!/usr/bin/env python3
"""Two tenants rent a rotating disk by its time, and only the one who seeks pays for it.

Yan and Jiang's figure 4 on daemons: 75 % and 25 % of an emulated 7200 rpm disk. Both read 64 KiB, eight at a time; the
25 % disk goes through a file from the beginning, the 75 % disk does too, or picks 35 % or all of its requests at
random. The default profile must serve the 25 % disk as the paper's algorithm (profile `vd`) does, whose figures are
measured beside it. Neither keeps all of its rate: the way back from where the neighbour left the head is its own.
Sharing by bytes would leave it a tenth.
"""
import json
import os
import subprocess

import servicelog  # noqa: F401 - makes weirtest known
from weirtest import Cluster, check, curve, main, result

SECONDS = int(os.environ.get("WEIR_DISKS_SECONDS", "8"))
DISK = os.environ.get("WEIR_DISK", "hdd:8GiB")
SIZE = "1g"
RANDOM = (0, 35, 100)  # percent of the large tenant's requests


def lay_out(lab, system, names):
    argv = ["fio", "--name=global", "--rw=write", "--bs=1m", f"--size={SIZE}", "--direct=1", "--thread",
            "--ioengine=libaio", "--iodepth=4"]
    for name in names:
        argv += [f"--name={name}", f"--filename={system.mnt}/{name}/data"]
    subprocess.run(argv, check=True, capture_output=True, cwd=lab.dir)


def read(system, name, percent_random):
    return ["fio", f"--name={name}", f"--filename={system.mnt}/{name}/data", "--rw=randread", "--direct=1",
            f"--percentage_random={percent_random}", "--bs=64k", f"--size={SIZE}", "--ioengine=libaio", "--iodepth=8",
            "--time_based", f"--runtime={SECONDS}", "--ramp_time=2", "--norandommap", "--output-format=json"]


def rates(lab, system, percent_random):
    children = [subprocess.Popen(read(system, name, percent), stdout=subprocess.PIPE, cwd=lab.dir)
                for name, percent in (("large", percent_random), ("small", 0))]
    outputs = [child.communicate()[0] for child in children]
    check(all(child.returncode == 0 for child in children), "fio failed")
    return [json.loads(output)["jobs"][0]["read"]["iops"] for output in outputs]


def broken(system):
    """Seconds in which the two had less of the disk's time than they rent, so far."""
    stats = [json.loads(system.osdctl("stat", name, "-o", "json").stdout) for name in ("large", "small")]
    return [sum(row["violation_seconds"] for osd in stat["osds"] for row in osd["classes"]) for stat in stats]


def record(found):
    """E14: both sequential; E15: one of them not; E58: the same under the default profile."""
    for (profile, percent), rates_ in found.items():
        experiment = "E58" if profile != "vd" else "E14" if percent == 0 else "E15"
        for name, rate in zip(("75 % disk", "25 % disk"), rates_):
            result(experiment, f"{name}, requests/s of 64 KiB, {profile}, {percent} % of the 75 % disk's at random", rate)
    _, kept = found["vd", 0]
    for profile in ("vd", "unified"):
        for percent in RANDOM:
            result("E15" if profile == "vd" else "E58", f"25 % disk, of its rate beside a sequential neighbour under vd: {profile}, "
                   f"{percent} % at random", found[profile, percent][1] / kept, 1)
        for index, name in enumerate(("75 % disk", "25 % disk")):
            curve("E15" if profile == "vd" else "E58", f"Emulated 7200 rpm disk, profile {profile}", name,
                  [(p, found[profile, p][index]) for p in RANDOM], "% of the 75 % disk's requests at random", "requests/s")


def two_tenants(lab):
    system = Cluster(lab, osds=1, osd_size="8GiB", token_rate="100MiB/s", disks=[DISK])
    system.osdctl("osd", "set", "all", "--best-effort-min", "0")
    for name, peak in (("large", "75%"), ("small", "25%")):
        system.osdctl("class", "create", name, "--type", "rent-a-disk", "--peak", peak)
        os.mkdir(f"{system.mnt}/{name}")
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
    lay_out(lab, system, ("large", "small"))
    found = {}
    for profile in ("vd", "unified"):
        system.osdctl("osd", "set", "all", "--profile", profile)
        for percent in RANDOM:
            before = broken(system)
            large, small = found[profile, percent] = rates(lab, system, percent)
            short = [now - then for now, then in zip(broken(system), before)]
            lab.show(f"        {profile:8} {percent:3} % of the 75 % disk's requests at random: {large:6.0f} requests/s, "
                     f"25 % disk {small:6.0f}; broken seconds: {short[0]} and {short[1]}")
    record(found)
    for percent in RANDOM:
        (_, paper), (_, ours) = found["vd", percent], found["unified", percent]
        check(ours >= 0.85 * paper, f"the 25 % disk has {ours:.0f} requests/s, {paper:.0f} under `vd`, at {percent} %")
    large = [found["unified", percent][0] for percent in RANDOM]
    check(large[0] > large[1] > large[2], f"the 75 % disk does not pay for its seeks: {large}")


if __name__ == "__main__":
    main("virtual_disks", two_tenants)
