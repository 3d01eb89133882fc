#!/usr/bin/env python3
"""Records live-<profile>.rec in this folder from real daemons under a short fio, each only if it replays. Needs root,
fio and the built programs; timing is real, so every run gives other files."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "system"))
from weirtest import BIN, Cluster, check, main  # noqa: E402

EVENTS = "11000"  # some 2,000 requests
JOBS = (("promised", ("--rw=randrw", "--bs=4k", "--iodepth=8")), ("limited", ("--rw=write", "--bs=64k", "--iodepth=8")),
        ("rest", ("--rw=randread", "--bs=16k", "--iodepth=8")), ("reader", ("--rw=randread", "--bs=4k", "--iodepth=1")))


def record(lab, profile):
    log = f"{lab.dir}/decisions-{profile}"
    os.environ["WEIR_OSD_DECISION_LOG"] = log
    lab.on_exit(os.environ.pop, "WEIR_OSD_DECISION_LOG")
    system = Cluster(lab, osd_size="1GiB", token_rate="300MiB/s")
    system.osdctl("osd", "set", "all", "--profile", profile)
    system.osdctl("class", "create", "promised")
    system.osdctl("class", "create", "limited", "--limit", "60MiB/s")
    system.osdctl("class", "create", "rest", "--weight", "2")
    system.osdctl("class", "create", "reader", "--latency", "50ms", "--max-pending", "0")
    system.osdctl("reserve", "promised", "--bandwidth", "20MiB/s")
    jobs = []
    for name, what in JOBS:
        os.mkdir(f"{system.mnt}/{name}")
        os.setxattr(f"{system.mnt}/{name}", "user.qos.class", name.encode())
        jobs += [f"--name={name}", f"--filename={system.mnt}/{name}/data", *what]
    subprocess.run(["fio", "--name=global", "--thread", "--direct=1", "--size=4m", "--time_based", "--runtime=2",
                    "--ioengine=libaio", "--eta=never", *jobs], check=True, stdout=subprocess.DEVNULL, cwd=lab.dir)
    system.down()
    packed = subprocess.run([f"{BIN}/weir-sim", "pack", log, HERE / f"live-{profile}.rec", "--events", EVENTS],
                            capture_output=True, text=True)
    check(packed.returncode == 0, packed.stderr)


def unified(lab):
    record(lab, "unified")


def odis(lab):
    record(lab, "odis")


def dsfq_hybrid_h(lab):
    record(lab, "dsfq-hybrid-h")


def cvc(lab):
    record(lab, "cvc")


def noqos(lab):
    record(lab, "noqos")


if __name__ == "__main__":
    main("record_live", unified, odis, dsfq_hybrid_h, cvc, noqos)
