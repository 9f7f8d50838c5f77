"""An instance's birth mark: whose it is, in labels that can be selected and annotations in full.

Labels hold at most 63 characters of a small alphabet, so a value that does not fit stands there as
its hash; what a list is believed for are the annotations. Names are hashes of the owner: the same
pod always gets the same name, which makes a second create harmless.
Pure. Fed by :mod:`.translate` on the way out and by :mod:`.observe` on the way in.
"""

from __future__ import annotations

import hashlib
import re

from vk_provider.pods.reading import mapping, strings
from vk_provider.pods.types import Json, PodUID, Stamp

PREFIX = "vk-provider.dev/home-"
CLUSTER = f"{PREFIX}cluster"
NODE = f"{PREFIX}node"
NAMESPACE = f"{PREFIX}namespace"
POD = f"{PREFIX}pod"
POD_UID = f"{PREFIX}pod-uid"
BACKEND = f"{PREFIX}backend"
"""Which backend of the node made it: two may share a namespace, and each sees its own alone."""
SPEC = f"{PREFIX}spec"
"""A fingerprint of the changeable part of the spec that the instance has."""
GENERATION = f"{PREFIX}generation"
"""The home pod's generation that the instance was made from, or brought to."""
LABELS = f"{PREFIX}labels"
"""The names of the home pod's own labels, so that one which goes there goes here as well."""
COPY = f"{PREFIX}copy-of"
"""On copied ConfigMaps and Secrets: what they are copies of."""

KEYS = (CLUSTER, NODE, NAMESPACE, POD, POD_UID)
MAX_NAME = 63
_DIGEST = 20
_FITS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def labels(stamp: Stamp) -> dict[str, str]:
    """What a list selects our instances and copies by."""
    values = {CLUSTER: stamp.cluster_id, NODE: stamp.node_name, POD_UID: stamp.pod_uid}
    return {key: label_value(value) for key, value in values.items()}


def full(stamp: Stamp) -> dict[str, str]:
    """The whole mark, in full."""
    values = (
        stamp.cluster_id,
        stamp.node_name,
        stamp.namespace,
        stamp.pod_name,
        str(stamp.pod_uid),
    )
    return dict(zip(KEYS, values, strict=True))


def read(instance: Json) -> Stamp | None:
    """The mark of a remote pod, None where it has none or only a part of one."""
    found = strings(mapping(instance, "metadata"), "annotations")
    values = [found.get(key, "") for key in KEYS]
    if not all(values):
        return None
    cluster, node, namespace, name, uid = values
    return Stamp(cluster, node, namespace, name, PodUID(uid))


def is_of_sibling(instance: Json, node_name: str, backend: str) -> bool:
    """Whether another backend of this very node made it. One without the label may be ours."""
    metadata = mapping(instance, "metadata")
    maker = strings(metadata, "labels").get(BACKEND)
    is_our_nodes = strings(metadata, "annotations").get(NODE) == node_name
    return is_our_nodes and maker is not None and maker != label_value(backend)


def label_value(text: str) -> str:
    """``text`` where it can be a label's value, else its hash."""
    return text if _FITS.fullmatch(text) else f"sha-{digest(text)}"


def selector(cluster_id: str) -> str:
    """The label selector of everything of one home cluster."""
    return f"{CLUSTER}={label_value(cluster_id)}"


def instance_name(stamp: Stamp) -> str:
    """The remote pod's name: a readable part, and a hash of home cluster and pod UID."""
    return named(stamp.pod_name, stamp.cluster_id, stamp.pod_uid)


def named(readable: str, *owner: str) -> str:
    """A name of at most 63 characters that is the same for the same owner."""
    words = re.sub(r"[^a-z0-9-]+", "-", readable.lower()).strip("-")
    words = words[: MAX_NAME - _DIGEST - 1].rstrip("-") or "vk"
    return f"{words}-{digest(*owner)}"


def digest(*parts: str) -> str:
    """A short, stable hash of all parts in their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGEST]
