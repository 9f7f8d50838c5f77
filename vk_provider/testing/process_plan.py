"""What an instance of the process provider is to run: values, and what `explain` shows of them.

Fed by :mod:`.process_translate`; feeds :mod:`.process_instance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vk_provider.pods.types import Json, Stamp, VolumeFile


class Role(StrEnum):
    """When a container runs."""

    INIT = "Init"
    """To its end, before the next one starts."""
    SIDECAR = "Sidecar"
    """From its turn among the init containers until the others have ended."""
    MAIN = "Main"


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """One container: a command, and the folder it is to find. ``folders`` maps a path in the
    container to a folder that all containers of the instance share (``emptyDir``)."""

    name: str
    image: str
    role: Role
    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[VolumeFile, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    working_dir: str = "/"
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    ports: tuple[int, ...] = ()

    def request(self) -> Json:
        """It in the create call's body."""
        files = {
            file.path: {
                "content": file.content.decode("utf-8", "backslashreplace"),
                "mode": f"{file.mode:04o}",
            }
            for file in self.files
        }
        return {
            "name": self.name,
            "image": self.image,
            "role": str(self.role),
            "argv": list(self.argv),
            "env": dict(self.env),
            "files": files,
            "folders": dict(self.folders),
            "workingDir": self.working_dir,
            "stdin": self.stdin,
            "stdinOnce": self.stdin_once,
            "tty": self.tty,
            "ports": list(self.ports),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """All containers, in the order in which they start."""

    containers: tuple[ContainerPlan, ...]
    grace_seconds: float = 30.0
    map_ports: bool = False

    def request(self, stamp: Stamp) -> dict[str, Any]:
        """The create call's body."""
        return {
            "stamp": {
                "cluster": stamp.cluster_id,
                "node": stamp.node_name,
                "namespace": stamp.namespace,
                "name": stamp.pod_name,
                "uid": stamp.pod_uid,
            },
            "graceSeconds": self.grace_seconds,
            "mapPorts": self.map_ports,
            "containers": [each.request() for each in self.containers],
        }
