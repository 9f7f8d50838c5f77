"""An instance's birth mark: who it belongs to, written into its env and hashed into its name.

Pure. RunPod has no tags, but it echoes the env of every pod in its list, so the list alone finds
the owner. The name can't be trusted alone (anybody may reuse one); it only warns when the env of
an instance of ours is unreadable.
Fed by ``translate`` on the way out and by ``observe`` on the way in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.pods.types import PodUID, Stamp

PREFIX = "VK_PROVIDER_"
CLUSTER_ID = f"{PREFIX}CLUSTER_ID"
NODE_NAME = f"{PREFIX}NODE_NAME"
NAMESPACE = f"{PREFIX}POD_NAMESPACE"
POD_NAME = f"{PREFIX}POD_NAME"
POD_UID = f"{PREFIX}POD_UID"
CONTAINER = f"{PREFIX}CONTAINER_NAME"
KEYS = (CLUSTER_ID, NODE_NAME, NAMESPACE, POD_NAME, POD_UID, CONTAINER)

MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Mark:
    """What an instance's env says: its owner, and the name of its one container."""

    stamp: Stamp
    container: str


def stamp_env(stamp: Stamp, container: str) -> dict[str, str]:
    """The variables that every instance carries from its create call on."""
    return {
        CLUSTER_ID: stamp.cluster_id,
        NODE_NAME: stamp.node_name,
        NAMESPACE: stamp.namespace,
        POD_NAME: stamp.pod_name,
        POD_UID: stamp.pod_uid,
        CONTAINER: container,
    }


def read_mark(pod: Mapping[str, Any]) -> Mark | None:
    """The mark of an instance of anybody's provider, None where its env has none or is unread."""
    env = pod.get("env")
    if not isinstance(env, Mapping):
        return None
    values = [env.get(key) for key in KEYS]
    if not all(isinstance(value, str) and value for value in values):
        return None
    cluster, node, namespace, name, uid, container = (str(value) for value in values)
    return Mark(Stamp(cluster, node, namespace, name, PodUID(uid)), container)


def instance_name(stamp: Stamp) -> str:
    """A name of at most 60 characters: cluster, a readable part, and a hash of the whole stamp."""
    owner = "\0".join((stamp.cluster_id, stamp.node_name, stamp.pod_uid))
    readable = re.sub(r"[^a-z0-9-]", "-", stamp.pod_name.lower())[:26].strip("-")
    return f"{name_prefix(stamp.cluster_id)}{readable}-{_digest(owner, 20)}"


def name_prefix(cluster_id: str) -> str:
    """How every instance name of a cluster begins."""
    return f"vk-{_digest(cluster_id, 8)}-"


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
