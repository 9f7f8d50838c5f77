"""The door as it is shown: to the heartbeat that publishes it, to waiting pods, to the metrics.

Fed by ``loops.threshold``; read by ``loops.node_heartbeat`` (what to publish) and
``loops.pod_world`` (whether that has happened).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from vk_provider.loops.shell import Shell
from vk_provider.node.door import Closed, DoorView

STATES = ("open", "reopening", *(str(reason) for reason in Closed))


class DoorBoard:
    """The latest view, and whether the API server has acknowledged it."""

    def __init__(self, view: DoorView, shell: Shell) -> None:
        self.changed = asyncio.Event()
        """Set when the heartbeat has something to publish."""
        self._shell = shell
        self._shown = view
        self._acknowledged = view
        self._callbacks: list[Callable[[], None]] = []
        self._show_state()

    @property
    def published(self) -> bool:
        """Whether the API server has the latest door: its taint and its head-room."""
        return _visible(self._acknowledged) == _visible(self._shown)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Hear when waiting pods should look again."""
        self._callbacks.append(callback)

    def show(self, view: DoorView) -> bool:
        """Take the door as it is now; False if it is as it was."""
        before, self._shown = self._shown, view
        if view == before:
            return False
        self._show_state()
        self.changed.set()
        if _room(view) > _room(before):
            self._tell()  # a door that closes further gives nobody a reason to look
        return True

    def mark_published(self, view: DoorView) -> None:
        """The API server has acknowledged this view."""
        before, self._acknowledged = self.published, view
        if self.published and not before:
            self._tell()

    def _tell(self) -> None:
        for callback in self._callbacks:
            callback()

    def _show_state(self) -> None:
        view = self._shown
        now = "open" if view.headroom is None else "reopening"
        now = now if view.closed is None else str(view.closed)
        for state in STATES:
            self._shell.metrics.door_state.labels(self._shell.node, state).set(state == now)


def _visible(view: DoorView) -> tuple[Closed | None, int | None]:
    return view.closed, view.headroom


def _room(view: DoorView) -> float:
    if view.closed is not None:
        return -1.0
    return math.inf if view.headroom is None else view.headroom
