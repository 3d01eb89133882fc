#!/usr/bin/env python3
"""Two mounts of one cluster behave as one machine: what one has been told is done, the other sees, without a close.

The last test stops the process of a mount that has data in its buffers: the other goes on after the lease, and what
the stopped one still had never reaches the file.
"""
import errno
import fcntl
import mmap
import os
import signal
import struct
import threading
import time

from weirtest import BIN, MIB, Cluster, check, main, run, wait_until

PAGE = 4096


def open_both(ours, theirs):
    return os.open(ours, os.O_RDWR | os.O_CREAT, 0o644), os.open(theirs, os.O_RDWR)


def what_is_written_is_seen(ours, theirs):
    """Buffered data, sizes and times; with the reader's pages warm; without any close or fsync."""
    writer = os.open(ours, os.O_RDWR | os.O_CREAT, 0o644)
    os.write(writer, b"first" * 1000)
    check(os.stat(theirs).st_size == 5000, "the size of what is buffered")
    with open(theirs, "rb") as file:
        check(file.read() == b"first" * 1000, "the data of what is buffered")
    reader = os.open(theirs, os.O_RDONLY)
    before = os.fstat(reader).st_mtime_ns
    for turn in range(30):
        data = bytes([turn]) * 3 * PAGE
        os.pwrite(writer, data, 0)
        now = os.fstat(reader)
        check(now.st_mtime_ns > before, f"turn {turn}: the time of a write did not move")
        before = now.st_mtime_ns
        check(os.pread(reader, len(data), 0) == data, f"turn {turn}: old pages")
    for turn in range(20):  # as `tail -f` looks
        end = os.fstat(reader).st_size
        os.pwrite(writer, b"%4d\n" % turn, end)
        check(os.pread(reader, 100, end) == b"%4d\n" % turn, f"line {turn} is not there")
    os.close(reader)
    os.ftruncate(writer, 7)
    check(os.stat(theirs).st_size == 7, "the size after a truncation")
    os.pwrite(writer, b"x" * MIB, 0)
    os.truncate(theirs, 100)
    check(os.fstat(writer).st_size == 100, "truncated from the other side")
    with open(ours, "rb") as file:
        check(file.read() == b"x" * 100, "data of a file truncated from the other side")
    os.close(writer)


