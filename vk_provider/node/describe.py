"""What ``kubectl describe node`` tells a person about the backends and the door.

Fed by what the loops know of each backend; feeds :mod:`vk_provider.node.object` (annotations and
the message of condition ProviderReady). Times in annotations are wall-clock times, since a person
reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vk_provider.node import names

_MAX_MESSAGE = 512


@dataclass(frozen=True, slots=True)
class BackendView:
    """One backend as a person should see it.

    ``health`` is a short sentence: ``ok``, or what is wrong. ``is_ready`` is whether it answers
    and accepts our credentials (out of capacity is healthy). ``capabilities`` are the words of
    ``provider.capabilities``. ``usd_per_hour`` sums what runs there; None where it has no prices.
    """

    name: str
    provider: str
    health: str = "ok"
    is_ready: bool = True
    capabilities: Sequence[str] = ()
    instances: int = 0
    usd_per_hour: float | None = None


Closed = tuple[str | None, str, datetime | None]
"""Why the door is closed (the taint's value), in words, and until when."""


def render_annotations(backends: Sequence[BackendView], closed: Closed) -> dict[str, str | None]:
    """One annotation per backend, the totals, and the door."""
    prices = [one.usd_per_hour for one in backends if one.usd_per_hour is not None]
    return {
        **{f"{names.BACKEND}{one.name}": backend_line(one) for one in backends},
        names.RUNNING_INSTANCES: str(sum(one.instances for one in backends)),
        names.USD_PER_HOUR: f"{sum(prices):.2f}" if prices else None,
        names.DOOR: door_line(closed),
    }


def stale_annotations(current: Mapping[str, str], backends: Sequence[BackendView]) -> list[str]:
    """Annotations of backends that are configured no longer."""
    known = {f"{names.BACKEND}{one.name}" for one in backends}
    return sorted(key for key in current if key.startswith(names.BACKEND) and key not in known)


def backend_line(backend: BackendView) -> str:
    """``runpod: ok; 3 instances, 5.97 USD/h; offers, logs``."""
    instances = f"{backend.instances} instance{'' if backend.instances == 1 else 's'}"
    if backend.usd_per_hour is not None:
        instances += f", {backend.usd_per_hour:.2f} USD/h"
    parts = [f"{backend.provider}: {_cut(backend.health)}", instances]
    return "; ".join([*parts, ", ".join(backend.capabilities) or "no optional capabilities"])


def door_line(closed: Closed) -> str:
    """``open``, or why it is closed and until when."""
    reason, message, until = closed
    if reason is None:
        return _cut(f"open: {message}" if message else "open")
    line = f"closed: {reason}"
    if until is not None:
        line += f" until {until.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}"
    return _cut(f"{line}: {message}" if message else line)


def provider_ready(
    backends: Sequence[BackendView], warnings: Sequence[str] = ()
) -> tuple[str, str, str]:
    """Status, reason and message of condition ProviderReady: False only if no backend works.
    ``warnings`` (of a budget that is nearly spent) stand in its message."""
    message = _cut("; ".join([*warnings, *(f"{one.name}: {one.health}" for one in backends)]))
    ready = [one.is_ready for one in backends]
    if ready and all(ready):
        return "True", "BackendsReady", message
    if any(ready):
        return "True", "SomeBackendsNotReady", message
    return "False", "NoBackendReady", message or "no backend is configured"


def _cut(text: str) -> str:
    """One line, short enough for a terminal."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE else line[: _MAX_MESSAGE - 3] + "..."
