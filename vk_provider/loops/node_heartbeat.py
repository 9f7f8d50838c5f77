"""Keeps the Node truthful: status on change and every five minutes, the door, the taint, and what
the configuration gives it (a label that somebody removes keeps pods away, a taint lets them in).

Order matters when the door closes: allocatable first (exact, moves nobody), then the taint, and
only then may pods be marked Failed, because their replacements come at once.
What changes with every list (instances, spending) is sent at most once per ``check_seconds``.
Fed by ``loops.threshold`` (the door), ``loops.relist`` (health and spending) and
``loops.node_watch`` (what others wrote); writes to
``nodes/status`` and ``nodes``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from vk_provider.faults import ConflictError, InvalidObjectError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.cache import is_newer
from vk_provider.kube.client import KubeClient
from vk_provider.loops.registration import complete, register, same_node, set_taints
from vk_provider.loops.shell import Shell
from vk_provider.loops.threshold import Threshold
from vk_provider.node import names
from vk_provider.node.door import DoorView
from vk_provider.node.object import NodeSpec, NodeView, annotations_patch, node_status
from vk_provider.node.status_patch import node_status_patch
from vk_provider.node.taints import DOOR_KEYS, unavailable, unavailable_value
from vk_provider.pods.types import Json

logger = logging.getLogger(__name__)

CHECK_SECONDS = 10.0
REPORT_SECONDS = 300.0
STUCK_SECONDS = 300.0
RETRY_SECONDS = 2.0


class NodeHeartbeat:
    """One virtual node's report to the API server."""

    def __init__(
        self,
        client: KubeClient,
        spec: NodeSpec,
        view: Callable[[DoorView], NodeView],
        threshold: Threshold,
        shell: Shell,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self.node: Json = {}
        """The Node as the API server last answered it."""
        self._client = client
        self._spec = spec
        self._view = view
        self._threshold = threshold
        self._board = threshold.board
        self._shell = shell
        self._check_seconds = check_seconds
        self._reported: float | None = None
        self._again = False
        self._fault = ""
        self._tainted: str | None = ""

    async def register(self) -> None:
        """Make or adopt the Node and write its first complete status.

        Raises ConfigError for a Node that is not ours, KubeError."""
        self.node = await register(self._client, self._spec)
        self._threshold.node_uid = self.node["metadata"]["uid"]
        annotations = self.node["metadata"].get("annotations") or {}
        self._threshold.spend_memory.restore(annotations.get(names.SPENT, ""))
        self._reported, self._tainted = None, ""
        await self.report()

    def uid(self) -> str | None:
        """The Node's UID; None before it was registered."""
        uid: str | None = self.node.get("metadata", {}).get("uid")
        return uid

    def report_all(self) -> None:
        """Somebody may have written over our conditions (a lease was late): send all again."""
        self._again = True
        self._board.changed.set()

    def see(self, found: Json | None) -> None:
        """The Node as somebody else left it; None: deleted. It is put right at the next check, not
        at once: two who disagree about it must not chase each other."""
        if found is None or found["metadata"]["uid"] != self.uid():
            self._again = True
        elif is_newer(found, self.node):
            self.node, self._tainted = found, unavailable_value(found)

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            changed = self._board.changed
            self._shell.beat("heartbeat", STUCK_SECONDS)
            try:
                async with asyncio.timeout(self._check_seconds):
                    await changed.wait()
            except TimeoutError:
                pass
            changed.clear()
            if self._shell.may_act():
                await self._try_report()

    async def report(self) -> None:
        """Send what differs from the API's Node; everything when five minutes have passed."""
        self.node = _newest(self.node, await complete(self._client, self._spec, self.node))
        door = self._threshold.view()
        view, now = self._view(door), self._shell.clock.now()
        if self._again:
            self.node = await same_node(self._client, self.node)
        wanted = node_status(self._spec, view, now, self.node.get("status"))
        due = self._again or self._is_due()
        patch = node_status_patch(self.node, wanted, heartbeat=due)
        if patch is not None:
            answer = await self._client.patch(paths.node_status(self._spec.name), patch)
            self.node = _newest(self.node, answer)
        if due:
            self._reported, self._again = self._shell.clock.steady(), False
        await self._report_door(door, view)

    async def _report_door(self, door: DoorView, view: NodeView) -> None:
        closed = str(door.closed) if door.closed is not None else None
        if closed != self._tainted:
            taints = [unavailable(closed)] if closed is not None else []
            answer = await set_taints(self._client, self.node, taints, DOOR_KEYS)
            self.node = _newest(self.node, answer)
            self._tainted = closed
            logger.info("the door is %s", f"closed: {closed}: {door.message}" if closed else "open")
        self._board.mark_published(door)
        patch = annotations_patch(self.node, view)
        if patch is not None:
            answer = await self._client.patch(paths.node(self._spec.name), patch)
            self.node = _newest(self.node, answer)

    def _is_due(self) -> bool:
        if self._reported is None:
            return True
        return self._shell.clock.steady() - self._reported >= REPORT_SECONDS

    async def _try_report(self) -> None:
        try:
            await self.report()
        except (KubeNotFoundError, ConflictError, InvalidObjectError):
            # Deleted, or made anew by somebody: the PATCH carries the UID that we know.
            await self._try_register()
        except KubeError as fault:
            await self._failed(f"its status was not written: {fault}")
        else:
            self._fault = ""

    async def _try_register(self) -> None:
        logger.warning("node %s was deleted or replaced: registering it anew", self._spec.name)
        try:
            await self.register()
        except KubeError as fault:
            await self._failed(f"it was not registered: {fault}")

    async def _failed(self, sentence: str) -> None:
        """Said once, tried again soon."""
        if sentence != self._fault:
            self._fault = sentence
            logger.warning("node %s: %s", self._spec.name, sentence)
        await asyncio.sleep(RETRY_SECONDS)
        self._board.changed.set()


def _newest(known: Json, answer: Json) -> Json:
    """The watch may have shown a later version while the answer was on its way."""
    is_same = known.get("metadata", {}).get("uid") == answer["metadata"]["uid"]
    return answer if not is_same or is_newer(answer, known) else known
