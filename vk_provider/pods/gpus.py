"""How many GPUs a pod needs at once, and whose.

Fed by :mod:`.resolve`; the answer goes to the ranking of offers and to the provider.
"""

from __future__ import annotations

import math

from vk_provider.pods.types import Json
from vk_provider.quantities import pod_requests

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


def gpu_request(pod: Json) -> tuple[int, str | None]:
    """The effective request, as the scheduler counts it, and its resource; (0, None) for none."""
    try:
        requests = pod_requests(pod)
    except ValueError:
        # Not a quantity: admission on arrival refuses the pod and says so.
        return 0, None
    for resource in GPU_RESOURCES:
        if (count := math.ceil(requests.get(resource, 0))) > 0:
            return count, resource
    return 0, None
