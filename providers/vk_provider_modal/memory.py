"""What one session knows of its sandboxes, since a list shows the running ones only.

A sandbox that has left the list is asked for by its id, once: so its end is told truthfully, and a
list that forgets something loses nothing. Not a cache of pods: it holds no Kubernetes object, and
losing it is safe, since the first list of a session shows what has ended of late as well.
Pure. Fed by ``provider`` with each complete list; feeds ``observe``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vk_provider_modal.facts import Result, Sandbox
from vk_provider_modal.observe import is_gone, is_known
from vk_provider_modal.stamp import UID, Mark, read_mark

FORGET_SECONDS = 25 * 3600
"""Longer than any sandbox lives: older ones can't concern a pod that still waits for news."""


@dataclass(slots=True)
class Memory:
    """Keyed by Modal's id. ``ordered``: deletes that Modal accepted from us."""

    cluster_id: str
    running: dict[str, tuple[Sandbox, Mark]] = field(default_factory=dict)
    ended: dict[str, tuple[Sandbox, Mark]] = field(default_factory=dict)
    ordered: set[str] = field(default_factory=set)
    billed: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Tag of a pod -> its sandbox and when that was made: bills come later than ends."""
    has_looked_back: bool = False

    def created(self, sandbox: Sandbox) -> None:
        """A sandbox of ours was made: known even while lists lag behind."""
        mark = self._mark(sandbox)
        if mark is not None:
            self.running.setdefault(sandbox.id, (sandbox, mark))
            self.billed[sandbox.tags[UID]] = (sandbox.id, sandbox.created_at)

    def deleted(self, sandbox_id: str) -> None:
        """Modal took our order: an ended one is forgotten, a running one awaited no more."""
        if self.ended.pop(sandbox_id, None) is None:
            self.ordered.add(sandbox_id)

    def take(self, listed: Sequence[Sandbox], now: float) -> list[str]:
        """Learn from a complete list; gives the ids that it should have shown, to be asked for."""
        before, self.running = self.running, {}
        for sandbox in listed:
            mark = self._mark(sandbox)
            if mark is not None and not is_gone(sandbox.result):
                self._keep(sandbox, mark, before)
        missing = {
            key: known
            for key, known in before.items()
            if key not in self.running and key not in self.ended
        }
        # Until they are asked for they stay as they were, so that a failing call loses nothing.
        self.running |= missing
        self.ordered &= before.keys() | self.running.keys()
        self.ended = {
            key: known
            for key, known in self.ended.items()
            if now < known[0].created_at + FORGET_SECONDS
        }
        self.billed = {
            tag: known for tag, known in self.billed.items() if now < known[1] + FORGET_SECONDS
        }
        return list(missing)

    def settle(self, sandbox_id: str, result: Result | None) -> None:
        """What became of one that the list no longer shows; None: Modal doesn't know it."""
        if result is not None and not result.status:
            return
        sandbox, mark = self.running.pop(sandbox_id)
        was_ordered = sandbox_id in self.ordered
        self.ordered.discard(sandbox_id)
        if result is not None and not is_gone(result) and not was_ordered:
            self.ended[sandbox_id] = (replace(sandbox, result=result), mark)

    def tunnelled(self, sandbox: Sandbox) -> None:
        """Keep the addresses that a list did not show."""
        known = self.running.get(sandbox.id)
        if known is not None:
            self.running[sandbox.id] = (replace(known[0], tunnels=sandbox.tunnels), known[1])

    def without_tunnels(self) -> list[Sandbox]:
        """Those that run and have ports, but no addresses yet."""
        return [
            sandbox
            for sandbox, mark in self.running.values()
            if mark.ports and sandbox.started_at and not sandbox.tunnels
        ]

    def mark_of(self, sandbox_id: str) -> Mark | None:
        """Whose it is, as far as this session has seen it."""
        known = self.running.get(sandbox_id) or self.ended.get(sandbox_id)
        return None if known is None else known[1]

    def all(self) -> list[tuple[Sandbox, Mark]]:
        """Everything that a complete list of ours shows."""
        return [*self.running.values(), *self.ended.values()]

    def _keep(self, sandbox: Sandbox, mark: Mark, before: dict[str, tuple[Sandbox, Mark]]) -> None:
        self.billed[sandbox.tags[UID]] = (sandbox.id, sandbox.created_at)
        earlier = before.get(sandbox.id)
        if earlier is not None and not sandbox.tunnels:
            sandbox = replace(sandbox, tunnels=earlier[0].tunnels)
        if not sandbox.result.status or not is_known(sandbox.result.status):
            self.running[sandbox.id] = (sandbox, mark)
        elif sandbox.id not in self.ordered:
            self.ended[sandbox.id] = (sandbox, mark)

    def _mark(self, sandbox: Sandbox) -> Mark | None:
        mark = read_mark(sandbox.tags)
        return mark if mark is not None and mark.stamp.cluster_id == self.cluster_id else None
