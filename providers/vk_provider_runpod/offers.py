"""RunPod's catalogue as offers: GPU types and CPU flavours, per data centre where any is named.

Pure. Fed by ``client`` (the catalogue's JSON) and by the configuration; feeds the core's ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.pods.types import Offer, Stock
from vk_provider_runpod.config import COMMUNITY, SECURE, RunPodConfig

_STOCK = {
    "NONE": Stock.NONE,
    "LOW": Stock.LOW,
    "MEDIUM": Stock.MEDIUM,
    "HIGH": Stock.HIGH,
}


def gpu_offers(
    catalogue: Mapping[str, Any], gpu_count: int, config: RunPodConfig
) -> tuple[Offer, ...]:
    """Every GPU type that can be had ``gpu_count`` times, in the configured order."""
    entries = {text(entry, "id"): entry for _, entry in mappings(catalogue, "gpus")}
    names = config.gpu_types or tuple(_nvidia(entries))
    return tuple(
        offer
        for name in names
        if name in entries
        for offer in _gpu(entries[name], gpu_count, config)
        if _affordable(offer, config)
    )


def cpu_offers(catalogue: Mapping[str, Any], config: RunPodConfig) -> tuple[Offer, ...]:
    """Every CPU flavour, in the configured order; the price is its smallest size's."""
    if config.cloud_type == COMMUNITY:
        return ()
    entries = {text(e, "id").partition("-")[0]: e for _, e in mappings(catalogue, "cpus")}
    return tuple(
        offer
        for name in config.cpu_types
        if name in entries
        for offer in _spread(_cpu_offer(entries[name]), entries[name], config)
        if _affordable(offer, config)
    )


def known_offers(gpu_count: int, config: RunPodConfig) -> tuple[Offer, ...]:
    """What the configuration alone names, without prices; for ``explain``."""
    if gpu_count and not config.gpu_types:
        return (Offer(id=f"any x{gpu_count} {config.cloud_type}", gpu_count=gpu_count),)
    if not gpu_count and config.cloud_type == COMMUNITY:
        return ()
    names = config.gpu_types if gpu_count else config.cpu_types
    bare = [_offer(name, gpu_count, config.cloud_type) for name in names]
    return tuple(offer for one in bare for offer in _spread(one, {}, config))


def _nvidia(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    # Whoever wants AMD names it: a pod for nvidia.com/gpu must never meet such an offer.
    return [name for name, entry in entries.items() if entry.get("manufacturer") == "NVIDIA"]


def _gpu(entry: Mapping[str, Any], gpu_count: int, config: RunPodConfig) -> Iterator[Offer]:
    cloud = config.cloud_type.lower()
    most = number(mapping(entry, "maxCount"), cloud) or 0
    if not entry.get(cloud) or most < gpu_count:
        return
    price = _price(mapping(entry, "price").get(cloud), gpu_count)
    offer = _offer(text(entry, "id"), gpu_count, config.cloud_type)
    memory = number(entry, "memory")
    yield from _spread(_with(offer, memory, price), entry, config)


def _cpu_offer(entry: Mapping[str, Any]) -> Offer:
    per_vcpu = mapping(entry, "price").get("securePerVcpu")
    smallest = number(mapping(entry, "vcpu"), "min") or 2
    return _with(_offer(text(entry, "id"), 0, SECURE), None, _price(per_vcpu, smallest))


def _offer(name: str, gpu_count: int, cloud: str) -> Offer:
    if not gpu_count:
        return Offer(id=f"{name} {cloud}")
    return Offer(id=f"{name} x{gpu_count} {cloud}", gpu_type=name, gpu_count=gpu_count)


def _with(offer: Offer, memory: int | None, price: float | None) -> Offer:
    return Offer(offer.id, offer.gpu_type, offer.gpu_count, memory, usd_per_hour=price)


def _spread(offer: Offer, entry: Mapping[str, Any], config: RunPodConfig) -> Sequence[Offer]:
    """One offer, or one for each configured data centre, with the stock that is known there."""
    levels = {
        text(place, "id"): text(place, "availability")
        for _, place in mappings(entry, "dataCenters")
    }
    overall = text(entry, "availability")
    if not config.data_centers:
        return (_at(offer, None, overall),)
    # With stock in the answer, a data centre that is not listed does not have this type.
    missing = "NONE" if overall else ""
    return [_at(offer, place, levels.get(place, missing)) for place in config.data_centers]


def _at(offer: Offer, data_center: str | None, level: str) -> Offer:
    return Offer(
        id=f"{offer.id} {data_center}" if data_center else offer.id,
        gpu_type=offer.gpu_type,
        gpu_count=offer.gpu_count,
        gpu_memory_gib=offer.gpu_memory_gib,
        data_center=data_center,
        usd_per_hour=offer.usd_per_hour,
        stock=_STOCK.get(level, Stock.UNKNOWN),
    )


def _affordable(offer: Offer, config: RunPodConfig) -> bool:
    most, price = config.max_usd_per_hour, offer.usd_per_hour
    return most is None or price is None or price <= most


def _price(each: Any, count: int) -> float | None:
    """What ``count`` units cost; a price of nothing is no price."""
    if not isinstance(each, int | float) or isinstance(each, bool) or each <= 0:
        return None
    return round(each * count, 6)
