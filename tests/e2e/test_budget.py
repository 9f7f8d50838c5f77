"""A budget on a real API server: what people see of it, a door that closes, a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import Workloads, pod_template, reason_of
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

OFFERS = {"offers": [{"name": "cpu", "usdPerHour": 7200}]}
NODE_SPEC = {
    "tickSeconds": 1,
    "backends": [{"name": "fake", "provider": "fake", "config": OFFERS}],
    "placement": {"budget": {"usdPerHour": 10000, "usdPerMonth": 1e6}},
}


async def note(node: NodeUnderTest, name: str) -> str:
    """An annotation of the Node."""
    found: dict[str, Any] = await node.node()
    return str(found["metadata"]["annotations"].get(f"vk-provider.dev/{name}", ""))


async def spent(node: NodeUnderTest) -> float:
    """The month's sum as the Node remembers it."""
    line = json.loads(await note(node, "spent") or "{}").get("spent", {})
    return float(max((sums[""] for key, sums in line.items() if len(key) == 7), default=0.0))


async def test_a_budget_is_seen_closes_the_door_and_outlives_a_restart(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """The first pod leaves too little of the hour for a second one, which is told why."""
    await workloads.create_pod("first", pod_template(node.name))
    await workloads.pod_in("first", "Running")

    async def is_closed() -> bool:
        taints = (await node.node())["spec"].get("taints", [])
        return any(each.get("value") == "budget" for each in taints)

    await eventually(is_closed, "the door is closed for want of money")

    async def is_told() -> bool:
        return "72 % of the node's budget of 10000.00 USD/h is taken" in await note(node, "budget")

    await eventually(is_told, "the Node tells how much is taken")
    await workloads.create_pod("second", pod_template(node.name, nodeName=node.name))
    second = await workloads.pod_in("second", "Failed")
    assert reason_of(second) == "OutOfCapacity"
    assert "USD/h is taken by what runs" in second["status"]["message"]

    await node.stop()
    before = await spent(node)
    assert before > 0
    await node.start()
    await node.until_leading()

    async def has_gone_on() -> bool:
        return await spent(node) >= before

    await eventually(has_gone_on, "the new process goes on from there")
