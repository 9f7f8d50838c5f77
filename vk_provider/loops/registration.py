"""The Node object in the API: created, or adopted if it carries our mark; never anybody else's.

Fed by ``app`` at start and by ``loops.node_heartbeat`` when the Node was deleted or edited behind
our back; the Node it returns is what the heartbeat writes against.
"""

from __future__ import annotations

import logging

from vk_provider.faults import ConfigError, ConflictError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient, PatchKind
from vk_provider.node.object import (
    NodeSpec,
    adoption_patch,
    is_ours,
    leftovers,
    render_node,
)
from vk_provider.node.taints import edit, taints_patch
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)

TRIES = 5


async def register(client: KubeClient, spec: NodeSpec) -> Json:
    """The Node of this name, ours.

    Raises:
        ConfigError: a Node of this name exists and does not carry our mark.
        KubeError: the API server refuses or is away.
    """
    for _ in range(TRIES):
        try:
            return await _adopt(client, spec, await client.get(paths.node(spec.name)))
        except KubeNotFoundError:
            pass
        try:
            node = await client.create(paths.nodes(), render_node(spec))
        except ConflictError:
            continue  # made by somebody in between: look at it
        logger.info("registered node %s", spec.name)
        return node
    raise ConflictError(f"node {spec.name} appears and disappears; is somebody deleting it?", 409)


async def set_taints(
    client: KubeClient, ours: Json, wanted: list[dict[str, str]], keys: frozenset[str]
) -> Json:
    """Read, edit only the taints with these keys, write; again if somebody wrote in between.

    Raises:
        ConflictError: somebody writes faster than we, or the name is another Node's by now.
        KubeError: the API server refuses or is away.
    """
    name = ours["metadata"]["name"]
    for _ in range(TRIES):
        node = await same_node(client, ours)
        edited = edit(node.get("spec", {}).get("taints"), wanted, keys)
        if edited is None:
            return node
        try:
            return await client.patch(
                paths.node(name), taints_patch(node, edited), kind=PatchKind.MERGE
            )
        except ConflictError:
            continue
    raise ConflictError(f"the taints of node {name} change faster than we can edit them", 409)


async def same_node(client: KubeClient, ours: Json) -> Json:
    """This very Node as it is now; ConflictError if another one has its name."""
    name, uid = ours["metadata"]["name"], ours["metadata"]["uid"]
    node = await client.get(paths.node(name))
    if node["metadata"]["uid"] != uid:
        raise ConflictError(f"node {name} is another one now", 409)
    return node


async def _adopt(client: KubeClient, spec: NodeSpec, node: Json) -> Json:
    if not is_ours(node):
        raise ConfigError(
            [
                f"node {spec.name} exists and was not made by vk-provider: choose another "
                "metadata.name, or delete that Node if it is a leftover"
            ]
        )
    gone, _ = leftovers(node, spec)
    return await complete(client, spec, node, gone)


async def complete(
    client: KubeClient, spec: NodeSpec, node: Json, gone: frozenset[str] = frozenset()
) -> Json:
    """Our Node with all that is ours: labels, annotations and permanent taints, and none of the
    taints that are ``gone``. Writes nothing where nothing is missing.

    Raises:
        KubeError: the API server refuses or is away; ConflictError as :func:`set_taints`.
    """
    patch = adoption_patch(node, spec)
    if patch is not None:
        node = await client.patch(paths.node(spec.name), patch)
    permanent = [dict(taint) for taint in spec.taints]
    keys = gone | {taint["key"] for taint in permanent}
    if edit(node.get("spec", {}).get("taints"), permanent, keys) is None:
        return node
    return await set_taints(client, node, permanent, keys)
