"""What the workspace pays and what its sandboxes have cost, as the service tells it.

Fed by ``control``; reads the ledger, which is exact, where the service itself is minutes late.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC
from typing import Any

from modal_proto import api_pb2

from vk_provider_modal.simulator.model import (
    CORE_USD_PER_SECOND,
    GIB_USD_PER_SECOND,
    GPU_USD_PER_SECOND,
)
from vk_provider_modal.simulator.state import State

_Group = api_pb2.SandboxStatsGroup


async def rates(state: State, request: Any) -> api_pb2.WorkspaceBillingRatesResponse:
    """``WorkspaceBillingRates``: by the second, as the price page has them."""
    table = {f"gpu_{name}": f"{rate:.6f}" for name, rate in GPU_USD_PER_SECOND.items()}
    table |= {"cpu": f"{CORE_USD_PER_SECOND:.10f}", "memory": f"{GIB_USD_PER_SECOND:.10f}"}
    return api_pb2.WorkspaceBillingRatesResponse(rates=table)


async def costs(state: State, request: Any) -> api_pb2.SandboxGetTimeRangeStatsResponse:
    """``SandboxGetTimeRangeStats``: what an App's sandboxes cost, added up by their tags."""
    since, until = request.since.ToDatetime(UTC).timestamp(), state.clock.now()
    if request.HasField("until"):
        until = min(until, request.until.ToDatetime(UTC).timestamp())
    groups: dict[tuple[str | None, ...], float] = defaultdict(float)
    for charge in state.model.ledger.charges:
        usd, wish = charge.usd_within(since, until), state.model.sandboxes[charge.instance].wish
        if usd > 0 and wish.app_id == request.app_id:
            groups[tuple(map(wish.tags.get, request.group_by_tags))] += usd
    answer = api_pb2.SandboxGetTimeRangeStatsResponse()
    for values, usd in groups.items():
        tags = dict(zip(request.group_by_tags, values, strict=True))
        answer.groups.append(
            _Group(
                tags={name: _Group.TagValue(value=value) for name, value in tags.items()},
                cost=usd,
                cost_str=f"{usd:.10f}",
            )
        )
    return answer
