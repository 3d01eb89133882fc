#!/usr/bin/env python3
"""What explains: who is to blame for the time of a class, live numbers, and isolation tried on the cluster itself."""
import json
import os
import signal
import subprocess

from weirtest import BIN, MIB, Cluster, Embedded, Failure, check, main, run, wait_until


def why(system, what):
    return json.loads(system.osdctl("why", what, "-o", "json").stdout)


def tagged(system, name):
    path = f"{system.mnt}/{name}"
    os.mkdir(path)
    os.setxattr(path, "user.qos.class", name.encode())
    return path


def start_fio(lab, *jobs):
    """Loads that run until the lab is closed."""
    argv = ["fio", "--thread", "--time_based", "--runtime=120", "--ioengine=libaio", "--direct=1", "--size=16m",
            "--output=/dev/null"]
    for job in jobs:
        argv += [f"--{key}={value}" for key, value in job.items()]
    load = subprocess.Popen(argv, cwd=lab.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop():
        load.terminate()
        load.wait(timeout=60)
    lab.on_exit(stop)


def blames(system, name, culprit, neighbour=None):
    def matches():
        blame = why(system, name)["blame"]
        return blame["culprit"] == culprit and blame["neighbour"] == neighbour
    try:
        wait_until(matches, f"'{name}' to be blamed on {culprit}", timeout=40)
    except Failure as failure:
        raise Failure(f"{failure}; it says {why(system, name)}")


def the_reason_is_found(lab):
    system = Cluster(lab, osds=1, token_rate="60MiB/s")
    # Else as much is served as the processors can, and they are what everybody waits for, and blamed.
    system.osdctl("osd", "set", "all", "--gate", "strict", "--maximizer", "off")
    system.osdctl("class", "create", "slow", "--limit", "1MiB/s", "--latency", "30ms")
    system.osdctl("class", "create", "small")
    system.osdctl("class", "create", "hog", "--weight", "8")
    system.osdctl("class", "create", "lazy")
    paths = {name: tagged(system, name) for name in ("slow", "small", "hog", "lazy")}
    check(why(system, "slow")["blame"]["culprit"] == "nobody", "nobody has asked for anything yet")
    start_fio(lab, {"name": "slow", "directory": paths["slow"], "rw": "randwrite", "bs": "64k", "iodepth": 8},
              {"name": "small", "directory": paths["small"], "rw": "randwrite", "bs": "64k", "iodepth": 4},
              {"name": "hog", "directory": paths["hog"], "rw": "randwrite", "bs": "64k", "iodepth": 64},
              {"name": "lazy", "directory": paths["lazy"], "rw": "randwrite", "bs": "4k", "rate_iops": 5})
    blames(system, "slow", "limit")
    blames(system, "small", "neighbour", "hog")
    blames(system, "hog", "disk")
    blames(system, "lazy", "application")

    said = why(system, "slow")
    check(said["mean_us"]["token_wait"] > said["mean_us"]["device"], f"{said}")
    check(abs(sum(said["share_percent"].values()) - 100) < 0.1, f"{said}")
    check(said["throttled_ms"] > 0 and said["path"] is None, f"{said}")
    screen = system.osdctl("why", "slow").stdout
    check("to blame  its own limit" in screen and "osdctl class set slow --limit" in screen, screen)

    # By its path on the mount, from the root of the file system, and for the user of the file.
    file = f"{paths['slow']}/slow.0.0"
    for path in (file, f"/slow/{os.path.basename(file)}"):
        said = why(system, path)
        check((said["class"], said["reason"], said["path"]) == ("slow", "slow (from /slow)", path), f"{said}")
        check(said["blame"]["culprit"] == "limit", f"{said}")
    text = os.getxattr(file, "qos.why").decode()
    check(text.startswith("slow (from /slow); throttled ") and text.endswith("to blame: its own limit"), text)
    check("qos.why" not in os.listxattr(file), "qos.why is listed")
    for what in ("nothing", "/slow/nothing", f"{system.mnt}/nothing"):
        run(f"{BIN}/osdctl", "--cluster", system.dir, "why", what, ok=(5,))

    # A bound that its own limit breaks shows as it happens.
    def row():
        sample = json.loads(system.osdctl("top", "-n", "1", "-o", "json").stdout)["samples"][0]
        return {one["class"]: one for one in sample["classes"]}["slow"]
    live = wait_until(lambda: (lambda r: r["new_violation_seconds"] > 0 and r)(row()), "a violation in top")
    check(live["latency_us"]["p99"] > 30000 and live["demand_bytes_per_s"] > 0, f"{live}")
    status = json.loads(system.osdctl("status", "-o", "json").stdout)
    check([v["class"] for v in status["violations"]] == ["slow"], f"{status['violations']}")
    check("slow in " in system.osdctl("status").stdout, "status does not say whose promise is broken")


def a_limit_over_several_osds_is_blamed(lab):
    """The mount holds most of it back; that is no wait for its windows or the network."""
    system = Cluster(lab, osds=3, token_rate="60MiB/s")
    system.osdctl("class", "create", "slow", "--limit", "2MiB/s")
    path = tagged(system, "slow")
    start_fio(lab, {"name": "slow", "directory": path, "rw": "randwrite", "bs": "16k", "iodepth": 64})
    wait_until(lambda: why(system, "slow")["served_bytes_per_s"] > MIB, "the class to be served")
    blames(system, "slow", "limit")
    said = why(system, "slow")
    check(said["mean_us"]["token_wait"] > 10 * (said["mean_us"]["client_window"] + said["mean_us"]["network"]), f"{said}")
    check(said["throttled_ms"] > 0, f"{said}")
    text = os.getxattr(f"{path}/slow.0.0", "qos.why").decode()
    check(text.endswith("to blame: its own limit") and "throttled 0 ms" not in text, text)
    system.osdctl("class", "set", "slow", "--limit", "max")
    wait_until(lambda: why(system, "slow")["served_bytes_per_s"] > 8 * MIB, "the class to be let go", timeout=20)


def isolation_is_verified(lab):
    system = Cluster(lab, osds=2, token_rate="60MiB/s")
    with open(f"{system.mnt}/mine", "wb", buffering=0) as file:
        file.write(b"x" * 4096)
        os.fsync(file.fileno())

    def objects():
        stat = json.loads(system.osdctl("stat", "-o", "json").stdout)
        return sum(osd["objects"] for osd in stat["osds"])

    def names():
        return {c["class"] for c in json.loads(system.osdctl("class", "ls", "-o", "json").stdout)["classes"]}

    def left_nothing():
        check(not {n for n in names() if n.startswith("verify")}, f"classes are left: {names()}")
        check(os.listdir(system.mnt) == ["mine"], f"{os.listdir(system.mnt)}")
        wait_until(lambda: objects() == before, "the temporary objects to go")
    before = objects()
    # How fast this machine is must not matter here, only who gets what of less than it could do.
    system.osdctl("osd", "set", "all", "--gate", "strict")
    argv = ["verify", "isolation", "--for", "6s", "--max-inflation", "100000", "--max-share-error", "30%", "-o", "json"]
    fair = json.loads(system.osdctl(*argv).stdout)
    check(fair["pass"] and fair["osds"] == [0, 1] and len(fair["checks"]) == 3, f"{fair}")
    left_nothing()
    system.osdctl("osd", "set", "all", "--profile", "noqos")
    unfair = json.loads(system.osdctl(*argv, "--osd", "1", ok=(7,)).stdout)
    check(not unfair["pass"] and unfair["osds"] == [1], f"{unfair}")
    left_nothing()

    # Ctrl-C in the middle leaves nothing either; a second one beside it is refused.
    running = subprocess.Popen([f"{BIN}/osdctl", "--cluster", system.dir, "verify", "isolation", "--for", "60s"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lab.on_exit(running.kill)
    wait_until(lambda: "verify.aggressor" in names(), "the verification to begin")
    refused = system.osdctl("verify", "isolation", ok=(1,))
    check("another verification runs" in refused.stderr, refused.stderr)
    check({"verify.victim", "verify.aggressor"} <= names(), "the second took away what the first made")
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    check(running.returncode == 1 and "interrupted" in said, f"exit {running.returncode}: {said}")
    left_nothing()
    for wrong in (["--for", "1s"], ["--osd", "x"], ["--max-inflation", "0"]):
        system.osdctl("verify", "isolation", *wrong, ok=(2,))
    system.osdctl("verify", "isolation", "--osd", "7", ok=(5,))


def an_embedded_cluster_explains_itself(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "60MiB/s")
    system.osdctl("class", "create", "slow", "--limit", "1MiB/s")
    path = tagged(system, "slow")
    start_fio(lab, {"name": "slow", "directory": path, "rw": "randwrite", "bs": "64k", "iodepth": 8})
    blames(system, "slow", "limit")
    verified = system.osdctl("verify", "isolation", "--for", "3s", "--max-inflation", "100000", "--max-share-error",
                             "100%", ok=(0, 7))
    check("jain_index" in verified.stdout and "temporary" in verified.stdout, verified.stdout)


if __name__ == "__main__":
    main("why", the_reason_is_found, a_limit_over_several_osds_is_blamed, isolation_is_verified,
         an_embedded_cluster_explains_itself)
