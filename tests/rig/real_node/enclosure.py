"""Runs a program in namespaces of its own: network, mounts, processes.

What a kubelet does to a machine (interfaces, iptables rules, mounts, daemons that leave their
parents) it does in there, and the kernel takes all of it back when the program ends, however it
ends. The network leads nowhere. Only cgroups are the machine's: they get a root of their own,
which is removed here.
Fed by a command line; feeds the exit code of that command back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.rig.deathsig import die_with_parent
from tests.rig.real_node import packages

CGROUPS = Path("/sys/fs/cgroup")
CGROUP_VARIABLE = "VK_RIG_CGROUP"
"""Tells the inside which cgroup is its own."""
_PREFIX = "vk-rig-"
_INIT = "tests.rig.real_node.init"


class EnclosureError(RuntimeError):
    """This machine can't enclose a node; says what it lacks."""


def run(command: Sequence[str]) -> int:
    """Run a command enclosed, Ctrl-C included; return its exit code.

    It finds itself in a network with `lo` alone, in a mount namespace whose changes stay there, and
    under a first process that reaps orphans and takes everybody along when it ends.
    """
    if os.geteuid() != 0:
        raise EnclosureError("a real kubelet needs root: run this as root (in a container will do)")
    inner = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    inner += ["--propagation", "private", sys.executable, "-m", _INIT, *command]
    name = f"{_PREFIX}{os.getpid()}"
    environment = os.environ | {"PATH": packages.search_path(), CGROUP_VARIABLE: name}
    with (
        _cgroup(name),
        subprocess.Popen(
            inner, env=environment, preexec_fn=die_with_parent(signal.SIGKILL)
        ) as process,
    ):
        signal.signal(signal.SIGTERM, lambda signum, _: _pass_on(process.pid, signum))
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # the terminal has told the command as well: it stops in order


def _pass_on(pid: int, signum: int) -> None:
    """To the first process inside: its parent, which waits for it, takes no signals."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.kill(int(child), signum)


@contextlib.contextmanager
def _cgroup(name: str) -> Iterator[None]:
    """A cgroup of ours in every hierarchy; removed when nothing of ours runs any more."""
    _sweep()
    for hierarchy in hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        _inherit_cpuset(hierarchy, name)
    try:
        yield
    finally:
        _remove(name)


def _sweep() -> None:
    """What runs have left that were killed, those whose process is gone."""
    for hierarchy in hierarchies():
        for left in hierarchy.glob(f"{_PREFIX}*"):
            if not Path(f"/proc/{left.name.removeprefix(_PREFIX)}").exists():
                _remove(left.name)


def hierarchies() -> list[Path]:
    """The mounted cgroup hierarchies: one of version 2, or several of version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return sorted(each for each in CGROUPS.iterdir() if (each / "cgroup.procs").exists())


def _inherit_cpuset(hierarchy: Path, name: str) -> None:
    """A new cpuset of version 1 is empty, and nothing may run in it until it is filled."""
    if (CGROUPS / "cgroup.controllers").exists():
        return
    for setting in ("cpuset.cpus", "cpuset.mems"):
        if (hierarchy / name / setting).exists():
            (hierarchy / name / setting).write_text((hierarchy / setting).read_text())


def _remove(name: str) -> None:
    for hierarchy in hierarchies():
        folders = [Path(folder) for folder, _, _ in os.walk(hierarchy / name, topdown=False)]
        for folder in folders:
            with contextlib.suppress(OSError):  # busy: a process of it is just ending
                folder.rmdir()
