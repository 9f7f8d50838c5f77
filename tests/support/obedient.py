"""Containers that do what a test tells them, through a pipe in their working directory.

Fed by the contract's backends whose containers are real processes.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from vk_provider.pods.types import Json

OBEDIENT = """
mkfifo orders
while read -r order rest; do
  case $order in
    say) echo "$rest" ;;
    serve) "$1" -c "$2" "$rest" & ;;
    exit) exit "$rest" ;;
  esac
done <> orders
"""
"""One order a line into ``orders``: ``say WORDS``, ``serve PORT`` (an echo), ``exit CODE``."""
ECHO = """
import socket, sys, threading

def echo(connection):
    while chunk := connection.recv(65536):
        connection.sendall(chunk)
    connection.close()

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        threading.Thread(target=echo, args=server.accept()[:1], daemon=True).start()
"""
OBEDIENT_FIELDS: Json = {
    "command": ["sh", "-c", OBEDIENT, "obedient"],
    "args": [sys.executable, ECHO],
}


async def listening(port: int, address: str = "127.0.0.1") -> int:
    """Return the port once somebody listens on it."""
    async with asyncio.timeout(20):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(address, port)
                writer.close()
                await writer.wait_closed()
                return port
            await asyncio.sleep(0.02)
