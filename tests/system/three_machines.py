#!/usr/bin/env python3
"""README.md's section "Three machines", line by line as it stands there, on three Debian 12 hosts: systemd-nspawn boots them
in namespaces of their own, joined by a network (left out where it cannot, or without mmdebstrap or cgroup2)."""
import os
import re
import shutil
import time

from debian import CannotBoot, Debian, Machine, Network, Terminal, built, give_to_disk_group
from weirtest import MIB, REPO, Failure, check, main, read_from_disk, wait_until

HOSTS = ("alpha", "beta", "gamma")
MOST_LINES = 40


def section(text):
    """The lines of "Three machines" up to the next heading."""
    found = re.search(r"(?ms)^## Three machines\n.*?(?=^## |\Z)", text)
    check(found, "README.md has no section 'Three machines'")
    return found[0].rstrip().splitlines()


def typed_lines(lines):
    """Of the section's blocks (HOST or "each", what is typed there); a here-document is typed with its line."""
    typed, inside, ends_at = [], False, None
    for line in lines:
        if line.startswith("```"):
            inside = not inside
        elif inside and ends_at:
            host, text = typed[-1]
            typed[-1] = (host, f"{text}\n{line}")
            ends_at = None if line == ends_at else ends_at
        elif inside:
            prompt = re.fullmatch(r"(\w+)# +(\S.*)", line)
            check(prompt and prompt[1] in (*HOSTS, "each"), f"README.md: whose prompt is this? {line}")
            typed.append((prompt[1], prompt[2]))
            begins = re.search(r"<<(\w+)", prompt[2])
            ends_at = begins and begins[1]
    check(not inside and not ends_at, "README.md: a block or a here-document of 'Three machines' does not end")
    return typed


def how_the_section_is_read(_):
    good = ["## Three machines", "```", "each# a", "beta#  cat > f <<EOF", "x", "EOF", "```", "words", "```", "alpha# b", "```"]
    check(typed_lines(good) == [("each", "a"), ("beta", "cat > f <<EOF\nx\nEOF"), ("alpha", "b")], f"{typed_lines(good)}")
    for bad in (["```", "delta# a", "```"], ["```", "a", "```"], ["```", "beta# cat <<EOF", "x", "```"], ["```", "beta# a"]):
        try:
            typed_lines(bad)
        except Failure:
            continue
        check(False, f"taken: {bad}")


class Writer:
    """A program that has a file of the mount open and adds a line to it, durably, again and again."""

    def __init__(self, machine):
        self.machine = machine
        script = 'exec >> "$0"; for ((n = 1; ; n++)); do echo $n && sync "$0" || exit; echo $n > /root/written; done'
        machine.run("sh", "-c", 'bash -c "$0" /mnt/weir/numbers 2> /root/complaint & echo $! > /root/writer', script)

    def written(self):
        return int(self.machine.run("sh", "-c", "cat /root/written || echo 0").stdout or 0)

    def goes_on(self):
        before = self.written()
        wait_until(lambda: self.written() > before + 1, "the writer to go on")

    def end(self):
        self.goes_on()
        self.machine.run("sh", "-c", "kill $(cat /root/writer)")
        complaint = self.machine.run("cat", "/root/complaint").stdout
        check(not complaint, f"the writer heard: {complaint}")


def boot(lab):
    network = Network(lab, *HOSTS)
    machines = {}
    for name in HOSTS:
        debian = Debian(lab, built()[0], name)
        # As the installer leaves it: a host knows itself by another address than others do.
        hosts = {"localhost": "127.0.0.1", **network.addresses, name: "127.0.1.1"}
        debian.write("etc/hosts", "".join(f"{address} {host}\n" for host, address in hosts.items()))
        disks = {"sdb": lab.loop(f"{name}-sdb", 640 * MIB)}
        if name == "beta":
            disks["sdc"] = lab.loop("beta-sdc", 768 * MIB)
        for disk in disks.values():
            give_to_disk_group(lab, disk)
        machines[name] = Machine(lab, debian, disks, name, network)
        for file in os.listdir(built()[0]):
            if file.endswith(".deb"):
                shutil.copy(f"{built()[0]}/{file}", debian.path("root"))
    return network, machines


