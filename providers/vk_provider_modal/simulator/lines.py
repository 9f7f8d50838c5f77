"""What a simulated container prints: a function of its behaviour and the time.

Fed by ``model``; feeds ``control``'s answers about logs.
"""

from __future__ import annotations

from collections.abc import Iterator

from modal_proto import api_pb2

from vk_provider_modal.simulator.model import SimulatedSandbox

MOST_LINES = 20_000
SOURCES = {
    "stdout": api_pb2.FILE_DESCRIPTOR_STDOUT,
    "stderr": api_pb2.FILE_DESCRIPTOR_STDERR,
    "system": api_pb2.FILE_DESCRIPTOR_INFO,
}


def printed(sandbox: SimulatedSandbox, now: float) -> list[tuple[float, str, str]]:
    """Everything printed so far, in order: when, where, what (with its newline)."""
    return sorted([*_own(sandbox, now), *sandbox.said], key=lambda line: line[0])


def _own(sandbox: SimulatedSandbox, now: float) -> Iterator[tuple[float, str, str]]:
    started, behaviour = sandbox.started_at, sandbox.behaviour
    until = now if sandbox.end is None else min(now, sandbox.end.at)
    if started is None or started > until:
        return
    for line in behaviour.log_lines:
        yield started, "stdout", f"{line}\n"
    every = behaviour.log_every_seconds
    if every:
        last = int((until - started) / every)
        for number in range(max(1, last - MOST_LINES), last + 1):
            yield started + number * every, "stdout", f"still serving ({number})\n"


def logs(lines: list[tuple[float, str, str]]) -> list[api_pb2.TaskLogs]:
    """Lines as the service hands them out."""
    return [
        api_pb2.TaskLogs(
            data=text, timestamp=at, timestamp_ns=int(at * 1e9), file_descriptor=SOURCES[source]
        )
        for at, source, text in lines
    ]
