"""Modal's GPU types as offers, one for each region where any is named, with the account's prices.

Pure. Modal tells no stock: a create waits for a machine, and the core tries the next offer when
that takes too long. Fed by the configuration and by ``client`` (the live rates); feeds the core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from vk_provider.pods.types import Offer
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.gpus import gpu_type

MOST_PER_SECOND = 0.02
"""No GPU is dearer by the second, and none cheaper by the hour: the unit of a bare rate."""
_SAID_BESIDE = re.compile(
    r"nvidia|tensor|core|gpu|rate|cost|price|usd|per|second|sec|hour|hr|container|function|sandbox"
)


def offers(gpu_count: int, config: ModalConfig, rates: Mapping[str, float]) -> tuple[Offer, ...]:
    """Everything that could carry ``gpu_count`` GPUs, in the configured order."""
    return tuple(
        each
        for each in known_offers(gpu_count, config, rates)
        if config.max_usd_per_hour is None
        or each.usd_per_hour is None
        or each.usd_per_hour <= config.max_usd_per_hour
    )


def known_offers(
    gpu_count: int, config: ModalConfig, rates: Mapping[str, float] | None = None
) -> tuple[Offer, ...]:
    """What the configuration alone names; priced as far as it or ``rates`` tell."""
    return tuple(_known(gpu_count, config, rates or {}))


def _known(gpu_count: int, config: ModalConfig, rates: Mapping[str, float]) -> Iterator[Offer]:
    if not gpu_count:
        # What a CPU pod costs depends on its size, which an offer doesn't know.
        yield from _spread(Offer(id="cpu"), config.regions)
        return
    for name in config.gpu_types:
        kind = gpu_type(name)
        if gpu_count > kind.most:
            continue
        each = config.usd_per_hour.get(name, price(name, rates))
        offer = Offer(
            id=f"{name} x{gpu_count}",
            gpu_type=name,
            gpu_count=gpu_count,
            gpu_memory_gib=kind.memory_gib,
            usd_per_hour=None if each is None else round(each * gpu_count, 6),
        )
        yield from _spread(offer, config.regions)


def _spread(offer: Offer, regions: Sequence[str]) -> Iterator[Offer]:
    if not regions:
        yield offer
    for region in regions:
        yield Offer(
            id=f"{offer.id} {region}",
            gpu_type=offer.gpu_type,
            gpu_count=offer.gpu_count,
            gpu_memory_gib=offer.gpu_memory_gib,
            data_center=region,
            usd_per_hour=offer.usd_per_hour,
        )


def price(name: str, rates: Mapping[str, float]) -> float | None:
    """USD per hour of one GPU out of the account's rates, None where they name no such type."""
    wanted = _bare(name.rstrip("!+"))
    for key, rate in rates.items():
        if _bare(key) == wanted and rate > 0:
            by_the_second = rate < MOST_PER_SECOND and "hour" not in key.lower()
            return round(rate * 3600 if by_the_second else rate, 6)
    return None


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _SAID_BESIDE.sub("", name.lower()))


def numbers(rates: Mapping[str, str]) -> dict[str, float]:
    """The rates that are numbers."""
    found: dict[str, float] = {}
    for key, rate in rates.items():
        try:
            found[key] = float(rate)
        except ValueError:
            continue
    return found
