"""The programs that come from Debian: which are needed, and the line that installs them.

Fed by the machine; feeds `enclosure`, which refuses to begin without them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

CNI_PLUGINS = Path("/usr/lib/cni")
"""Where Debian puts the CNI plugins."""

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "containerd": ("containerd", "ctr"),
    "runc": ("runc",),
    "containernetworking-plugins": (str(CNI_PLUGINS / "bridge"), str(CNI_PLUGINS / "portmap")),
    "iptables": ("iptables",),
    "conntrack": ("conntrack",),
    "iproute2": ("ip",),
    "util-linux": ("unshare", "mount"),
    "bash": ("bash",),
    "curl": ("curl",),
    "dash": ("dash",),
    "hostname": ("hostname",),
    "libc-bin": ("getent",),
    "gcc": ("gcc",),
    "libc6-dev": ("/usr/include/stdio.h",),
    "make": ("make",),
    "bzip2": ("bzip2",),
}
"""Debian package -> the programs of it that a real node needs, or that its images are made with."""

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class MissingPackagesError(RuntimeError):
    """Programs are missing; says which line installs them."""


def missing(packages: Mapping[str, tuple[str, ...]] = PACKAGES) -> list[str]:
    """Return the packages of which a program is not there, in the order of the table."""
    return [
        package
        for package, programs in packages.items()
        if not all(
            shutil.which(program, path=search_path()) or _is_file(program) for program in programs
        )
    ]


def search_path() -> str:
    """`$PATH` with the system's own folders, where daemons live."""
    return f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}"


def require(*, install: bool) -> None:
    """Make sure that all packages are there; raise MissingPackagesError otherwise.

    Nothing is installed unless asked for: the machine is its owner's.
    """
    absent = missing()
    if absent and install:
        for line in _lines(absent):
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        absent = missing()
    if absent:
        raise MissingPackagesError(advice(absent))


def advice(absent: Sequence[str]) -> str:
    """What to type."""
    lines = "\n".join(f"  {' '.join(line)}" for line in _lines(absent))
    return f"a real node needs programs that are not here; run as root:\n{lines}"


def _lines(packages: Sequence[str]) -> list[list[str]]:
    return [
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
    ]


def _is_file(program: str) -> bool:
    return program.startswith("/") and Path(program).exists()
