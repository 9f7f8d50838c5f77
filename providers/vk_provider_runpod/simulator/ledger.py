"""What a pod is billed for: ``compute`` from its create call until it stops or is gone, then
``storage`` while it is stopped but not deleted.

Fed by ``model``; read by ``billing_api`` and over the back door.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vk_provider.testing.simulator import ledger


@dataclass(slots=True)
class Charge(ledger.Charge):
    """One stretch of time of a pod, at one rate."""

    kind: str = "compute"

    def row(self) -> dict[str, Any]:
        """As the report shows it, the owner's words beside the others."""
        shown = asdict(self)
        owner: dict[str, Any] = shown.pop("owner")
        return shown | owner
