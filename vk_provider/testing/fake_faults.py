"""The faults that a test has told the fake service to have.

From another process a file tells: ``faultsFile: PATH`` in the configuration, and in that file JSON
such as ``{"create": "OutOfCapacity", "list": "ProviderUnavailable"}``; no file, no fault.
Fed by tests through :class:`.fake_backend.FakeBackend`; asked by it on every call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import orjson

from vk_provider.faults import (
    DeniedError,
    GarbledAnswerError,
    OutcomeUnknownError,
    OutOfCapacityError,
    ProviderError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)

_BY_REASON: dict[str, type[ProviderError]] = {
    fault.reason: fault
    for fault in (
        DeniedError,
        GarbledAnswerError,
        OutcomeUnknownError,
        OutOfCapacityError,
        RejectedError,
        UnavailableError,
    )
} | {"Throttled": ThrottledError}


@dataclass(frozen=True, slots=True)
class Scripted:
    """A fault of one call; ``created``: the call did its work before it failed."""

    fault: ProviderError
    created: bool = False


class Script:
    """Which of the next calls fail, and how. Operations are the names of the seam's methods,
    without ``_instance(s)``: ``create``, ``delete``, ``list``, ``capacity``, ``offers``, ``logs``.
    """

    def __init__(self, file: str | None = None) -> None:
        self._file = Path(file) if file else None
        self._next: dict[str, deque[Scripted]] = {}
        self._always: dict[str, ProviderError] = {}
        self._hold: asyncio.Event | None = None
        self._held = asyncio.Event()

    def fail_next(
        self, operation: str, fault: ProviderError, *, created: bool = False, times: int = 1
    ) -> None:
        """Let the next ``times`` calls fail."""
        scripted = Scripted(fault, created)
        self._next.setdefault(operation, deque()).extend([scripted] * times)

    def fail_always(self, operation: str, fault: ProviderError) -> None:
        """Let every call fail until :meth:`heal`."""
        self._always[operation] = fault

    def heal(self) -> None:
        """Forget every fault that has not happened yet, and let a held call go."""
        self._next.clear()
        self._always.clear()
        self.release()

    def take(self, operation: str) -> Scripted | None:
        """The fault of this call, if it is to have one."""
        if waiting := self._next.get(operation):
            return waiting.popleft()
        always = self._always.get(operation) or self._from_file(operation)
        return None if always is None else Scripted(always)

    def _from_file(self, operation: str) -> ProviderError | None:
        try:
            text = self._file.read_bytes() if self._file else b""
        except FileNotFoundError:
            return None
        reason = orjson.loads(text).get(operation) if text else None
        return None if reason is None else _BY_REASON[reason]("the faults file asks for it")

    def check(self, operation: str) -> None:
        """Raise the fault of this call, if it is to have one."""
        if scripted := self.take(operation):
            raise scripted.fault

    def hold_next_create(self) -> None:
        """Carry the next create call out, but keep its answer back until :meth:`release`."""
        self._hold, self._held = asyncio.Event(), asyncio.Event()

    def release(self) -> None:
        """Let the answer that was kept back go."""
        if self._hold is not None:
            self._hold.set()

    async def create_held(self) -> None:
        """Return once the create call has been carried out and its answer is kept back."""
        await self._held.wait()

    async def keep_back(self) -> None:
        """Where a create call stands until it is let go."""
        hold, self._hold = self._hold, None
        if hold is not None and not hold.is_set():
            self._held.set()
            await hold.wait()
