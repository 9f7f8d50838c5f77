"""The simulated log stream: server-sent events with ids, heartbeats, and resumption.

The stream has no end while the pod lives; a quiet pod sends comments only. It resumes **from**
the cursor's moment, so the last line before a break is sent again, as the service documents.
Fed by ``lines``; read by clients of ``GET /v2/pods/{id}/logs``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from aiohttp import web

from vk_provider.testing.simulator.clock import http_date, rfc3339
from vk_provider_runpod.simulator.lines import Line, lines
from vk_provider_runpod.simulator.model import SimulatedPod
from vk_provider_runpod.simulator.state import State

POLL_SECONDS = 0.05
HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache",
    "Connection": "keep-alive",
    "X-Accel-Buffering": "no",
}


def event(line: Line) -> bytes:
    """One line as an event."""
    payload = {"ts": rfc3339(line.at), "source": line.source, "line": line.text}
    data = json.dumps(payload, ensure_ascii=False)
    return f"id: {line.event_id}\ndata: {data}\n\n".encode()


def backlog(
    all_lines: Sequence[Line], source: str | None, tail: int, since: float | None
) -> list[Line]:
    """What a stream starts with."""
    chosen = [line for line in all_lines if source in (None, line.source)]
    if since is not None:
        return [line for line in chosen if line.at >= since]
    return chosen[-tail:] if tail else []


async def stream(
    request: web.Request,
    state: State,
    pod: SimulatedPod,
    wanted: tuple[str | None, int, float | None],
) -> web.StreamResponse:
    """Send the backlog, then lines as they come, until the pod has ended or the caller is gone."""
    source, tail, since = wanted
    response = web.StreamResponse(headers={**HEADERS, "Date": http_date(state.clock.now())})
    await response.prepare(request)
    drop_after = state.drop_logs_after
    seen = lines(pod, state.clock.now())
    pending = backlog(seen, source, tail, since)
    quiet = 0.0
    try:
        while True:
            for line in pending:
                await response.write(event(line))
                if (drop_after := drop_after - 1) == 0:
                    return _dropped(request, response)
            quiet = 0.0 if pending else quiet + POLL_SECONDS
            if state.closing.is_set() or _is_over(pod, state.clock.now()) or _is_gone(request):
                return response
            if quiet >= state.options.heartbeat_seconds:
                quiet = 0.0
                await response.write(b": heartbeat\n\n")
            await state.pause(POLL_SECONDS)
            fresh = _fresh(pod, state.clock.now(), seen[-1] if seen else None)
            seen = fresh or seen
            pending = [line for line in fresh if source in (None, line.source)]
    except ConnectionError:
        return response


def _dropped(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return response


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _is_over(pod: SimulatedPod, now: float) -> bool:
    return pod.deleted_at is not None or pod.status(now) in ("EXITED", "ERROR", "TERMINATED")


def _fresh(pod: SimulatedPod, now: float, last: Line | None) -> list[Line]:
    after = (last.at, last.sequence) if last else (0.0, 0)
    return [line for line in lines(pod, now, after[0]) if (line.at, line.sequence) > after]
