"""The client side of the leash: start, signal and stop processes that cannot outlive us."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.rig import leash as leash_program

DEFAULT_STAGE = 2
STOP_SECONDS = 10.0
_REMOVAL_SECONDS = 30.0


class ProcessError(RuntimeError):
    """The leash refused a request, or a process ended when it should have run."""


class Processes:
    """Processes and a temp folder on one leash; an async context manager.

    Higher stages are stopped first: etcd has 0, the API server 1, everything else 2.
    """

    def __init__(self, *, grace: float = STOP_SECONDS) -> None:
        self.folder = Path()
        self.pids: dict[str, int] = {}
        self._grace = grace
        self._ids = itertools.count()
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._leash: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._leash = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",  # neither site-packages nor the user's environment: it must start fast and always
            "-S",
            leash_program.__file__,
            str(os.getpid()),
            str(self._grace),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must reach the test run, not its processes
            limit=2**24,
        )
        assert self._leash.stdout is not None
        hello = json.loads(await self._leash.stdout.readline() or '{"folder": ""}')
        if not hello["folder"]:
            raise ProcessError("the leash did not start; its error is on stderr")
        self.folder = Path(hello["folder"])
        self._reader = asyncio.create_task(self._read(), name="rig-leash-reader")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._leash is None:
            return
        assert self._leash.stdin is not None
        self._leash.stdin.close()
        try:
            async with asyncio.timeout(_REMOVAL_SECONDS + 3 * self._grace):
                await self._leash.wait()
        except TimeoutError:
            self._leash.kill()
            await self._leash.wait()
        if self._reader is not None:
            await self._reader
        if self.folder != Path():  # the leash was killed: its children died with it, not the folder
            shutil.rmtree(self.folder, ignore_errors=True)
        self._leash = None

    async def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        *,
        log: Path | None = None,
        stage: int = DEFAULT_STAGE,
    ) -> int:
        """Start a process in the bed's folder; return its pid. A name that ended is free again."""
        request = {
            "argv": [str(word) for word in argv],
            "env": dict(os.environ if env is None else env),
            "cwd": str(self.folder),
            "log": str(log or self.log_file(name)),
            "stage": stage,
        }
        answer = await self._ask("start", name, request)
        self.pids[name] = int(answer["pid"])
        return self.pids[name]

    async def stop(self, name: str, grace: float = STOP_SECONDS) -> int:
        """Ask a process to end (SIGTERM), kill it after `grace` seconds; return its exit code."""
        answer = await self._ask("stop", name, {"signal": signal.SIGTERM, "grace": grace})
        return int(answer["code"])

    async def kill(self, name: str) -> int:
        """SIGKILL a process and wait until it is reaped; return its exit code."""
        answer = await self._ask("stop", name, {"signal": signal.SIGKILL, "grace": STOP_SECONDS})
        return int(answer["code"])

    async def signal(self, name: str, signum: int) -> None:
        """Send a signal (SIGHUP, SIGSTOP, SIGCONT, …) without waiting for anything."""
        await self._ask("signal", name, {"signal": int(signum)})

    async def wait(self, name: str) -> int:
        """Wait for the end of a process; return its exit code, negative for a signal."""
        return int((await self._ask("wait", name, {}))["code"])

    def log_file(self, name: str) -> Path:
        """Return the default log file of a process."""
        return self.folder / f"{name}.log"

    def log_tail(self, name: str, lines: int = 20) -> str:
        """Return the last lines of a process's log, for error messages."""
        path = self.log_file(name)
        text = path.read_text(errors="replace") if path.exists() else "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    async def _ask(self, operation: str, name: str, more: Mapping[str, Any]) -> dict[str, Any]:
        if self._leash is None or self._leash.stdin is None or self._leash.returncode is not None:
            raise ProcessError(f"cannot {operation} {name}: the bed is down")
        ident = next(self._ids)
        self._pending[ident] = asyncio.get_running_loop().create_future()
        request = {"id": ident, "op": operation, "name": name} | dict(more)
        try:
            self._leash.stdin.write(json.dumps(request).encode() + b"\n")
            answer = await self._pending[ident]
        finally:
            self._pending.pop(ident, None)
        if "error" in answer:
            raise ProcessError(f"cannot {operation} {name}: {answer['error']}")
        return answer

    async def _read(self) -> None:
        """Hand answers to those who wait; at the leash's end nobody waits any longer."""
        assert self._leash is not None
        assert self._leash.stdout is not None
        while line := await self._leash.stdout.readline():
            answer = json.loads(line)
            waiting = self._pending.get(answer["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
        for future in self._pending.values():
            with contextlib.suppress(asyncio.InvalidStateError):
                future.set_result({"error": "the leash has ended"})
