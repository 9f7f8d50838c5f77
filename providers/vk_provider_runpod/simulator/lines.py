"""A simulated pod's log lines, as a function of time: nothing is stored, nothing is lost.

Fed by ``model``; feeds the SSE stream in ``logs``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vk_provider.testing.simulator.clock import rfc3339
from vk_provider_runpod.simulator.model import SimulatedPod

MOST_LINES = 5000
MOST_RUNS = 20
PULL_NEWS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Line:
    """One log line: when, from where, and which one of its stream."""

    at: float
    source: str
    text: str
    sequence: int = 0

    @property
    def event_id(self) -> str:
        """The SSE id, in the shape of the document's example."""
        return f"{rfc3339(self.at)}/{self.sequence:012d}"


def lines(pod: SimulatedPod, now: float, after: float = 0.0) -> list[Line]:
    """What the pod has logged from ``after`` until now, in order, at most the last 5,000 lines."""
    until = min(now, pod.ended[1] if pod.ended else now, pod.deleted_at or now)
    # In whole microseconds, as they are shown: a cursor that comes back must still compare equal.
    exact = (replace(line, at=round(line.at, 6)) for line in _all(pod, after, until))
    recent = (line for line in exact if after <= line.at)
    found = sorted(recent, key=lambda line: line.at)[-MOST_LINES:]
    # Numbered within its moment, so that a line keeps its id when older ones are left out.
    seen: Counter[float] = Counter()
    numbered = []
    for line in found:
        seen[line.at] += 1
        numbered.append(replace(line, sequence=seen[line.at]))
    return numbered


def _all(pod: SimulatedPod, after: float, until: float) -> Iterator[Line]:
    yield Line(pod.started_at, "system", f"create container {pod.body['image']}")
    yield from (Line(at, source, text) for at, source, text in pod.said if at <= until)
    yield from _pulling(pod, after, until)
    if until < pod.container_start or pod.behaviour.pull_error:
        return
    last_run, _ = pod.run(until)
    behaviour = pod.behaviour
    cycle = (behaviour.run_seconds or 0.0) + behaviour.restart_seconds
    for run in range(max(0, last_run - MOST_RUNS), last_run + 1):
        start = pod.container_start + run * cycle
        yield Line(start, "system", "start container")
        end = until if behaviour.run_seconds is None else start + behaviour.run_seconds
        yield from _container(pod, start, after, min(until, end))


def _pulling(pod: SimulatedPod, after: float, until: float) -> Iterator[Line]:
    end = min(until, pod.container_start)
    step = max(0, int((after - pod.started_at) / PULL_NEWS_SECONDS))
    while (moment := pod.started_at + step * PULL_NEWS_SECONDS) < end:
        yield Line(moment, "system", f"still fetching image {pod.body['image']}")
        step += 1
    if until >= pod.container_start:
        done = f"Status: Downloaded newer image for {pod.body['image']}"
        yield Line(pod.container_start, "system", pod.behaviour.pull_error or done)


def _container(pod: SimulatedPod, start: float, after: float, until: float) -> Iterator[Line]:
    behaviour = pod.behaviour
    for offset, text in enumerate(behaviour.log_lines):
        if start + offset * 0.001 <= until:
            yield Line(start + offset * 0.001, "container", text)
    if behaviour.log_every_seconds <= 0:
        return
    last = int((until - start) // behaviour.log_every_seconds)
    first = int((after - start) // behaviour.log_every_seconds)
    # Neither lines before the cursor nor more than are kept need to be made.
    for tick in range(max(1, first, last - MOST_LINES), last + 1):
        yield Line(start + tick * behaviour.log_every_seconds, "container", f"tick {tick}")
