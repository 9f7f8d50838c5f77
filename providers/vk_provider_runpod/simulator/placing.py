"""Where a simulated pod lands, what it costs, and how the service says that it lands nowhere.

Pure. Fed by ``model`` with a create call's body; reads the ``catalogue``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vk_provider.testing.simulator import account
from vk_provider_runpod.simulator.catalogue import Catalogue

NO_CAPACITY = (
    "There are no longer any instances available with the requested specifications. "
    "Please refresh and try again."
)


class RefusalError(account.RefusalError):
    """A request the service turns down: HTTP status, prose, and the list of 422 errors."""

    def __init__(self, status: int, detail: str, errors: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.status = self.http_status = status
        self.errors = errors


def place(catalogue: Catalogue, body: Mapping[str, Any]) -> tuple[str, float]:
    """The data centre that takes the pod, and what it costs an hour; raises when none does."""
    cloud = body.get("cloud", "SECURE")
    wanted = [centre for centre in body.get("dataCenterIds") or [] if centre]
    if gpu := body.get("gpu"):
        return _place_gpu(catalogue, gpu, cloud, wanted)
    cpu = body["cpu"]
    flavour, count = catalogue.cpu(cpu["id"]), cpu["vcpuCount"]
    if flavour is None or not flavour.min_vcpu <= count <= flavour.max_vcpu or count & (count - 1):
        raise RefusalError(400, f"invalid cpu configuration: {cpu['id']} with {count} vCPUs")
    centres = wanted or [centre.id for centre in catalogue.centres]
    return _free_centre(catalogue, cpu["id"], count, centres), flavour.price_per_vcpu * count


def _place_gpu(
    catalogue: Catalogue, gpu: Mapping[str, Any], cloud: str, wanted: list[str]
) -> tuple[str, float]:
    model = catalogue.gpu(gpu["id"])
    if model is None:
        raise RefusalError(400, f"unknown gpu id: {gpu['id']}")
    count, floor = gpu.get("count"), gpu.get("minCudaVersion")
    # The service answers a missing count, too many GPUs and a CUDA version that nobody has
    # with the very prose of "no capacity".
    versions = gpu.get("allowedCudaVersions") or []
    matching = [v for v in model.cuda if not versions or v in versions]
    if floor:
        matching = [v for v in matching if version(v) >= version(floor)]
    if count is None or count > model.max_count or ((versions or floor) and not matching):
        raise RefusalError(400, NO_CAPACITY)
    centres = [centre for centre in model.data_centers if not wanted or centre in wanted]
    return _free_centre(catalogue, model.id, count, centres), model.price(cloud) * count


def _free_centre(catalogue: Catalogue, kind: str, units: int, centres: list[str]) -> str:
    found = [centre for centre in centres if catalogue.free(kind, centre) >= units]
    if not found:
        raise RefusalError(400, NO_CAPACITY)
    return found[0]


def version(text: str) -> tuple[int, ...]:
    """``12.11`` as numbers, which is above ``12.2``."""
    return tuple(int(part) for part in text.split("."))
