"""Modal's own bill, hour by hour: what each sandbox cost, cores, memory and GPUs together.

The service adds up by tag and not by sandbox; a pod has one sandbox at a time, so its UID will do.
Fed by ``provider.read_spend``; asks the ``workspace``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from vk_provider.provider import SpendReport
from vk_provider_modal.facts import Costs
from vk_provider_modal.stamp import UID
from vk_provider_modal.workspace import Workspace

HOUR = timedelta(hours=1)


async def read_spend(
    workspace: Workspace, sandbox_of: Callable[[str], str | None], since: datetime
) -> Sequence[SpendReport]:
    """One report per sandbox and clock hour; one call each hour (a few hours are asked for)."""
    now, hour = datetime.now(UTC), since.astimezone(UTC)
    found: list[SpendReport] = []
    while hour < now:
        end = hour + HOUR
        until = end if end <= now else None
        for tag, usd in (await workspace.costs(Costs(UID, hour, until))).items():
            sandbox_id = sandbox_of(tag)
            if sandbox_id is not None:
                found.append(SpendReport(sandbox_id, hour, min(end, now), usd))
        hour = end
    return found
