"""The dead man's switch: a ``return`` that nobody watches any more becomes ``hold``.

While pods come home the gate's controller writes a sign of life on the Node. When it has not
changed for too long, as seen from here (nobody trusts another machine's clock), the node itself
takes the taint back: the descheduler would go on for ever. Fed by ``loops.node_heartbeat`` (the
Node as it is); writes to ``nodes``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from vk_provider.bursting import gate_state, names
from vk_provider.bursting.gate import dead_man
from vk_provider.bursting.gate_state import Gate
from vk_provider.faults import KubeError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient, PatchKind
from vk_provider.loops.shell import Shell
from vk_provider.node.taints import GATE_KEYS, edit, gate, gate_value, taints_patch
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)


class DeadMan:
    """One node's eye on the controller of its gate."""

    def __init__(
        self,
        client: KubeClient,
        node: Callable[[], Json],
        dead_after_seconds: float,
        shell: Shell,
    ) -> None:
        self._client = client
        self._node = node
        self._dead_after = dead_after_seconds
        self._shell = shell
        self._seen: tuple[str, float] | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._dead_after / 6)
            if self._shell.may_act() and self._is_silent():
                await self._hold()

    def _is_silent(self) -> bool:
        """Whether pods are on their way home and nothing has been heard for too long."""
        node = self._node()
        if gate_value(node) != Gate.RETURN:
            self._seen = None
            return False
        annotations = (node.get("metadata") or {}).get("annotations") or {}
        heard, now = str(annotations.get(names.GATE_HEARTBEAT)), self._shell.clock.steady()
        if self._seen is None or self._seen[0] != heard:
            self._seen = (heard, now)
        return now - self._seen[1] >= self._dead_after

    async def _hold(self) -> None:
        """Taint and state in one PATCH; a conflict means that somebody is alive after all."""
        node = self._node()
        metadata = node["metadata"]
        written = gate_state.read((metadata.get("annotations") or {}).get(names.GATE_STATE))
        state = dead_man(written, self._shell.clock.now())
        edited = edit(node.get("spec", {}).get("taints"), [gate(Gate.HOLD)], GATE_KEYS)
        body = taints_patch(node, edited or [])
        body["metadata"]["annotations"] = {names.GATE_STATE: gate_state.render(state)}
        try:
            await self._client.patch(paths.node(metadata["name"]), body, kind=PatchKind.MERGE)
        except KubeError as fault:
            logger.warning("node %s: its gate was not held: %s", metadata["name"], fault)
        else:
            logger.warning(
                "node %s: the gate's controller is silent for %g s: hold",
                metadata["name"],
                self._dead_after,
            )
