"""What a sandbox costs: its GPUs, its cores and its memory, at the account's rates.

Pure. Modal bills the larger of request and use, so a price is the least that is due; the bill says
the rest. Fed by ``client`` (the live rates) and the configuration; feeds ``provider.priced``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from vk_provider.pods.types import Offer, ResolvedPod
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.sizes import sizes

LEAST_CORES = 0.125
LEAST_GIB = 0.125
MOST_PER_SECOND = 0.001
"""No core and no GiB is dearer by the second, and none cheaper by the hour."""
_GPU = re.compile(r"gpu|h100|a100", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per hour of a core and of a GiB of memory, None where the account does not tell."""

    core: float | None = None
    gib: float | None = None


def rates_of(found: Mapping[str, float], config: ModalConfig) -> Rates:
    """Out of the account's table; what the configuration says wins."""
    return Rates(
        config.usd_per_hour.get("CPU", _by_the_hour(found, "cpu")),
        config.usd_per_hour.get("MEMORY", _by_the_hour(found, "mem")),
    )


def priced(pod: ResolvedPod, offer: Offer, rates: Rates) -> Offer:
    """The offer at what this pod would pay. Unpriced GPUs stay unpriced: cores are the smaller
    part of it, and half a price would look like a whole one."""
    if rates.core is None or rates.gib is None or not pod.containers:
        return offer
    if pod.gpu_count and offer.usd_per_hour is None:
        return offer
    size = sizes(pod, offer.gpu_type)
    cores = max(LEAST_CORES, _request(size.cpu))
    gib = max(LEAST_GIB, _request(size.memory) / 1024)
    price = (offer.usd_per_hour or 0.0) + cores * rates.core + gib * rates.gib
    return replace(offer, usd_per_hour=round(price, 6))


def _request(amounts: tuple[float | None, float | None] | tuple[int | None, int | None]) -> float:
    """A limit alone is both, as in Kubernetes."""
    request, limit = amounts
    return request or limit or 0.0


def _by_the_hour(found: Mapping[str, float], word: str) -> float | None:
    """The rate whose name has this word in it; a sandbox's own before a function's."""
    names = [name for name in found if word in name.lower() and not _GPU.search(name)]
    for name in sorted(names, key=lambda each: ("sandbox" not in each.lower(), each)):
        rate = found[name]
        if rate > 0:
            by_the_second = rate < MOST_PER_SECOND and "hour" not in name.lower()
            return rate * 3600 if by_the_second else rate
    return None
