"""One round of one candidate: a fresh bed, a Deployment up, at rest, and down again.

Fed by `nodes`; its `Round`s go to `report`. Every figure of a round comes from the same bed, which
has the same settings for every candidate.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.nodes import Candidate, Started
from benchmarks.progress_watch import Pods
from benchmarks.sampling import usage
from tests.rig import audit
from tests.rig.control_plane import ControlPlane

REST_SECONDS = 12.0
"""Longer than a tick, so that a list falls into it."""
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_SETTLE_SECONDS = 1.0
_STOP_SECONDS = 30.0


class RoundError(RuntimeError):
    """A candidate did not get through a round."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was seen. Requests are counted per pod, by verb and resource, without watches.

    ``cpu`` is the whole of the work: up, at rest for a while (Events may trail) and down again.
    """

    candidate: str
    pods: int
    running_seconds: float
    gone_seconds: float
    start_cpu: float
    running_cpu: float
    rest_cpu: float
    gone_cpu: float
    cpu: float
    peak_rss_mib: float
    to_running: Mapping[str, float]
    at_rest: Mapping[str, int]
    to_gone: Mapping[str, float]


def deployment(replicas: int) -> dict[str, Any]:
    """A Deployment whose pods tolerate whatever taints a candidate puts on its node."""
    labels = {"app": "bench"}
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "bench"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "tolerations": [{"operator": "Exists"}],
                    # So that a candidate that waits for it measures itself and not the wait.
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                },
            },
        },
    }


async def measure(
    candidate: Candidate, pods: int, limit: float, profile: Path | None = None
) -> Round:
    """Run one round; raises RoundError if the candidate ends or takes too long."""
    async with ControlPlane() as bed:
        started = await candidate.start(bed, profile)
        ended = asyncio.create_task(bed.wait(started.process))
        work = asyncio.create_task(_round(bed, candidate.name, started, pods, limit))
        await asyncio.wait({ended, work}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise RoundError(f"{candidate.name} ended by itself with {ended.result()}")
        try:
            return work.result()
        except TimeoutError as error:
            said = bed.log_tail(started.process, 15)
            raise RoundError(f"{candidate.name}: not within {limit:g} s\n{said}") from error
        finally:
            if not ended.done():
                # A profile is written when the process ends by itself.
                await bed.stop(started.process, grace=_STOP_SECONDS)
            await asyncio.gather(ended, return_exceptions=True)


async def _round(bed: ControlPlane, name: str, started: Started, pods: int, limit: float) -> Round:
    async with Pods(bed) as seen:
        await asyncio.sleep(_SETTLE_SECONDS)
        before, mark, begun = usage(started.pid), bed.audit_mark(), time.monotonic()
        await bed.request_json("POST", _DEPLOYMENTS, deployment(pods))
        running_seconds = await seen.all_running(pods, limit) - begun
        up = usage(started.pid)
        await asyncio.sleep(_SETTLE_SECONDS)  # Events and the like trail behind
        rested = usage(started.pid)
        rest_mark = bed.audit_mark()
        await asyncio.sleep(REST_SECONDS)
        still, down_mark, ending = usage(started.pid), bed.audit_mark(), time.monotonic()
        scale = f"{_DEPLOYMENTS}/bench/scale"
        patch = {"spec": {"replicas": 0}}
        await bed.request_json("PATCH", scale, patch, content_type="application/merge-patch+json")
        gone_seconds = await seen.all_gone(limit) - ending
        down = usage(started.pid)
        events = await bed.settled_audit_events(mark)
    spans = _Spans(events, started.user, bed.audit_events(rest_mark), bed.audit_events(down_mark))
    return Round(
        candidate=name,
        pods=pods,
        running_seconds=running_seconds,
        gone_seconds=gone_seconds,
        start_cpu=before.cpu_seconds,
        running_cpu=rested.cpu_seconds - before.cpu_seconds,
        rest_cpu=still.cpu_seconds - rested.cpu_seconds,
        gone_cpu=down.cpu_seconds - still.cpu_seconds,
        cpu=down.cpu_seconds - before.cpu_seconds,
        peak_rss_mib=max(up.peak_rss_mib, down.peak_rss_mib),
        to_running=_per_pod(spans.up, pods),
        at_rest=dict(spans.rest),
        to_gone=_per_pod(spans.down, pods),
    )


class _Spans:
    """A user's requests, split at the two marks of the audit log."""

    def __init__(
        self,
        events: list[audit.Event],
        user: str,
        since_rest: list[audit.Event],
        since_down: list[audit.Event],
    ) -> None:
        total, later, last = (_counted(each, user) for each in (events, since_rest, since_down))
        self.up = total - later
        self.rest = later - last
        self.down = last


def _counted(events: list[audit.Event], user: str) -> Counter[str]:
    counts = audit.requests_of(events, user)
    return Counter(
        {f"{verb} {resource}": n for (verb, resource), n in counts.items() if verb != "watch"}
    )


def _per_pod(counts: Counter[str], pods: int) -> dict[str, float]:
    return {what: count / pods for what, count in sorted(counts.items())}
