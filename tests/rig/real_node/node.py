"""The node: a kubelet over containerd that joins a control plane of the bed.

async with ControlPlane(address=NODE_ADDRESS) as bed:
    await RealNode(bed).start()

Runs inside an enclosure (`enclosure.py`) whose network is up (`network.py`). It ends with the bed.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from tests.rig import builds
from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.kwok import is_usable
from tests.rig.polling import eventually
from tests.rig.processes import ProcessError
from tests.rig.real_node.container_runtime import ContainerRuntime
from tests.rig.real_node.enclosure import CGROUP_VARIABLE
from tests.rig.real_node.network import NODE_ADDRESS

NAME = "real-node"
PORT = 10350
"""Not a kubelet's usual port: that one is for the virtual node, whose address may be the same."""
_MAX_PODS = 110
_READY_SECONDS = 60.0


class RealNode:
    """One kubelet with its container runtime."""

    def __init__(self, bed: ControlPlane) -> None:
        self.bed = bed
        self.name = NAME
        self.runtime = ContainerRuntime(bed, bed.kube_version)
        self.folder = bed.folder / "kubelet"

    async def start(self) -> None:
        """Start everything; returns when the node is Ready."""
        program = await asyncio.to_thread(builds.binary, "kubelet", self.bed.kube_version)
        await self.runtime.start()
        config = self._configure()
        identity = self.bed.kubeconfig_for_user(f"system:node:{NAME}", ["system:nodes"])
        await self.bed.start(
            "kubelet",
            [
                program,
                f"--config={config}",
                f"--kubeconfig={identity}",
                f"--root-dir={self.folder / 'root'}",
                f"--cert-dir={self.folder / 'pki'}",
                f"--hostname-override={NAME}",
                f"--node-ip={NODE_ADDRESS}",
            ],
        )
        try:
            await eventually(self._usable, f"node {NAME} Ready", seconds=_READY_SECONDS)
        except TimeoutError as error:
            raise ProcessError(f"{error}\n{self.bed.log_tail('kubelet')}") from error

    async def kubelet(self, path: str) -> tuple[int, str]:
        """GET from the kubelet, by way of the API server: status and text."""
        answer = await self.bed.get_json(f"/api/v1/nodes/{NAME}/proxy{path}")
        return 200, json.dumps(answer)

    async def _usable(self) -> bool:
        try:
            return is_usable(await self.bed.get_json(f"/api/v1/nodes/{NAME}"))
        except ApiError:
            return False

    def _configure(self) -> Path:
        for name in ("root", "pod-logs", "plugins"):
            (self.folder / name).mkdir(parents=True)
        resolver = self.folder / "resolv.conf"
        resolver.write_text("")  # there is nobody to ask
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(self._configuration(resolver)))  # JSON is YAML
        return path

    def _configuration(self, resolver: Path) -> dict[str, object]:
        pair = self.bed.serving_pair(NODE_ADDRESS, NAME, name=NAME)
        never = {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"}
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "port": PORT,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.bed.ca_file)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pair.certificate),
            "tlsPrivateKeyFile": str(pair.key),
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{os.environ[CGROUP_VARIABLE]}",
            "containerRuntimeEndpoint": f"unix://{self.runtime.socket}",
            "resolvConf": str(resolver),
            "podLogsDir": str(self.folder / "pod-logs"),
            "volumePluginDir": str(self.folder / "plugins"),
            # The machine's disk and memory are not the test's business.
            "evictionHard": {**never, "nodefs.inodesFree": "0%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "failSwapOn": False,
            "maxPods": _MAX_PODS,
            "oomScoreAdj": 0,
            # It only compares: the files in /proc are look-alikes.
            "protectKernelDefaults": True,
            "serializeImagePulls": False,
        }
