"""Tests of packages.py in Debians that systemd-nspawn boots."""
import os
import re
import shutil

from debian import NAMES, CannotBoot, Debian, Machine, give_to_disk_group, package
from installed import OtherHost, configure, newer, packages
from weirtest import MIB, check, run, wait_until


def services_under_systemd(lab):
    if missing := Machine.lacks():
        print(f"        {missing} here: no systemd was tried")
        return
    debian = Debian(lab, packages())
    os.makedirs(debian.path("debs"))
    debs = [shutil.copy(package(packages(), name), debian.path("debs")) for name in NAMES]
    newer(debs, debian.path("newer"))
    debian.run("sh", "-c", "dpkg --force-unsafe-io -i /debs/*.deb")
    os.makedirs(debian.path("mnt/weir"))
    disk = lab.loop("disk", 512 * MIB)
    give_to_disk_group(lab, disk)
    port = configure(debian, disk)
    os.rename(debian.path("etc/weirfs/mds.toml"), debian.path("mds.toml"))
    try:
        systemd = Machine(lab, debian, {os.path.basename(disk): disk})
    except CannotBoot as why:
        print(f"        no systemd was tried: {why}")
        return

    daemons = ("weir-mds", "weir-osd@a")
    check(systemd.states("weirfs.target", *daemons) == ["active", "inactive", "inactive"], "installed, and not configured")
    os.rename(debian.path("mds.toml"), debian.path("etc/weirfs/mds.toml"))
    systemd.run("systemctl", "start", "weir-osd@mistyped", ok=(1,))
    wait_until(lambda: "/etc/weirfs/osd-mistyped.toml" in systemd.run("journalctl", "-p", "err", "-u", "weir-osd@mistyped").stdout,
               "the name of the missing file")
    wait_until(lambda: systemd.states("weir-osd@mistyped") == ["failed"], "the end of what was mistyped")
    check(not os.path.exists(debian.path("var/lib/weirfs/osd-mistyped")), "a mistyped name has left a directory")
    systemd.run("systemctl", "start", "weir-mds")
    check(systemd.run("systemctl", "start", "weir-osd@a", ok=None).returncode != 0, "it started on an empty disk")
    systemd.run("systemctl", "stop", "weir-osd@a")
    systemd.run("weir-osd", "--mkfs", "--config", "/etc/weirfs/osd-a.toml", "--token-rate", "500MiB/s")
    systemd.run("systemctl", "enable", "--now", "weir-osd@a")
    check(systemd.states(*daemons) == ["active", "active"], "started")
    for unit in daemons:
        status = systemd.run("cat", f"/proc/{systemd.show(unit, 'MainPID')}/status").stdout
        for words in (r"CapEff:\s*0+", r"NoNewPrivs:\s*1", r"Seccomp:\s*2"):
            check(re.search(f"(?m)^{words}$", status), f"{unit}: no {words} in {status}")

    with open(debian.path("etc/fstab"), "a") as file:
        file.write(f"localhost:{port}:/ /mnt/weir weirfs _netdev,class=best-effort 0 0\n")
    systemd.run("systemctl", "daemon-reload")
    systemd.run("systemctl", "start", "mnt-weir.mount")
    wait_until(lambda: "mounted on /mnt/weir" in systemd.run("journalctl", "-t", "weirfs").stdout, "the mount's log")
    systemd.run("sh", "-c", "echo text > /mnt/weir/file")
    # An upgrade starts the daemons anew under mounts, which go on.
    other = OtherHost(lab, port)
    before = {systemd.show(unit, "MainPID") for unit in daemons}
    systemd.run("sh", "-c", "dpkg --force-unsafe-io -i /newer/*.deb")
    check(systemd.states(*daemons, "mnt-weir.mount") == ["active"] * 3, "upgraded")
    after = {systemd.show(unit, "MainPID") for unit in daemons}
    check(not before & after, f"the old programs go on: {before} {after}")
    check(systemd.run("cat", "/mnt/weir/file").stdout == "text\n", "what was written is gone after an upgrade")
    other.goes_on()
    other.ends_well()
    systemd.run("sh", "-c", "echo more >> /mnt/weir/file && sync /mnt/weir/file")
    # A file that is wrong is not taken.
    configuration = debian.path("etc/weirfs/osd-a.toml")
    with open(configuration, "a") as file:
        file.write('log = "loud"\n')
    systemd.run("systemctl", "reload", "weir-osd@a", ok=(1,))
    wait_until(lambda: re.search(r"osd-a\.toml:\d+: osd\.log: 'loud'", systemd.run("journalctl", "-u", "weir-osd@a").stdout),
               "the reason in the journal")
    run("sed", "-i", "s/loud/debug/", configuration)
    systemd.run("systemctl", "reload", "weir-osd@a")
    check(systemd.states("weir-osd@a") == ["active"], "reloaded")
    # Whoever hangs is started anew; here sooner than after 30 s.
    systemd.run("mkdir", "-p", "/run/systemd/system/weir-osd@.service.d")
    drop_in = "[Service]\nWatchdogSec=1\nRestartSec=0\n"
    systemd.run("tee", "/run/systemd/system/weir-osd@.service.d/sooner.conf", stdin=drop_in)
    systemd.run("systemctl", "daemon-reload")
    systemd.run("systemctl", "restart", "weir-osd@a")
    systemd.run("systemctl", "kill", "-s", "STOP", "weir-osd@a")
    wait_until(lambda: systemd.show("weir-osd@a", "NRestarts") == "1" and systemd.states("weir-osd@a") == ["active"],
               "another weir-osd")
    check(systemd.run("cat", "/mnt/weir/file").stdout == "text\nmore\n", "what was written is gone after a restart")
    # A mount is stopped when all that was written there is stored.
    systemd.run("sh", "-c", "cp /var/lib/dpkg/status /mnt/weir/unsynced && systemctl stop mnt-weir.mount")
    left = systemd.run("sh", "-c", "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" != weirfs ] || ls -l $p/fd; done 2>/dev/null", ok=None)
    check(not left.stdout, f"weirfs goes on behind a mount that is stopped: {left.stdout}")
    systemd.run("systemctl", "stop", "weirfs.target")
    check(systemd.states(*daemons) == ["inactive", "inactive"], "the target is stopped, and not all of its daemons")
    check(systemd.show("weir-mds", "Result") == "success", "weir-mds did not end well")
    systemd.run("systemctl", "start", "weirfs.target")
    wait_until(lambda: systemd.states(*daemons) == ["active", "active"], "the target to start what is enabled")
    # Removed and back: what served serves again.
    systemd.run("dpkg", "--force-unsafe-io", "-r", "weirfs-osd")
    check(systemd.states(*daemons) == ["active", "inactive"], "weirfs-osd is removed")
    systemd.run("sh", "-c", "dpkg --force-unsafe-io -i /newer/weirfs-osd_*.deb")
    check(systemd.states(*daemons) == ["active", "active"], "weirfs-osd is back, and its disk is not served")
    systemd.run("dpkg", "--force-unsafe-io", "-P", "weirfs-mds", "weirfs-osd")
    check(systemd.states(*daemons) == ["inactive", "inactive"], "what was removed goes on")


