"""What a backend tells about instances becomes Events of their pods, for ``kubectl describe``.

An event may come before the answer of the create call that tells whose instance it is about: those
wait a while. Fed by ``provider.watch_events``; feeds ``kube.events``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from vk_provider.loops.backend import Backend
from vk_provider.loops.following import Following
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.loops.shell import Shell
from vk_provider.pods.types import Json
from vk_provider.provider import InstanceEvent, SupportsEvents

Emit = Callable[[Json, str, str, str, str | None], None]

LONGEST_WAIT_SECONDS = 30.0
"""For the pod of an event; what nobody claims by then is about somebody else's instance."""
MOST_WAITING = 512
_LOOK_SECONDS = 0.5


class InstanceEvents:
    """The events of one backend."""

    def __init__(self, backend: Backend, workers: PodWorkers, emit: Emit, shell: Shell) -> None:
        self._backend = backend
        self._workers = workers
        self._emit = emit
        self._shell = shell
        self._waiting: deque[tuple[float, InstanceEvent]] = deque(maxlen=MOST_WAITING)

    async def run(self) -> None:
        """Pass them on, until cancelled."""
        provider = self._backend.provider
        if not isinstance(provider, SupportsEvents):
            return
        following = Following(f"backend {self._backend.name}: its events", self._shell)
        claiming = self._shell.spawn(self._claim(), f"waiting events of {self._backend.name}")
        try:
            await following.run(provider.watch_events, self._take)
        finally:
            claiming.cancel()

    def _take(self, event: InstanceEvent) -> None:
        if not self._told(event):
            self._waiting.append((self._shell.clock.steady(), event))

    async def _claim(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            oldest = self._shell.clock.steady() - LONGEST_WAIT_SECONDS
            for _ in range(len(self._waiting)):
                since, event = self._waiting.popleft()
                if not self._told(event) and since > oldest:
                    self._waiting.append((since, event))

    def _told(self, event: InstanceEvent) -> bool:
        """Whether the event has found its pod."""
        name = self._backend.name
        for record in self._workers.records.values():
            if record.ref == event.ref and record.backend == name and record.pod is not None:
                path = event.field_path or None
                self._emit(record.pod, event.type, event.reason, event.message, path)
                return True
        return False
