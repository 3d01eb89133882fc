#!/usr/bin/env python3
"""Bad input gets a clear error that names the thing and the way out, and loses nothing."""
import json
import os
import socket

from weirtest import BIN, MIB, Cluster, Embedded, Failure, check, main, run


def refused(done, code, *words):
    text = done.stderr
    check(done.returncode == code, f"exit {done.returncode}, expected {code}: {done.args} {text}")
    for word in words:
        check(word.lower() in text.lower(), f"'{word}' is not named in: {text}")


def mkfs_refuses_foreign_disks(lab):
    system = Cluster(lab, osds=1)
    endpoint = open(f"{system.dir}/endpoint").read().strip()
    image = lab.path("disk.img")

    def fresh():
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 256 * MIB)

    def mkfs(*more):
        return run(f"{BIN}/weir-osd", "--mkfs", "--disk", image, "--mds", endpoint, "--token-rate", "50MiB/s",
                   *more, ok=None)

    fresh()
    run("mkfs.ext4", "-q", "-F", image)
    refused(mkfs(), 1, image, "ext2/3/4", "--force")
    run("e2fsck", "-fn", image)  # untouched
    fresh()
    run("sfdisk", "-q", image, stdin="label: gpt\n,100M\n")
    refused(mkfs(), 1, "partition", "--force")
    fresh()
    run("sfdisk", "-q", image, stdin="label: dos\n,100M\n")
    refused(mkfs(), 1, "partition", "--force")
    check(mkfs("--force").returncode == 0, "mkfs --force refused")
    refused(mkfs(), 1, "OSD", "--force")
    refused(run(f"{BIN}/weir-osd", "--mkfs", "--disk", lab.path("none"), "--mds", endpoint, ok=None), 1, "none")


def wrong_cluster(lab):
    first = Cluster(lab, osds=1)
    image = [f"{first.dir}/{n}" for n in os.listdir(first.dir) if n.startswith("osd.0") and n.endswith(".img")][0]
    endpoint_of_other = lab.path("other")
    from weirtest import Lab
    lab2 = Lab("other")
    lab.on_exit(lab2.close)
    other = Cluster(lab2, osds=1)
    endpoint_of_other = open(f"{other.dir}/endpoint").read().strip()
    first.dev("stop", "osd.0")
    done = run(f"{BIN}/weir-osd", "--disk", image, "--mds", endpoint_of_other, ok=None)
    refused(done, 1, "cluster")
    first.dev("start", "osd.0")


def reservations(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "180MiB/s")
    system.osdctl("osd", "set", "all", "--best-effort-min", "0")
    system.osdctl("class", "create", "gold")
    system.osdctl("class", "create", "silver")
    system.osdctl("reserve", "silver", "--bandwidth", "160MiB/s")
    done = system.osdctl("reserve", "gold", "--bandwidth", "200MiB/s", ok=None)
    refused(done, 4, "gold", "200MiB/s", "160MiB/s", "180MiB/s", "largest that fits: 20MiB/s")
    system.osdctl("reserve", "gold", "--bandwidth", "20MiB/s")
    for text in ("-1", "0", "nonsense", "99999999999999999999GiB/s", "1e400", "", "-5MiB/s", "9223372036854775807G"):
        done = system.osdctl("reserve", "gold", f"--bandwidth={text}", ok=None)
        check(done.returncode in (2, 4) and done.stderr.startswith("osdctl: "), f"--bandwidth={text!r}: {done}")
    refused(system.osdctl("reserve", "no-such-class", "--bandwidth", "1MiB/s", ok=None), 5, "no-such-class")
    for argv in (["class", "create", "bad/name"], ["class", "create", ""], ["class", "set", "gold", "--weight", "-1"],
                 ["class", "set", "gold", "--weight", "0"], ["class", "set", "gold", "--limit", "-3"],
                 ["class", "set", "gold", "--weight", "nan"], ["osd", "set", "0", "--surplus", "coop"],
                 ["osd", "set", "0", "--dispatch", "scan"], ["osd", "set", "0", "--anticipation", "1"],
                 ["osd", "set", "0", "--service-estimate", "soon"], ["osd", "set", "0", "--service-estimate", "11s"],
                 ["osd", "set", "0", "--processor-pressure", "0"], ["osd", "set", "0", "--processor-pressure", "101%"],
                 ["osd", "set", "0", "--profile", "nonsense"], ["osd", "set", "0", "--depth", "0"],
                 ["class", "set", "gold", "--latency", "fast"], ["no-such-verb"]):
        done = system.osdctl(*argv, ok=None)
        check(done.returncode == 2 and done.stderr.strip(), f"{argv}: exit {done.returncode} {done.stderr}")
    stat = json.loads(system.osdctl("stat", "-o", "json").stdout)
    reserved = {c["class"]: c["reservation_bytes_per_s"] for c in stat["osds"][0]["classes"]}
    check(reserved["silver"] == 160 * MIB and reserved["gold"] == 20 * MIB, f"promises changed: {reserved}")


