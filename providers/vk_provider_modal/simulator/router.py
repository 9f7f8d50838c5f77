"""The task command router: commands of exec, run as processes of this machine if that is allowed.

Fed by ``service``; rests on ``commands``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any

from modal_proto import task_command_router_pb2 as router_pb2

from vk_provider_modal.simulator.commands import Command, Wanted
from vk_provider_modal.simulator.model import RefusalError, SimulatedSandbox
from vk_provider_modal.simulator.service import StreamedWork, Work
from vk_provider_modal.simulator.state import State

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Router:
    """All commands of all sandboxes. Close it, and they end."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._folders: dict[str, TemporaryDirectory[str]] = {}

    @property
    def unary(self) -> Mapping[str, Work]:
        """The calls with one answer."""
        return {
            "TaskExecStart": self._start,
            "TaskExecStdinWrite": self._write,
            "TaskExecPoll": self._poll,
            "TaskExecWait": self._wait,
        }

    @property
    def streamed(self) -> Mapping[str, StreamedWork]:
        """The calls with many answers."""
        return {"TaskExecStdioRead": self._read}

    async def close(self) -> None:
        """End what still runs, and leave nothing behind."""
        for command in self._commands.values():
            await command.close()
        for folder in self._folders.values():
            folder.cleanup()

    async def _start(self, state: State, request: Any) -> router_pb2.TaskExecStartResponse:
        sandbox = _living(state, request.task_id)
        if not state.options.runs_exec:
            raise RefusalError("FAILED_PRECONDITION", "exec is off; start with --allow-exec")
        # The same id is the same command, asked for once more.
        if request.exec_id not in self._commands:
            try:
                self._commands[request.exec_id] = await Command.start(
                    self._wanted(sandbox, request)
                )
            except OSError as error:
                words = f"{request.command_args[0]}: {error.strerror}"
                raise RefusalError("INVALID_ARGUMENT", words) from None
        return router_pb2.TaskExecStartResponse()

    def _wanted(self, sandbox: SimulatedSandbox, request: Any) -> Wanted:
        if sandbox.id not in self._folders:
            self._folders[sandbox.id] = TemporaryDirectory(prefix="sandbox-")
        folder = self._folders[sandbox.id]
        pty, discard = request.pty_info, router_pb2.TASK_EXEC_STDOUT_CONFIG_DEVNULL
        return Wanted(
            tuple(request.command_args),
            {"PATH": _PATH, **sandbox.wish.env, **_env(request)},
            request.workdir or folder.name,
            terminal=(pty.winsz_cols, pty.winsz_rows) if pty.enabled else None,
            stdout=request.stdout_config != discard,
            stderr=request.stderr_config != router_pb2.TASK_EXEC_STDERR_CONFIG_DEVNULL,
        )

    async def _write(self, state: State, request: Any) -> router_pb2.TaskExecStdinWriteResponse:
        await self._get(request.exec_id).write(request.offset, request.data, eof=request.eof)
        return router_pb2.TaskExecStdinWriteResponse()

    async def _read(self, state: State, request: Any) -> AsyncIterator[Any]:
        command = self._get(request.exec_id)
        is_error = request.file_descriptor == router_pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR
        output = command.stderr if is_error else command.stdout
        async for chunk in output.read(request.offset):
            yield router_pb2.TaskExecStdioReadResponse(data=chunk)

    async def _poll(self, state: State, request: Any) -> router_pb2.TaskExecPollResponse:
        code = self._get(request.exec_id).process.returncode
        return router_pb2.TaskExecPollResponse(**_status(code))

    async def _wait(self, state: State, request: Any) -> router_pb2.TaskExecWaitResponse:
        code = await self._get(request.exec_id).process.wait()
        return router_pb2.TaskExecWaitResponse(**_status(code))

    def _get(self, exec_id: str) -> Command:
        command = self._commands.get(exec_id)
        if command is None:
            raise RefusalError("NOT_FOUND", f"exec {exec_id} not found")
        return command


def _living(state: State, task_id: str) -> SimulatedSandbox:
    state.model.settle(state.clock.now())
    for sandbox in state.model.living.values():
        if sandbox.task_id == task_id:
            return sandbox
    raise RefusalError("NOT_FOUND", f"task {task_id} not found")


def _env(request: Any) -> dict[str, str]:
    found = dict(request.env)
    for source in request.secret_sources:
        found |= dict(source.env.contents)
    return found


def _status(code: int | None) -> dict[str, int]:
    if code is None:
        return {}
    return {"code": code} if code >= 0 else {"signal": -code}
