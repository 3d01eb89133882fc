"""Who acts: users with and without capabilities, and what files say of the rights that they lend."""
import ctypes
import errno
import os
import stat
import struct

from harness import GROUP, OTHER, THIRD, USER, Child, become

OWNER = (USER, GROUP, [])
MEMBER = (OTHER, THIRD, [GROUP])
STRANGER = (OTHER, THIRD, [])
ROOT = (0, 0, [])

CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, SYS_ADMIN, MKNOD, SETFCAP = 0, 1, 2, 3, 4, 21, 27, 31
NAMES = {CHOWN: "CHOWN", DAC_OVERRIDE: "DAC_OVERRIDE", DAC_READ_SEARCH: "DAC_READ_SEARCH", FOWNER: "FOWNER",
         FSETID: "FSETID", SYS_ADMIN: "SYS_ADMIN", MKNOD: "MKNOD", SETFCAP: "SETFCAP"}
CAPABILITY = "security.capability"
NET_RAW = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)  # cap_net_raw+ep

PR_SET_KEEPCAPS = 8

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def set_capabilities(effective, permitted=None):
    permitted = effective if permitted is None else permitted
    masks = [sum(1 << one for one in some) for some in (effective, permitted)]
    header = struct.pack("=Ii", 0x20080522, 0)
    data = b"".join(struct.pack("=III", *((mask >> shift) & 0xFFFFFFFF for mask in masks), 0) for shift in (0, 32))
    checked(libc.capset(header, data))


def become_with(user, effective, permitted=None):
    checked(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
    become(user)
    set_capabilities(effective, permitted)


def run_as(user, function, *args, capabilities=None):
    """In a child that has become `user`; with just those capabilities if any are named."""
    def body(child):
        become(user) if capabilities is None else become_with(user, capabilities)
        child.send(function(*args))
    with Child(body) as child:
        return child.receive()


def permissions_of(path):
    return oct(stat.S_IMODE(os.lstat(path).st_mode))


def capability_of(path):
    """Whether there is one, and of which size: that of a namespace's root says whose it is."""
    try:
        return len(os.getxattr(path, CAPABILITY))
    except OSError as error:
        return errno.errorcode[error.errno]
