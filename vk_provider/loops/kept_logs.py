"""The last words of ended containers: kept in bounded memory for ``kubectl logs``.

Before an ended instance is deleted its tail is read, best effort; it is served while the pod
object exists. Fed by ``loops.pod_workers``; read by the server's lookup.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence

from vk_provider.pods.types import LogLine, PodUID

BYTES_PER_CONTAINER = 64 * 1024
BYTES_IN_ALL = 16 * 1024 * 1024
LAST_WORDS_LINES = 80
LAST_WORDS_BYTES = 2048


class KeptLogs:
    """By pod and container; the pods longest ago are dropped when there is too much."""

    def __init__(self) -> None:
        self._pods: OrderedDict[PodUID, dict[str, Sequence[LogLine]]] = OrderedDict()
        self._bytes = 0

    def keep(self, uid: PodUID, container: str, lines: Sequence[LogLine]) -> None:
        """Remember a container's tail, replacing what was kept of it before."""
        kept = self._pods.setdefault(uid, {})
        self._bytes += _size(lines) - _size(kept.get(container, ()))
        kept[container] = lines
        self._pods.move_to_end(uid)
        while self._bytes > BYTES_IN_ALL and len(self._pods) > 1:
            self.drop(next(iter(self._pods)))

    def of(self, uid: PodUID) -> Mapping[str, Sequence[LogLine]]:
        """What is kept of a pod, by container."""
        return self._pods.get(uid, {})

    def drop(self, uid: PodUID) -> None:
        """Forget a pod."""
        for lines in self._pods.pop(uid, {}).values():
            self._bytes -= _size(lines)


async def read_tail(lines: AsyncIterator[LogLine]) -> tuple[LogLine, ...]:
    """The last BYTES_PER_CONTAINER bytes of a log, in whole lines."""
    kept: list[LogLine] = []
    size = 0
    async for line in lines:
        kept.append(line)
        size += len(line.text) + 1
        while size > BYTES_PER_CONTAINER and kept:
            size -= len(kept.pop(0).text) + 1
    return tuple(kept)


def last_words(lines: Sequence[LogLine]) -> str:
    """The end of a log as a termination message: at most 80 lines and 2 KiB, as a kubelet's."""
    text = b"\n".join(line.text for line in lines[-LAST_WORDS_LINES:])
    return text[-LAST_WORDS_BYTES:].decode("utf-8", "replace")


def _size(lines: Sequence[LogLine]) -> int:
    return sum(len(line.text) + 64 for line in lines)
