"""What a client of a simulated instance asks for, as a process of this machine with a terminal.

Fed by simulators that run commands (``--allow-exec``); the streams are copied there.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Terminal:
    """A process, and our end of its terminal."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    fd: int
    reading: asyncio.ReadTransport


async def start_in_terminal(
    args: Sequence[str], env: Mapping[str, str], folder: str | Path, size: tuple[int, int]
) -> Terminal:
    """Run a command; ``size``: columns and rows. Raises ``OSError`` where that can't be done."""
    ours, theirs = pty.openpty()
    resize(ours, *size)
    with ExitStack() as undo:
        undo.callback(os.close, ours)
        try:
            process = await asyncio.create_subprocess_exec(
                *args,
                stdin=theirs, stdout=theirs, stderr=theirs,
                env=env, cwd=folder, start_new_session=True, preexec_fn=_own_terminal,
            )  # fmt: skip
        finally:
            os.close(theirs)
        undo.pop_all()
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", 0)
    )
    writing, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(ours, "wb", 0)
    )
    writer = asyncio.StreamWriter(writing, protocol, None, loop)
    return Terminal(process, writer, reader, ours, reading)


def resize(terminal: int, columns: int, rows: int) -> None:
    """Tell a terminal its size."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def read_some(source: asyncio.StreamReader, most: int) -> bytes:
    """What comes next, at most so many bytes; empty at the end."""
    try:
        return await source.read(most)
    except OSError:
        return b""  # the far side of a terminal is gone


def hear_signals() -> None:
    """Whoever starts us in the background has us ignore Ctrl-C; a command hears it all the same."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _own_terminal() -> None:
    hear_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