def mounted_at_first_use(machine):
    """Lines of fstab with x-systemd.automount; the last one's stays mounted."""
    for name in ("nosupervise", "supervise"):
        units = [f"mnt-{name}.automount", f"mnt-{name}.mount"]
        check(machine.states(*units) == ["active", "inactive"], f"{name}: before anybody comes: {machine.states(*units)}")
        machine.run("sh", "-c", f"echo later > /mnt/{name}/later", timeout=30)
        check(machine.states(*units) == ["active", "active"], f"{name}: {machine.states(*units)}")
        machine.run("systemctl", "stop", units[1])
        check(machine.run("cat", f"/mnt/{name}/later", timeout=30).stdout == "later\n", f"{name}: not mounted again")
        machine.run("systemctl", "stop", units[0])
        wait_until(lambda: machine.states(*units) == ["inactive", "inactive"], f"{units} to stop")  # noqa: B023
        check(f"/mnt/{name} " not in machine.run("cat", "/proc/mounts").stdout, f"{name}: an automount that is stopped is there")
        check(not machine.run("ls", f"/mnt/{name}").stdout, f"{name}: an automount that is stopped mounts")
        machine.run("systemctl", "start", units[0])
        check(machine.run("cat", f"/mnt/{name}/later", timeout=30).stdout == "later\n", f"{name}: not mounted a third time")


