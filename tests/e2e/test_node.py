"""The Node on the real control plane: registration, truthfulness, leadership, ports."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.node_under_test import USER, NodeUnderTest, condition
from tests.e2e.workloads import Workloads, deployment, pod_template
from tests.rig import audit
from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

PRICED = {
    "name": "cloud",
    "provider": "fake",
    "config": {"offers": [{"name": "small", "usdPerHour": 0.25}]},
}
NODE_SPEC = {
    "labels": {"topology.kubernetes.io/zone": "outside"},
    "backends": [PRICED],
}


async def test_registers_as_a_complete_node(node: NodeUnderTest) -> None:
    """Labels, taint, conditions, an address and port that the API server can dial (C066)."""
    found = await node.node()

    labels, status = found["metadata"]["labels"], found["status"]
    assert labels["type"] == "virtual-kubelet"
    assert labels["kubernetes.io/hostname"] == node.name
    assert labels["topology.kubernetes.io/zone"] == "outside"
    assert {
        "key": "virtual-kubelet.io/provider",
        "value": "vk-provider",
        "effect": "NoSchedule",
    } in found["spec"]["taints"]
    assert {kind: condition(found, kind)["status"] for kind in ("Ready", "ProviderReady")} == {
        "Ready": "True",
        "ProviderReady": "True",
    }
    for pressure in ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"):
        assert condition(found, pressure)["status"] == "False"
    assert status["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}]
    assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == node.port
    assert status["capacity"]["pods"] == status["allocatable"]["pods"] == "500"
    assert status["nodeInfo"]["kubeletVersion"].startswith(f"v{node.bed.kube_version}")


async def test_taint_is_there_from_the_first_write(control_plane: ControlPlane) -> None:
    """No pod slips onto a node that is only half made (C058)."""
    taints: list[Any] = []
    watch = asyncio.create_task(_first_node(control_plane, "first-write", taints))
    try:
        async with NodeUnderTest(control_plane, "first-write"):
            await asyncio.wait_for(watch, 20)
    finally:
        watch.cancel()

    assert "virtual-kubelet.io/provider" in [taint["key"] for taint in taints[0]]


async def _first_node(bed: ControlPlane, name: str, taints: list[Any]) -> None:
    """The taints of the first version of a Node, by a watch that began before it."""
    path = f"/api/v1/nodes?watch=1&timeoutSeconds=60&fieldSelector=metadata.name={name}"
    async for line in bed.stream_lines(path):
        taints.append(json.loads(line)["object"]["spec"].get("taints", []))
        return


async def test_foreign_node_is_never_adopted(control_plane: ControlPlane) -> None:
    """The process ends with 2, says what to do, and has changed nothing."""
    await control_plane.request_json("POST", "/api/v1/nodes", {"metadata": {"name": "theirs"}})
    mark = control_plane.audit_mark()
    ours = NodeUnderTest(control_plane, "theirs", wait=False)
    await ours.start()

    code = await asyncio.wait_for(control_plane.wait(ours.process), 30)

    assert code == 2
    assert "node theirs exists and was not made by vk-provider" in ours.log
    events = audit.select(await control_plane.settled_audit_events(mark), user=USER)
    assert not [
        event
        for event in events
        if audit.resource_of(event).startswith("nodes") and event["verb"] != "get"
    ]
    await control_plane.request_json("DELETE", "/api/v1/nodes/theirs")


async def test_own_node_is_adopted_and_foreign_taints_stay(
    node: NodeUnderTest, control_plane: ControlPlane
) -> None:
    """A clean stop leaves Ready True, and a second start edits only what is ours."""
    before = await node.node()
    await control_plane.kubectl("taint", "node", node.name, "example.com/theirs=x:NoExecute")
    await control_plane.kubectl("label", "node", node.name, "example.com/theirs=x")

    assert await node.stop() == 0
    stopped = await node.node()
    assert condition(stopped, "Ready")["status"] == "True"
    await node.start()

    after = await node.node()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"]["example.com/theirs"] == "x"
    keys = [taint["key"] for taint in after["spec"]["taints"]]
    assert sorted(keys) == ["example.com/theirs", "virtual-kubelet.io/provider"]
    await control_plane.kubectl("taint", "node", node.name, "example.com/theirs-")


async def test_clean_stop_hands_leadership_over_at_once(node: NodeUnderTest) -> None:
    """The Lease is given up, so the next start need not wait for it to run out."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    await node.restart()

    assert loop.time() - begun < 12


async def test_lease_is_renewed(node: NodeUnderTest) -> None:
    """Every ten seconds of forty, and it belongs to the Node."""

    async def renewed() -> str:
        lease = await node.bed.get_json(node.lease_path)
        return str(lease["spec"]["renewTime"])

    first = await renewed()

    async def later() -> str | None:
        now = await renewed()
        return now if now != first else None

    second = await eventually(later, "a renewal", seconds=15, interval=0.5)

    lease = await node.bed.get_json(node.lease_path)
    gap = datetime.fromisoformat(second) - datetime.fromisoformat(first)
    assert 5 < gap.total_seconds() < 15
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["name"] == node.name


