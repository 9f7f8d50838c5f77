"""How many GPUs a pod needs at once, and whose.

Fed by :mod:`.resolve`; the answer goes to the ranking of offers and to the provider.
"""

from __future__ import annotations

from vk_provider.pods.reading import mapping, mappings
from vk_provider.pods.types import Json

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


def gpu_request(pod: Json) -> tuple[int, str | None]:
    """The effective request, as the scheduler counts it, and its resource; (0, None) for none.

    Init containers run one after another, so the largest of them counts; sidecars stay.
    """
    for resource in GPU_RESOURCES:
        if count := _effective(mapping(pod, "spec"), resource):
            return count, resource
    return 0, None


def _effective(spec: Json, resource: str) -> int:
    sidecars = largest = 0
    for _, container in mappings(spec, "initContainers"):
        own = _of(container, resource)
        if container.get("restartPolicy") == "Always":
            sidecars += own
            own = 0
        largest = max(largest, sidecars + own)
    main = sum(_of(container, resource) for _, container in mappings(spec, "containers"))
    return max(largest, sidecars + main)


def _of(container: Json, resource: str) -> int:
    resources = mapping(container, "resources")
    wanted = mapping(resources, "requests").get(resource)
    if wanted is None:
        wanted = mapping(resources, "limits").get(resource)
    shown = str(wanted)
    # GPUs are whole; anything else is for the provider's translation to refuse.
    return int(shown) if shown.isascii() and shown.isdigit() else 0
