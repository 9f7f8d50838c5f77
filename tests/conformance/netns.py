"""A private network with an address that is not loopback.

An API server refuses to proxy to a node whose address is loopback, and nothing of a test may listen
where others could reach it. In a network namespace of our own both are had, without any tool.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

ADDRESS = "10.99.0.1"

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
_IFF_UP = 0x1


def enter() -> None:
    """Move this process, while it has one thread, into a network of its own.

    Raises OSError where the system does not allow it; nobody but root needs a user namespace.
    """
    uid, gid = os.getuid(), os.getgid()
    _unshare(_CLONE_NEWNET | (0 if uid == 0 else _CLONE_NEWUSER))
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _up(control, "lo")
        # An alias of lo: kernels without the modules for other kinds of devices have it as well.
        _set(control, _SIOCSIFADDR, "lo:0", ADDRESS)
        _set(control, _SIOCSIFNETMASK, "lo:0", "255.255.255.0")
        _up(control, "lo:0")


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace of our own: {os.strerror(number)}")


def _up(control: socket.socket, device: str) -> None:
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", device.encode(), _IFF_UP))


def _set(control: socket.socket, request: int, device: str, address: str) -> None:
    packed = struct.pack(
        "16sHH4s16x", device.encode(), socket.AF_INET, 0, socket.inet_aton(address)
    )
    fcntl.ioctl(control, request, packed)
