"""The last line about the spend, at a clean stop: the next one to lead goes on with it.

Fed by ``app.term`` at the end of a term that is still ours; writes an annotation of the Node.
"""

from __future__ import annotations

import logging

from vk_provider.faults import KubeError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.loops.spend_memory import SpendMemory
from vk_provider.node import names

logger = logging.getLogger(__name__)


async def save_spend(client: KubeClient, node: str, memory: SpendMemory) -> None:
    """Write it now; best effort, since the last one is minutes old at most."""
    line = memory.line(at_once=True)
    if line is None:
        return
    try:
        await client.patch(paths.node(node), {"metadata": {"annotations": {names.SPENT: line}}})
    except KubeError as fault:
        logger.warning("node %s: its spend was not saved: %s", node, fault)