async def test_deleted_node_is_registered_anew_and_keeps_its_pods(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """With the same labels and taints; no pod is made twice (C052)."""
    await workloads.create_pod("app", pod_template(node.name))
    pod = await workloads.pod_in("app", "Running")
    before = await node.node()

    await workloads.bed.request_json("DELETE", node.path)

    async def anew() -> dict[str, Any] | None:
        try:
            found = await node.node()
        except ApiError:
            return None
        return found if condition(found, "Ready").get("status") == "True" else None

    after = await eventually(anew, "the Node", seconds=30)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    for key in ("type", "kubernetes.io/hostname", "topology.kubernetes.io/zone"):
        assert after["metadata"]["labels"][key] == before["metadata"]["labels"][key]
    assert "virtual-kubelet.io/provider" in [taint["key"] for taint in after["spec"]["taints"]]
    kept = await workloads.pod_in("app", "Running")
    assert kept["metadata"]["uid"] == pod["metadata"]["uid"]
    assert kept["status"]["containerStatuses"] == pod["status"]["containerStatuses"]
    await eventually(lambda: _leases(node, after), "a Lease of the new Node", seconds=40)


async def _leases(node: NodeUnderTest, owner: dict[str, Any]) -> bool:
    """Whether the Lease belongs to this Node: the old one's was collected with it."""
    try:
        lease = await node.bed.get_json(node.lease_path)
    except ApiError:
        return False
    return bool(lease["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"])


async def test_removed_node_leaves_no_instance_and_stays_away(
    control_plane: ControlPlane, namespace: str
) -> None:
    """As docs/operating.md has it: cordon, drain, stop, delete. A cordon outlives our writes."""
    name, workloads = "leaving", Workloads(control_plane, namespace)
    async with NodeUnderTest(control_plane, name, {"backends": [PRICED]}) as leaving:
        await workloads.create("deployments", deployment("web", 3, pod_template(name)))
        await workloads.ready("deployments", "web", 3)

        await control_plane.kubectl("cordon", name)
        await control_plane.kubectl(
            "drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s"
        )

        async def emptied() -> dict[str, Any] | None:
            found = await leaving.node()
            left = found["metadata"]["annotations"]["vk-provider.dev/running-instances"]
            return found if left == "0" else None

        found = await eventually(emptied, "no instance is left", seconds=30)
        assert found["spec"]["unschedulable"]
        waiting = await workloads.pods()
        assert [pod["spec"].get("nodeName") for pod in waiting] == [None] * 3
        assert await leaving.stop() == 0
        await control_plane.kubectl("delete", "node", name)
        nodes = await control_plane.get_json("/api/v1/nodes")
        assert name not in [node["metadata"]["name"] for node in nodes["items"]]


async def test_describe_shows_backends_price_and_door(
    node: NodeUnderTest, workloads: Workloads
) -> None:
    """What a person looks for is in `kubectl describe node`."""
    await workloads.create("deployments", deployment("web", 2, pod_template(node.name)))
    await workloads.ready("deployments", "web", 2)

    async def shown() -> str | None:
        text = await workloads.bed.kubectl("describe", "node", node.name)
        return text if "usd-per-hour: 0.75" in text else None

    await workloads.create_pod("app", pod_template(node.name))
    text = await eventually(shown, "the price of three instances", seconds=30, interval=0.5)

    assert "vk-provider.dev/backend-cloud: fake: ok; 3 instances, 0.75 USD/h" in text
    assert "vk-provider.dev/door: open" in text
    assert "vk-provider.dev/running-instances: 3" in text
    assert "cloud: ok" in text


async def test_kubelet_port_refuses_nobody_in_particular(node: NodeUnderTest) -> None:
    """Anonymous callers see nothing; an administrator does (C076)."""
    for path in ("/healthz", "/pods", "/runningpods", "/containerLogs/a/b/c", "/exec/a/b/c"):
        status, _ = await node.kubelet(path, known=False)
        assert status == 401, path

    assert (await node.kubelet("/healthz"))[0] == 200
    assert (await node.kubelet("/pods"))[0] == 200
    said = await node.kubelet("/exec/a/b/c?command=x&output=1")
    assert said == (404, "pod does not exist")


async def test_plain_port_serves_probes_and_metrics(node: NodeUnderTest) -> None:
    """Without an identity, and without a word about pods."""
    assert (await node.plain("/livez"))[0] == 200
    assert (await node.plain("/readyz"))[0] == 200
    assert await node.metric("vk_provider_leader", node=node.name) == 1
    assert await node.metric("vk_provider_backend_up", node=node.name, backend="cloud") == 1
    assert (await node.plain("/pods"))[0] == 404


async def test_second_replica_takes_over_from_a_killed_leader(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Within the Node's Lease of 40 s, never NotReady; until then it only waits (C057)."""
    workloads = Workloads(control_plane, namespace)
    spec = {"backends": [{"name": "fake", "provider": "fake"}]}
    first = NodeUnderTest(control_plane, "pair", spec, replica="a")
    second = NodeUnderTest(control_plane, "pair", spec, replica="b", wait=False)
    async with first, second:
        await workloads.create_pod("app", pod_template("pair"))
        await workloads.pod_in("app", "Running")

        async def waits() -> bool:
            try:
                return (await second.plain("/readyz"))[0] == 200
            except OSError:
                return False

        await eventually(waits, "the second replica waits and is ready")
        assert "is up, kubelet port" not in second.log
        states: list[str] = []
        looking = asyncio.create_task(_watch_ready(first, states))

        await first.kill()
        await asyncio.wait_for(second.until_leading(), 40)

        looking.cancel()
        found = await second.node()
        assert set(states) == {"True"}
        assert found["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == second.port
        await workloads.create_pod("next", pod_template("pair"))
        await workloads.pod_in("next", "Running")


async def _watch_ready(node: NodeUnderTest, states: list[str]) -> None:
    while True:
        states.append(condition(await node.node(), "Ready")["status"])
        await asyncio.sleep(0.5)
