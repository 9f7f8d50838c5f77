"""PURE. How much may be sent to a SPDY peer, and how much of what it sent is not consumed yet.

SPDY/3.1 has windows of 64 KiB per stream and for the connection. The peer of every Kubernetes
component, moby/spdystream, has none: it never sends SETTINGS or WINDOW_UPDATE and ignores ours, so
waiting for a window would hang after 64 KiB. Hence windows are counted from the start, but hold
only once the peer has shown by one of the two frames that it keeps them.
Towards us the back-pressure is the transport's: while ``paused`` the shell stops reading.
Fed by :mod:`.spdy_receive` (what arrives) and :mod:`.spdy` (what is sent and consumed).
"""

from __future__ import annotations

from dataclasses import dataclass

CONNECTION = 0
"""The stream id of the connection's own window (SPDY/3.1)."""
INITIAL_WINDOW = 64 * 1024
MAX_WINDOW = 0x7FFF_FFFF


class SendWindows:
    """The peer's windows, as it tells them."""

    def __init__(self) -> None:
        self.kept = False
        """Whether the peer keeps windows at all."""
        self._initial = INITIAL_WINDOW
        self._windows: dict[int, int] = {CONNECTION: INITIAL_WINDOW}

    def open(self, stream_id: int) -> None:
        """A stream begins with the peer's initial window."""
        self._windows[stream_id] = self._initial

    def close(self, stream_id: int) -> None:
        """Forget a stream."""
        self._windows.pop(stream_id, None)

    def room(self, stream_id: int) -> int:
        """How many bytes may be sent on a stream now."""
        if not self.kept:
            return MAX_WINDOW
        return max(0, min(self._windows[CONNECTION], self._windows.get(stream_id, 0)))

    def sent(self, stream_id: int, size: int) -> None:
        """Count bytes that went out, also while no window is kept."""
        self._windows[CONNECTION] -= size
        self._windows[stream_id] -= size

    def widen(self, stream_id: int, delta: int) -> bool:
        """A WINDOW_UPDATE; False if it is 0 or makes the window too large (3.1, 2.6.8)."""
        self.kept = True
        if stream_id not in self._windows:
            return True
        after = self._windows[stream_id] + delta
        if delta == 0 or after > MAX_WINDOW:
            return False
        self._windows[stream_id] = after
        return True

    def set_initial(self, size: int) -> bool:
        """SETTINGS_INITIAL_WINDOW_SIZE: changes the windows of all streams, not the connection's;
        False if one of them gets too large."""
        self.kept = True
        change, self._initial = size - self._initial, size
        for stream_id in self._windows:
            if stream_id != CONNECTION:
                self._windows[stream_id] += change
        return size <= MAX_WINDOW and max(self._windows.values()) <= MAX_WINDOW


@dataclass(frozen=True, slots=True)
class UnreadLimits:
    """How much the peer may have sent that nobody has consumed yet.

    Reading pauses at the lower marks; the upper ones are only reached by a shell that reads on
    regardless. They must leave room for one read of the transport (asyncio: 256 KiB).
    """

    pause_stream_bytes: int = 512 * 1024
    max_stream_bytes: int = 1024 * 1024
    pause_total_bytes: int = 4 * 1024 * 1024
    max_total_bytes: int = 8 * 1024 * 1024


class Unread:
    """What was handed to the shell as an event and not acknowledged, per stream and in all."""

    UPDATE_BYTES = 16 * 1024

    def __init__(self, limits: UnreadLimits) -> None:
        self._limits = limits
        self._streams: dict[int, int] = {}
        self._full: set[int] = set()
        self._owed: dict[int, int] = {CONNECTION: 0}
        self._total = 0

    @property
    def paused(self) -> bool:
        """Whether the transport should not be read for now."""
        return bool(self._full) or self._total >= self._limits.pause_total_bytes

    def open(self, stream_id: int) -> None:
        """The peer may send on this stream."""
        self._owed[stream_id] = 0

    def received(self, stream_id: int, size: int) -> bool:
        """Count bytes that arrived; False if the stream has more than it may."""
        unread = self._streams.get(stream_id, 0) + size
        self._put(stream_id, unread)
        return unread <= self._limits.max_stream_bytes

    @property
    def overflown(self) -> bool:
        """Whether all streams together have more than they may."""
        return self._total > self._limits.max_total_bytes

    def consumed(self, stream_id: int, size: int) -> None:
        """Bytes were handed on; more than there are count as all."""
        unread = self._streams.get(stream_id, 0)
        size = min(size, unread)
        self._put(stream_id, unread - size)
        self._credit(size, CONNECTION, stream_id)

    def dropped(self, size: int) -> None:
        """Bytes arrived that no stream takes: they only give back the connection's window."""
        self._credit(size, CONNECTION)

    def forget(self, stream_id: int) -> None:
        """A stream was reset: nobody will consume the rest."""
        self._credit(self._streams.get(stream_id, 0), CONNECTION)
        self._put(stream_id, 0)
        self.settle(stream_id)

    def settle(self, stream_id: int) -> None:
        """The peer ended a stream: its window matters no more, its unread bytes still do."""
        self._owed.pop(stream_id, None)

    def take_updates(self) -> list[tuple[int, int]]:
        """The ``(stream id, delta)`` of the WINDOW_UPDATEs that are worth sending."""
        due = [(key, size) for key, size in self._owed.items() if size >= self.UPDATE_BYTES]
        self._owed.update((key, 0) for key, _ in due)
        return [(key, min(size, MAX_WINDOW)) for key, size in due]

    def _credit(self, size: int, *windows: int) -> None:
        for window in windows:
            if window in self._owed:
                self._owed[window] += size

    def _put(self, stream_id: int, unread: int) -> None:
        self._total += unread - self._streams.get(stream_id, 0)
        if unread:
            self._streams[stream_id] = unread
        else:
            self._streams.pop(stream_id, None)
        full = unread >= self._limits.pause_stream_bytes
        (self._full.add if full else self._full.discard)(stream_id)