def rubbish_on_the_wire(lab):
    system = Cluster(lab, osds=1)
    status = json.loads(system.osdctl("osd", "ls", "-o", "json").stdout)
    endpoints = [open(f"{system.dir}/endpoint").read().strip()]
    endpoints += [osd["endpoint"] for osd in status["osds"]]
    for endpoint in endpoints:
        if not endpoint.startswith("tcp://"):
            continue
        host, port = endpoint[6:].rsplit(":", 1)
        for junk in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"\xff" + b"\0" * 8 + b"\x7f" + b"\0" * 54 + b"\x04" * 900,
                     b"\0" * 100_000):
            with socket.create_connection((host, int(port)), timeout=5) as peer:
                try:
                    peer.sendall(junk)
                    peer.settimeout(0.2)
                    peer.recv(100)
                except OSError:
                    pass
    with open(f"{system.mnt}/alive", "wb") as file:
        file.write(b"alive")
    with open(f"{system.mnt}/alive", "rb") as file:
        check(file.read() == b"alive", "the cluster does not serve after rubbish")


def bit_rot_is_eio(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "100MiB/s")
    marker = b"WEIR-BITROT-MARKER-" + os.urandom(16)
    block = (marker * (4096 // len(marker) + 1))[:4096]
    path = f"{system.mnt}/victim"
    with open(path, "wb") as file:
        file.write(block * 256)
        file.flush()
        os.fsync(file.fileno())
    image = [os.path.join(system.dir, n) for n in os.listdir(system.dir) if n.startswith("osd.0") and n.endswith(".img")][0]
    # A live OSD: find the block in its image and flip one bit.
    flipped = False
    with open(image, "r+b") as disk:
        offset = 0
        while chunk := disk.read(4 * MIB):
            at = chunk.find(block)
            if at >= 0:
                disk.seek(offset + at + 100)
                byte = disk.read(1)[0]
                disk.seek(offset + at + 100)
                disk.write(bytes([byte ^ 4]))
                flipped = True
                break
            offset += len(chunk)
        os.fsync(disk.fileno())
    check(flipped, "the data was not found on the disk")
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        import mmap
        buffer = mmap.mmap(-1, 1 * MIB)
        try:
            os.readv(fd, [buffer])
            raise Failure("a flipped bit was read without an error")
        except OSError as error:
            check(error.errno == 5, f"errno {error.errno}, expected EIO")
        finally:
            os.close(fd)
    osd = json.loads(system.osdctl("stat", "-o", "json").stdout)["osds"][0]
    check(osd["checksum_errors"] >= 1, f"not counted: {osd}")
    with open(f"{system.dir}/weirfs.log") as log:
        check("checksum" in log.read(), "a checksum mismatch is not in the log")


def disk_full(lab):
    system = Embedded(lab, "--osd-size", "256MiB", "--token-rate", "500MiB/s")
    free = os.statvfs(system.mnt)
    check(0 < free.f_bavail * free.f_frsize <= 256 * MIB, "statfs tells nonsense")
    written = 0
    names = []
    fd = -1
    try:
        while written < 512 * MIB:
            name = f"{system.mnt}/fill.{len(names)}"
            names.append(name)
            fd = os.open(name, os.O_CREAT | os.O_WRONLY)
            os.write(fd, b"y" * (4 * MIB))
            os.fsync(fd)
            os.close(fd)
            written += 4 * MIB
        raise Failure("512 MiB were written to a disk of 256 MiB")
    except OSError as error:
        check(error.errno == 28, f"full disk: errno {error.errno}, expected ENOSPC")
        os.close(fd)
    check(written >= 100 * MIB, f"full after {written} bytes already")
    for name in names:
        os.unlink(name)
    from weirtest import wait_until

    def writable():
        try:
            with open(f"{system.mnt}/again", "wb") as file:
                file.write(b"z" * (16 * MIB))
                file.flush()
                os.fsync(file.fileno())
            return True
        except OSError:
            return False
    wait_until(writable, "space to come back after unlink")


def mounts_are_refused(lab):
    system = Embedded(lab, "--osd-size", "1GiB", "--token-rate", "100MiB/s")
    endpoint = open(f"{system.dir}/endpoint").read().strip()
    second = lab.path("second")
    os.makedirs(second)
    refused(run(f"{BIN}/weirfs", endpoint, second, ok=None), 1, "embedded", "weir-dev")
    check(os.listdir(system.mnt) == [], "the first mount suffered from the refused one")
    cluster = Cluster(lab, osds=1)
    endpoint = open(f"{cluster.dir}/endpoint").read().strip()
    refused(run(f"{BIN}/weirfs", endpoint, second, "-o", "class=no-such-class", ok=None), 5, "no-such-class",
            "osdctl class create")


def daemons_refuse_the_world(lab):
    done = run(f"{BIN}/weir-mds", "--data", lab.path("m"), "--listen", "tcp://0.0.0.0:0", ok=None)
    refused(done, 2, "--insecure")
    done = run(f"{BIN}/osdctl", "--cluster", "tcp://127.0.0.1:9", "status", ok=None)
    refused(done, 6, "127.0.0.1:9")
    done = run(f"{BIN}/weirfs", "--data", lab.path("d"), lab.path("no-such-mountpoint"), ok=None)
    check(done.returncode == 5 and "no-such-mountpoint" in done.stderr, f"{done}")
    for program in ("weirfs", "weir-mds", "weir-osd", "weir-dev", "osdctl"):
        done = run(f"{BIN}/{program}", "--help")
        check("example" in done.stdout.lower(), f"{program} --help has no example")
        done = run(f"{BIN}/{program}", "--no-such-option", ok=None)
        check(done.returncode == 2, f"{program} --no-such-option: exit {done.returncode}")


if __name__ == "__main__":
    main("bad_input", mkfs_refuses_foreign_disks, wrong_cluster, reservations, rubbish_on_the_wire, bit_rot_is_eio,
         disk_full, mounts_are_refused, daemons_refuse_the_world)
