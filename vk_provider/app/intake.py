"""The first view of the pods: remember past failures, then hand out every pod, then follow.

Fed by ``kube.cache``; feeds ``loops.pod_workers`` and the storm guard.
"""

from __future__ import annotations

from vk_provider.kube.cache import PodCache
from vk_provider.loops.clock import Clock
from vk_provider.loops.experience import Experience
from vk_provider.loops.pace import Pace
from vk_provider.loops.pod_workers import PodWorkers
from vk_provider.pods import desired
from vk_provider.pods.types import PodUID


async def take_pods_in(
    cache: PodCache, workers: PodWorkers, pace: Pace, experience: Experience, clock: Clock
) -> None:
    """Ends when every pod of the first complete view was handed in."""
    await cache.synced.wait()
    _remember_failures(cache, pace, clock)
    for pod in cache.pods():
        experience.remembered(pod)
    cache.subscribe(workers.pod_changed)
    for pod in cache.pods():
        workers.pod_changed(PodUID(pod["metadata"]["uid"]), pod)
    workers.intake_complete()


def _remember_failures(cache: PodCache, pace: Pace, clock: Clock) -> None:
    """The storm guard's memory survives us: it is the Failed pods themselves."""
    now = clock.now()
    failures = []
    for pod in cache.pods():
        at = desired.failed_at(pod)
        if at is not None:
            failures.append(((now - at).total_seconds(), pod))
    for ago, pod in sorted(failures, key=lambda each: each[0], reverse=True):
        uid = PodUID(pod["metadata"]["uid"])
        pace.charge(desired.owner_key(pod), uid, max(0.0, ago))
