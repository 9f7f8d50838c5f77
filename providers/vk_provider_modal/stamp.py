"""A sandbox's birth mark: its tags tell the owner, its name holds the pod's UID.

Pure. Modal wants tag values of at most 63 letters, digits, dots, dashes and underscores, so other
characters are escaped and long values go on in further tags; nothing is lost on the way.
Fed by ``translate`` on the way out and by ``memory`` on the way in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vk_provider.pods.types import Offer, PodUID, Stamp

CLUSTER, NODE, NAMESPACE = "vk.cluster", "vk.node", "vk.ns"
POD, UID, CONTAINER = "vk.pod", "vk.uid", "vk.container"
GPU, PRICE, PORTS, REGION = "vk.gpu", "vk.usd", "vk.ports", "vk.region"
_OWNER = (CLUSTER, NODE, NAMESPACE, POD, UID, CONTAINER)

LONGEST_VALUE = 63
LONGEST_NAME = 64
_PLAIN = re.compile(rb"[A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a sandbox's tags say: its owner, its one container, and what it was rented as."""

    stamp: Stamp
    container: str
    gpu_type: str | None = None
    region: str | None = None
    usd_per_hour: float | None = None
    ports: tuple[int, ...] = ()


def stamp_tags(
    stamp: Stamp, container: str, offer: Offer, ports: tuple[int, ...]
) -> dict[str, str]:
    """The tags that every sandbox carries from its create call on."""
    price = offer.usd_per_hour
    values = {
        CLUSTER: stamp.cluster_id,
        NODE: stamp.node_name,
        NAMESPACE: stamp.namespace,
        POD: stamp.pod_name,
        UID: stamp.pod_uid,
        CONTAINER: container,
        GPU: offer.gpu_type or "",
        REGION: offer.data_center or "",
        PRICE: "" if price is None else f"{price:.6f}",
        PORTS: ".".join(map(str, ports)),
    }
    return {key: piece for name, value in values.items() for key, piece in _pieces(name, value)}


def cluster_tags(cluster_id: str) -> dict[str, str]:
    """The tags that all sandboxes of a cluster have in common, for the list."""
    return dict(_pieces(CLUSTER, cluster_id))


def read_mark(tags: Mapping[str, str]) -> Mark | None:
    """The mark of a sandbox of anybody's provider, None where there is none."""
    cluster, node, namespace, pod, uid, container = (_value(tags, name) for name in _OWNER)
    if not all((cluster, node, namespace, pod, uid, container)):
        return None
    return Mark(
        Stamp(cluster, node, namespace, pod, PodUID(uid)),
        container,
        gpu_type=_value(tags, GPU) or None,
        region=_value(tags, REGION) or None,
        usd_per_hour=_number(_value(tags, PRICE)),
        ports=tuple(int(word) for word in _value(tags, PORTS).split(".") if word.isdecimal()),
    )


def sandbox_name(uid: PodUID) -> str:
    """The same for every instance of a pod: Modal lets no two of a name run at once."""
    name = f"vk-{uid}"
    if len(name) <= LONGEST_NAME and re.fullmatch(r"[A-Za-z0-9._-]+", name, re.ASCII):
        return name
    return f"vk-{_digest(uid)}"


def app_name(cluster_id: str) -> str:
    """The App that holds a cluster's sandboxes, where the configuration names none."""
    name = f"vk-provider-{cluster_id}"
    if len(name) <= LONGEST_NAME and re.fullmatch(r"[A-Za-z0-9._-]+", name, re.ASCII):
        return name
    return f"vk-provider-{_digest(cluster_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _pieces(name: str, value: str) -> Iterator[tuple[str, str]]:
    escaped = _escaped(value)
    for number, at in enumerate(range(0, len(escaped), LONGEST_VALUE)):
        yield f"{name}.{number}" if number else name, escaped[at : at + LONGEST_VALUE]


def _escaped(value: str) -> str:
    parts = (bytes([byte]) for byte in value.encode())
    return "".join(p.decode() if _PLAIN.match(p) else f"_{p[0]:02X}" for p in parts)


def _value(tags: Mapping[str, str], name: str) -> str:
    found, number = tags.get(name, ""), 1
    while (piece := tags.get(f"{name}.{number}")) is not None:
        found, number = found + piece, number + 1
    try:
        return _unescaped(found)
    except ValueError:
        return ""


def _unescaped(text: str) -> str:
    head, *escapes = text.split("_")
    tail = (bytes([int(each[:2], 16)]) + each[2:].encode() for each in escapes)
    return (head.encode() + b"".join(tail)).decode()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