def machine_goes_down_and_up(lab):
    """A machine that has daemons and mounts them: all that was written is there when it is up again, and where its MDS is
    missing it starts nevertheless."""
    if missing := Machine.lacks():
        print(f"        {missing} here: no machine was booted")
        return
    debian = Debian(lab, packages())
    os.makedirs(debian.path("debs"))
    for name in NAMES:
        shutil.copy(package(packages(), name), debian.path("debs"))
    debian.run("sh", "-c", "dpkg --force-unsafe-io -i /debs/*.deb")
    os.makedirs(debian.path("mnt/weir"))
    disk = lab.loop("disk", 512 * MIB)
    give_to_disk_group(lab, disk)
    port = configure(debian, disk)
    # A name as systemd-escape makes them.
    osd = r"weir-osd@a\x2db"
    configuration = r"/etc/weirfs/osd-a\x2db.toml"
    os.rename(debian.path("etc/weirfs/osd-a.toml"), debian.root + configuration)
    may_automount = os.path.exists("/dev/autofs")
    with open(debian.path("etc/fstab"), "a") as file:
        file.write(f"localhost:{port}:/ /mnt/weir weirfs _netdev,nofail 0 0\n")
        for option in ("nosupervise", "supervise") if may_automount else ():
            file.write(f"localhost:{port}:/ /mnt/{option} weirfs _netdev,nofail,x-systemd.automount,{option} 0 0\n")

    def boot(name):
        devices = {os.path.basename(disk): disk, **({"autofs": "/dev/autofs"} if may_automount else {})}
        return Machine(lab, debian, devices, name)

    def power_off(machine):
        machine.run("systemctl", "poweroff", ok=None)
        wait_until(lambda: machine.process.poll() is not None, "the machine to go down", 120)

    try:
        machine = boot("first")
    except CannotBoot as why:
        print(f"        no machine was booted: {why}")
        return
    machine.run("weir-osd", "--mkfs", "--config", configuration, "--token-rate", "500MiB/s")
    machine.run("systemctl", "enable", "--now", osd)
    machine.run("systemctl", "reload", osd)
    wait_until(lambda: machine.states("mnt-weir.mount") == ["active"], "the mount of fstab")
    if may_automount:
        mounted_at_first_use(machine)
    else:
        print("        no /dev/autofs here: nothing was mounted at first use")
    # Much that nobody has synced; whoever has the mount open in spite of all that ends does not keep the daemons from it.
    machine.run("systemd-run", "--unit=holder", "-p", "KillMode=none", "sh", "-c", "cd /mnt/weir && exec sleep infinity")
    machine.run("sh", "-c", "for i in $(seq 300); do echo text $i > /mnt/weir/$i; done")
    power_off(machine)

    machine = boot("second")
    wait_until(lambda: machine.states("mnt-weir.mount") == ["active"], "the mount of fstab")
    text = machine.run("sh", "-c", "cd /mnt/weir && cat $(seq 300)").stdout
    check(text == "".join(f"text {i}\n" for i in range(1, 301)), f"not all is there: {text.count('text')} of 300 files are")
    if may_automount:
        check(machine.run("cat", "/mnt/supervise/later").stdout == "later\n", "what was mounted at first use has lost something")
    power_off(machine)

    os.rename(debian.path("etc/weirfs/mds.toml"), debian.path("mds.toml"))
    machine = boot("third")
    # An OSD may wait for its MDS for minutes.
    wait_until(lambda: machine.states("multi-user.target") == ["active"], "the machine to start without an MDS")
    wait_until(lambda: "waiting for the MDS" in machine.show(osd, "StatusText"), "the OSD to wait")
    check(machine.states(osd) == ["activating"], "an OSD without an MDS")
    os.rename(debian.path("mds.toml"), debian.path("etc/weirfs/mds.toml"))
    machine.run("systemctl", "start", "weir-mds")
    wait_until(lambda: machine.states(osd) == ["active"], "the OSD to find its MDS")