def writers_share_a_page(ours, theirs):
    """Each writes its half of the same pages, often at the same time; none loses anything."""
    files = open_both(ours, theirs)
    rounds = 15

    def write(number):
        for turn in range(rounds):
            for page in range(4):
                os.pwrite(files[number], bytes([turn + 1]) * (PAGE // 2), page * PAGE + number * PAGE // 2)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        check(not thread.is_alive(), "two writers of one page wait for each other")
    for file in files:
        check(os.pread(file, 5 * PAGE, 0) == bytes([rounds]) * 4 * PAGE, "a half of a page is lost")
        os.close(file)


def sizes_are_seen_beside_a_writer(ours, theirs):
    """One writes at the start of a file that the other makes longer; a read right after both have ended is whole."""
    ends, step = 4 * PAGE, 1000

    def write(file, half, rounds=3):
        for turn in range(rounds):
            for page in range(4):
                os.pwrite(file, bytes([turn + 1]) * (PAGE // 2), page * PAGE + half * PAGE // 2)

    def append(path, _file):
        with open(path, "ab", buffering=0) as end:
            for _ in range(8):
                end.write(b"a" * step)

    def allocate(_path, file):
        for number in range(8):
            os.posix_fallocate(file, 0, ends + (number + 1) * step)

    def truncate(_path, file):
        for number in range(8):
            os.ftruncate(file, ends + (number + 1) * step)

    def share(_path, file):
        write(file, 1)

    for turn, (grow, size) in enumerate(((share, ends), (append, ends + 8 * step), (allocate, ends + 8 * step),
                                         (truncate, ends + 8 * step)) * 5):
        files = open_both(f"{ours}{turn}", f"{theirs}{turn}")
        if grow is append:
            os.ftruncate(files[0], ends)
        threads = [threading.Thread(target=write, args=(files[0], 0)),
                   threading.Thread(target=grow, args=(f"{theirs}{turn}", files[1]))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
            check(not thread.is_alive(), f"{grow.__name__}: two mounts wait for each other")
        for file in files:
            seen = len(os.pread(file, size + PAGE, 0))
            check(seen == size, f"{grow.__name__}: {seen} of {size} bytes")
            os.close(file)


def mappings_follow(ours, theirs):
    """A mapping sees what the other mount writes, and what is stored through it is seen there after msync."""
    file, other = open_both(ours, theirs)
    os.write(file, b"a" * 2 * PAGE)
    with mmap.mmap(other, 2 * PAGE) as seen:
        check(seen[:3] == b"aaa" and seen[PAGE:PAGE + 3] == b"aaa", "a mapping of buffered data")
        for turn in range(10):
            os.pwrite(file, b"%03d" % turn, 0)
            wait_until(lambda: seen[:3] == b"%03d" % turn, "a mapping to follow", timeout=10)  # noqa: B023
        seen[PAGE:PAGE + 3] = b"xyz"
        seen.flush()
        check(os.pread(file, 3, PAGE) == b"xyz", "what was stored through a mapping")
    os.close(other)
    # Alone and buffering: a look has the kernel write what is dirty in its mapping first.
    os.close(file)
    file = os.open(f"{ours}2", os.O_RDWR | os.O_CREAT, 0o644)
    os.ftruncate(file, PAGE)
    with mmap.mmap(file, PAGE) as dirty:
        dirty[:5] = b"dirty"
        with open(f"{theirs}2", "rb") as look:
            check(look.read(5) == b"dirty", "what is dirty in a mapping")
    os.close(file)


def missing(path):
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    return False


def replace(directory):
    os.mknod(f"{directory}/new")
    os.chmod(f"{directory}/new", 0o640)
    os.rename(f"{directory}/new", f"{directory}/file")


def make_again(directory):
    os.unlink(f"{directory}/file")
    os.mkdir(f"{directory}/file")


def write_to(directory):
    with open(f"{directory}/file", "wb") as file:
        file.write(b"news")


# What one does in a directory with an empty `file`, and how the other knows.
CHANGES = {
    "renamed": (lambda d: os.rename(f"{d}/file", f"{d}/moved"),
                lambda d: missing(f"{d}/file") and os.listdir(d) == ["moved"] and os.stat(f"{d}/moved").st_size == 0),
    "moved up": (lambda d: os.rename(f"{d}/file", f"{d}.up"), lambda d: missing(f"{d}/file") and not missing(f"{d}.up")),
    "unlinked": (lambda d: os.unlink(f"{d}/file"), lambda d: missing(f"{d}/file") and os.listdir(d) == []),
    "made again": (make_again, lambda d: os.path.isdir(f"{d}/file")),
    "replaced": (replace, lambda d: os.stat(f"{d}/file").st_mode & 0o777 == 0o640 and os.listdir(d) == ["file"]),
    "chmod": (lambda d: os.chmod(f"{d}/file", 0o600), lambda d: os.stat(f"{d}/file").st_mode & 0o777 == 0o600),
    "chown": (lambda d: os.chown(f"{d}/file", 7, 8), lambda d: os.stat(f"{d}/file")[4:6] == (7, 8)),
    "written": (write_to, lambda d: os.stat(f"{d}/file").st_size == 4),
    "truncated": (lambda d: os.truncate(f"{d}/file", 5000), lambda d: os.stat(f"{d}/file").st_size == 5000),
    "utime": (lambda d: os.utime(f"{d}/file", ns=(1, 2)), lambda d: os.stat(f"{d}/file").st_mtime_ns == 2),
    "linked": (lambda d: os.link(f"{d}/file", f"{d}/also"),
               lambda d: os.stat(f"{d}/file").st_nlink == 2 and sorted(os.listdir(d)) == ["also", "file"]),
    "added": (lambda d: os.mkdir(f"{d}/more"), lambda d: os.stat(d).st_nlink == 3 and len(os.listdir(d)) == 2),
}


def look_around(directory):
    for _ in range(3):
        for entry in os.scandir(directory):
            entry.stat()
        os.stat(f"{directory}/file")
        missing(f"{directory}/moved")


def what_was_looked_at_is_forgotten(ours, theirs):
    """Names, attributes and listings that a kernel remembers are gone when the other's change is answered."""
    os.mkdir(ours)
    for turn in range(6):
        for number, (what, (change, is_seen)) in enumerate(CHANGES.items()):
            name = f"{turn}.{number}"
            os.mkdir(f"{ours}/{name}")
            os.mknod(f"{ours}/{name}/file")
            for mount in (ours, theirs)[:1 + turn % 2] + (theirs,):
                look_around(f"{mount}/{name}")
            change(f"{ours}/{name}")
            check(is_seen(f"{theirs}/{name}"), f"turn {turn}: {what}, and the other still sees the old")
            check(is_seen(f"{ours}/{name}"), f"turn {turn}: {what}, and does not see it himself")


SOMEBODY = 54321
# u::rw,u:54321:rw,g::-,m::rw,o::-
LETS_SOMEBODY = struct.pack("<I" + 5 * "HHI", 2, 1, 6, 2**32 - 1, 2, 6, SOMEBODY, 4, 0, 2**32 - 1,
                            16, 6, 2**32 - 1, 32, 0, 2**32 - 1)


def somebody_may(do, mount, path):
    """Whether a user without rights of his own may; None: it failed otherwise."""
    child = os.fork()
    if child == 0:
        os.chdir(mount)  # what lies above is the test's own
        os.setgroups([])
        os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
        os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
        try:
            do(path)
        except PermissionError:
            os._exit(1)
        except OSError:
            os._exit(2)
        os._exit(0)
    return {0: True, 1: False}.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def open_to_read(path):
    os.close(os.open(path, os.O_RDONLY))


def open_both_ways(path):
    os.close(os.open(path, os.O_RDWR))


def rights_set_on_a_file_that_is_written_hold(ours, theirs):
    """At once and on both, though the MDS hears of them with the data only; and they outlive the close."""
    os.mkdir(ours, 0o755)
    os.mkdir(f"{ours}/sticky")
    os.chmod(f"{ours}/sticky", 0o1777)
    for turn, looker in enumerate((theirs, ours) * 2):
        for before, after in ((0o600, 0o644), (0o644, 0o600)):
            name = f"{turn}.{before:o}"
            file = os.open(f"{ours}/{name}", os.O_RDWR | os.O_CREAT, before)
            os.write(file, b"data")
            os.fchmod(file, after)
            allowed = somebody_may(open_to_read, looker, name)
            check(allowed is (after == 0o644), f"{name} after fchmod to {after:o}: may open it: {allowed}")
            os.close(file)
        name = f"sticky/{turn}"
        file = os.open(f"{ours}/{name}", os.O_RDWR | os.O_CREAT, 0o644)
        os.write(file, b"data")
        check(somebody_may(os.unlink, looker, name) is False, f"{name}: removed by who does not own it")
        os.close(file)
        file = os.open(f"{ours}/{name}", os.O_RDWR)
        os.write(file, b"more")
        os.fchown(file, SOMEBODY, SOMEBODY)
        check(somebody_may(os.unlink, looker, name) is True, f"{name}: not removed by its new owner")
        os.close(file)


def rights_set_elsewhere_are_judged_by_at_once(ours, theirs):
    """Owners, modes, lists: by the kernel of a mount that has seen others just before."""
    os.mkdir(ours, 0o755)
    os.mkdir(f"{ours}/sticky")
    os.chmod(f"{ours}/sticky", 0o1777)
    for turn, (changer, looker) in enumerate(((ours, theirs), (theirs, ours)) * 5):
        for name in (f"{turn}", f"sticky/{turn}", f"fifo{turn}"):
            if name.startswith("fifo"):
                os.mkfifo(f"{changer}/{name}", 0o600)
            else:
                os.mknod(f"{changer}/{name}", 0o600)
            for _ in range(2):
                os.stat(f"{looker}/{name}")
                check(somebody_may(lambda path: os.chmod(path, 0o640), looker, name) is False, f"{name}: not his")
                check(somebody_may(open_both_ways, looker, name) is False, f"{name}: closed to him")
        os.chown(f"{changer}/{turn}", SOMEBODY, SOMEBODY)
        check(somebody_may(lambda path: os.chmod(path, 0o640), looker, f"{turn}") is True, f"{turn}: his, and he may not")
        os.chown(f"{changer}/sticky/{turn}", SOMEBODY, SOMEBODY)
        check(somebody_may(os.unlink, looker, f"sticky/{turn}") is True, f"{turn}: his, and he may not remove it")
        os.setxattr(f"{changer}/fifo{turn}", "system.posix_acl_access", LETS_SOMEBODY)
        check(somebody_may(open_both_ways, looker, f"fifo{turn}") is True, f"{turn}: on the list, and he may not")
        os.chmod(f"{changer}/fifo{turn}", 0o600)
        check(somebody_may(open_both_ways, looker, f"fifo{turn}") is False, f"{turn}: the mask is closed")


def attributes_set_on_a_file_that_is_written_are_seen(ours, theirs):
    os.mkdir(ours)
    for turn in range(10):
        file = os.open(f"{ours}/{turn}", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(file, b"x" * 100)
        os.fchmod(file, 0o640)
        os.fchown(file, 7, 8)
        os.utime(file, ns=(turn, turn + 1))
        if turn % 3 == 1:
            os.fsync(file)
        if turn % 3 == 2:
            os.rename(f"{ours}/{turn}", f"{ours}/moved")
            os.rename(f"{ours}/moved", f"{ours}/{turn}")
        wanted = (0o100640, 7, 8, 100, turn, turn + 1)
        for place in (f"{ours}/{turn}", f"{theirs}/{turn}"):
            seen = os.stat(place)
            check((seen.st_mode, *seen[4:7], seen.st_atime_ns, seen.st_mtime_ns) == wanted, f"{place}: {seen}")
        os.write(file, b"later")
        check(os.stat(f"{theirs}/{turn}").st_mtime_ns > turn + 1, "a write after utime does not move the time")
        os.utime(file, ns=(turn, turn + 1))
        os.close(file)
        for place in (f"{ours}/{turn}", f"{theirs}/{turn}"):
            check(os.stat(place).st_mtime_ns == turn + 1, f"{place}: its close moved the time")
    # By its name, before and after the mount gives back what was closed, which it does ten times a second.
    for turn in range(16):
        with open(f"{ours}/closed{turn}", "wb") as closed:
            closed.write(b"data")
        os.chmod(f"{ours}/closed{turn}", 0o600 + turn)
        time.sleep(turn * 0.02)
        seen = os.stat(f"{theirs}/closed{turn}").st_mode & 0o777
        check(seen == 0o600 + turn, f"{turn / 50} s after chmod the other sees {seen:o}")


def whoever_may_not_pass_is_kept_out(ours, theirs):
    """By each mount, as soon as either has changed the rights, however warm the names below are."""
    def may_look(mount, path):
        return somebody_may(os.stat, mount, path)

    os.mkdir(ours, 0o755)
    for turn, changer in enumerate((ours, theirs) * 3):
        for mount in (ours, theirs):
            os.stat(mount)
        below = f"{turn}/inner"
        os.makedirs(f"{ours}/{below}")
        os.mknod(f"{ours}/{below}/file")
        for mount in (ours, theirs):
            look_around(f"{mount}/{below}")
            check(may_look(mount, f"{below}/file") is True, f"turn {turn}: cannot look at what everybody may")
        os.chmod(f"{changer}/{turn}", 0o700)
        for mount in (ours, theirs):
            check(may_look(mount, f"{below}/file") is False, f"turn {turn}: passes a directory of others")
            os.stat(f"{mount}/{below}/file")
        os.chmod(f"{changer}/{turn}", 0o711)
        for mount in (ours, theirs):
            check(may_look(mount, f"{below}/file") is True, f"turn {turn}: may pass again, and cannot")


def both_work_in_one_directory(ours, theirs):
    """Makes, renames and removals of both, with a lister on each side: nobody waits for ever, nothing is lost."""
    os.mkdir(ours)
    stop = threading.Event()
    failed = []

    def work(mount, number):
        try:
            for turn in range(40):
                path = f"{mount}/{number}.{turn}"
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                os.stat(path)
                os.rename(path, f"{path}.new")
                check(missing(path), f"{path} is there after it was renamed")
                if turn % 2:
                    os.unlink(f"{path}.new")
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    def look(mount):
        while not stop.is_set():
            for entry in os.scandir(mount):
                missing(entry.path)

    workers = [threading.Thread(target=work, args=pair) for pair in ((ours, 0), (theirs, 1), (ours, 2))]
    lookers = [threading.Thread(target=look, args=(mount,)) for mount in (ours, theirs)]
    for thread in workers + lookers:
        thread.start()
    for thread in workers:
        thread.join(timeout=60)
        if thread.is_alive():
            failed.append("two mounts in one directory wait for each other")
    stop.set()
    for thread in lookers:
        thread.join(timeout=60)
    check(not failed, str(failed))
    names = sorted(f"{number}.{turn}.new" for number in range(3) for turn in range(0, 40, 2))
    for mount in (ours, theirs):
        check(sorted(os.listdir(mount)) == names, "names are lost or left over")
    times = [(seen.st_mtime_ns, seen.st_ctime_ns, seen.st_nlink) for seen in map(os.stat, (ours, theirs))]
    check(times[0] == times[1], f"the directory differs: {times}")


def two_mounts_are_one_machine(lab):
    system = Cluster(lab, mounts=2)
    for part in (what_is_written_is_seen, writers_share_a_page, sizes_are_seen_beside_a_writer, mappings_follow,
                 what_was_looked_at_is_forgotten, both_work_in_one_directory,
                 attributes_set_on_a_file_that_is_written_are_seen):
        part(*(f"{mount}/{part.__name__}" for mount in system.mounts))


def rights_hold_on_both(lab):
    system = Cluster(lab, mounts=0)
    mounts = [lab.path(name) for name in ("ours", "theirs")]
    for mount in mounts:
        mount_at(lab, system, mount, "-o", "allow_other")
    whoever_may_not_pass_is_kept_out(*(f"{mount}/tree" for mount in mounts))
    rights_set_on_a_file_that_is_written_hold(*(f"{mount}/rights" for mount in mounts))
    rights_set_elsewhere_are_judged_by_at_once(*(f"{mount}/elsewhere" for mount in mounts))


def endpoint_of(system):
    with open(f"{system.dir}/endpoint") as text:
        return text.read().strip()


def mount_at(lab, system, mount, *options):
    """The number of its process."""
    os.makedirs(mount, exist_ok=True)
    run(f"{BIN}/weirfs", endpoint_of(system), mount, "--pid-file", f"{mount}.pid", *options)
    lab.on_exit(lambda: run("umount", "-l", mount, ok=None))
    with open(f"{mount}.pid") as text:
        return int(text.read())


def closed_lazily(lab):
    """A close waits for no disk: others see what was closed at once, names do not overtake it, fsync keeps it."""
    system = Cluster(lab, mounts=0)
    ours, theirs = lab.path("ours"), lab.path("theirs")
    process = mount_at(lab, system, ours)
    mount_at(lab, system, theirs)
    for turn in range(50):
        text = b"%d " % turn * 500
        with open(f"{ours}/seen", "wb") as file:
            file.write(text)
        check(os.stat(f"{theirs}/seen").st_size == len(text), f"turn {turn}: the size of a closed file")
        with open(f"{theirs}/seen", "rb") as file:
            check(file.read() == text, f"turn {turn}: the data of a closed file")
    for turn in range(20):  # gone, or opened again, before it was stored
        with open(f"{ours}/gone", "wb") as file:
            file.write(b"x" * 10000)
        if turn % 2:
            with open(f"{ours}/gone", "ab") as file:
                file.write(b"y")
            check(os.stat(f"{ours}/gone").st_size == 10001, "opened again")
        os.unlink(f"{ours}/gone")
    kept = os.open(f"{ours}/kept", os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(kept, b"kept")
    os.fsync(kept)
    names = ("renamed", "renamed twice")
    for name in names:
        with open(f"{ours}/{name}", "wb") as file:
            file.write(b"before")
            file.flush()
            os.fsync(file.fileno())
        with open(f"{ours}/{name}.new", "wb") as file:
            file.write(name.encode() * 1000)
    os.rename(f"{ours}/renamed.new", f"{ours}/renamed")
    os.rename(f"{ours}/renamed twice.new", f"{ours}/renamed once")
    os.rename(f"{ours}/renamed once", f"{ours}/renamed twice")
    check(os.listdir(theirs), "the other mount lists")
    os.close(kept)
    os.kill(process, signal.SIGKILL)
    for name in names:
        with open(f"{theirs}/{name}", "rb") as file:
            check(file.read() == name.encode() * 1000, f"{name} came before what was written to it")
    with open(f"{theirs}/kept", "rb") as file:
        check(file.read() == b"kept", "what was synced is lost")
    with open(f"{theirs}/last", "wb") as file:
        file.write(b"before umount")
    run("umount", theirs)
    mount_at(lab, system, theirs)
    with open(f"{theirs}/last", "rb") as file:
        check(file.read() == b"before umount", "what was closed before umount is lost")


def a_silent_mount_loses(lab):
    """Its data is fenced off, its users get errors, its locks go; the other mount waits for its lease only."""
    system = Cluster(lab, mounts=2)
    ours, theirs = (f"{mount}/file" for mount in system.mounts)
    with open(f"{system.dir}/run/mnt.0.pid") as text:
        process = int(text.read())
    late = []
    file = os.open(ours, os.O_RDWR | os.O_CREAT, 0o644)
    os.write(file, b"before" * 100)
    os.fsync(file)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.pwrite(file, b"never to be seen", 0)
    try:
        silence(process)
        other = os.open(theirs, os.O_RDWR)  # waits until the silent one is evicted
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(other, b"the new truth!!!", 0)
        os.fsync(other)
        # Whoever opens from now on, however early, is as anybody who mounts now.
        latecomers = [threading.Thread(target=lambda path=path: late.append(writes_start(path, b"and it may write")))
                      for path in (ours, f"{ours}.new")]
        for latecomer in latecomers:
            latecomer.start()
            wait_until(lambda: waits_for_weirfs(latecomer.native_id), "an open to wait for a silent mount")  # noqa: B023
    finally:
        os.kill(process, signal.SIGCONT)
    for latecomer in latecomers:
        latecomer.join()
    check(late == [None, None], f"opened after the eviction, before the mount heard of it: {late}")
    for path in (theirs, f"{theirs}.new"):
        check(read_start(path) == b"and it may write", "a mount that came back cannot write")
    failed = None
    try:
        os.fsync(file)
        os.pwrite(file, b"too late", 0)
        os.fsync(file)
    except OSError as error:
        failed = error
    check(failed is not None, "the stopped mount was told that its data is safe")
    try:
        os.ftruncate(file, 4)
        check(False, "a descriptor of before the eviction cuts off what others wrote")
    except OSError as error:
        check(error.errno == errno.ESTALE, f"ftruncate: {error}")
    for path in (ours, theirs):
        check(read_start(path) == b"and it may write", "overwritten by a mount that was evicted")
    try:
        os.close(file)
    except OSError:
        pass
    os.close(other)


def silence(process):
    """Returns when none of its threads runs: until one of them has taken the signal the others go on."""
    os.kill(process, signal.SIGSTOP)

    def stopped(thread):
        with open(f"/proc/{process}/task/{thread}/stat") as text:
            return text.read().rsplit(")", 1)[1].split()[0] == "T"

    wait_until(lambda: all(map(stopped, os.listdir(f"/proc/{process}/task"))), "a mount to stop")


def read_start(path):
    try:
        with open(path, "rb") as file:
            return file.read(16)
    except OSError as error:
        return error


def writes_start(path, data):
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.write(file, data)
        os.close(file)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def waits_for_weirfs(thread):
    with open(f"/proc/self/task/{thread}/wchan") as text:
        return "request_wait_answer" in text.read()


if __name__ == "__main__":
    main("coherence", two_mounts_are_one_machine, rights_hold_on_both, closed_lazily, a_silent_mount_loses)
