"""Writes a gate on its Node: taint, state and sign of life, in one PATCH, and only what differs.

The list of taints is replaced as a whole, so it is read first and written back on the version that
was read; somebody who writes in between costs one more round, never a taint of theirs.
Fed by ``controllers.gate``; writes to ``nodes``.
"""

from __future__ import annotations

import math
from typing import Any

from vk_provider.bursting import gate_state, names
from vk_provider.bursting.gate_state import Gate, GateState
from vk_provider.bursting.picture import VirtualNode
from vk_provider.controllers.means import ControllerMeans
from vk_provider.faults import ConflictError
from vk_provider.kube import paths
from vk_provider.kube.client import PatchKind
from vk_provider.node.taints import GATE_KEYS, edit, gate, taints_patch
from vk_provider.pods.container_facts import timestamp

TRIES = 5
KEEP_SECONDS = 10.0
"""How often a state is written whose gate has not moved: its timers outlive a leader."""


class GateWriter:
    """What was written last, per node, and what is to be written now."""

    def __init__(self, means: ControllerMeans, heartbeat_seconds: float) -> None:
        self._means = means
        self._heartbeat_seconds = heartbeat_seconds
        self._written: dict[str, tuple[GateState, float]] = {}

    async def write(self, node: VirtualNode, state: GateState) -> None:
        """Bring the Node in line with the state. Raises KubeError."""
        if not self._is_due(node, state):
            return
        annotations = {names.GATE_STATE: gate_state.render(state)}
        if state.value is Gate.RETURN:
            annotations[names.GATE_HEARTBEAT] = timestamp(self._means.clock.now())
        await self._patch(node.name, state.taint, annotations)
        self._written[node.name] = (state, self._means.clock.steady())

    def _is_due(self, node: VirtualNode, state: GateState) -> bool:
        before, at = self._written.get(node.name, (None, -math.inf))
        passed = self._means.clock.steady() - at
        if before is None or before.taint != state.taint or before.value is not state.value:
            return True
        # The watch shows our own write a moment later; before that, it says nothing.
        if node.gate != state.taint and passed >= 1.0:
            return True
        if state.value is Gate.RETURN and passed >= self._heartbeat_seconds:
            return True
        return before != state and passed >= KEEP_SECONDS

    async def _patch(self, name: str, taint: str | None, annotations: dict[str, str]) -> None:
        client = self._means.client
        for _ in range(TRIES):
            node = await client.get(paths.node(name))
            wanted = [] if taint is None else [gate(taint)]
            edited = edit(node.get("spec", {}).get("taints"), wanted, GATE_KEYS)
            body: dict[str, Any] = {"metadata": {"uid": node["metadata"]["uid"]}}
            if edited is not None:
                body = taints_patch(node, edited)
            body["metadata"]["annotations"] = annotations
            try:
                await client.patch(paths.node(name), body, kind=PatchKind.MERGE)
            except ConflictError:
                continue
            return
        raise ConflictError(f"node {name} changes faster than its gate can be written", 409)
