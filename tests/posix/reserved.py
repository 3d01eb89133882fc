"""Space that fallocate keeps: what it counts as, where there is data in it, what gives it back, what becomes of it."""
import mmap
import os

from ranges import KEEP_SIZE, KIB, PAGE, PUNCH, ZERO, fallocate, map_of, pattern

MIB = 1 << 20
UNIT = 64 * KIB  # st_blocks is compared in these: extent trees differ by some blocks


def facts(fd):
    info = os.fstat(fd)
    return info.st_size, round(info.st_blocks * 512 / UNIT), map_of(fd)


def new(p, name="f"):
    return os.open(p / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)


def space_is_kept(p):
    fd = new(p)
    p.call("allocate", fallocate, fd, 0, 0, 8 * MIB)
    p.note("allocated", facts(fd))
    p.call("again", fallocate, fd, 0, MIB, 4 * MIB)
    p.note("allocated again", facts(fd))
    os.pwrite(fd, pattern(MIB), 2 * MIB)
    os.pwrite(fd, pattern(100), 5 * MIB + 100)
    os.fsync(fd)
    p.note("written in part", facts(fd))
    os.ftruncate(fd, 6 * MIB)
    p.note("cut", facts(fd))
    os.ftruncate(fd, 7 * MIB)
    p.note("grown", facts(fd))
    fallocate(fd, PUNCH | KEEP_SIZE, MIB, 3 * MIB)
    p.note("punched", facts(fd))
    # Last, as ext4 takes zeros that were read for data.
    p.note("zeros", os.pread(fd, 5 * MIB, 0) == bytes(5 * MIB))
    os.close(fd)
    p.note("closed", os.stat(p / "f").st_blocks * 512 // UNIT)
    p.note("through the other mount", os.stat(p.other + "/f").st_blocks * 512 // UNIT)
    fd = os.open(p / "f", os.O_RDWR | os.O_TRUNC)
    p.note("emptied by open", facts(fd))
    os.close(fd)


def space_behind_the_end(p):
    fd = new(p)
    p.call("keep", fallocate, fd, KEEP_SIZE, 0, 4 * MIB)
    p.note("kept", facts(fd))
    os.pwrite(fd, pattern(MIB), 0)
    os.fsync(fd)
    p.note("written", facts(fd))
    fallocate(fd, KEEP_SIZE, 8 * MIB, 2 * MIB)
    p.note("kept far behind", facts(fd))
    fallocate(fd, PUNCH | KEEP_SIZE, 8 * MIB, MIB)
    p.note("punched there", facts(fd))
    os.ftruncate(fd, 2 * MIB)
    p.note("grown into it", facts(fd))
    os.close(fd)
    fd = os.open(p / "f", os.O_RDWR)
    p.note("closed and opened", facts(fd))
    os.ftruncate(fd, 2 * MIB)
    p.note("cut to the size that it has", facts(fd))
    fallocate(fd, ZERO | KEEP_SIZE, 3 * MIB, MIB)
    p.note("zeros kept behind the end", facts(fd))
    os.truncate(p / "f", 2 * MIB)
    p.note("cut by name", facts(fd))
    fallocate(fd, KEEP_SIZE, 0, 6 * MIB)
    os.ftruncate(fd, MIB)
    p.note("cut below", facts(fd))
    os.close(fd)


def zeros_stay_allocated(p):
    fd = new(p)
    os.pwrite(fd, pattern(2 * MIB), 0)
    os.fsync(fd)
    fallocate(fd, ZERO, MIB // 2, MIB)
    p.note("in the middle", facts(fd))
    fallocate(fd, ZERO, 3 * MIB, MIB)
    p.note("behind the end", facts(fd))
    fallocate(fd, ZERO | KEEP_SIZE, 1000, 15000)
    p.note("ragged", facts(fd))
    p.note("bytes", os.pread(fd, 20000, 0) == pattern(1000) + bytes(15000) + pattern(2 * MIB)[16000:20000])
    os.close(fd)


def sparse_files_take_what_they_have(p):
    """O_DIRECT: of buffered writes a shared mount counts blocks before it knows what they overwrite."""
    fd = os.open(p / "f", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    data = mmap.mmap(-1, MIB)
    data[:] = pattern(MIB)
    os.ftruncate(fd, 64 * MIB)
    fallocate(fd, KEEP_SIZE, 16 * MIB, MIB)
    p.note("allocated in a hole", facts(fd))
    for _ in range(2):
        os.pwrite(fd, data, 16 * MIB)
        os.fsync(fd)
    p.note("written twice", facts(fd))
    os.pwrite(fd, data, 16 * MIB + MIB // 2)
    os.fsync(fd)
    p.note("and beyond", facts(fd))
    os.close(fd)


def cuts_of_sparse_files(p):
    for name, make, sizes in (
            ("data far out", lambda fd: os.pwrite(fd, pattern(MIB), 3 * MIB), (2, 5, 0)),
            ("data in two places", lambda fd: (os.pwrite(fd, pattern(MIB), 0), os.pwrite(fd, pattern(2 * MIB), 20 * MIB)),
             (21, 10, 30, 1)),
            ("space kept", lambda fd: fallocate(fd, 0, 3 * MIB, 3 * MIB), (5, 4, 2)),
            ("space kept behind the end", lambda fd: fallocate(fd, KEEP_SIZE, 9 * MIB, 3 * MIB), (10, 5)),
            ("a hole made", lambda fd: (os.pwrite(fd, pattern(8 * MIB), 0),
                                        fallocate(fd, PUNCH | KEEP_SIZE, MIB, 5 * MIB)), (7, 3))):
        fd = new(p, name)
        make(fd)
        os.fsync(fd)
        p.note(name, facts(fd)[:2])
        for size in sizes:
            os.ftruncate(fd, size * MIB)
            p.note(f"{name}, cut to {size}", facts(fd)[:2])
            p.note(f"{name}, cut to {size}, through the other mount",
                   round(os.stat(f"{p.other}/{name}").st_blocks * 512 / UNIT))
        os.pwrite(fd, pattern(MIB), 40 * MIB)
        os.close(fd)
        os.truncate(p / name, 39 * MIB)
        p.note(f"{name}, cut by name", round(os.stat(p / name).st_blocks * 512 / UNIT))
        os.truncate(p / name, 0)
        p.note(f"{name}, emptied", os.stat(p / name).st_blocks)


def copies_of_it_are_zeros(p):
    fd, to = new(p), new(p, "g")
    fallocate(fd, 0, 0, 2 * MIB)
    os.pwrite(fd, pattern(PAGE), MIB)
    os.pwrite(to, pattern(2 * MIB, 2), 0)
    done = 0
    while done < 2 * MIB:
        done += os.copy_file_range(fd, to, 2 * MIB - done, done, done)
    p.note("copied", os.pread(to, 4 * MIB, 0) == bytes(MIB) + pattern(PAGE) + bytes(MIB - PAGE))
    os.close(fd)
    os.close(to)


CASES = (space_is_kept, space_behind_the_end, zeros_stay_allocated, sparse_files_take_what_they_have,
         cuts_of_sparse_files, copies_of_it_are_zeros)
