"""Free TCP ports on loopback that stay ours for the life of a bed."""

from __future__ import annotations

import random
import socket
from typing import Self

# Below the kernel's ephemeral range, where any outgoing connection may take a port at any time.
_FIRST, _LAST = 15000, 32000
_TRIES = 200


class Ports:
    """Hands out ports and holds each reserved until closed, several beds at once included.

    The reservation is a bound socket that never listens: servers that set SO_REUSEADDR (Go's and
    asyncio's do) can listen on the port all the same, another bed's probe cannot bind it.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self._held: list[socket.socket] = []

    def take(self) -> int:
        """Return a port that nobody uses or has reserved."""
        for _ in range(_TRIES):
            port = random.randint(_FIRST, _LAST)
            if self._reserve(port):
                return port
        raise OSError(f"no free port between {_FIRST} and {_LAST} on {self.host}")

    def close(self) -> None:
        """Give all ports back."""
        while self._held:
            self._held.pop().close()

    def _reserve(self, port: int) -> bool:
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.bind((self.host, port))  # without SO_REUSEADDR: fails on any other's reservation
        except OSError:
            holder.close()
            return False
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.append(holder)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
