"""A bounded memory of answers that are true for a while.

Fed by ``auth``; the clock is an argument, so that tests need no waiting.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class Expiring(Generic[Key, Answer]):
    """At most ``size`` answers, each forgotten after its own time; the least used go first."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._size = size
        self._clock = clock
        self._answers: OrderedDict[Key, tuple[float, Answer]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key) -> tuple[Answer] | None:
        """The answer in a tuple (None may be an answer), or None if there is none any more."""
        found = self._answers.get(key)
        if found is None:
            return None
        if self._clock() >= found[0]:
            del self._answers[key]
            return None
        self._answers.move_to_end(key)
        return (found[1],)

    def put(self, key: Key, answer: Answer, seconds: float) -> None:
        """Remember an answer for so many seconds."""
        self._answers[key] = (self._clock() + seconds, answer)
        self._answers.move_to_end(key)
        while len(self._answers) > self._size:
            self._answers.popitem(last=False)
