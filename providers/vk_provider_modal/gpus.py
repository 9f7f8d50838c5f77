"""Modal's GPU types as its documentation names them: memory and the most that one host has.

Pure. Prices are not in here: the account's live table and the configuration tell them.
Fed by nobody; feeds ``offers`` and ``translate``.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_PER_HOST = 8


@dataclass(frozen=True, slots=True)
class GpuType:
    """One type. ``memory_gib`` is the least that a request for it may be given."""

    name: str
    memory_gib: int | None = None
    most: int = MOST_PER_HOST


KNOWN: dict[str, GpuType] = {
    each.name: each
    for each in (
        GpuType("T4", 16),
        GpuType("L4", 24),
        GpuType("A10", 24, 4),
        GpuType("L40S", 48),
        GpuType("A100", 40),
        GpuType("A100-40GB", 40),
        GpuType("A100-80GB", 80),
        GpuType("RTX-PRO-6000", 96),
        GpuType("H100", 80),
        GpuType("H100!", 80),
        GpuType("H200", 141),
        GpuType("B200", 180),
        GpuType("B200+", 180),
        GpuType("B300", 270),
    )
}
"""In the order of their list prices, which is also the order in which they are offered."""

DEFAULT_TYPES = (
    "T4", "L4", "A10", "A100-40GB", "L40S", "A100-80GB", "RTX-PRO-6000", "H100", "H200", "B200",
    "B300",
)  # fmt: skip
"""One name for each card; the aliases are for whoever asks for them."""

BARE_RATES = ("CPU", "MEMORY")
"""What has a price besides."""


def gpu_type(name: str) -> GpuType:
    """What is known of a type; a name that is newer than this table is taken at its word."""
    return KNOWN.get(name.upper(), GpuType(name.upper()))