def as_readme_says(lab):
    with open(f"{REPO}/README.md") as readme:
        lines = section(readme.read())
    check(len(lines) <= MOST_LINES, f"README.md: 'Three machines' has {len(lines)} lines, not {MOST_LINES} at most")
    typed = typed_lines(lines)
    check({host for host, _ in typed} == {*HOSTS, "each"}, f"README.md: nobody types anything on one of {HOSTS}")
    if missing := Machine.lacks():
        print(f"        {missing} here: no machine was booted")
        return
    try:
        network, machines = boot(lab)
    except CannotBoot as why:
        print(f"        no machine was booted: {why}")
        return
    terminals = {name: Terminal(lab, machine) for name, machine in machines.items()}
    alpha, beta, gamma = (machines[name] for name in HOSTS)
    said, writer, device = {}, None, None
    for hosts, text in typed:
        if "systemctl stop weir-osd@" in text:
            device = gamma.run("stat", "-c", "%d", "/mnt/weir").stdout
            writer = Writer(gamma)
            writer.goes_on()
        for host in HOSTS if hosts == "each" else [hosts]:
            began = time.monotonic()
            status, output = terminals[host].type(text)
            print(f"        {time.monotonic() - began:4.1f} s  {host}# {text.splitlines()[0].split('   # ')[0].rstrip()}", flush=True)
            if status != 0:
                journal = machines[host].run("journalctl", "--no-pager", "-n", "30", ok=None).stdout
                raise Failure(f"{host}# {text}\nexit {status}\n{output}--- its journal\n{journal}")
            said[text] = output

    def of(pattern):
        found = [output for text, output in said.items() if re.search(pattern, text)]
        check(len(found) == 1, f"README.md: not one line, but {len(found)}, match '{pattern}'")
        return found[0]

    # What was promised is shown, and that it is served.
    rate = re.search(r"--bandwidth (\d+)MiB/s", "\n".join(said))[1]
    shown = re.findall(r"(?m)^gold +(\S+) +\S+ +(\S+)/s .* (\d+)\S*$", of("osdctl top"))
    check(shown and all(promised == f"{rate}MiB/s" for promised, _, _ in shown), of("osdctl top"))
    check(any(served != "0B" for _, served, _ in shown), f"nothing was served: {of('osdctl top')}")
    check("<title>WeirFS" in of("^curl "), f"the page: {of('^curl ')}")
    check("health   ok" in of("osdctl status"), of("osdctl status"))

    # Each host has an OSD at its own address; beta's is on the new disk, and nobody mounted anew.
    for address in network.addresses.values():
        endpoints = gamma.run("osdctl", "--cluster", "alpha", "osd", "ls").stdout
        check(endpoints.count(f"tcp://{address}:") == 1, f"no OSD at {address}: {endpoints}")
    writer.end()
    check(gamma.run("stat", "-c", "%d", "/mnt/weir").stdout == device, "mounted anew")
    numbers = [f"{number}\n" for number in range(1, writer.written() + 1)]
    check(read_from_disk(f"/proc/{gamma.first_process()[0]}/root/mnt/weir/numbers").decode().startswith("".join(numbers)),
          "lines that were durable are gone")
    serving = beta.show("weir-osd@a", "MainPID")
    check("/dev/sdc" in beta.run("sh", "-c", f"ls -l /proc/{serving}/fd").stdout, "beta's OSD is not on /dev/sdc")
    check(gamma.run("stat", "-c", "%U:%G", "/mnt/weir").stdout == "root:root\n", "whose root directory is it?")
    # A mount with empty caches reads what gamma has compared.
    alpha.run("mkdir", "/mnt/weir")
    alpha.run("mount", "-t", "weirfs", "10.0.0.1:/", "/mnt/weir")
    sums = {machine.run("sha256sum", "/mnt/weir/db/usr.tar").stdout for machine in (alpha, gamma)}
    check(len(sums) == 1, f"alpha reads other bytes than gamma: {sums}")
    for machine in machines.values():
        check(machine.states("weir-osd@a") == ["active"], "an OSD is not active")
        failed = machine.run("systemctl", "--failed", "--no-legend").stdout
        check(not failed, f"failed: {failed}")
    check(alpha.states("weir-mds") == ["active"], "weir-mds is not active")
    # By its own name a host finds itself, and not where it listens.
    said = alpha.run("osdctl", "--cluster", "alpha", "status", ok=(6,)).stderr
    check("'alpha' is 127.0.1.1 here: whoever listens at another address" in said, said)


if __name__ == "__main__":
    main("three_machines", how_the_section_is_read, as_readme_says)
