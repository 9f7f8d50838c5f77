"""The inside of an enclosure: one flat network, and what a kubelet wants to find in /proc.

All that a test brings up lives in one network namespace, so pods are reached by their own
addresses from everywhere in it. Fed by nothing; feeds `node` with addresses.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

NODE_ADDRESS = "192.168.77.1"
"""The real node's, and its control plane's."""
HOME_ADDRESS = "192.168.77.2"
"""The home control plane's, and the virtual node's."""
_GATEWAY = "192.168.77.254"
"""Nobody has it: packets for the outside go into the far end of a veth and no further."""
POD_RANGE = "10.88.0.0/16"

_KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
}
"""What a kubelet wants set. These are the machine's: it is shown files that say so instead."""


_LITTLE = "4096 65536 1048576"
"""Bytes at least, at first, at most."""


def prepare() -> None:
    """Bring the network up, and let mounts of containers be seen by each other."""
    _run("mount", "--make-rshared", "/")
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "node0", "type", "veth", "peer", "name", "node0p")
    for address in (NODE_ADDRESS, HOME_ADDRESS):
        _run("ip", "address", "add", f"{address}/24", "dev", "node0")
    for device in ("node0", "node0p"):
        _run("ip", "link", "set", device, "up")
    _run("ip", "route", "add", "default", "via", _GATEWAY, "dev", "node0")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def prepare_kernel(folder: Path) -> None:
    """Show a kubelet the kernel settings that it wants; `folder` keeps the look-alikes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in _KERNEL.items():
        shown = folder / name.replace("/", ".")
        shown.write_text(f"{value}\n")
        _run("mount", "--bind", str(shown), f"/proc/sys/{name}")


def narrow_buffers() -> None:
    """Let this network hold little for a reader that has stopped.

    A stream crosses it four times, and the kernel would take tens of megabytes on their way.
    """
    for name in ("tcp_rmem", "tcp_wmem"):
        Path(f"/proc/sys/net/ipv4/{name}").write_text(_LITTLE)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
