"""The gate on a real control plane: training pushes, inference flows out and comes home."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e import bursting_stage as stage
from tests.e2e.node_under_test import USER, NodeUnderTest
from tests.e2e.workloads import Workloads
from tests.rig import audit, identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPENS_WITHIN = 10.0
REPLICAS = 4


@pytest_asyncio.fixture(loop_scope="session")
async def gated(control_plane: ControlPlane) -> AsyncIterator[NodeUnderTest]:
    """A node that takes part, beside one home node with four GPUs."""
    await stage.prepare(control_plane)
    rules = [stage.rules()]
    async with NodeUnderTest(control_plane, "gated", stage.SPEC, beside=rules) as node:
        yield node


async def test_training_pushes_inference_out_and_it_comes_home(
    gated: NodeUnderTest, workloads: Workloads
) -> None:
    """Hold, open within ten seconds of the preemption, hold, return in steps, hold."""
    mark = workloads.bed.audit_mark()
    await stage.gate_is(gated, "hold")
    assert "vk-provider.dev/prefer-home" in [
        t["key"] for t in (await gated.node())["spec"]["taints"]
    ]
    await workloads.create("deployments", stage.inference(REPLICAS))
    await stage.placed(workloads, gated.name, (REPLICAS, 0))

    begun = time.monotonic()
    await workloads.create_pod("train", stage.training(REPLICAS))
    opened = await stage.gate_is(gated, "open", OPENS_WITHIN)
    assert (opened["reason"], time.monotonic() - begun < OPENS_WITHIN) == ("PodsWaiting", True)
    await stage.placed(workloads, gated.name, (0, REPLICAS))
    costs = [
        pod["metadata"]["annotations"].get("controller.kubernetes.io/pod-deletion-cost")
        for pod in await workloads.pods("app=chat")
        if pod["spec"].get("nodeName") == gated.name
    ]
    assert set(costs) <= {None, "-100"}

    await workloads.delete("pods", "train", grace=0)
    await stage.gate_is(gated, "return")
    await _home_in_steps(gated, workloads)
    assert (await stage.gate_is(gated, "hold"))["reason"] == "AllHome"
    await stage.placed(workloads, gated.name, (REPLICAS, 0))
    events = await workloads.bed.settled_audit_events(mark)
    assert audit.describe(audit.forbidden(events, USER)) == ""
    assert audit.count(events, user=USER, verb="patch", resource="pods") == REPLICAS
    await stage.clear(workloads)


async def test_a_new_leader_goes_on_where_the_old_one_was_killed(
    gated: NodeUnderTest, workloads: Workloads
) -> None:
    """In the middle of a return: same state, same moment, and everybody gets home."""
    await workloads.create("deployments", stage.inference(REPLICAS))
    await stage.placed(workloads, gated.name, (REPLICAS, 0))
    await workloads.create_pod("train", stage.training(REPLICAS))
    await stage.placed(workloads, gated.name, (0, REPLICAS))
    await workloads.delete("pods", "train", grace=0)
    before = await stage.gate_is(gated, "return")

    await gated.restart(kill=True)
    await eventually(lambda: _resumed(gated), "the new leader took the gate up")
    after = stage.state_of(await gated.node())
    assert (after["state"], after["since"]) == ("return", before["since"])
    await _home_in_steps(gated, workloads)
    assert (await stage.gate_is(gated, "hold"))["reason"] == "AllHome"
    await stage.clear(workloads)


async def test_a_return_that_nobody_watches_becomes_hold(control_plane: ControlPlane) -> None:
    """Another replica holds the Lease and is silent: the node takes the taint back itself."""
    await stage.prepare(control_plane)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "silent", "namespace": identity.NAMESPACE},
        "spec": {"holderIdentity": "stranger", "leaseDurationSeconds": 3600},
    }
    await control_plane.apply([lease])
    election = {"name": "silent", "namespace": identity.NAMESPACE}
    rules = [stage.rules(leaderElection=election)]
    async with NodeUnderTest(control_plane, "unwatched", stage.SPEC, beside=rules) as node:
        found = (await node.node())["spec"]["taints"]
        taints = [taint for taint in found if taint["key"] != stage.GATE_TAINT]
        assert len(taints) == len(found) - 1, "a managed gate is held from the first moment"
        returning = {"key": stage.GATE_TAINT, "value": "return", "effect": "NoSchedule"}
        await control_plane.request_json(
            "PATCH",
            node.path,
            {"spec": {"taints": [*taints, returning]}},
            content_type="application/merge-patch+json",
        )
        state = await stage.gate_is(node, "hold")
        assert state["reason"] == "ControllerSilent"
        assert stage.gate_of(await node.node()) == "hold"


async def test_a_node_that_takes_part_no_longer_is_clean_again(
    control_plane: ControlPlane,
) -> None:
    """Its gate and its preference go; a gate that somebody else set stays."""
    await stage.prepare(control_plane)
    async with NodeUnderTest(control_plane, "leaver", stage.SPEC, beside=[stage.rules()]) as node:
        await stage.gate_is(node, "hold")
        await node.stop()
        async with NodeUnderTest(control_plane, "leaver", replica="b") as plain:
            found = await plain.node()
            assert [taint["key"] for taint in found["spec"]["taints"]] == [
                "virtual-kubelet.io/provider"
            ]
            assert stage.GATE_STATE not in found["metadata"]["annotations"]


async def _resumed(gated: NodeUnderTest) -> bool:
    return "gate of gated: resuming at return" in gated.log


async def _home_in_steps(gated: NodeUnderTest, workloads: Workloads) -> None:
    """Two at a time; while they are on their way the taint lets nobody follow."""
    await eventually(lambda: _taint(gated, "return"), "the taint says return")
    await stage.evict(workloads, gated.name, 2)
    await stage.placed(workloads, gated.name, (2, 2))
    await eventually(lambda: _taint(gated, "return"), "the taint says return again")
    await stage.evict(workloads, gated.name, 2)


async def _taint(gated: NodeUnderTest, value: str) -> bool:
    return stage.gate_of(await gated.node()) == value
