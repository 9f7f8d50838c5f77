"""Every threshold of the gate and of the way home, with its default. Seconds throughout.

Fed by ``settings_bursting_gate``; read by :mod:`.gate`, :mod:`.signals`, :mod:`.spare` and
:mod:`.homecoming`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateLimits:
    """When the gate moves.

    Towards serving it is fast: a pod that waits for ``open_after``, or fewer than ``open_slots``
    slots at home for ``scarce_for``. Towards home it is slow: ``close_slots`` slots (at least; and
    ``close_fraction`` of the pods outside) for ``close_after``, then for ``stable_for`` or
    ``cold_start_factor`` times the ninetieth percentile of a cold start at home, whichever is
    longer, and every state lasts ``dwell`` before it is left in the slow direction.

    ``max_transitions`` in ``transitions_window``: the slow direction stops before the last of them
    are used up, so that there always is one left to open. ``futile_after``: a pod that found no
    place in an open gate for so long is not helped by opening it again. ``provider_after``: an
    unavailable provider closes the gate after so long.
    """

    open_after: float = 5.0
    open_slots: int = 1
    scarce_for: float = 30.0
    close_slots: int = 2
    close_fraction: float = 0.1
    close_after: float = 180.0
    stable_for: float = 600.0
    cold_start_factor: float = 3.0
    cold_start: float = 120.0
    """What a cold start takes where none was seen yet."""
    failed_quiet: float = 1800.0
    """How long no pod is brought home after that went wrong; doubled by each failure in a row."""
    dwell: float = 120.0
    max_transitions: int = 6
    transitions_window: float = 3600.0
    futile_after: float = 30.0
    provider_after: float = 60.0
    headroom_slots: int = 0
    """Slots at home that are kept free on purpose."""


@dataclass(frozen=True, slots=True)
class SignalLimits:
    """When a signal is not believed. ``shrunken_fraction``: so much fewer home nodes in one step
    are a mistake of the source, until they have stood for ``shrunken_hold``."""

    stale_after: float = 120.0
    """Data older than this is stale: at once, nobody is moved any more. With a scrape every minute
    and a question every 15 s the youngest data are up to 75 s old."""
    long_stale_after: float = 300.0
    """From here on only the API server's own word opens the gate."""
    shrunken_fraction: float = 0.3
    shrunken_hold: float = 300.0


@dataclass(frozen=True, slots=True)
class BreakEven:
    """What bringing a pod home must earn. Without a remote price nothing is known and all is
    allowed. USD; ``expected_quiet`` is how long home will probably stay free."""

    expected_quiet: float = 3600.0
    home_usd_per_gpu_hour: float = 0.0
    disruption_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class HomecomingLimits:
    """How many pods are on their way home at once, and how long one may take.

    ``evictions_per_cycle`` is what the descheduler's policy lets go in one cycle: the taint is
    taken back to ``hold`` while one more cycle would pass ``max_in_flight``. ``surge``: Deployments
    get a replacement before a pod is evicted.
    """

    max_in_flight: int = 2
    max_in_flight_per_workload: int = 1
    evictions_per_cycle: int = 2
    ready_within: float = 900.0
    surge: bool = False
