"""containerd with runc and a bridge, its files in the bed's folder.

Fed by `images` with archives; feeds `node` with a socket.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

from tests.rig.polling import eventually
from tests.rig.processes import ProcessError, Processes
from tests.rig.real_node import images
from tests.rig.real_node.network import POD_RANGE
from tests.rig.real_node.packages import CNI_PLUGINS, search_path

_NAMESPACE = "k8s.io"
"""containerd's own, where its CRI plugin looks for images."""

_CONFIG = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/containerd.sock"
[ttrpc]
  address = "{folder}/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # In a container there may be no right to ask for a score below zero.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "{runc}"
"""


class ContainerRuntime:
    """One containerd."""

    def __init__(self, processes: Processes, version: str) -> None:
        self._processes = processes
        self._version = version
        self.folder = processes.folder / "containerd"

    @property
    def socket(self) -> Path:
        """Where the kubelet finds it."""
        return self.folder / "containerd.sock"

    async def start(self) -> None:
        """Start it and import all images; returns when pods can be made."""
        archives = await asyncio.to_thread(images.archives, self._version)
        self._configure()
        containerd = str(shutil.which("containerd", path=search_path()))
        command = [containerd, "--config", str(self.folder / "config.toml")]
        await self._processes.start("containerd", command, stage=1)
        await eventually(self._answers, "containerd", seconds=30)
        for archive in archives:
            await self._ctr("-n", _NAMESPACE, "images", "import", str(archive))

    def _configure(self) -> None:
        network = self.folder / "net.d"
        network.mkdir(parents=True)
        (network / "10-bridge.conflist").write_text(json.dumps(self._network()))
        (self.folder / "config.toml").write_text(
            _CONFIG.format(
                folder=self.folder,
                pause=images.PAUSE,
                plugins=CNI_PLUGINS,
                runc=shutil.which("runc", path=search_path()),
            )
        )

    def _network(self) -> dict[str, object]:
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "dataDir": str(self.folder / "ipam"),
                "ranges": [[{"subnet": POD_RANGE}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "0.4.0", "name": "test-bed", "plugins": [bridge, ports]}

    async def _answers(self) -> bool:
        try:
            await self._ctr("version")
        except ProcessError:
            return False
        return True

    async def _ctr(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            str(shutil.which("ctr", path=search_path())),
            "--address",
            str(self.socket),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate()
        if process.returncode != 0:
            raise ProcessError(f"ctr {' '.join(arguments)}: {said.decode().strip()}")
