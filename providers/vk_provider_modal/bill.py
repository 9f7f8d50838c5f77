"""Modal's prices and its own bill, hour by hour: cores, memory and GPUs together.

The service adds up by tag and not by sandbox; a pod has one sandbox at a time, so its UID will do.
Fed by ``provider``; asks the ``workspace``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from vk_provider.provider import SpendReport
from vk_provider_modal.answers import RATES
from vk_provider_modal.facts import Costs
from vk_provider_modal.messages import cost_request, group_costs
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
        for tag, usd in (await _costs(workspace, Costs(UID, hour, until))).items():
            sandbox_id = sandbox_of(tag)
            if sandbox_id is not None:
                found.append(SpendReport(sandbox_id, hour, min(end, now), usd))
        hour = end
    return found


async def read_rates(workspace: Workspace) -> Mapping[str, str]:
    """The account's live price table, raw."""
    found: Mapping[str, str] = await workspace.ask(RATES, "rates")
    return found


async def _costs(workspace: Workspace, question: Costs) -> Mapping[str, float]:
    """What sandboxes cost in USD, by the value of one of their tags: all pages of it."""
    request = cost_request(question)
    found: dict[str, float] = {}
    while True:
        page = await workspace.ask(RATES, "costs", request)
        found.update(group_costs(page, question.group_by))
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token
