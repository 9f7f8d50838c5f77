"""Whose step comes next: each pod with news once per turn of the loop, however much news.

Fed by ``loops.pod_workers``; calls back into it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vk_provider.pods.types import PodUID


class Turns:
    """Steps that are due, and pods that wait for the door."""

    def __init__(self, step: Callable[[PodUID], None]) -> None:
        self._step = step
        self._due: set[PodUID] = set()
        self._waiting: set[PodUID] = set()
        self._looking = False

    def schedule(self, uid: PodUID) -> None:
        """This pod has news."""
        if uid not in self._due:
            self._due.add(uid)
            asyncio.get_running_loop().call_soon(self._take, uid)

    def waits(self, uid: PodUID, is_waiting: bool) -> None:
        """Whether the pod's next step may depend on the door."""
        if is_waiting:
            self._waiting.add(uid)
        else:
            self._waiting.discard(uid)

    def look_again(self) -> None:
        """The door lets in more, or its state was published: whoever waits for that looks, once
        per turn of the loop however often this is called."""
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_soon(self._look)

    def _take(self, uid: PodUID) -> None:
        self._due.discard(uid)
        self._step(uid)

    def _look(self) -> None:
        self._looking = False
        for uid in tuple(self._waiting):
            self.schedule(uid)
