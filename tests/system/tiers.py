#!/usr/bin/env python3
"""An OSD of several disks: files lie on the tier of their layout, survive and are counted."""
import json
import os

from weirtest import BIN, MIB, Cluster, Embedded, check, main, read_from_disk, run, wait_until

TIERS = "ssd=ssd:300MiB,iops=4000,hdd=ssd:300MiB,iops=200"


def tiers_of(system):
    osd = json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"][0]
    return osd, {tier["tier"]: tier for tier in osd["tiers"]}


def write_synced(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make(system, directory, tier):
    os.makedirs(directory, exist_ok=True)
    os.setxattr(directory, "user.weir.layout.tier", tier.encode())
    check(os.getxattr(directory, "user.weir.layout.tier") == tier.encode(), "the tier cannot be read back")


def placement(lab):
    system = Cluster(lab, tiers=(TIERS,))
    for tier in ("ssd", "hdd"):
        make(system, f"{system.mnt}/{tier}", tier)
    data = {name: os.urandom(12 * MIB) for name in ("ssd/a", "hdd/b", "plain")}
    for name, size in (("hdd/b", 12), ("ssd/a", 12), ("plain", 12)):
        before = tiers_of(system)[1]
        write_synced(f"{system.mnt}/{name}", data[name])
        after = tiers_of(system)[1]
        grown = {tier: after[tier]["used_bytes"] - before[tier]["used_bytes"] for tier in after}
        home = "hdd" if name.startswith("hdd") else "ssd"
        other = "ssd" if home == "hdd" else "hdd"
        check(grown[home] >= size * MIB and grown[other] == 0, f"{name}: grew by {grown}")
    check(b"tier=hdd" in os.getxattr(f"{system.mnt}/hdd/b", "weir.layout"), "weir.layout does not name the tier")
    for path, value in (("hdd", b"tape"), ("hdd/b", b"ssd")):
        try:
            os.setxattr(f"{system.mnt}/{path}", "user.weir.layout.tier", value)
            check(False, f"{path} took tier {value}")
        except OSError:
            pass
    osd, tiers = tiers_of(system)
    check(osd["capacity_bytes"] == sum(tier["capacity_bytes"] for tier in tiers.values()), "capacities do not add up")

    system.dev("kill", "osd.0")
    system.dev("start", "osd.0")
    os.truncate(f"{system.mnt}/hdd/b", 5 * MIB + 1)
    data["hdd/b"] = data["hdd/b"][:5 * MIB + 1]
    for name, bytes_ in data.items():
        check(read_from_disk(f"{system.mnt}/{name}") == bytes_, f"{name} is not what was written")
    for name in data:
        os.unlink(f"{system.mnt}/{name}")
    wait_until(lambda: all(tier["objects"] == 0 for tier in tiers_of(system)[1].values()), "both tiers to be empty")

    # The disks say who they are: in any order, but all of them and under their names.
    image = {tier: f"{system.dir}/osd.0.{tier}.img" for tier in ("ssd", "hdd")}
    system.dev("stop", "osd.0")
    with open(f"{system.dir}/endpoint") as file:
        endpoint = file.read().strip()
    for option, value, word in (("--disk", image["ssd"], "--tier-disk"),
                                ("--tier-disk", f"ssd={image['hdd']},hdd={image['ssd']}", "tier 'hdd'"),
                                ("--tier-disk", f"ssd={image['ssd']},ssd={image['hdd']}", "twice")):
        done = run(f"{BIN}/weir-osd", option, value, "--mds", endpoint, ok=(1, 2))
        check(word in done.stderr, f"{option} {value}: {done.stderr}")
    system.dev("start", "osd.0")


def in_one_process(lab):
    system = Embedded(lab, "--tier-disk", "fast=ssd:300MiB,slow=hdd:300MiB", "--token-rate", "40MiB/s")
    make(system, f"{system.mnt}/cold", "slow")
    write_synced(f"{system.mnt}/cold/file", b"x" * MIB)
    used = tiers_of(system)[1]["slow"]["used_bytes"]
    check(used >= MIB, f"the slow tier holds {used} bytes")
    system.umount()
    system.mount()
    check(read_from_disk(f"{system.mnt}/cold/file") == b"x" * MIB, "data is gone after a remount")
    for tiers, word in (("fast=ssd:300MiB", "2 to 8"), ("a=ssd:1MiB,b=ssd:1GiB", "256MiB")):
        done = run(f"{BIN}/weirfs", "--data", lab.path("new"), "--tier-disk", tiers, lab.path("new.mnt"), ok=(2,))
        check(word in done.stderr, f"--tier-disk {tiers}: {done.stderr}")


if __name__ == "__main__":
    main("tiers", placement, in_one_process)
